package compare_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/loader"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats/compare"
)

var trials = flag.Int("compare.trials", 0, "seeded trials of ten against ten runs on the model clock; 0: the short form")

// slowed is a dataplane that takes a factor longer over each request.
type slowed struct {
	target.Target
	more float64 // of a request's time, besides it
}

func (s slowed) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	begin := s.Clock().Now()
	err := s.Target.Do(ctx, req, ans)
	took := s.Clock().Now().Sub(begin)
	if e := s.Clock().Sleep(ctx, time.Duration(s.more*float64(took))); err == nil {
		err = e
	}
	ans.Timing.Total = s.Clock().Now().Sub(begin)
	return err
}

// figures are what a comparison of load runs looks at: of the whole, and of
// each core.
func figures(base, now []*loader.LoadResult) []compare.Figure {
	pick := func(name, group string, better compare.Direction, f func(*loader.LoadResult) float64) compare.Figure {
		out := compare.Figure{Name: name, Group: group, Better: better}
		for _, r := range base {
			out.Base = append(out.Base, f(r))
		}
		for _, r := range now {
			out.New = append(out.New, f(r))
		}
		return out
	}
	fs := []compare.Figure{
		pick("writes_per_s", "", compare.Higher, func(r *loader.LoadResult) float64 { return r.WritesPerS }),
		pick("elapsed_ns", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.ElapsedNS) }),
		pick("ok", "", compare.Higher, func(r *loader.LoadResult) float64 { return float64(r.OK) }),
		pick("failed", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Failed) }),
		pick("response.p50_ns", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Response.P50NS) }),
		pick("response.p95_ns", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Response.P95NS) }),
		pick("response.p99_ns", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Response.P99NS) }),
		pick("response.max_ns", "", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Response.MaxNS) }),
	}
	for c := range base[0].Cores {
		fs = append(fs,
			pick("writes", "cores", compare.Neutral, func(r *loader.LoadResult) float64 { return float64(r.Cores[c].Writes) }),
			pick("response.p99_ns", "cores", compare.Lower, func(r *loader.LoadResult) float64 { return float64(r.Cores[c].Response.P99NS) }))
	}
	return fs
}

// trial compares ten runs with ten others, each on a dataplane of its own that
// is 1.5 % faster or slower than the next by itself, the new ones slower by a
// factor besides.
func trial(t *testing.T, seed uint64, slower float64) compare.Report {
	rng := rand.New(rand.NewPCG(seed, 15))
	runs := func(factor float64) (out []*loader.LoadResult) {
		for range 10 {
			p, err := refplane.New(refplane.Config{Seed: rng.Uint64() | 1, Clock: refplane.Model})
			if err != nil {
				t.Error(err)
				return nil
			}
			more := factor*1.1*(1+0.015*rng.NormFloat64()) - 1
			r, err := loader.Load(context.Background(), slowed{p, more}, loader.LoadConfig{Count: 400, Workers: 4, Seed: rng.Uint64()})
			if err != nil {
				t.Error(err)
				return nil
			}
			out = append(out, r)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		return out
	}
	base, now := runs(1), runs(slower)
	if t.Failed() {
		return compare.Report{}
	}
	return compare.Runs(figures(base, now), compare.Config{Seed: seed})
}

// many runs n trials on all processors and counts those that hold.
func many(t *testing.T, n int, slower float64, holds func(compare.Report) bool) int {
	t.Helper()
	var next, count atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				seed := next.Add(1)
				if seed > int64(n) {
					return
				}
				if holds(trial(t, uint64(seed), slower)) {
					count.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(count.Load())
}

// Ten runs against ten of the same build on the model clock: no difference in
// at least 970 of 1,000 trials (-compare.trials 1000).
func TestModelSameBuild(t *testing.T) {
	n := 10
	if *trials > 0 {
		n = *trials
	}
	same := many(t, n, 1, func(r compare.Report) bool { return strings.HasPrefix(r.Line, "OK: no difference") })
	t.Logf("no difference in %d of %d trials", same, n)
	if n-same > max(3, n*3/100) {
		t.Errorf("a difference in %d of %d trials", n-same, n)
	}
}

// A slowdown of 5 % at 1.5 % of noise from run to run is found in at least 95 of
// 100 trials.
func TestModelSlowdown(t *testing.T) {
	n := 10
	if *trials > 0 {
		n = min(*trials, 100)
	}
	found := many(t, n, 1.05, func(r compare.Report) bool { return r.Rows[0].Outcome == compare.Worse })
	t.Logf("found in %d of %d trials", found, n)
	if n-found > max(2, n*5/100) {
		t.Errorf("found in %d of %d trials only", found, n)
	}
}
