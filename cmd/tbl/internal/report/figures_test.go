package report

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"pgregory.net/rapid"

	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func timeOf(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// TestBand draws even spreads: all cores are within the band in 999 of 1,000.
func TestBand(t *testing.T) {
	const trials, n, cores = 20_000, 4000, 8
	rng := rand.New(rand.NewPCG(1, 2))
	low, high := band(n, cores, 1)
	outside := 0
	for range trials {
		var counts [cores]int
		for range n {
			counts[rng.IntN(cores)]++
		}
		for _, c := range counts {
			if s := float64(c) / n; s < low || s > high {
				outside++
				break
			}
		}
	}
	// 20 are expected; four standard deviations to either side.
	if outside < 3 || outside > 38 {
		t.Errorf("%d of %d even spreads leave the band, want about %v", outside, trials, trials*bandAlpha)
	}
	if l2, h2 := band(n, cores, 4); math.Abs((h2-l2)/(high-low)-2) > 1e-9 {
		t.Errorf("four times the variance makes the band %v times as wide, want 2", (h2-l2)/(high-low))
	}
}

// TestSpreadFactor takes the widening that the verdict was judged with.
func TestSpreadFactor(t *testing.T) {
	counts := []verdict.CoreCount{{Core: core(0), Count: 5300}, {Core: core(1), Count: 4700}}
	for _, ports := range []int{0, 1000, 10_000} {
		r := verdict.JudgeUniformityOverPorts(counts, nil, ports)
		want := 1.0
		if ports > 0 {
			want += 10_000 / float64(ports)
		}
		if got := spreadFactor(counts, []verdict.Verdict{r.Verdict}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d ports: %v, want %v", ports, got, want)
		}
	}
	if got := spreadFactor(counts, nil); got != 1 {
		t.Errorf("without a verdict: %v", got)
	}
}

// TestViolin holds that every sample is within a body, and bodies within their
// slot.
func TestViolin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 400_000), 1, 300).Draw(t, "values")
		r := timingstats.NewRecorder(timingstats.MaxClicks)
		for _, v := range values {
			r.Record(v)
		}
		low, high := logRange(float64(r.Min()), float64(r.Max()), 1)
		bodies := violin(r, 3, 0.4, 0.01, low, high)
		for _, v := range values {
			at, found := max(float64(v), low), false
			for _, b := range bodies {
				bottom, top := b[0].y, b[0].y
				for _, q := range b {
					bottom, top = min(bottom, q.y), max(top, q.y)
					if math.Abs(q.x-3) > 0.4+1e-9 || math.Abs(q.x-3) < 0.01-1e-9 {
						t.Fatalf("a body is %v wide", math.Abs(q.x-3))
					}
				}
				found = found || at >= bottom*(1-1e-9) && at <= top*(1+1e-9)
			}
			if !found {
				t.Fatalf("%d is in no body of %v", v, bodies)
			}
		}
	})
}

// TestLogRange holds what is drawn, with round ends at least a decade apart.
func TestLogRange(t *testing.T) {
	for _, c := range []struct{ low, high, wantLow, wantHigh float64 }{
		{3, 25, 2, 50}, {0, 0, 1, 10}, {121, 293_259, 100, 500_000}, {5, 20_000, 2, 50_000}, {1000, 1000, 500, 5000},
	} {
		if l, h := logRange(c.low, c.high, 1); math.Abs(l/c.wantLow-1) > 1e-9 || math.Abs(h/c.wantHigh-1) > 1e-9 {
			t.Errorf("%v to %v: %v to %v, want %v to %v", c.low, c.high, l, h, c.wantLow, c.wantHigh)
		}
	}
}

// TestSpans cuts runs into what is drawn.
func TestSpans(t *testing.T) {
	long := timingstats.SeriesSummary{StartS: []int64{0, 1, 2, 3, 4, 5}, EndNS: 5.2e9, All: timingstats.Points{Completions: []int64{10, 20, 30, 40, 50, 2}}}
	short := timingstats.SeriesSummary{StartS: []int64{0}, EndNS: 0.5e9, All: timingstats.Points{Completions: []int64{100}},
		Progress: []timingstats.Bucket{{StartNS: 0, EndNS: 0.2e9, Completions: 50}, {StartNS: 0.2e9, EndNS: 0.5e9, Completions: 50}}}
	failing := short
	failing.All.Errors = []int64{3}
	thin := timingstats.SeriesSummary{StartS: []int64{599, 600, 610}, EndNS: 620e9, All: timingstats.Points{Completions: []int64{7, 70, 80}}}
	for name, c := range map[string]struct {
		series  timingstats.SeriesSummary
		rates   []float64
		seconds bool
		cut     bool // the last one
		errors  int64
	}{
		"by seconds, the last one cut":   {long, []float64{10, 20, 30, 40, 50, 10}, true, true, 0},
		"short: by equal completions":    {short, []float64{250, 50 / 0.3}, false, false, 0},
		"short, but something failed":    {failing, []float64{200}, true, false, 3},
		"tens of seconds beyond minutes": {thin, []float64{7, 7, 8}, true, false, 0},
	} {
		got, seconds := spans(c.series)
		if len(got) != len(c.rates) || seconds != c.seconds {
			t.Errorf("%s: %+v, seconds %v", name, got, seconds)
			continue
		}
		var errors int64
		for i, s := range got {
			errors += s.errors
			if math.Abs(s.rate()-c.rates[i]) > 1e-6 {
				t.Errorf("%s: rate %d is %v, want %v", name, i, s.rate(), c.rates[i])
			}
		}
		if got[len(got)-1].cut != c.cut || errors != c.errors {
			t.Errorf("%s: cut %v, %d errors", name, got[len(got)-1].cut, errors)
		}
	}
}

// TestSpikes draws short runs whose parts of equal completions are now an
// instant, now long: no part is drawn faster than the run was for a fiftieth of
// it, and none is lost.
func TestSpikes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Int64Range(1, 100_000_000), 1, 50).Draw(t, "lengths_ns")
		each := rapid.Int64Range(1, 30_000).Draw(t, "completions")
		s := timingstats.SeriesSummary{StartS: []int64{0}}
		for _, n := range lengths {
			if rapid.Bool().Draw(t, "an instant") {
				n = 1
			}
			s.Progress = append(s.Progress, timingstats.Bucket{StartNS: s.EndNS, EndNS: s.EndNS + n, Completions: each})
			s.EndNS += n
		}
		parts, _ := spans(s)
		var done int64
		at := 0.0
		for _, p := range parts {
			if p.from != at || p.to <= p.from {
				t.Fatalf("%+v follows %v", p, at)
			}
			at = p.to
			done += p.done
			if len(parts) > 1 && (p.to-p.from < float64(s.EndNS)/1e9/shortPart*(1-1e-9) || p.done < fewestDrawn) {
				t.Fatalf("%+v of %d ns is too short or too few", p, s.EndNS)
			}
		}
		if want := each * int64(len(lengths)); done != want || len(parts) > shortPart {
			t.Fatalf("%d completions in %d parts, want %d", done, len(parts), want)
		}
	})
}

// TestZeroLabel holds that an axis from a little below zero says 0, not −0.
func TestZeroLabel(t *testing.T) {
	var a plot.Axis
	linearAxis(&a, -1e-12, 0.4, mostTicks, func(v float64) string { return strconv.FormatFloat(100*v, 'f', -1, 64) + " %" })
	if got := a.Tick.Marker.Ticks(a.Min, a.Max)[0].Label; got != "0 %" {
		t.Errorf("the first label is %q", got)
	}
}

// TestCurve ends where one sample is left, and never falls.
func TestCurve(t *testing.T) {
	r := timingstats.NewRecorder(0)
	for i := range int64(1000) {
		r.Record(i + 1)
	}
	known := curve{n: 1000, points: percentilesOf(r)}
	for name, c := range map[string]curve{"histogram": {n: 1000, hist: r}, "percentiles": known} {
		pts := c.draw()
		last := pts[len(pts)-1]
		if math.Abs(last.x-3) > 1e-9 || last.y < 999 {
			t.Errorf("%s ends at %+v, want 99.9 %% and the slowest", name, last)
		}
		for i := 1; i < len(pts); i++ {
			if pts[i].y < pts[i-1].y || pts[i].x < pts[i-1].x {
				t.Errorf("%s falls from %+v to %+v", name, pts[i-1], pts[i])
			}
		}
	}
	// Of few samples, the percentiles that are only the maximum are no points.
	few := timingstats.NewRecorder(0)
	for i := range int64(10) {
		few.Record(i + 1)
	}
	for _, q := range (curve{n: 10, points: percentilesOf(few)}).draw() {
		if q.x > 1+1e-9 {
			t.Errorf("ten samples say nothing of %+v", q)
		}
	}
}
