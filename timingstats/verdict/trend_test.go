package verdict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tbl/timingstats"
)

// progress makes 50 buckets of 1,000 completions each, whose rate follows f of
// the completions so far, with relative noise.
func progress(rng *rand.Rand, noise float64, f func(done float64) float64) []timingstats.Bucket {
	var out []timingstats.Bucket
	var at, done float64
	for range timingstats.ProgressBuckets {
		var ns float64
		for range 100 {
			ns += 10 / f(done) * 1e9
			done += 10
		}
		ns *= 1 + noise*rng.NormFloat64()
		out = append(out, timingstats.Bucket{StartNS: int64(at), EndNS: int64(at + ns), Completions: 1000})
		at += ns
	}
	return out
}

func TestDecay(t *testing.T) {
	const n = 50_000
	for name, c := range map[string]struct {
		f     func(done float64) float64
		state State
		shape string
	}{
		"flat":                  {func(float64) float64 { return 4000 }, Pass, ""},
		"linear to a half":      {func(d float64) float64 { return 4000 * (1 - d/n/2) }, Fail, "linear"},
		"1/n from the start":    {func(d float64) float64 { return 4e6 / (d + 100) }, Fail, "1/n"},
		"1/n on a base":         {func(d float64) float64 { return 1 / (200e-6 + d*50e-9) }, Fail, "1/n"},
		"a small fall":          {func(d float64) float64 { return 4000 * (1 - 0.15*d/n) }, Pass, ""},
		"rising":                {func(d float64) float64 { return 2000 * (1 + d/n) }, Pass, ""},
		"slow start, then flat": {func(d float64) float64 { return map[bool]float64{true: 1000, false: 4000}[d < 1000] }, Pass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, 1))
				r := JudgeDecay(progress(rng, 0.03, c.f), 0)
				if r.State != c.state || r.Shape != c.shape {
					t.Fatalf("seed %d: %v %s", seed, r.State, r.Line)
				}
				if c.state == Fail && !strings.Contains(r.Line, "DECAY") {
					t.Fatalf("%s", r.Line)
				}
			}
		})
	}
}

// A machine with other work makes rates uneven in proportion to themselves: the
// law must still be told, and mostly from the fast buckets.
func TestShapeUnderUnevenLoad(t *testing.T) {
	for name, f := range map[string]func(x float64) float64{
		"1/n":    func(x float64) float64 { return 120e3 / (1 + 13*x) },
		"linear": func(x float64) float64 { return 120e3 * (1 - 0.9*x) },
	} {
		right := 0
		const seeds = 200
		for seed := range uint64(seeds) {
			rng := rand.New(rand.NewPCG(seed, 2))
			var done, rates []float64
			for i := range 48 {
				x := (float64(i) + 0.5) / 48
				done = append(done, x*100e3)
				rates = append(rates, f(x)*math.Exp(0.2*rng.NormFloat64()))
			}
			if shape(done, rates) == name {
				right++
			}
		}
		if right < seeds*95/100 {
			t.Errorf("%s: told in %d of %d", name, right, seeds)
		}
	}
}

func TestDecayNotJudged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	falling := func(d float64) float64 { return 40_000 * (1 - d/60_000) }
	if r := JudgeDecay(progress(rng, 0, falling), 0); r.State != NotJudged || !strings.Contains(r.Line, "under 5 s") {
		t.Errorf("short: %v %s", r.State, r.Line)
	}
	slow := progress(rng, 0, func(d float64) float64 { return falling(d) / 10 })
	if r := JudgeDecay(slow, 999); r.State != NotJudged || !strings.Contains(r.Line, "999 requests") {
		t.Errorf("few requests: %v %s", r.State, r.Line)
	}
	if r := JudgeDecay(slow, 1000); r.State != Fail {
		t.Errorf("enough requests: %v %s", r.State, r.Line)
	}
	if r := JudgeDecay(slow[:20], 0); r.State != NotJudged {
		t.Errorf("lumps: %v %s", r.State, r.Line)
	}
	if r := JudgeDecay(nil, 0); r.State != NotJudged {
		t.Errorf("nothing: %v %s", r.State, r.Line)
	}
}

// A healthy run fails with a probability below the test's own.
func TestDecayFalseAlarms(t *testing.T) {
	failed := 0
	const runs = 5000
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var bs []timingstats.Bucket
		var at int64
		for range timingstats.ProgressBuckets {
			ns := int64(2.5e8 * math.Exp(0.2*rng.NormFloat64())) // very noisy
			bs = append(bs, timingstats.Bucket{StartNS: at, EndNS: at + ns, Completions: 1000})
			at += ns
		}
		if JudgeDecay(bs, 0).State == Fail {
			failed++
		}
	}
	if failed > 4 { // 0.5 expected at p < 1e-4; 5 or more has probability 2e-4
		t.Errorf("%d of %d healthy runs fail", failed, runs)
	}
}

func TestMannKendall(t *testing.T) {
	// 10 falling values: S = −45, variance 10·9·25/18 = 125, z = 44/√125.
	x := []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	tau, p := mannKendall(x)
	if tau != -1 || math.Abs(p-8.303e-5) > 1e-7 {
		t.Errorf("tau %v p %v", tau, p)
	}
	if tau, p := mannKendall([]float64{1, 1, 1, 1, 1}); tau != 0 || p != 1 {
		t.Errorf("ties only: tau %v p %v", tau, p)
	}
	if _, p := mannKendall([]float64{2, 1}); p != 1 {
		t.Errorf("two values: p %v", p)
	}
}

func TestDrift(t *testing.T) {
	runs := func(rates ...float64) (out []RunRate) {
		for _, r := range rates {
			out = append(out, RunRate{PerS: r, StdErr: 20})
		}
		return
	}
	for name, c := range map[string]struct {
		runs  []RunRate
		state State
		line  string
	}{
		"falling":        {runs(4000, 3800, 3650, 3420, 3300, 3050), Warn, "DRIFT: throughput falls by"},
		"steady":         {runs(4000, 3990, 4010, 4005, 3995), Pass, "no drift"},
		"one bad run":    {runs(4000, 4010, 2000, 3990, 4000, 4005), Pass, "no drift"},
		"a last bad run": {runs(4000, 4010, 3990, 4000, 2000), Pass, "no drift"},
		"rising":         {runs(3000, 3200, 3400, 3600, 3800), Pass, "no drift"},
		"few":            {runs(4000, 3500, 3000), NotJudged, "drift suspected"},
		"few, steady":    {runs(4000, 4000), NotJudged, "2 runs, 5 are needed"},
		"one":            {runs(4000), NotJudged, "one run only"},
		"dead":           {runs(0, 0, 0, 0, 0), NotJudged, "no throughput"},
		"noisy within":   {[]RunRate{{4000, 300}, {3900, 300}, {3700, 300}, {3600, 300}, {3500, 300}}, Pass, "no drift"},
	} {
		r := JudgeDrift(c.runs)
		if r.State != c.state || !strings.Contains(r.Line, c.line) {
			t.Errorf("%s: %v %s (fall %.3f, error %.3f)", name, r.State, r.Line, r.Fall, r.ErrorShare)
		}
	}
	if r := JudgeDrift(runs(1000, 900, 800, 700, 600)); math.Abs(r.Fall-0.4) > 1e-12 {
		t.Errorf("fall %v, want 0.4", r.Fall)
	}
}

func TestRateOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	flat := RateOf(progress(rng, 0.05, func(float64) float64 { return 1000 }))
	falling := RateOf(progress(rng, 0.05, func(d float64) float64 { return 1000 * (1 - d/100_000) }))
	if math.Abs(flat.PerS-1000) > 30 || flat.StdErr < 4 || flat.StdErr > 11 { // 50/√50 = 7
		t.Errorf("flat %+v", flat)
	}
	if falling.StdErr > 11 {
		t.Errorf("a trend within the run counts as error: %+v", falling)
	}
	if r := RateOf(nil); r.PerS != 0 || r.StdErr != 0 {
		t.Errorf("nothing: %+v", r)
	}
}

func TestTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	coreOf := func(id, n int, stalls int) TailCore {
		r := timingstats.NewRecorder(0)
		for range n - stalls {
			r.Record(1_000_000 + rng.Int64N(500_000))
		}
		for range stalls {
			r.Record(80_000_000)
		}
		return TailCore{Core: core(id), Latency: r, P50Clicks: 6}
	}
	for name, c := range map[string]struct {
		cores []TailCore
		state State
		line  string
	}{
		"even":           {[]TailCore{coreOf(0, 2000, 0), coreOf(1, 2000, 0), coreOf(2, 2000, 0)}, Pass, "OK"},
		"one stalls":     {[]TailCore{coreOf(0, 2000, 0), coreOf(1, 2000, 40), coreOf(2, 2000, 0)}, Warn, "TMM 1 has p99 80.0 ms"},
		"a stray sample": {[]TailCore{coreOf(0, 2000, 0), coreOf(1, 2000, 3), coreOf(2, 2000, 0)}, Pass, "OK"},
		"all stall":      {[]TailCore{coreOf(0, 2000, 40), coreOf(1, 2000, 40), coreOf(2, 2000, 40)}, Pass, "OK"},
		"too few":        {[]TailCore{coreOf(0, 999, 40), coreOf(1, 2000, 0)}, NotJudged, "fewer than two cores"},
		"no times":       {[]TailCore{{Core: core(0)}, coreOf(1, 2000, 0)}, NotJudged, "fewer than two cores"},
		"two of two":     {[]TailCore{coreOf(0, 2000, 0), coreOf(1, 2000, 50)}, Warn, "TMM 1"},
	} {
		v := JudgeTail(c.cores)
		if v.State != c.state || !strings.Contains(v.Line, c.line) {
			t.Errorf("%s: %v %s", name, v.State, v.Line)
		}
	}
}

// TestTailCauses: a core with more requests than the others has its tail from
// these, until shown otherwise.
func TestTailCauses(t *testing.T) {
	cores := func(n ...int) []TailCore {
		var out []TailCore
		for id, n := range n {
			r := timingstats.NewRecorder(0)
			for i := range n {
				r.Record(int64(1_000_000 + 100*i))
				if id == 0 {
					r.Record(80_000_000)
				}
			}
			out = append(out, TailCore{Core: core(id), Latency: r})
		}
		return out
	}
	const crowd, other = "Of all requests TMM 0 50.0 %: they queue there (an even share is 25.0 %)", "Something else runs on that core"
	for _, c := range []struct {
		cores     []TailCore
		has, hasn string
	}{
		{cores(3000, 2000, 2000, 2000), crowd, other}, // each of the first core's counts twice
		{cores(1000, 2000, 2000, 2000), other, "Of all requests"},
	} {
		v := JudgeTail(c.cores)
		said := strings.Join(v.Causes, "\n")
		if v.State != Warn || !strings.Contains(said, c.has) || strings.Contains(said, c.hasn) || !strings.Contains(said, "`tbl validate` shows it") {
			t.Errorf("%v %s: want %q and not %q in\n%s", v.State, v.Line, c.has, c.hasn, said)
		}
	}
}

// TestForeignWritesAreNamed: writes into others' storage, which is what a load
// suffers from most, stand among the causes of what a load shows of them.
func TestForeignWritesAreNamed(t *testing.T) {
	var falling []timingstats.Bucket
	for i := range int64(50) {
		falling = append(falling, timingstats.Bucket{StartNS: i * i * 1e8, EndNS: (i + 1) * (i + 1) * 1e8, Completions: 1000})
	}
	for _, v := range []Verdict{
		JudgeDecay(falling, 0).Verdict,
		JudgeBalance([]CoreLoad{{Core: core(0), Entries: 100_000}, {Core: core(1), Entries: 10_000}}, 0, nil).Verdict,
	} {
		if said := strings.Join(v.Causes, "\n"); v.State < Warn || !strings.Contains(said, "`tbl validate` shows") {
			t.Errorf("%s: %v %s: %q", v.Name, v.State, v.Line, said)
		}
	}
}
