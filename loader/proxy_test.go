package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"tbl/loader"
	"tbl/loader/source"
	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/target/remote"
)

// serve puts p behind a listener and returns its address and a way to stop it.
func serve(t *testing.T, p target.Target, addr string) (string, func()) {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		httpserve.New(p, httpserve.Config{}).Serve(ctx, ln)
	}()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return ln.Addr().String(), stop
}

func client(t *testing.T, addr string, cfg remote.Config) *remote.Remote {
	t.Helper()
	cfg.URL = "http://" + addr
	r, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// proxied puts a proxy in front of upstream.
func proxied(t *testing.T, upstream string) (*toxiproxy.Proxy, string) {
	t.Helper()
	srv := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := toxiproxy.NewProxy(srv, t.Name(), "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p, p.Listen
}

// written is how many writes of ours the plane has done, and how many entries
// it has of them, by its cores' own counters.
func written(t *testing.T, p target.Target) (writes, entries int64) {
	t.Helper()
	var ans target.Answer
	heard := map[int]bool{}
	for range 1000 {
		if err := p.Do(t.Context(), &target.Request{Op: target.OpWhoami}, &ans); err != nil {
			t.Fatal(err)
		}
		if !heard[ans.Core] {
			heard[ans.Core] = true
			writes, entries = writes+ans.Writes, entries+ans.Entries
		}
		if len(heard) == ans.Cores {
			return writes, entries
		}
	}
	t.Fatalf("heard %d of %d cores", len(heard), ans.Cores)
	return 0, 0
}

// adds checks sent = ok + Σ errors, and returns the errors by class.
func adds(t *testing.T, a loader.Accounting) map[target.Class]int64 {
	t.Helper()
	by := map[target.Class]int64{}
	sum := a.OK
	for _, e := range a.Errors {
		by[e.Class] += e.Count
		sum += e.Count
	}
	if sum != a.Sent || a.Failed != a.Sent-a.OK {
		t.Errorf("sent %d, ok %d, errors %v: does not add up", a.Sent, a.OK, by)
	}
	return by
}

func TestFaultsThroughAProxy(t *testing.T) {
	const toxic = `{"type":%q,"stream":%q,"toxicity":%v,"attributes":{%s}}`
	tests := []struct {
		name  string
		toxic string
		class target.Class // of every failure; ClassOK: none may fail
		all   bool         // nothing gets through: the run ends with an error
	}{
		{"one-byte writes", fmt.Sprintf(toxic, "slicer", "downstream", 1, `"average_size":1,"size_variation":0,"delay":0`), target.ClassOK, false},
		{"slow trickle", fmt.Sprintf(toxic, "bandwidth", "downstream", 1, `"rate":5`), target.ClassOK, false},
		{"reset before the answer", fmt.Sprintf(toxic, "reset_peer", "downstream", 0.3, `"timeout":0`), target.ClassReset, false},
		{"stalled", fmt.Sprintf(toxic, "latency", "downstream", 0.05, `"latency":5000`), target.ClassTimeout, false},
		{"cut in the head", fmt.Sprintf(toxic, "limit_data", "downstream", 0.3, `"bytes":20`), target.ClassTruncated, false},
		{"cut in the body", fmt.Sprintf(toxic, "limit_data", "downstream", 0.3, `"bytes":140`), target.ClassTruncated, false},
		{"nothing comes back", fmt.Sprintf(toxic, "limit_data", "downstream", 1, `"bytes":0`), target.ClassReset, true},
	}
	for _, portable := range []bool{true, false} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s/portable=%v", tt.name, portable), func(t *testing.T) {
				p := plane(t, refplane.Config{Cores: 2})
				addr, _ := serve(t, p, "127.0.0.1:0")
				proxy, front := proxied(t, addr)
				if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(tt.toxic)); err != nil {
					t.Fatal(err)
				}
				timeout := 10 * time.Second
				if tt.class == target.ClassTimeout {
					timeout = time.Second
				}
				r, err := loader.Load(t.Context(), client(t, front, remote.Config{Timeout: timeout, Portable: portable}),
					loader.LoadConfig{Count: 200, Workers: 16})
				if (err != nil) != tt.all {
					t.Fatalf("error %v", err)
				}
				by := adds(t, r.Accounting)
				for class, n := range by {
					if class != tt.class {
						t.Errorf("%d of class %v: %+v", n, class, r.Errors)
					}
				}
				if tt.class != target.ClassOK && !tt.all && by[tt.class] == 0 {
					t.Errorf("no failure of class %v", tt.class)
				}
				writes, entries := written(t, p)
				if writes != entries {
					t.Errorf("%d writes, %d entries: some were done twice", writes, entries)
				}
				if writes < r.OK || writes > r.OK+r.Failed {
					t.Errorf("the server did %d writes, ok %d, failed %d", writes, r.OK, r.Failed)
				}
			})
		}
	}
}

func TestGarbage(t *testing.T) {
	for name, answer := range map[string]string{
		"no http":         "220 mail ESMTP\r\n",
		"200 to anything": "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>",
		"wrong fields":    "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\ntmm=x key=1\n",
	} {
		t.Run(name, func(t *testing.T) {
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
					buf := make([]byte, 4096)
					c.Read(buf)
					io.WriteString(c, answer)
					c.Close()
				}
			}()
			r, err := loader.Load(t.Context(), client(t, ln.Addr().String(), remote.Config{}), loader.LoadConfig{Count: 100})
			if !errors.Is(err, loader.ErrNoDataplane) || r.Sent != 0 {
				t.Errorf("sent %d, error %v", r.Sent, err)
			}
		})
	}
}

// await waits until a run over real sockets has done n writes. False when ctx
// ended first, or, which is an error of the test, after 30 s. Unlike t.Fatal it
// may be called by any goroutine.
func await(ctx context.Context, t *testing.T, p *loader.Progress, n int64) bool {
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); p.Completed.Load() < n; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if time.Now().After(deadline) {
			t.Errorf("only %d of %d writes after 30 s", p.Completed.Load(), n)
			return false
		}
	}
	return true
}

// The server goes away in mid-run and comes back: the run goes on.
func TestServerRestarts(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 2})
	addr, stop := serve(t, p, "127.0.0.1:0")
	var progress loader.Progress
	var stage atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !await(t.Context(), t, &progress, 500) {
			return
		}
		stop()
		stage.Store(1)
		if await(t.Context(), t, &progress, progress.Completed.Load()+200) {
			serve(t, p, addr)
			stage.Store(2)
		}
	}()
	r, err := loader.Load(t.Context(), client(t, addr, remote.Config{Timeout: 2 * time.Second}),
		loader.LoadConfig{Count: 3000, Workers: 8, Progress: &progress})
	<-done
	if err != nil {
		t.Fatal(err)
	}
	by := adds(t, r.Accounting)
	if stage.Load() != 2 || r.Sent != 3000 || by[target.ClassRefused] == 0 || r.OK < 2000 {
		t.Errorf("stage %d: %+v", stage.Load(), r.Accounting)
	}
	if writes, _ := written(t, p); writes < r.OK || writes > r.Sent {
		t.Errorf("the server did %d writes, ok %d of %d", writes, r.OK, r.Sent)
	}
}

func TestKeysOverHTTP(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 2})
	addr, _ := serve(t, p, "127.0.0.1:0")
	keys := []string{"a b", "a&val=x", "50%", "a+b", "line\nend", `q"uote`, "tmm=9", strings.Repeat("k", 4096), "\xff\xfe\x80", "OWNER clicks=1"}
	var in strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&in, "\"%s\",\"v\"\n", strings.ReplaceAll(k, `"`, `""`))
	}
	src, err := source.OpenCSV(strings.NewReader(in.String()), source.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, addr, remote.Config{})
	r, err := loader.Load(t.Context(), c, loader.LoadConfig{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK != int64(len(keys)) || len(r.Warnings) != 0 {
		t.Errorf("%+v %q", r.Accounting, r.Warnings)
	}
	found := map[string]bool{}
	var ans target.Answer
	for range 60 {
		if err := c.Do(t.Context(), &target.Request{Op: target.OpDump}, &ans); err != nil {
			t.Fatal(err)
		}
		for _, k := range ans.List {
			found[string(k)] = true
		}
	}
	for _, k := range keys {
		if !found[k] {
			t.Errorf("key %.40q was not found again", k)
		}
	}
}
