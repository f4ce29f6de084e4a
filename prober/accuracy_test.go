package prober_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"tbl/prober"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

var accuracyRuns = flag.Int("accuracy-runs", 60, "runs per cell of the accuracy tests (10000 for the figures of USAGE.md)")

// TestAccuracy measures the sequential decision on the model clock, with its
// healthy 1 % jitter: the wrong owner is never named, hardly a run is left
// undecided, and the median number of requests is far below a fixed 500.
//
//	go test ./prober -run Accuracy -accuracy-runs 10000 -v
func TestAccuracy(t *testing.T) {
	for _, cores := range []int{2, 4, 16, 64} {
		for _, steer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d cores, steer %v", cores, steer), func(t *testing.T) {
				var requests []int
				wrong, undecided := 0, 0
				for run := range *accuracyRuns {
					seed := uint64(run)<<8 + uint64(cores)
					p, err := refplane.New(refplane.Config{Cores: cores, Seed: seed, Clock: refplane.Model})
					if err != nil {
						t.Fatal(err)
					}
					name := fmt.Sprintf("app_%d", run)
					r, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: []string{name}, Steer: steer, KeepEntries: true})
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					n := r.Names[0]
					requests = append(requests, n.Requests)
					switch {
					case n.Owner == nil && n.Outcome == string(verdict.OutcomeNoOwner):
						wrong++
						t.Errorf("seed %d: %s; it is core %d", seed, n.Line, p.OwnerOf([]byte(name)))
					case n.Owner == nil:
						undecided++
						t.Logf("seed %d: %s", seed, n.Line)
					case n.Owner.Core != p.OwnerOf([]byte(name)):
						wrong++
						t.Errorf("seed %d: %s; it is core %d", seed, n.Line, p.OwnerOf([]byte(name)))
					}
					p.Close()
				}
				slices.Sort(requests)
				m := len(requests)
				t.Logf("%d runs: wrong %d, undecided %d; requests: median %d, p95 %d, most %d (expected to hear every core with 99.9 %%: %d)",
					m, wrong, undecided, requests[m/2], requests[m*95/100], requests[m-1], prober.NeededRequests(cores, 1e-3))
				if float64(undecided) > 1+0.001*float64(m) {
					t.Errorf("%d of %d undecided", undecided, m)
				}
			})
		}
	}
}
