package httpserve

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"tbl/target"
)

// actOut turns a failed request into what the client of such a dataplane
// would see: statuses are sent, resets and cut answers really happen.
func (s *Server) actOut(rw http.ResponseWriter, r *http.Request, c *conn, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	var te *target.Error
	if !errors.As(err, &te) {
		fail(rw, http.StatusInternalServerError, oneLine(err.Error()))
		return
	}
	switch te.Class {
	case target.ClassReset, target.ClassRefused:
		s.reset(rw)
	case target.ClassTruncated:
		s.raw(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 64\r\nConnection: close\r\n\r\ntmm=")
	case target.ClassMalformed:
		s.raw(rw, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\n?!\n")
	case target.ClassTimeout:
		// Silence until the client gives up or the server is stopped.
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case target.ClassClosed, target.ClassCanceled:
		fail(rw, http.StatusServiceUnavailable, "shutting down")
	default:
		status := te.Status
		if status < 400 || status > 599 {
			status = http.StatusInternalServerError
			if te.Class == target.ClassHTTP4xx || te.Class == target.ClassClient {
				status = http.StatusBadRequest
			}
		}
		text := te.Error()
		if te.Err != nil {
			text = te.Err.Error() // the class is the client's word; here the status says it
		}
		fail(rw, status, oneLine(text))
	}
}

// oneLine keeps a text from breaking the one line of an answer.
func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return string(b)
}

// reset ends the connection with a RST.
func (s *Server) reset(rw http.ResponseWriter) {
	n := s.hijack(rw)
	raw := n
	if t, ok := n.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if l, ok := raw.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // failing, the close below is an orderly one
	}
	raw.Close()
}

// raw sends text as it is and closes.
func (s *Server) raw(rw http.ResponseWriter, text string) {
	n := s.hijack(rw)
	_, _ = n.Write([]byte(text)) // a client that has gone needs no answer
	n.Close()
}

func (s *Server) hijack(rw http.ResponseWriter) net.Conn {
	n, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection at least
	}
	return n
}
