package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/wire"
)

// NodeFrom says where in an answer the serving node's name stands. The zero
// value is the header that `tbl serve --node` sends.
type NodeFrom struct {
	kind, name string
	re         *regexp.Regexp
}

// ParseNodeFrom reads header:NAME, cookie:NAME or body:REGEXP. A regular
// expression with a group names the node by its first group, else by the
// whole match. A cookie counts only where the answer itself sets it: the one
// that the client keeps says who served it earlier.
func ParseNodeFrom(s string) (NodeFrom, error) {
	kind, name, _ := strings.Cut(s, ":")
	n := NodeFrom{kind: kind, name: name}
	switch {
	case kind != "header" && kind != "cookie" && kind != "body" || name == "":
		return n, fmt.Errorf("%q: want header:NAME, cookie:NAME or body:REGEXP", s)
	case kind == "body":
		var err error
		if n.re, err = regexp.Compile(name); err != nil {
			return n, fmt.Errorf("%q: %w", s, err)
		}
	}
	return n, nil
}

// String is the form that ParseNodeFrom reads.
func (n NodeFrom) String() string {
	if n.kind == "" {
		return "header:" + wire.NodeHeader
	}
	return n.kind + ":" + n.name
}

// find is the node's name in an answer, empty when it is not there.
func (n NodeFrom) find(resp *http.Response, body []byte) string {
	switch n.kind {
	case "":
		return resp.Header.Get(wire.NodeHeader)
	case "header":
		return resp.Header.Get(n.name)
	case "cookie":
		for _, c := range resp.Cookies() {
			if c.Name == n.name {
				return c.Value
			}
		}
		return ""
	}
	m := n.re.FindSubmatch(body)
	switch {
	case len(m) > 1:
		return string(m[1])
	case len(m) == 1:
		return string(m[0])
	}
	return ""
}

// maxViaBody bounds what is read of an answer, in bytes.
const maxViaBody = 1 << 20

// ViaConfig says how to ask through somebody else's load balancer.
type ViaConfig struct {
	// URL is asked with GET as it is. Only it is needed.
	URL string
	// NodeFrom is where the serving node's name stands.
	NodeFrom NodeFrom
	// Timeout bounds one request. Zero: DefaultTimeout.
	Timeout time.Duration
	// Binds are the source addresses, each session's the next one of them:
	// users of different addresses, for balancers that go by it. Empty: the
	// system chooses.
	Binds []netip.Addr
	// Header is added to every request. Host overrides the host name.
	Header http.Header
	// Token, when not empty, is sent as "Authorization: Bearer".
	Token string
	// Insecure accepts any certificate. RootCAs are trusted instead of the
	// system's; nil: the system's.
	Insecure bool
	RootCAs  *x509.CertPool
}

// Via is a black box: a URL with some balancer behind it. It asks one thing,
// who serves it, whatever the request is; every request has a connection of
// its own, and those of one session share their cookies. It is safe for
// concurrent use.
//
// Answers have Node, and Core where the node is a dataplane that says it.
type Via struct {
	cfg    ViaConfig
	url    *url.URL
	tr     *http.Transport
	next   atomic.Uint64 // source address
	closed atomic.Bool
}

var _ target.Target = (*Via)(nil)

// NewVia checks cfg. Nothing is sent.
func NewVia(cfg ViaConfig) (*Via, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("URL %q: want http://host or https://host", cfg.URL)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Via{cfg: cfg, url: u, tr: &http.Transport{
		DialContext:       dialSession,
		DisableKeepAlives: true, // a kept connection would be sticky by itself
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: cfg.Insecure, RootCAs: cfg.RootCAs},
		Protocols:         http1Only(),
	}}, nil
}

func http1Only() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// Name is the URL, without a password.
func (v *Via) Name() string { return v.url.Redacted() }

// Clock is the wall's.
func (v *Via) Clock() target.Clock { return target.Wall{} }

// Close makes later requests fail.
func (v *Via) Close() error {
	v.closed.Store(true)
	return nil
}

type sessionKey struct{}

// session is what the requests of one user have in common.
type session struct {
	jar  http.CookieJar
	from net.Addr // nil: the system chooses
}

// Session returns a context whose requests share their cookies and their
// source address, as those of one user's browser do. Without it, a request
// sends and keeps no cookies.
func (v *Via) Session(ctx context.Context) context.Context {
	jar, _ := cookiejar.New(nil) // its error is always nil
	s := &session{jar: jar}
	if n := uint64(len(v.cfg.Binds)); n > 0 {
		s.from = net.TCPAddrFromAddrPort(netip.AddrPortFrom(v.cfg.Binds[(v.next.Add(1)-1)%n], 0))
	}
	return context.WithValue(ctx, sessionKey{}, s)
}

// dialSession dials from the session's address.
func dialSession(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		d.LocalAddr = s.from
	}
	return d.DialContext(ctx, network, addr)
}

// Do asks once. The error is a *target.Error.
func (v *Via) Do(ctx context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	if v.closed.Load() {
		return &target.Error{Class: target.ClassClosed, Completion: target.CompletionUnsent, Err: errClosed}
	}
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
	}
	start := time.Now()
	// The hooks may still run, in other goroutines, when a request has failed.
	var connected, firstByte atomic.Int64
	within, cancel := context.WithTimeout(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { connected.Store(int64(time.Since(start))) },
		GotFirstResponseByte: func() { firstByte.Store(int64(time.Since(start))) },
	}), v.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodGet, v.url.String(), nil)
	if err != nil {
		return &target.Error{Class: target.ClassClient, Completion: target.CompletionUnsent, Err: err}
	}
	for name, values := range v.cfg.Header {
		req.Header[name] = values
	}
	if host := v.cfg.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if v.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+v.cfg.Token)
	}
	client := http.Client{Transport: v.tr}
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		client.Jar = s.jar
	}
	resp, err := client.Do(req)
	if err != nil {
		at := connecting
		if connected.Load() != 0 {
			at = receiving
		}
		return classify(ctx, at, false, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxViaBody))
	total := time.Since(start)
	if err != nil {
		return classify(ctx, receiving, false, err)
	}
	if resp.StatusCode >= 400 {
		e := &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: resp.StatusCode}
		if resp.StatusCode >= 500 {
			e.Class = target.ClassHTTP5xx
		}
		return e
	}
	if wire.ParseAnswer(ans, &target.Request{}, body) != nil {
		ans.Reset() // no dataplane's answer, which is all right
	}
	ans.Timing = target.Timing{Connect: time.Duration(connected.Load()), FirstByte: time.Duration(firstByte.Load()), Total: total}
	ans.Node = append(ans.Node[:0], v.cfg.NodeFrom.find(resp, body)...)
	return nil
}
