package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"tbl/target"
	"tbl/target/wire"
)

// requestHead is what follows the request line in every request: the host and
// the caller's headers, each line ended.
func requestHead(u *url.URL, cfg *Config) ([]byte, error) {
	host := u.Host
	names := make([]string, 0, len(cfg.Header))
	for n := range cfg.Header {
		names = append(names, n)
	}
	sort.Strings(names)
	var b []byte
	auth := false
	for _, n := range names {
		if !validName(n) {
			return nil, fmt.Errorf("header %q: not a header name", n)
		}
		for _, v := range cfg.Header[n] {
			if !validValue(v) {
				return nil, fmt.Errorf("header %s: the value holds bytes that no header may have", n)
			}
			switch http.CanonicalHeaderKey(n) {
			case "Host":
				host = v
				continue
			case "Connection", "Content-Length", "Transfer-Encoding":
				return nil, fmt.Errorf("header %s is not the caller's to set", n)
			case "Authorization":
				auth = true
			}
			b = fmt.Appendf(b, "%s: %s\r\n", n, v)
		}
	}
	if cfg.Token != "" && !auth {
		if !validValue(cfg.Token) {
			return nil, fmt.Errorf("token: it holds bytes that no header may have")
		}
		b = fmt.Appendf(b, "Authorization: Bearer %s\r\n", cfg.Token)
	}
	return append(fmt.Appendf(nil, "Host: %s\r\nUser-Agent: tbl\r\n", strings.TrimSpace(host)), b...), nil
}

// appendRequest appends the whole request but for its body.
func (r *Remote) appendRequest(dst []byte, req *target.Request) []byte {
	ep, _ := wire.Of(req.Op)
	dst = append(append(dst, ep.Method...), ' ')
	dst = append(dst, r.prefix...)
	dst = wire.AppendTarget(dst, req)
	dst = append(dst, " HTTP/1.1\r\n"...)
	dst = append(dst, r.head...)
	if ep.Method == http.MethodPost {
		dst = append(dst, "Content-Type: text/plain\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, int64(len(body(req))), 10)
		dst = append(dst, "\r\n"...)
	}
	if r.cfg.KeepAlive {
		return append(dst, "Connection: keep-alive\r\n\r\n"...)
	}
	return append(dst, "Connection: close\r\n\r\n"...)
}

// body is what follows the head of req.
func body(req *target.Request) []byte {
	if req.Op == target.OpBulkLoad {
		return req.Body
	}
	return nil
}

// validName says that n is a token of RFC 9110, section 5.6.2.
func validName(n string) bool {
	for i := range len(n) {
		c := n[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return n != ""
}

// validValue says that v breaks no header: no control characters but tabs.
func validValue(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}
