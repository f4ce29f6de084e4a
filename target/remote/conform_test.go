package remote_test

import (
	"context"
	"net"
	"testing"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/target/targettest"
)

// serve puts tgt behind a listener until the test ends and returns its URL.
func serve(t testing.TB, tgt target.Target, cfg httpserve.Config) (string, *httpserve.Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserve.New(tgt, cfg)
	start(t, s, ln)
	return "http://" + ln.Addr().String(), s
}

// start serves on ln and returns what stops it, which the test's end does too.
func start(t testing.TB, s *httpserve.Server, ln net.Listener) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func connect(t testing.TB, cfg remote.Config) *remote.Remote {
	t.Helper()
	r, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// paths are the two ways to send a request; where there is no fast path both
// are the portable one.
var paths = []struct {
	name     string
	portable bool
}{{"fast", false}, {"portable", true}}

func TestConformance(t *testing.T) {
	t.Parallel() // much of it is waiting for entries to expire
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			targettest.Run(t, func(t *testing.T) target.Target {
				tgt := targettest.NewSimple(4)
				url, _ := serve(t, tgt, httpserve.Config{})
				return connect(t, remote.Config{URL: url, Portable: p.portable})
			}, targettest.Options{})
		})
	}
}

// The reference dataplane behind HTTP is the same target.
func TestConformanceOfReference(t *testing.T) {
	t.Parallel()
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			targettest.Run(t, func(t *testing.T) target.Target {
				plane, err := refplane.New(refplane.Config{Cores: 4})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { plane.Close() })
				url, _ := serve(t, plane, httpserve.Config{})
				return connect(t, remote.Config{URL: url, Portable: p.portable})
			}, targettest.Options{})
		})
	}
}

// The same with everything that a server may add to its answers, and with a
// token, after a restart of the server on its port.
func TestConformanceAfterRestart(t *testing.T) {
	t.Parallel()
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			targettest.Run(t, func(t *testing.T) target.Target {
				cfg := httpserve.Config{Token: "s3cret", Node: "node a", NodeInBody: true, NodeCookie: "route"}
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				addr := ln.Addr().String()
				stop := start(t, httpserve.New(targettest.NewSimple(3), cfg), ln)
				r := connect(t, remote.Config{URL: "http://" + addr, Portable: p.portable, Token: "s3cret"})
				req, ans := target.Request{Op: target.OpInfo}, target.Answer{}
				if err := r.Do(t.Context(), &req, &ans); err != nil || string(ans.Node) != "node a" {
					t.Fatalf("before the restart: %v, node %q", err, ans.Node)
				}
				stop()
				if err := r.Do(t.Context(), &req, &ans); target.ClassOf(err) != target.ClassRefused {
					t.Fatalf("while the server is down: %v", err)
				}
				if ln, err = net.Listen("tcp", addr); err != nil {
					t.Fatal(err)
				}
				start(t, httpserve.New(targettest.NewSimple(4), cfg), ln)
				return r
			}, targettest.Options{})
		})
	}
}
