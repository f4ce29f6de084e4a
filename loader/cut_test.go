package loader_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"tbl/loader"
	"tbl/target"
	"tbl/target/remote"
)

// rude is a server that answers every load rightly, and then misbehaves on
// every third of them.
func rude(t *testing.T, misbehave func(c *net.TCPConn, answer string)) (addr string, done *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	done = new(atomic.Int64)
	handle := func(c *net.TCPConn) {
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		body := "tmm=0 total_tmms=1\n"
		n := int64(0)
		if req.URL.Path == "/load" {
			n = done.Add(1)
			body = fmt.Sprintf("tmm=0 subtable=localdb_tmm_0_1 key=%s\n", req.URL.Query().Get("key"))
		}
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
		if n%3 == 1 {
			misbehave(c, answer)
			return
		}
		fmt.Fprint(c, answer)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go handle(c.(*net.TCPConn))
		}
	}()
	return ln.Addr().String(), done
}

// Whatever becomes of the answer: every request is counted once, in the right
// class, and nothing is sent twice.
func TestRudeServers(t *testing.T) {
	drained := func(c *net.TCPConn) { // let what was sent arrive before the reset
		buf := make([]byte, 1)
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		c.Read(buf)
	}
	tests := []struct {
		name string
		do   func(c *net.TCPConn, answer string)
		want map[target.Class]bool // the classes that it may be
	}{
		{"closed without an answer", func(*net.TCPConn, string) {}, map[target.Class]bool{target.ClassReset: true}},
		{"reset without an answer", func(c *net.TCPConn, _ string) { c.SetLinger(0) }, map[target.Class]bool{target.ClassReset: true}},
		{"reset in the answer", func(c *net.TCPConn, a string) {
			fmt.Fprint(c, a[:len(a)-10])
			drained(c)
			c.SetLinger(0)
		}, map[target.Class]bool{target.ClassReset: true, target.ClassTruncated: true}},
		{"reset after the answer", func(c *net.TCPConn, a string) {
			fmt.Fprint(c, a)
			drained(c)
			c.SetLinger(0)
		}, map[target.Class]bool{}},
		{"cut answer", func(c *net.TCPConn, a string) { fmt.Fprint(c, a[:len(a)-10]) }, map[target.Class]bool{target.ClassTruncated: true}},
		{"garbage", func(c *net.TCPConn, _ string) { fmt.Fprint(c, "\x00\x01garbage\r\n\r\n\xff") }, map[target.Class]bool{target.ClassMalformed: true, target.ClassTruncated: true}},
		{"another page", func(c *net.TCPConn, _ string) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}, map[target.Class]bool{target.ClassMalformed: true}},
		{"500", func(c *net.TCPConn, _ string) {
			fmt.Fprint(c, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
		}, map[target.Class]bool{target.ClassHTTP5xx: true}},
	}
	for _, portable := range []bool{true, false} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/portable=%v", tt.name, portable), func(t *testing.T) {
				addr, done := rude(t, tt.do)
				r, err := loader.Load(t.Context(), client(t, addr, remote.Config{Portable: portable}),
					loader.LoadConfig{Count: 60, Workers: 6, Retries: 2})
				if err != nil {
					t.Fatal(err)
				}
				for class, n := range adds(t, r.Accounting) {
					if !tt.want[class] {
						t.Errorf("%d of class %v: %+v", n, class, r.Errors)
					}
				}
				if want := int64(20); len(tt.want) > 0 && r.Failed != want || len(tt.want) == 0 && r.Failed != 0 {
					t.Errorf("%d failed: %+v", r.Failed, r.Errors)
				}
				if done.Load() != 60 || r.Retries != 0 {
					t.Errorf("the server did %d of 60, %d retries", done.Load(), r.Retries)
				}
			})
		}
	}
}
