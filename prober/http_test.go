package prober_test

import (
	"flag"
	"net"
	"testing"
	"time"

	"tbl/prober"
	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

var manyNames = flag.Int("many-names", 100, "names of the test over HTTP (10000 for the figures of USAGE.md)")

// Many names on 16 cores over real sockets, every owner right against the
// dataplane's own map.
//
//	go test ./prober -run ManyNamesOverHTTP -many-names 10000 -v
func TestManyNamesOverHTTP(t *testing.T) {
	// Clicks of 100 ns: the cores share the machine with whatever else runs.
	p := plane(t, refplane.Config{Cores: 16, Click: 100 * time.Nanosecond, HandoffDelay: 50 * time.Microsecond})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go httpserve.New(p, httpserve.Config{}).Serve(t.Context(), ln)
	r, err := remote.New(remote.Config{URL: "http://" + ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	res, err := prober.Probe(t.Context(), r, prober.ProbeConfig{Names: names(*manyNames), Steer: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range res.Names {
		if want := p.OwnerOf([]byte(n.Name)); n.Owner == nil || n.Owner.Core != want {
			t.Errorf("%s: %s; want core %d", n.Name, n.Line, want)
		}
	}
	if v := verdict.Overall(res.Verdicts, false); v != verdict.Pass || len(res.Accounting.Errors) > 0 {
		t.Errorf("%v %v", res.Verdicts, res.Accounting)
	}
	t.Logf("%d names: %d requests in %v, warnings %q", len(res.Names), res.Accounting.Sent, res.Elapsed, res.Warnings)
}
