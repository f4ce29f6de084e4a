package loader_test

import (
	"flag"
	"testing"

	"tbl/loader"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

var long = flag.Bool("long", false, "judge a million writes with 50 seeds, and three runs in real time")

// Healthy runs show no decay, and healthy series of runs no drift.
func TestHealthyRunsAreHealthy(t *testing.T) {
	seeds, writes := 2, int64(200_000)
	if loader.RaceDetector {
		seeds = 1
	}
	if *long {
		seeds, writes = 50, 1_000_000
	}
	for seed := range seeds {
		p := plane(t, refplane.Config{Seed: uint64(seed + 1), Clock: refplane.Model})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: writes})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Decay); v.State == verdict.Fail {
			t.Errorf("seed %d: %s", seed+1, v.Line)
		} else if seed == 0 {
			t.Logf("%.1f s of virtual time: %s", float64(r.ElapsedNS)/1e9, v.Line)
		}
		p.Close()
	}
	for seed := range seeds {
		p := plane(t, refplane.Config{Seed: uint64(seed + 1), Clock: refplane.Model})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: writes / 20, Runs: 6})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Drift); v.State != verdict.Pass {
			t.Errorf("seed %d: %v %s", seed+1, v.State, v.Line)
		}
		p.Close()
	}
	if !*long {
		return
	}
	for i := range 3 {
		p := plane(t, refplane.Config{})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		v := judged(r.Verdicts, verdict.Decay)
		t.Logf("real time, run %d: %.1f s, %s", i+1, float64(r.ElapsedNS)/1e9, v.Line)
		if v.State == verdict.Fail {
			t.Errorf("run %d: %s", i+1, v.Line)
		}
		p.Close()
	}
}
