package remote

import (
	"bytes"
	"testing"
	"testing/iotest"
)

// feed gives data to a response as a connection would, at most step bytes at
// a time, and then the close.
func feed(p *response, data []byte, step int) (done bool, err error) {
	p.reset()
	for len(data) > 0 {
		if err := p.room(); err != nil {
			return false, err
		}
		n := min(step, len(data), cap(p.buf)-len(p.buf))
		p.buf = append(p.buf, data[:n]...)
		data = data[n:]
		if done, err = p.step(false); done || err != nil {
			return done, err
		}
	}
	return p.step(true)
}

// Whatever comes, in whatever pieces: no crash, an end, the same result, and
// never more in memory than what came.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		"", "\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 404 x\r\nConnection: close\r\n\r\nno",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3;x\nabc\n0\nT: x\n\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 100 C\n\nHTTP/1.1 100 C\n\n", "HTTP/1.1 204 No\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-Tbl-Node: n\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
	} {
		f.Add([]byte(s), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		whole, pieces := response{max: 1 << 16}, response{max: 1 << 16}
		done1, err1 := feed(&whole, bytes.Clone(data), len(data)+1)
		done2, err2 := feed(&pieces, bytes.Clone(data), int(step)+1)
		if done1 && err1 != nil || !done1 && err1 == nil || done2 && err2 != nil {
			t.Fatalf("done %v with %v, done %v with %v", done1, err1, done2, err2)
		}
		if done1 != done2 || whole.status != pieces.status {
			t.Fatalf("in one piece: %v %v status %d, in pieces of %d: %v %v status %d", done1, err1, whole.status, int(step)+1, done2, err2, pieces.status)
		}
		if !done1 {
			return
		}
		if len(whole.body) > len(data) || whole.status < 100 || whole.status > 999 {
			t.Fatalf("a body of %d bytes and status %d out of %d bytes", len(whole.body), whole.status, len(data))
		}
		// An error's body is read only as far as it is shown.
		if whole.status == 200 && (!bytes.Equal(whole.body, pieces.body) || !bytes.Equal(whole.node, pieces.node)) {
			t.Fatalf("in one piece %q, in pieces %q", whole.body, pieces.body)
		}
	})
}

// Large answers grow the buffer by doubling and are read to the last byte.
func TestLargeAnswer(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for _, head := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"} {
		p := response{max: 2 << 20}
		r := iotest.HalfReader(bytes.NewReader(append([]byte(head), body...)))
		for {
			if err := p.room(); err != nil {
				t.Fatal(err)
			}
			n, err := r.Read(p.buf[len(p.buf):cap(p.buf)])
			p.buf = p.buf[:len(p.buf)+n]
			done, stepErr := p.step(err != nil)
			if stepErr != nil {
				t.Fatal(stepErr)
			}
			if done {
				break
			}
		}
		if !bytes.Equal(p.body, body) {
			t.Errorf("%d bytes of body, want %d", len(p.body), len(body))
		}
		p = response{max: 1 << 19}
		if done, err := feed(&p, append([]byte(head), body...), 1<<16); done || err != errTooLarge {
			t.Errorf("over the bound: %v, %v", done, err)
		}
	}
}
