package remote_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/remote"
	"tbl/target/targettest"
)

// faulty is a network between client and server that misbehaves as told.
func faulty(t *testing.T, upstream string, toxics ...string) *toxiproxy.Proxy {
	t.Helper()
	srv := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(srv, "network", "127.0.0.1:0", strings.TrimPrefix(upstream, "http://"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, x := range toxics {
		if _, err := p.Toxics.AddToxicJson(strings.NewReader(x)); err != nil {
			t.Fatalf("%s: %v", x, err)
		}
	}
	return p
}

// Whatever the network does, each request is counted once and in the right
// class, the server did what was counted as done, and nothing twice.
func TestFaultyNetwork(t *testing.T) {
	const down, up = "downstream", "upstream"
	toxic := func(kind, stream, attributes string) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"stream":%q,"attributes":{%s}}`, kind+stream, kind, stream, attributes)
	}
	const none, all = false, true
	for _, tc := range []struct {
		name    string
		toxics  []string
		class   target.Class // of every request
		written bool         // whether the server got every request, or none
	}{
		{"healthy", nil, target.ClassOK, all},
		{"latency", []string{toxic("latency", down, `"latency":20,"jitter":15`)}, target.ClassOK, all},
		{"byte by byte", []string{toxic("slicer", down, `"average_size":1`), toxic("slicer", up, `"average_size":1`)}, target.ClassOK, all},
		{"slow trickle", []string{toxic("slicer", down, `"average_size":3,"size_variation":2,"delay":500`)}, target.ClassOK, all},
		{"late close", []string{toxic("slow_close", down, `"delay":20`)}, target.ClassOK, all},
		{"reset on the request", []string{toxic("reset_peer", up, `"timeout":0`)}, target.ClassReset, none},
		{"reset before the answer", []string{toxic("reset_peer", down, `"timeout":0`)}, target.ClassReset, all},
		{"closed without an answer", []string{toxic("limit_data", down, `"bytes":0`)}, target.ClassReset, all},
		{"cut in the status", []string{toxic("limit_data", down, `"bytes":5`)}, target.ClassTruncated, all},
		{"cut in the header", []string{toxic("limit_data", down, `"bytes":40`)}, target.ClassTruncated, all},
		{"cut in the body", []string{toxic("limit_data", down, `"bytes":160`)}, target.ClassTruncated, all},
		{"stalled request", []string{toxic("timeout", up, `"timeout":0`)}, target.ClassTimeout, none},
		{"stalled answer", []string{toxic("latency", down, `"latency":1000`)}, target.ClassTimeout, all},
	} {
		for _, p := range paths {
			for _, reset := range []bool{false, true} {
				name := tc.name + "/" + p.name
				if reset {
					name += "/reset"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel() // most of it is waiting
					tgt := targettest.NewSimple(4)
					url, srv := serve(t, tgt, httpserve.Config{})
					proxy := faulty(t, url, tc.toxics...)
					cfg := remote.Config{URL: "http://" + proxy.Listen, Portable: p.portable, LingerReset: reset}
					each := int64(5)
					if tc.class == target.ClassTimeout {
						cfg.Timeout, each = 200*time.Millisecond, 1
					}
					r := connect(t, cfg)
					counts := run(t, r, 4, int(each))
					if counts[tc.class].Load() != 4*each {
						t.Errorf("classes %s, want %d of %v", show(counts), 4*each, tc.class)
					}
					want := int64(0)
					if tc.written == all {
						want = 4 * each
					}
					checkStored(t, url, srv, want, want)
				})
			}
		}
	}
}

// The network goes and comes back: what fails is refused and surely not
// done, what follows is as before.
func TestNetworkGoesAndReturns(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			tgt := targettest.NewSimple(4)
			url, srv := serve(t, tgt, httpserve.Config{})
			proxy := faulty(t, url)
			r := connect(t, remote.Config{URL: "http://" + proxy.Listen, Portable: p.portable})
			for round, want := range []target.Class{target.ClassOK, target.ClassRefused, target.ClassOK} {
				if counts := run(t, r, 2, 5); counts[want].Load() != 10 {
					t.Errorf("round %d: classes %s, want 10 of %v", round, show(counts), want)
				}
				switch round {
				case 0:
					proxy.Stop()
				case 1:
					if err := proxy.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
			checkStored(t, url, srv, 20, 20) // the third round wrote the first one's keys again
		})
	}
}

type classCounts [target.NumClasses]atomic.Int64

// run sends workers × each writes of different keys and counts what became of
// them.
func run(t *testing.T, r *remote.Remote, workers, each int) *classCounts {
	t.Helper()
	var counts classCounts
	r.Clock().Run(workers, func(w int) {
		var ans target.Answer
		for i := range each {
			req := target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "key-%d-%d", w, i), Value: []byte("v")}
			err := r.Do(t.Context(), &req, &ans)
			counts[target.ClassOf(err)].Add(1)
			if err == nil && string(ans.Key) != string(req.Key) {
				t.Errorf("asked for %q, answered for %q", req.Key, ans.Key)
			}
		}
	})
	sum := int64(0)
	for i := range counts {
		sum += counts[i].Load()
	}
	if sum != int64(workers*each) {
		t.Errorf("%d requests sent, %d counted", workers*each, sum)
	}
	return &counts
}

func show(counts *classCounts) string {
	var b strings.Builder
	for i := range counts {
		if n := counts[i].Load(); n > 0 {
			fmt.Fprintf(&b, "%v: %d  ", target.Class(i), n)
		}
	}
	return b.String()
}

// checkStored asks the server itself, past the network, how many writes it
// did and how many requests it had, its own question included.
func checkStored(t *testing.T, url string, srv *httpserve.Server, writes, requests int64) {
	t.Helper()
	direct := connect(t, remote.Config{URL: url})
	var ans target.Answer
	if err := direct.Do(t.Context(), &target.Request{Op: target.OpStats}, &ans); err != nil {
		t.Fatal(err)
	}
	got := int64(0)
	for _, c := range ans.Stats {
		got += c.WritesLocal + c.WritesRemote
	}
	if n := srv.Counts(); got != writes || n.Requests != requests+1 {
		t.Errorf("the server did %d writes in %d requests, want %d in %d", got, n.Requests-1, writes, requests)
	}
}
