package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
	"tbl/target/remote"
)

// script is a server that reads a whole request and then does as told.
type script struct {
	ln    net.Listener
	conns atomic.Int64
}

// newScript calls act on each connection after one request was read; the
// connection is closed, orderly, when act returns.
func newScript(t testing.TB, act func(c *net.TCPConn)) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{ln: ln}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			go func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				io.Copy(io.Discard, req.Body)
				act(c.(*net.TCPConn))
			}()
		}
	}()
	return s
}

func (s *script) url() string { return "http://" + s.ln.Addr().String() }

const good = "tmm=1 subtable=s key=k\n"

func load() *target.Request { return &target.Request{Op: target.OpLoad, Key: []byte("k")} }

// Every form of answer, whole and broken, over both paths, in one piece and
// byte by byte.
func TestAnswerForms(t *testing.T) {
	chunked := "Transfer-Encoding: chunked\r\n\r\n"
	for _, tc := range []struct {
		name, answer string
		class        target.Class
		status       int
	}{
		{"with a length", "HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\n" + good, 0, 0},
		{"ended by the close", "HTTP/1.1 200 OK\r\n\r\n" + good, 0, 0},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nServer: BigIP\r\nConnection: Close\r\nContent-Length: 23\r\n\r\n" + good, 0, 0},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 23\r\n\r\n" + good, 0, 0},
		{"bare line ends", "HTTP/1.1 200 OK\ncontent-length:23\n\n" + good, 0, 0},
		{"odd case and spaces", "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: \t 23 \t\r\n\r\n" + good, 0, 0},
		{"more after the length", "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n" + good + "HTTP/1.1 200 OK\r\n", 0, 0},
		{"one chunk", "HTTP/1.1 200 OK\r\n" + chunked + "17\r\n" + good + "\r\n0\r\n\r\n", 0, 0},
		{"many chunks", "HTTP/1.1 200 OK\r\n" + chunked + "5;x=y\r\ntmm=1\r\n1 \r\n \r\n011\r\nsubtable=s key=k\n\r\n0\r\nTrailer: x\r\n\r\n", 0, 0},
		{"an interim answer first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n" + good, 0, 0},
		{"interim answers without an end", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 65) + "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n" + good, target.ClassMalformed, 0},
		{"interim answers cut", "HTTP/1.1 100 Continue\r\n\r\n", target.ClassReset, 0},

		{"nothing", "", target.ClassReset, 0},
		{"cut in the status", "HTTP/1.1 2", target.ClassTruncated, 0},
		{"cut in the header", "HTTP/1.1 200 OK\r\nContent-Le", target.ClassTruncated, 0},
		{"cut before the body", "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n", target.ClassTruncated, 0},
		{"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\ntmm=1 subtab", target.ClassTruncated, 0},
		{"cut without a length", "HTTP/1.1 200 OK\r\n\r\ntmm=1 subtable=s key=k", target.ClassTruncated, 0},
		{"cut in a chunk's size", "HTTP/1.1 200 OK\r\n" + chunked + "1", target.ClassTruncated, 0},
		{"cut in a chunk", "HTTP/1.1 200 OK\r\n" + chunked + "17\r\ntmm=", target.ClassTruncated, 0},
		{"cut before the last chunk", "HTTP/1.1 200 OK\r\n" + chunked + "17\r\n" + good + "\r\n", target.ClassTruncated, 0},
		{"cut in the trailer", "HTTP/1.1 200 OK\r\n" + chunked + "17\r\n" + good + "\r\n0\r\n", target.ClassTruncated, 0},

		{"garbage", "\x16\x03\x01 not HTTP at all\n", target.ClassMalformed, 0},
		{"HTTP/2", "HTTP/2 200\r\n\r\n" + good, target.ClassMalformed, 0},
		{"status of letters", "HTTP/1.1 abc OK\r\n\r\n", target.ClassMalformed, 0},
		{"a header without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n" + good, target.ClassMalformed, 0},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + good, target.ClassMalformed, 0},
		{"absurd length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n" + good, target.ClassMalformed, 0},
		{"length over the bound", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n" + good, target.ClassMalformed, 0},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 23\r\nContent-Length: 24\r\n\r\n" + good, target.ClassMalformed, 0},
		{"unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + good, target.ClassMalformed, 0},
		{"chunk size of letters", "HTTP/1.1 200 OK\r\n" + chunked + "xyz\r\n", target.ClassMalformed, 0},
		{"absurd chunk size", "HTTP/1.1 200 OK\r\n" + chunked + "ffffffffffffffff\r\n", target.ClassMalformed, 0},
		{"large chunk size", "HTTP/1.1 200 OK\r\n" + chunked + "fffffffffffffff\r\n", target.ClassMalformed, 0},
		{"chunk without its end", "HTTP/1.1 200 OK\r\n" + chunked + "17\r\n" + good + "xx0\r\n\r\n", target.ClassMalformed, 0},
		{"switching protocols", "HTTP/1.1 101 Switching\r\n\r\n", target.ClassMalformed, 0},
		{"another web server", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<html>It works</html>", target.ClassMalformed, 200},
		{"an empty 200", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", target.ClassMalformed, 200},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", target.ClassMalformed, 204},
		{"a redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", target.ClassMalformed, 302},

		{"not found", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n", target.ClassHTTP4xx, 404},
		{"unauthorized, cut", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 300\r\n\r\nno", target.ClassHTTP4xx, 401},
		{"server error", "HTTP/1.1 500 Oops\r\n\r\nno", target.ClassHTTP5xx, 500},
		{"gateway error in chunks", "HTTP/1.1 502 Bad\r\n" + chunked + "2\r\nno\r\n0\r\n\r\n", target.ClassHTTP5xx, 502},
	} {
		for _, p := range paths {
			for _, trickle := range []bool{false, true} {
				name := tc.name + "/" + p.name
				if trickle {
					name += "/trickle"
				}
				t.Run(name, func(t *testing.T) {
					s := newScript(t, func(c *net.TCPConn) {
						if !trickle {
							io.WriteString(c, tc.answer)
							return
						}
						for i := range len(tc.answer) {
							if _, err := io.WriteString(c, tc.answer[i:i+1]); err != nil {
								return
							}
						}
					})
					r := connect(t, remote.Config{URL: s.url(), Portable: p.portable})
					var ans target.Answer
					for range 2 { // the second time on used buffers
						err := r.Do(t.Context(), load(), &ans)
						if got := target.ClassOf(err); got != tc.class {
							t.Fatalf("class %v (%v), want %v", got, err, tc.class)
						}
						if err == nil {
							if ans.Core != 1 || string(ans.Subtable) != "s" || string(ans.Key) != "k" {
								t.Fatalf("answer %+v", ans)
							}
							if tm := ans.Timing; tm.Connect <= 0 || tm.FirstByte < tm.Connect || tm.Total < tm.FirstByte {
								t.Errorf("timing %+v", tm)
							}
							continue
						}
						var te *target.Error
						if !errors.As(err, &te) || te.Status != tc.status {
							t.Errorf("error %v, want status %d", err, tc.status)
						}
						if tc.status >= 400 && te.Completion != target.CompletionYes || tc.status < 400 && te.Completion != target.CompletionMaybe && tc.status == 0 {
							t.Errorf("completion %v", te.Completion)
						}
						if strings.ContainsAny(err.Error(), "\n\r") {
							t.Errorf("not one line: %q", err)
						}
					}
					if r.Opened() != 2 || s.conns.Load() != 2 {
						t.Errorf("%d connections opened, %d accepted, want 2", r.Opened(), s.conns.Load())
					}
				})
			}
		}
	}
}

func TestConnectionFailures(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			var ans target.Answer
			want := func(name string, r *remote.Remote, ctx context.Context, class target.Class, completion target.Completion) {
				t.Helper()
				err := r.Do(ctx, load(), &ans)
				var te *target.Error
				if !errors.As(err, &te) || te.Class != class || te.Completion != completion {
					t.Errorf("%s: %v (%+v), want %v, completion %v", name, err, te, class, completion)
				}
			}
			to := func(url string, timeout time.Duration) *remote.Remote {
				return connect(t, remote.Config{URL: url, Portable: p.portable, Timeout: timeout})
			}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			url := "http://" + ln.Addr().String()
			ln.Close()
			want("nobody listens", to(url, 0), t.Context(), target.ClassRefused, target.CompletionNotReached)
			want("no such host", to("http://no-such-host.invalid", 0), t.Context(), target.ClassRefused, target.CompletionNotReached)

			reset := newScript(t, func(c *net.TCPConn) { c.SetLinger(0) })
			want("reset before the answer", to(reset.url(), 0), t.Context(), target.ClassReset, target.CompletionMaybe)
			inside := newScript(t, func(c *net.TCPConn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\ntmm=1 ")
				c.SetLinger(0)
			})
			want("reset in the answer", to(inside.url(), 0), t.Context(), target.ClassReset, target.CompletionMaybe)

			after := newScript(t, func(c *net.TCPConn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n"+good)
				c.SetLinger(0)
			})
			resets := to(after.url(), 0)
			for range 50 { // which of the answer and the reset is seen first is chance
				if err := resets.Do(t.Context(), load(), &ans); err != nil {
					t.Errorf("reset after the answer: %v", err)
				}
				if ans.Timing.ServerClosed {
					t.Error("a reset was taken for an orderly close")
				}
			}

			silent := make(chan struct{})
			defer close(silent)
			stall := newScript(t, func(c *net.TCPConn) { <-silent })
			want("silence", to(stall.url(), 30*time.Millisecond), t.Context(), target.ClassTimeout, target.CompletionMaybe)
			half := newScript(t, func(c *net.TCPConn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\ntmm=1 ")
				<-silent
			})
			want("half an answer", to(half.url(), 30*time.Millisecond), t.Context(), target.ClassTimeout, target.CompletionMaybe)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			want("cancelled", to(stall.url(), 0), ctx, target.ClassCanceled, target.CompletionMaybe)

			open := newScript(t, func(c *net.TCPConn) {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n"+good)
				<-silent
			})
			r := to(open.url(), 0)
			for range 5 { // a server that keeps its connections open changes nothing
				if err := r.Do(t.Context(), load(), &ans); err != nil {
					t.Fatal(err)
				}
				if ans.Timing.ServerClosed {
					t.Error("the server is said to have closed")
				}
			}
			for range 100 {
				if err := r.Do(t.Context(), load(), &ans); err != nil {
					t.Fatal(err)
				}
			}
			if w := r.Warnings(); len(w) != 1 || !strings.Contains(w[0], "0 of 105 answers") {
				t.Errorf("warnings %q, want one about who closes", w)
			}
			if r.Opened() != 105 || open.conns.Load() != 105 {
				t.Errorf("%d opened, %d accepted of 105", r.Opened(), open.conns.Load())
			}
			closes := newScript(t, func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n"+good) })
			if err := to(closes.url(), 0).Do(t.Context(), load(), &ans); err != nil || !ans.Timing.ServerClosed {
				t.Errorf("server closes first: %v, %+v", err, ans.Timing)
			}
		})
	}
}

// A bulk load that is refused before its body was read is an answer, not a
// broken connection.
func TestRefusedBody(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						br := bufio.NewReader(c)
						if _, err := http.ReadRequest(br); err != nil {
							return
						}
						io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n")
						c.(*net.TCPConn).CloseWrite()
						io.Copy(io.Discard, br)
					}()
				}
			}()
			r := connect(t, remote.Config{URL: "http://" + ln.Addr().String(), Portable: p.portable})
			var ans target.Answer
			err = r.Do(t.Context(), &target.Request{Op: target.OpBulkLoad, Body: bytes.Repeat([]byte("key\n"), 1<<20)}, &ans)
			if target.ClassOf(err) != target.ClassHTTP4xx {
				t.Errorf("got %v, want http-4xx", err)
			}
		})
	}
}

func TestWhatIsSent(t *testing.T) {
	for _, p := range paths {
		got := make(chan *http.Request, 1)
		bodies := make(chan string, 1)
		srv := newRecorder(t, got, bodies)
		r := connect(t, remote.Config{
			URL: srv + "/base/", Portable: p.portable, Token: "tok",
			Header: http.Header{"X-A": {"1", "2"}, "Host": {"other.example"}},
		})
		var ans target.Answer
		if err := r.Do(t.Context(), &target.Request{Op: target.OpLoad, Key: []byte("a b"), Value: []byte("v")}, &ans); err == nil {
			t.Fatal("an empty answer was accepted")
		}
		req := <-got
		<-bodies
		if req.RequestURI != "/base/load?key=a%20b&val=v" || req.Host != "other.example" || len(req.Header["X-A"]) != 2 ||
			req.Header.Get("Authorization") != "Bearer tok" || !req.Close || req.Method != "GET" {
			t.Errorf("%s: sent %+v", p.name, req)
		}
		r.Do(t.Context(), &target.Request{Op: target.OpBulkLoad, Body: []byte("a\nb\n")}, &ans)
		if req = <-got; req.Method != "POST" || req.ContentLength != 4 || req.RequestURI != "/base/bulk_load" || <-bodies != "a\nb\n" {
			t.Errorf("%s: sent %+v", p.name, req)
		}
	}
}

func newRecorder(t *testing.T, got chan<- *http.Request, bodies chan<- string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r
		bodies <- string(b)
	})}
	go srv.Serve(ln)
	t.Cleanup(func() { srv.Close() })
	return "http://" + ln.Addr().String()
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []remote.Config{
		{}, {URL: "127.0.0.1:80"}, {URL: "ftp://h"}, {URL: "http://"}, {URL: "http://h:70000"}, {URL: "http://h:0"}, {URL: "http://h?x=1"},
		{URL: "http://h\x00"}, {URL: "http://h", Token: "a\r\nX: y"}, {URL: "http://h", Header: http.Header{"a b": {"x"}}},
		{URL: "http://h", Header: http.Header{"A": {"x\ny"}}}, {URL: "http://h", Header: http.Header{"Connection": {"x"}}},
	} {
		if _, err := remote.New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
