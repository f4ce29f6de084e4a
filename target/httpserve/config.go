// Package httpserve puts a target.Target behind a listener: the server's end
// of the wire contract, on net/http.
package httpserve

import (
	"net/http"
	"net/netip"
	"time"
)

// Defaults of Config.
const (
	DefaultHeaderTimeout = 10 * time.Second
	DefaultBodyTimeout   = 60 * time.Second
	DefaultWriteTimeout  = 60 * time.Second
	DefaultIdleTimeout   = 60 * time.Second
	DefaultMaxConns      = 4096
	DefaultMaxHeader     = 64 << 10
	DefaultMaxInFlight   = 512 << 20
)

// Config is how a Server behaves. The zero value serves everybody who can
// reach the listener, without a token.
type Config struct {
	// Allow limits who may call, by source address; others get 403. Empty:
	// everybody.
	Allow []netip.Prefix
	// Token, when not empty, guards every endpoint that writes, deletes, or
	// reads or lists entries: "Authorization: Bearer TOKEN", else 401.
	Token string

	// Node names the node: sent as the header X-Tbl-Node when not empty, and
	// besides as a cookie called NodeCookie (empty: none) and, with NodeInBody,
	// as the field node= of every answer.
	Node       string
	NodeCookie string
	NodeInBody bool

	// Timeouts for reading a request's header, reading its body, writing the
	// answer, and waiting for the next request of a kept connection. Zero: the
	// defaults above.
	HeaderTimeout, BodyTimeout, WriteTimeout, IdleTimeout time.Duration
	// MaxConns bounds the open connections. At the bound a new one takes the
	// place of the one that has been idle or slow the longest; connections
	// whose request is being worked on are never the ones. Zero: the default.
	MaxConns int
	// MaxHeader bounds a request's line and header in bytes, MaxInFlight the
	// bodies that are in memory at a time. Zero: the defaults.
	MaxHeader   int
	MaxInFlight int64

	// Extra, when not nil, gets the requests for paths that are no endpoint
	// (a status page, metrics); nil: 404. Allow holds for it, Token doesn't.
	Extra http.Handler
}
