package prober_test

import (
	"fmt"
	"testing"
	"time"

	"tbl/prober"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

func plane(t testing.TB, cfg refplane.Config) *refplane.Plane {
	t.Helper()
	p, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("app_name_%d", i)
	}
	return out
}

// Every owner is right against the dataplane's own map, with and without
// steering, and steering needs far fewer requests.
func TestOwnersAgainstTheMap(t *testing.T) {
	for _, cores := range []int{1, 2, 4, 16, 64} {
		for _, steer := range []bool{false, true} {
			p := plane(t, refplane.Config{Cores: cores, Seed: 77, Clock: refplane.Model})
			r, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: names(50), Steer: steer})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Names {
				if want := p.OwnerOf([]byte(n.Name)); n.Owner == nil || n.Owner.Core != want {
					t.Errorf("%d cores, steer %v: %s: %s; want core %d", cores, steer, n.Name, n.Line, want)
				}
			}
			if v := verdict.Overall(r.Verdicts, false); v != verdict.Pass {
				t.Errorf("%d cores, steer %v: %v", cores, steer, r.Verdicts)
			}
			t.Logf("%d cores, steer %v: %d requests for 50 names, virtual %v", cores, steer, r.Accounting.Sent, r.Elapsed.Round(time.Microsecond))
			if per := float64(r.Accounting.Sent) / 50; steer && per > 2*float64(cores)+20 {
				t.Errorf("%d cores, steered: %.0f requests per name", cores, per)
			}
		}
	}
}
