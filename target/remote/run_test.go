package remote_test

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/remote"
	"tbl/target/targettest"
)

func TestMain(m *testing.M) {
	if inNamespace() {
		exhaustedChild()
		return
	}
	goleak.VerifyTestMain(m)
}

// A worker in its steady state allocates nothing. The server is raw, so that
// what is counted is the client's.
func TestFastPathAllocatesNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\n" + good)
		f, err := ln.(*net.TCPListener).File()
		if err != nil {
			return
		}
		defer f.Close()
		answerAll(int(f.Fd()), answer)
	}()
	r := connect(t, remote.Config{URL: "http://" + ln.Addr().String()})
	if !r.FastPath() {
		t.Skip("no fast path here")
	}
	var ans target.Answer
	req, ctx := load(), t.Context()
	n := testing.AllocsPerRun(2000, func() {
		if err := r.Do(ctx, req, &ans); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	stopAnswering(t, ln.Addr().String())
	<-served
}

// Every request has a connection, a source port and an answer of its own, and
// the server did as many as were counted.
func TestCountsAgree(t *testing.T) {
	for _, p := range paths {
		for _, reset := range []bool{false, true} {
			name := p.name
			if reset {
				name += "/reset"
			}
			t.Run(name, func(t *testing.T) {
				tgt := targettest.NewSimple(8)
				url, srv := serve(t, tgt, httpserve.Config{})
				r := connect(t, remote.Config{URL: url, Portable: p.portable, LingerReset: reset})
				const workers, each = 16, 100
				var cores [8]atomic.Int64
				var failed, closedFirst atomic.Int64
				r.Clock().Run(workers, func(w int) {
					var ans target.Answer
					req := target.Request{Op: target.OpLoad}
					for i := range each {
						req.Key = append(req.Key[:0], byte('a'+w), byte(i))
						if err := r.Do(t.Context(), &req, &ans); err != nil {
							failed.Add(1)
							t.Error(err)
							continue
						}
						if string(ans.Key) != string(req.Key) {
							t.Errorf("asked for %q, answered for %q", req.Key, ans.Key)
						}
						cores[ans.Core].Add(1)
						if ans.Timing.ServerClosed {
							closedFirst.Add(1)
						}
					}
				})
				const n = workers * each
				if got := srv.Counts(); r.Opened() != n || r.Requests() != n || got.Accepted != n || got.Requests != n {
					t.Errorf("%d requests, %d connections opened, the server has %+v, want %d", r.Requests(), r.Opened(), got, n)
				}
				if !reset && closedFirst.Load() < n*9/10 {
					t.Errorf("the server closed first %d times of %d", closedFirst.Load(), n)
				}
				for i := range cores {
					if cores[i].Load() == 0 {
						t.Errorf("core %d was never reached in %d requests", i, n)
					}
				}
			})
		}
	}
}

func TestBinds(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			seen := make(map[netip.Addr]int)
			peers := make(chan netip.AddrPort, 100)
			s := newScript(t, func(c *net.TCPConn) {
				peers <- c.RemoteAddr().(*net.TCPAddr).AddrPort()
				c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n" + good))
			})
			var binds []netip.Addr
			for i := range byte(4) {
				binds = append(binds, netip.AddrFrom4([4]byte{127, 0, 0, 10 + i}))
			}
			r := connect(t, remote.Config{URL: s.url(), Portable: p.portable, Binds: binds})
			ports := make(map[netip.AddrPort]bool)
			var ans target.Answer
			for range 40 {
				if err := r.Do(t.Context(), load(), &ans); err != nil {
					t.Skipf("no such source addresses here: %v", err)
				}
				peer := <-peers
				seen[peer.Addr().Unmap()]++
				ports[peer] = true
			}
			for _, b := range binds {
				if seen[b] != 10 {
					t.Errorf("source addresses %v, want each ten times", seen)
					break
				}
			}
			if len(ports) < 38 {
				t.Errorf("%d distinct ends for 40 connections", len(ports))
			}
		})
	}
}

// A chosen source port is the one that is used, again and again; one that
// somebody else holds is a clear error.
func TestChosenPort(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			peers := make(chan netip.AddrPort, 100)
			s := newScript(t, func(c *net.TCPConn) {
				peers <- c.RemoteAddr().(*net.TCPAddr).AddrPort()
				c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n" + good))
			})
			r := connect(t, remote.Config{URL: s.url(), Portable: p.portable})
			busy, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer busy.Close()
			var ans target.Answer
			req := load()
			req.Conn.Src = netip.AddrPortFrom(netip.IPv4Unspecified(), busy.Addr().(*net.TCPAddr).AddrPort().Port())
			err = r.Do(t.Context(), req, &ans)
			if target.ClassOf(err) != target.ClassAddressExhausted || !isPortBusy(err) {
				t.Errorf("a port in use: %v", err)
			}
			for range 5 {
				req.Conn.Src = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 20777)
				if err := r.Do(t.Context(), req, &ans); err != nil {
					t.Fatal(err)
				}
				if got := <-peers; got.Port() != 20777 {
					t.Errorf("came from %v", got)
				}
			}
		})
	}
}
