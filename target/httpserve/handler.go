package httpserve

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"tbl/target"
	"tbl/target/wire"
)

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// work is what one request needs; pooled.
type work struct {
	req target.Request
	ans target.Answer
	out []byte
}

// maxKept bounds the buffers that go back to the pool.
const maxKept = 1 << 20

func (s *Server) release(w *work) {
	if cap(w.out) > maxKept {
		w.out = nil
	}
	if cap(w.req.Body) > 2*maxKept {
		w.req.Body = nil
	}
	if len(w.ans.List) > maxKept/16 {
		w.ans = target.Answer{}
	}
	s.works.Put(w)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c == nil { // served by somebody else's http.Server
		c = &conn{}
		if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			c.tuple.Src = unmap(a)
		}
	}
	if !s.allowed(c.tuple.Src.Addr()) {
		fail(rw, http.StatusForbidden, "this address is not allowed here")
		return
	}
	s.nameNode(rw)
	ep, ok := wire.Find(r.URL.Path)
	if !ok {
		if s.cfg.Extra != nil {
			s.cfg.Extra.ServeHTTP(rw, r)
			return
		}
		fail(rw, http.StatusNotFound, "no such endpoint")
		return
	}
	if r.Method != ep.Method {
		rw.Header().Set("Allow", ep.Method)
		fail(rw, http.StatusMethodNotAllowed, "want "+ep.Method)
		return
	}
	if ep.Guarded && !s.authorized(r) {
		rw.Header().Set("WWW-Authenticate", "Bearer")
		fail(rw, http.StatusUnauthorized, "token missing or wrong")
		return
	}
	w, _ := s.works.Get().(*work)
	if w == nil {
		w = new(work)
	}
	defer s.release(w)
	req := &w.req
	*req = target.Request{
		Op: ep.Op, Conn: c.tuple,
		Subtable: req.Subtable[:0], Key: req.Key[:0], Value: req.Value[:0], Body: req.Body[:0],
	}
	if err := wire.ParseQuery(req, r.URL.RawQuery); err != nil {
		fail(rw, err.Status, err.Text)
		return
	}
	if req.Op == target.OpBulkLoad {
		held, err := s.readBody(rw, r, req)
		defer s.inFlight.Add(-held)
		if err != nil {
			fail(rw, err.Status, err.Text)
			return
		}
	}
	s.conns.setBusy(c, true)
	err := s.tgt.Do(r.Context(), req, &w.ans)
	s.conns.setBusy(c, false)
	if err != nil {
		s.actOut(rw, r, c, err)
		return
	}
	node := ""
	if s.cfg.NodeInBody {
		node = s.cfg.Node
	}
	w.out = wire.AppendAnswer(w.out[:0], req, &w.ans, node)
	h := rw.Header()
	if req.Op == target.OpStats {
		h.Set("Content-Type", "application/json")
	} else {
		h["Content-Type"] = plainText
	}
	h.Set("Content-Length", strconv.Itoa(len(w.out)))
	rw.Write(w.out)
}

// plainText is shared by all answers and never written to.
var plainText = []string{"text/plain; charset=utf-8"}

func (s *Server) allowed(a netip.Addr) bool {
	if len(s.cfg.Allow) == 0 {
		return true
	}
	for _, p := range s.cfg.Allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (s *Server) authorized(r *http.Request) bool {
	return s.auth == nil || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), s.auth) == 1
}

func (s *Server) nameNode(rw http.ResponseWriter) {
	if s.cfg.Node == "" {
		return
	}
	rw.Header().Set(wire.NodeHeader, s.cfg.Node)
	if s.cfg.NodeCookie != "" {
		http.SetCookie(rw, &http.Cookie{Name: s.cfg.NodeCookie, Value: s.cfg.Node, Path: "/"})
	}
}

func fail(rw http.ResponseWriter, status int, text string) {
	h := rw.Header()
	h["Content-Type"] = plainText
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	rw.WriteHeader(status)
	io.WriteString(rw, text+"\n")
}

// readBody reads the keys of a bulk load into req.Body, in steps, so that a
// client that announces much and sends little holds little memory. held is
// what it entered into s.inFlight.
func (s *Server) readBody(rw http.ResponseWriter, r *http.Request, req *target.Request) (held int64, _ *wire.StatusError) {
	n := r.ContentLength
	switch {
	case n <= 0:
		return 0, &wire.StatusError{Status: http.StatusLengthRequired, Text: "a content length is required, and a body"}
	case n > wire.MaxBody:
		return 0, &wire.StatusError{Status: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body may have %d bytes", wire.MaxBody)}
	}
	// An error here means a connection that knows no deadlines; the server's
	// write time-out then bounds it.
	_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(s.cfg.BodyTimeout))
	const step = 256 << 10
	for int64(len(req.Body)) < n {
		want := int(min(n-int64(len(req.Body)), max(step, int64(len(req.Body)))))
		if s.inFlight.Add(int64(want)) > s.cfg.MaxInFlight {
			return held + int64(want), &wire.StatusError{Status: http.StatusServiceUnavailable, Text: "too many bodies at a time"}
		}
		held += int64(want)
		have := len(req.Body)
		if cap(req.Body) < have+want {
			grown := make([]byte, have, have+want)
			copy(grown, req.Body)
			req.Body = grown
		}
		req.Body = req.Body[:have+want]
		if _, err := io.ReadFull(r.Body, req.Body[have:]); err != nil {
			status := http.StatusBadRequest
			var ne interface{ Timeout() bool }
			if errors.As(err, &ne) && ne.Timeout() {
				status = http.StatusRequestTimeout
			}
			return held, &wire.StatusError{Status: status, Text: "the body ended early"}
		}
	}
	return held, nil
}
