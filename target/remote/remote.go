// Package remote is a target.Target over HTTP: one fresh TCP connection per
// request, so that every request gets a new source port and with it, perhaps,
// another core.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/wire"
)

// Defaults of Config.
const (
	DefaultTimeout       = 5 * time.Second
	DefaultTimeoutPerMiB = 2 * time.Second
	DefaultMaxAnswer     = 256 << 20
)

// Config says where the dataplane is and how to reach it. Only URL is needed.
type Config struct {
	// URL is the base URL, http or https; a path in it is a prefix of every
	// endpoint's.
	URL string
	// Name is what Name returns. Empty: the base URL.
	Name string
	// Timeout bounds one request, from connecting to the whole answer. Zero:
	// DefaultTimeout. Negative: none.
	Timeout time.Duration
	// TimeoutPerMiB is added for each started MiB of a body. Zero:
	// DefaultTimeoutPerMiB. Negative: nothing is added.
	TimeoutPerMiB time.Duration
	// Binds are the source addresses, used in turn. Empty: the system chooses.
	Binds []netip.Addr
	// Header is added to every request. Host overrides the host name.
	Header http.Header
	// Token, when not empty, is sent as "Authorization: Bearer".
	Token string
	// Insecure accepts any certificate. RootCAs are trusted instead of the
	// system's; nil: the system's. Both for https only.
	Insecure bool
	RootCAs  *x509.CertPool
	// LingerReset ends connections with a reset instead of an orderly close:
	// no TIME_WAIT on either side, but a server that still reads sees an error.
	LingerReset bool
	// Portable keeps to the net package, where the fast path would be taken.
	Portable bool
	// KeepAlive uses a connection again for later requests: all requests of a
	// worker then reach one core. For measuring the wire, not for fan-out.
	KeepAlive bool
	// MaxAnswer bounds the body of an answer in bytes. Zero: DefaultMaxAnswer.
	MaxAnswer int64
}

// Remote is the target. It is safe for concurrent use.
type Remote struct {
	cfg    Config
	name   string
	prefix string // path before every endpoint
	head   []byte // header lines of every request, without Connection and Content-Length
	tls    *tls.Config

	addrs       resolver
	nextBind    atomic.Uint64
	opened      atomic.Int64
	requests    atomic.Int64
	closed      atomic.Bool
	answered    atomic.Int64 // requests without an error
	closedFirst atomic.Int64 // answers after which the server closed first
	idle        idlePool
	fast        fastPath
}

var _ target.Target = (*Remote)(nil)

// New checks cfg and prepares a target. Nothing is sent; a host name is
// resolved at the first request.
func New(cfg Config) (*Remote, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("target URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("target URL %q: want http://host:port or https://host:port", cfg.URL)
	}
	if u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("target URL %q: want a host and perhaps a path, nothing else", cfg.URL)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.TimeoutPerMiB == 0 {
		cfg.TimeoutPerMiB = DefaultTimeoutPerMiB
	}
	if cfg.MaxAnswer == 0 {
		cfg.MaxAnswer = DefaultMaxAnswer
	}
	r := &Remote{cfg: cfg, name: cfg.Name, prefix: strings.TrimSuffix(u.EscapedPath(), "/")}
	if r.name == "" {
		r.name = strings.TrimSuffix(u.Redacted(), "/")
	}
	if r.addrs, err = newResolver(u.Hostname(), port); err != nil {
		return nil, fmt.Errorf("target URL %q: %w", cfg.URL, err)
	}
	if r.head, err = requestHead(u, &cfg); err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		r.tls = &tls.Config{
			ServerName:         u.Hostname(),
			InsecureSkipVerify: cfg.Insecure,
			RootCAs:            cfg.RootCAs,
			ClientSessionCache: tls.NewLRUClientSessionCache(256),
			NextProtos:         []string{"http/1.1"},
		}
	}
	r.fast.init(r)
	return r, nil
}

// Name is Config.Name, or the base URL.
func (r *Remote) Name() string { return r.name }

// Clock is the wall's.
func (r *Remote) Clock() target.Clock { return target.Wall{} }

// Opened is the number of TCP connections that stood so far. With a fresh
// connection per request it equals the requests that reached the server.
func (r *Remote) Opened() int64 { return r.opened.Load() }

// Requests is the number of calls of Do so far, whatever became of them.
func (r *Remote) Requests() int64 { return r.requests.Load() }

// ServerClosed is the number of answers after which the server closed first:
// TIME_WAIT was then on its side.
func (r *Remote) ServerClosed() int64 { return r.closedFirst.Load() }

// FastPath says that requests take the fast path of this system.
func (r *Remote) FastPath() bool { return r.fast.enabled() }

// Close releases what the target holds. Requests under way may fail with
// ClassClosed.
func (r *Remote) Close() error {
	if r.closed.CompareAndSwap(false, true) {
		r.idle.close()
		r.fast.close()
	}
	return nil
}

var errClosed = errors.New("target is closed")

// Do sends req on a connection of its own. The error is a *target.Error.
func (r *Remote) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	r.requests.Add(1)
	if r.closed.Load() {
		return &target.Error{Class: target.ClassClosed, Completion: target.CompletionUnsent, Err: errClosed}
	}
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
	}
	if err := wire.Check(req); err != nil {
		return &target.Error{Class: target.ClassClient, Completion: target.CompletionUnsent, Err: err}
	}
	var err error
	if r.fast.takes(req) {
		err = r.fast.do(ctx, req, ans)
	} else {
		err = r.portable(ctx, req, ans)
	}
	if err == nil {
		r.answered.Add(1)
	}
	if ans.Timing.ServerClosed {
		r.closedFirst.Add(1)
	}
	return err
}

// timeout is the time that req may take; not positive: no bound.
func (r *Remote) timeout(req *target.Request) time.Duration {
	d := r.cfg.Timeout
	if d > 0 && len(req.Body) > 0 && r.cfg.TimeoutPerMiB > 0 {
		d += time.Duration((len(req.Body)+1<<20-1)>>20) * r.cfg.TimeoutPerMiB
	}
	return d
}
