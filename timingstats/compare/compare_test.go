package compare

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tbl/timingstats"
)

// noisy makes n runs around a centre with a relative noise.
func noisy(rng *rand.Rand, n int, centre, noise float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = centre * (1 + noise*rng.NormFloat64())
	}
	return out
}

// report draws the figures of one comparison: throughput, errors, and some
// percentiles in all and per core, where slower divides all speeds.
func report(seed uint64, n int, slower float64) Report {
	rng := rand.New(rand.NewPCG(seed, 77))
	figures := []Figure{
		{Name: "rate_per_s", Better: Higher, Base: noisy(rng, n, 4367, 0.015), New: noisy(rng, n, 4367/slower, 0.015)},
		{Name: "p50_ns", Better: Lower, Base: noisy(rng, n, 2e5, 0.015), New: noisy(rng, n, 2e5*slower, 0.015)},
		{Name: "p99_ns", Better: Lower, Base: noisy(rng, n, 9e5, 0.05), New: noisy(rng, n, 9e5*slower, 0.05)},
		{Name: "ok", Better: Higher, Base: noisy(rng, n, 1e5, 0), New: noisy(rng, n, 1e5, 0)},
	}
	for range 16 {
		figures = append(figures, Figure{Name: "p99_clicks", Better: Lower, Group: "cores",
			Base: noisy(rng, n, 18, 0.1), New: noisy(rng, n, 18, 0.1)})
	}
	return Runs(figures, Config{Seed: seed})
}

// 10 + 10 runs of the same build: hardly ever a difference.
func TestNoDifferenceOfTheSame(t *testing.T) {
	const trials = 500
	same := 0
	for seed := range uint64(trials) {
		r := report(seed, 10, 1)
		if strings.HasPrefix(r.Line, "OK: no difference") {
			same++
		}
	}
	// 1 % of the trials may differ; 15 of 500 have a probability under 1e-3.
	if same < trials*97/100 {
		t.Errorf("no difference in %d of %d trials", same, trials)
	}
	t.Logf("no difference in %d of %d trials", same, trials)
}

// A slowdown of 5 % at 1.5 % of noise from run to run is found.
func TestSlowdownIsFound(t *testing.T) {
	const trials = 100
	found := 0
	for seed := range uint64(trials) {
		if report(seed, 10, 1.05).Rows[0].Outcome == Worse {
			found++
		}
	}
	if found < 95 {
		t.Errorf("found in %d of %d trials", found, trials)
	}
	t.Logf("found in %d of %d trials", found, trials)
}

func TestIntervalCovers(t *testing.T) {
	const trials = 2000
	covered := 0
	for seed := range uint64(trials) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := Runs([]Figure{{Name: "x", Base: noisy(rng, 8, 100, 0.03), New: noisy(rng, 8, 110, 0.03)}}, Config{})
		if row := r.Rows[0]; row.ChangeLow <= 0.1 && row.ChangeHigh >= 0.1 {
			covered++
		}
	}
	if f := float64(covered) / trials; f < 0.93 || f > 0.97 {
		t.Errorf("the 95 %% interval covers the true change in %.1f %% of trials", f*100)
	}
}

func TestDirections(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	low, high := noisy(rng, 10, 100, 0.01), noisy(rng, 10, 120, 0.01)
	for _, c := range []struct {
		better    Direction
		base, new []float64
		want      Outcome
		regressed bool
	}{
		{Higher, low, high, Better, false}, {Higher, high, low, Worse, true},
		{Lower, low, high, Worse, true}, {Lower, high, low, Better, false},
		{Neutral, low, high, Different, false}, {Lower, low, low, NoDifference, false},
	} {
		r := Runs([]Figure{{Name: "x", Better: c.better, Base: c.base, New: c.new}}, Config{MaxRegress: 0.1})
		row := r.Rows[0]
		if row.Outcome != c.want || row.Regressed != c.regressed || (r.State == Regressed) != c.regressed {
			t.Errorf("%v: %v regressed %v; %s", c.better, row.Outcome, row.Regressed, r.Line)
		}
	}
}

func TestMaxRegress(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	f := []Figure{{Name: "rate_per_s", Better: Higher, Base: noisy(rng, 10, 100, 0.01), New: noisy(rng, 10, 93, 0.01)}}
	if r := Runs(f, Config{MaxRegress: 0.1}); r.State != Holds || r.Rows[0].Outcome != Worse {
		t.Errorf("7 %% of 10 %% allowed: %s", r.Line)
	}
	if r := Runs(f, Config{MaxRegress: 0.05}); r.State != Regressed || !strings.Contains(r.Line, "rate_per_s -7") {
		t.Errorf("7 %% of 5 %% allowed: %s", r.Line)
	}
	if r := Runs(f, Config{}); r.State != Holds {
		t.Errorf("without a limit: %s", r.Line)
	}
}

func TestTooFewRuns(t *testing.T) {
	f := []Figure{{Name: "rate_per_s", Better: Higher, Base: []float64{100, 101, 102}, New: []float64{50, 51, 52}}}
	r := Runs(f, Config{MaxRegress: 0.1})
	row := r.Rows[0]
	// 2/C(2n, n) < 0.01 needs n = 5: 2/252.
	if row.Outcome != TooFew || row.MoreRuns != 2 || r.State != Unsure || !strings.Contains(row.Note, "5 a side") {
		t.Errorf("%+v %s", row, r.Line)
	}
	f[0].Base = append(f[0].Base, 103, 104)
	f[0].New = append(f[0].New, 53, 54)
	if r := Runs(f, Config{MaxRegress: 0.1}); r.State != Regressed || math.Abs(r.Rows[0].P-2.0/252) > 1e-9 {
		t.Errorf("5 a side: %v %s", r.Rows[0].P, r.Line)
	}
	// The same among ten figures needs more.
	for range 9 {
		f = append(f, Figure{Name: "other", Base: []float64{1, 2, 3, 4, 5}, New: []float64{1.5, 2.5, 3.5, 4.5, 5.5}})
	}
	if r := Runs(f, Config{}); r.Rows[0].Outcome != TooFew || r.Rows[0].MoreRuns != 2 {
		t.Errorf("among ten: %+v", r.Rows[0])
	}
}

func TestMinRuns(t *testing.T) {
	for _, c := range []struct{ m, want int }{{1, 5}, {5, 7}, {20, 8}} {
		if got := minRuns(0.01, c.m); got != c.want {
			t.Errorf("%d comparisons: %d runs, want %d", c.m, got, c.want)
		}
	}
	if p := smallestP(10, 10); math.Abs(p-2.0/184756) > 1e-15 {
		t.Errorf("smallest p of 10 and 10: %v", p)
	}
}

func TestSingleRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	dist := func(scale float64) *timingstats.Recorder {
		r := timingstats.NewRecorder(0)
		for range 50_000 {
			r.Record(int64(scale * math.Exp(0.3*rng.NormFloat64())))
		}
		return r
	}
	a, b := dist(1e6), dist(1.1e6)
	f := Figure{Name: "p99_ns", Better: Lower, Quantile: 99, BaseDist: a, NewDist: b,
		Base: []float64{float64(a.Percentile(99))}, New: []float64{float64(b.Percentile(99))}}
	r := Runs([]Figure{f}, Config{MaxRegress: 0.05, Seed: 1})
	row := r.Rows[0]
	if row.Outcome != SingleRun || !row.ChangeKnown || row.ChangeLow > 0.1 || row.ChangeHigh < 0.1 || row.ChangeHigh-row.ChangeLow > 0.1 {
		t.Errorf("%+v", row)
	}
	if !strings.Contains(row.Note, "not known from one") || row.MoreRuns != 4 || r.State != Unsure || len(r.Warnings) == 0 {
		t.Errorf("%q, %d more, %s, %v", row.Note, row.MoreRuns, r.Line, r.Warnings)
	}
	if d := cmp.Diff(r, Runs([]Figure{f}, Config{MaxRegress: 0.05, Seed: 1})); d != "" {
		t.Errorf("the same seed gives another report:\n%s", d)
	}
	f.BaseDist = nil
	if row := Runs([]Figure{f}, Config{}).Rows[0]; row.ChangeKnown {
		t.Error("an interval from nothing")
	}
}

// The bootstrap without samples gives what a plain bootstrap gives.
func TestQuantileBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	r := timingstats.NewRecorder(0)
	values := make([]int64, 400)
	for i := range values {
		values[i] = rng.Int64N(100_000)
		r.Record(values[i])
	}
	var plain, quick [2]float64 // sum, sum of squares
	q := newQuantile(r, 90)
	const draws = 5000
	for range draws {
		s := timingstats.NewRecorder(0)
		for range values {
			s.Record(values[rng.IntN(len(values))])
		}
		x := float64(s.Percentile(90))
		plain[0], plain[1] = plain[0]+x, plain[1]+x*x
		y := q.draw(rng)
		quick[0], quick[1] = quick[0]+y, quick[1]+y*y
	}
	mean := func(s [2]float64) float64 { return s[0] / draws }
	sd := func(s [2]float64) float64 { return math.Sqrt(s[1]/draws - mean(s)*mean(s)) }
	if m := mean(quick) / mean(plain); m < 0.995 || m > 1.005 {
		t.Errorf("mean %v, plain %v", mean(quick), mean(plain))
	}
	if d := sd(quick) / sd(plain); d < 0.93 || d > 1.07 {
		t.Errorf("deviation %v, plain %v", sd(quick), sd(plain))
	}
}

func TestOddFigures(t *testing.T) {
	nan := math.NaN()
	r := Runs([]Figure{
		{Name: "absent", New: []float64{1, 2}},
		{Name: "nan", Base: []float64{nan, nan}, New: []float64{nan}},
		{Name: "errors", Better: Lower, Base: make([]float64, 10), New: []float64{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
		{Name: "zeros", Better: Lower, Base: make([]float64, 10), New: make([]float64, 10)},
	}, Config{MaxRegress: 0.1})
	if r.Rows[0].Outcome != Absent || r.Rows[1].Outcome != Absent {
		t.Errorf("%v %v", r.Rows[0].Outcome, r.Rows[1].Outcome)
	}
	if e := r.Rows[2]; e.Outcome != Worse || !e.Absolute || e.Change != 9.5 || !e.Regressed {
		t.Errorf("from no errors to some: %+v", e)
	}
	if z := r.Rows[3]; z.Outcome != NoDifference || z.P != 1 {
		t.Errorf("all zero: %+v", z)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("JSON round trip:\n%s", d)
	}
	if r := Runs(nil, Config{}); r.State != Holds {
		t.Errorf("nothing: %+v", r)
	}
}

// Holm's p-values, by hand.
func TestHolm(t *testing.T) {
	// 10 runs a side, U = 0, and two figures that overlap.
	up := func(shift float64) Figure {
		f := Figure{Name: "x", Better: Lower}
		for i := range 10 {
			f.Base = append(f.Base, 100+float64(i))
			f.New = append(f.New, 100+float64(i)+shift)
		}
		return f
	}
	r := Runs([]Figure{up(0.5), up(20), up(0.25)}, Config{})
	p := smallestP(10, 10)
	if row := r.Rows[1]; math.Abs(row.P-p) > 1e-12 || math.Abs(row.AdjustedP-3*p) > 1e-12 || row.Outcome != Worse || row.Effect != 1 {
		t.Errorf("%+v", row)
	}
	for _, i := range []int{0, 2} {
		if row := r.Rows[i]; row.Outcome != NoDifference || row.AdjustedP < row.P {
			t.Errorf("%+v", row)
		}
	}
	// Two groups share alpha.
	a, b := up(20), up(0.5)
	b.Group = "cores"
	if row := Runs([]Figure{a, b}, Config{}).Rows[0]; math.Abs(row.AdjustedP-2*p) > 1e-12 {
		t.Errorf("in one of two groups: %v, want %v", row.AdjustedP, 2*p)
	}
}

// Figures that are the same in all runs judge nothing: where all others have
// too few runs, nothing was judged, and the line says how many are missing.
func TestNothingTested(t *testing.T) {
	figures := func(n int) []Figure {
		rng := rand.New(rand.NewPCG(4, 4))
		fs := []Figure{{Name: "errors_share", Better: Lower, Base: make([]float64, n), New: make([]float64, n)}}
		for range 6 {
			fs = append(fs, Figure{Name: "p50_ns", Better: Lower, Base: noisy(rng, n, 100, 0.01), New: noisy(rng, n, 100, 0.01)},
				Figure{Name: "p50_ns", Group: "cores", Better: Lower, Base: noisy(rng, n, 100, 0.01), New: noisy(rng, n, 100, 0.01)})
		}
		return fs
	}
	// 2/C(2n, n) < 0.005/6 needs n = 7: 2/3432.
	for n, want := range map[int]string{1: "6 more runs a side", 2: "5 more runs a side", 3: "4 more runs a side", 6: "1 more run a side"} {
		r := Runs(figures(n), Config{})
		if r.State != Unsure || !strings.HasPrefix(r.Line, "INCOMPLETE: too few runs to judge anything, "+want) {
			t.Errorf("%d a side: %s, %q", n, r.State, r.Line)
		}
	}
	r := Runs(figures(7), Config{})
	if r.State != Holds || !r.Rows[1].Tested || r.Rows[0].Tested {
		t.Errorf("7 a side: %s, %q", r.State, r.Line)
	}
	// Enough for some is enough for a judgement, and the rest is counted.
	mixed := append(figures(7), Figure{Name: "late", Group: "late", Base: []float64{1, 2}, New: []float64{1, 3}})
	if r := Runs(mixed, Config{}); r.State != Holds || !strings.Contains(r.Line, "too few runs to tell (") {
		t.Errorf("mixed: %s, %q", r.State, r.Line)
	}
	if r := Runs([]Figure{{Name: "x", Base: []float64{1, 2}}}, Config{}); r.State != Unsure || !strings.Contains(r.Line, "1 figure: ") {
		t.Errorf("absent on a side: %s, %q", r.State, r.Line)
	}
}

// Without a limit what got worse passes, but not in silence; a change from
// nothing is no percentage.
func TestWorseIsSaid(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var fs []Figure
	for i := range 10 {
		fs = append(fs, Figure{Name: "x" + string(rune('0'+i)), Better: Lower, Base: noisy(rng, 10, 100, 1e-5), New: noisy(rng, 10, 110, 1e-5)})
	}
	r := Runs(fs, Config{})
	if r.State != Holds || strings.HasPrefix(r.Line, "OK:") || !strings.Contains(r.Line, "x7 +10.0 % and 2 more; 10 figures: 10 worse") {
		t.Errorf("%s, %q", r.State, r.Line)
	}
	if r := Runs(fs, Config{MaxRegress: 1.5}); r.State != Holds || !strings.HasPrefix(r.Line, "OK: worse by no more than 150 % is x0 +10.0 %, ") {
		t.Errorf("%s, %q", r.State, r.Line)
	}
	fs = []Figure{{Name: "errors", Better: Lower, Base: make([]float64, 10), New: noisy(rng, 10, 5, 1e-5)}}
	if r := Runs(fs, Config{MaxRegress: 0.1}); r.State != Regressed || !strings.HasPrefix(r.Line, "REGRESSION: errors +5 (") {
		t.Errorf("%s, %q", r.State, r.Line)
	}
}
