package verdict_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// acts is what a run of the accuracy table shows of its dataplane besides what
// is judged.
type acts struct {
	faults   []refplane.Fault
	remote   bool  // the oracle knows a core whose writes are remote
	silent   []int // cores without a sample
	writes   int64 // samples: every write is one
	entries  int64 // held after the run
	lines    int64 // logged by then
	requests int64 // written after the run, one after the other
	first    int64 // of these, on core 0
	failed   int64
	wild     int64         // of these, inflated to 400,000 clicks
	quickest time.Duration // of the last of them, when the cores hold most
	slowest  time.Duration
}

// watch makes the dataplane's first run and looks at what it does.
func watch(t *testing.T, d *dataplane) (a acts) {
	t.Helper()
	const cores = 4
	ctx := t.Context()
	var r runner
	r.look = func(p *refplane.Plane) {
		a.faults = p.Config().Faults
		for core, samples := range r.sink.cores {
			a.writes += int64(len(samples))
			if len(samples) == 0 {
				a.silent = append(a.silent, core)
			}
		}
		held, err := stats(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range held {
			a.entries += c.Entries
		}
		a.lines, _ = p.LogLines()
		r.more(t, p, &a)
	}
	if err := r.run(d, cores, 1, func(_ key, c cell) { a.remote = a.remote || c.Remote > 0 }); err != nil {
		t.Fatal(err)
	}
	return a
}

// more writes for some seconds of the simulation, without changing what the run
// is judged by.
func (r *runner) more(t *testing.T, p *refplane.Plane, a *acts) {
	t.Helper()
	kept := r.sink
	r.sink.cores = nil
	r.sink.clear(len(kept.cores))
	defer func() { r.sink = kept }()
	rng := rand.New(rand.NewPCG(1, 2))
	var ans target.Answer
	a.requests, a.quickest = 8000, math.MaxInt64
	for i := range a.requests {
		err := p.Do(context.Background(), &target.Request{Op: target.OpLoad, Conn: conn(rng), Key: strconv.AppendInt(nil, i, 36)}, &ans)
		switch {
		case err != nil:
			a.failed++
			continue
		case ans.Core == 0:
			a.first++
		}
		a.slowest = max(a.slowest, ans.Timing.Total)
		if i > a.requests*7/8 {
			a.quickest = min(a.quickest, ans.Timing.Total)
		}
	}
	if err := p.FlushLog(); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(r.sink.cores...) {
		if s.clicks >= 400_000 {
			a.wild++
		}
	}
}

// TestFaultsAct: the runs that the accuracy table counts under a fault are runs
// with that fault, and show what it does; a healthy one shows none of it.
func TestFaultsAct(t *testing.T) {
	marks := map[string]func(a *acts) bool{
		refplane.DeterministicNames: func(a *acts) bool { return a.remote },
		refplane.DeadCore:           func(a *acts) bool { return slices.Equal(a.silent, []int{1}) },
		// What was written before the reset is still there.
		refplane.ReloadOrphans: func(a *acts) bool { return a.entries == a.writes+4 },
		refplane.ChattyLog:     func(a *acts) bool { return a.lines >= 2*a.writes },
		refplane.DAGSkew:       func(a *acts) bool { return a.first > a.requests*2/5 },
		refplane.Flap:          func(a *acts) bool { return a.failed > a.requests/50 },
		refplane.Jitter:        func(a *acts) bool { return a.wild > a.requests*3/200 },
		refplane.Stall:         func(a *acts) bool { return a.slowest > 40*time.Millisecond },
		// 2,000 keys in each core take a quarter as long as the whole request does.
		refplane.EnumerateCount: func(a *acts) bool { return a.quickest > 380*time.Microsecond },
	}
	planes := dataplanes(false)
	healthy := watch(t, &dataplane{Name: "healthy", sizes: planes[0].sizes})
	if healthy.writes != 400 || healthy.entries != 400 || healthy.first == 0 {
		t.Errorf("a healthy run: %+v", healthy)
	}
	acted := map[string]bool{}
	for i := range planes {
		d := &planes[i]
		if d.fault == "" {
			continue
		}
		want, err := refplane.ParseFault(d.fault)
		if err != nil {
			t.Fatal(err)
		}
		mark, ok := marks[want.Name]
		if !ok {
			t.Errorf("%s: nothing is known to tell it from a healthy run", d.Name)
			continue
		}
		a := watch(t, d)
		if len(a.faults) != 1 || a.faults[0].String() != want.String() {
			t.Errorf("%s: runs with %v", d.Name, a.faults)
		}
		if !mark(&a) {
			t.Errorf("%s doesn't act: %+v", d.Name, a)
		}
		if mark(&healthy) {
			t.Errorf("%s: a healthy run looks the same: %+v", d.Name, healthy)
		}
		acted[want.Name] = true
	}
	for name := range marks {
		if !acted[name] {
			t.Errorf("no row of the table has %s", name)
		}
	}
}

// TestMixedByChance: what USAGE.md says of few samples on a machine with 2 % of
// its timings inflated, computed.
func TestMixedByChance(t *testing.T) {
	for _, c := range []struct {
		cores, samples int
		mixedFrom      int     // inflated samples of one core
		perRun         float64 // share of runs in which some core has as many
		within         float64
	}{
		{16, 25, 5, 0.001945, 1e-6},
		{64, 25, 6, 0.00052, 1e-5},
		{16, 100, 13, 0.000002, 1e-6},
	} {
		from := 0
		for state := verdict.Local; state != verdict.Mixed; from++ {
			var all []timingstats.CoreSummary
			for core := range c.cores {
				samples := make([]sample, c.samples)
				for i := range samples {
					samples[i] = sample{5, timingstats.Fast}
					if core == 0 && i <= from {
						samples[i] = sample{400_000, timingstats.Slow}
					}
				}
				all = append(all, summary(core, samples))
			}
			state = verdict.JudgeLocality(all, verdict.LocalityOptions{Cores: c.cores}).Cores[0].State
		}
		one := 1 - distuv.Binomial{N: float64(c.samples), P: 0.02}.CDF(float64(from-1))
		if any := 1 - math.Pow(1-one, float64(c.cores)); from != c.mixedFrom || math.Abs(any-c.perRun) > c.within {
			t.Errorf("%d cores, %d samples: MIXED from %d, in %g of the runs; want %d, %g", c.cores, c.samples, from, any, c.mixedFrom, c.perRun)
		}
	}
}
