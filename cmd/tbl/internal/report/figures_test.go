package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"pgregory.net/rapid"

	"tbl/loader"
	"tbl/prober"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func timeOf(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

// TestBand draws even spreads: all cores are within the band in 999 of 1,000,
// or in more where counts are so small that no whole number is just as seldom.
func TestBand(t *testing.T) {
	const trials = 20_000
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ n, cores, fewest int }{{4000, 8, 3}, {1280, 256, 1}, {400, 64, 1}} {
		low, high, ok := band(int64(c.n), c.cores, 1)
		outside := 0
		counts := make([]int, c.cores)
		for range trials {
			clear(counts)
			for range c.n {
				counts[rng.IntN(c.cores)]++
			}
			for _, x := range counts {
				if s := float64(x) / float64(c.n); s < low || s > high {
					outside++
					break
				}
			}
		}
		// 20 are expected at most; four standard deviations to either side.
		if !ok || outside < c.fewest || outside > 38 {
			t.Errorf("%d over %d cores: %d of %d even spreads leave the band (%v), want about %v", c.n, c.cores, outside, trials, ok, trials*bandAlpha)
		}
	}
	l1, h1, _ := band(4000, 8, 1)
	l2, h2, ok := band(4000, 8, 4)
	if wide := (h2 - l2) / (h1 - l1); !ok || math.Abs(wide-2) > 0.05 {
		t.Errorf("four times the variance makes the band %v times as wide, want 2", wide)
	}
	// The exact bounds go over into the approximate ones.
	l1, h1, _ = band(7_999_999, 8, 1)
	l2, h2, _ = band(8_000_001, 8, 1)
	if math.Abs(l1-l2) > 2e-6 || math.Abs(h1-h2) > 2e-6 {
		t.Errorf("%v to %v just below a million per core, %v to %v just above", l1, h1, l2, h2)
	}
	for _, few := range []struct {
		n      int64
		factor float64
	}{{39, 1}, {79, 2}, {0, 1}, {-1, 1}, {4000, math.Inf(1)}} {
		if _, _, ok := band(few.n, 8, few.factor); ok {
			t.Errorf("%d over 8 cores, variance times %v: a band", few.n, few.factor)
		}
	}
	if _, _, ok := band(40, 8, 1); !ok {
		t.Error("no band at 5 per core")
	}
}

// TestSpreadFactor holds the widening against the verdict's: that of the ports
// in a file, and for files of version 1 what the verdict was judged with.
func TestSpreadFactor(t *testing.T) {
	counts := []verdict.CoreCount{{Core: core(0), Count: 5300}, {Core: core(1), Count: 4700}}
	for _, ports := range []int{0, 1000, 10_000} {
		r := verdict.JudgeUniformityOverPorts(counts, nil, ports)
		want := 1.0
		if ports > 0 {
			want += 10_000 / float64(ports)
		}
		if got := judgedFactor(counts, []verdict.Verdict{r.Verdict}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d ports, judged: %v, want %v", ports, got, want)
		}
		if got := spreadFactor(counts, ports); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d ports: %v, want %v", ports, got, want)
		}
	}
	if got := judgedFactor(counts, nil); got != 1 {
		t.Errorf("without a verdict: %v", got)
	}
	// A run that was not judged has its ports all the same; an old one the verdict.
	load := loadRun(t, 1)
	load.SourcePorts, load.Verdicts = 500, nil
	old := loadRun(t, 1)
	old.Cores[0].Writes, old.Cores[1].Writes = 600, 400
	var uneven []verdict.CoreCount
	for _, c := range old.Cores {
		uneven = append(uneven, verdict.CoreCount{Core: c.Core, Count: c.Writes})
	}
	old.Verdicts = []verdict.Verdict{verdict.JudgeUniformityOverPorts(uneven, nil, 1000).Verdict}
	for _, c := range []struct {
		run     *loader.LoadResult
		version int
		want    float64
	}{{load, 2, 5}, {load, 1, 5}, {old, 1, 3}, {old, 2, 1}} {
		f := saved(t, "a.json", "load", c.run, nil)
		f.Header.Version = c.version
		if _, ls, err := read(f); err != nil || math.Abs(ls[0].spreadFactor-c.want) > 1e-9 {
			t.Errorf("version %d, %d ports: %+v, %v, want %v", c.version, c.run.SourcePorts, ls, err, c.want)
		}
	}
}

// TestDeadCore shows a core that did not answer as one with no requests, in
// every command's spread.
func TestDeadCore(t *testing.T) {
	load, bulk, probe := loadRun(t, 1), bulkRun(), probeRun()
	dead := []timingstats.CoreID{core(1)}
	load.Cores, load.Missing = slices.Delete(load.Cores, 1, 2), dead
	bulk.Cores, bulk.Missing = []loader.BulkCore{bulk.Cores[0], {Core: core(2), Posts: 100}}, dead
	probe.Hits, probe.Missing = slices.Delete(probe.Hits, 1, 2), dead
	info := &prober.InfoResult{Run: prober.Run{Missing: dead}, Hits: probe.Hits}
	whoami := &prober.WhoamiResult{Run: prober.Run{Missing: dead}, Names: []prober.WhoamiCore{{Core: core(0), Hits: 50}, {Core: core(2), Hits: 50}}}
	for command, result := range map[string]any{"load": load, "bulk-post": bulk, "probe": probe, "info": info, "whoami": whoami} {
		charts, err := Build([]Source{{File: saved(t, "dead.json", command, result, nil)}}).Pick([]string{"spread"})
		if err != nil {
			t.Error(err)
			continue
		}
		c := charts[0]
		if row := c.Table.Texts()[1]; row[1] != "1" || row[2] != "0" || row[6] != "no" {
			t.Errorf("%s: row %q", command, row)
		}
		if !strings.Contains(c.Desc, "TMM 1 with 0.00 %") || !strings.Contains(c.Desc, "none on TMM 1.") || strings.Contains(c.Desc, "all cores within") {
			t.Errorf("%s: %q", command, c.Desc)
		}
	}
}

// TestTooFew draws no band where requests are too few for one, and says so.
func TestTooFew(t *testing.T) {
	info := &prober.InfoResult{Hits: []prober.CoreHits{{Core: core(0), Hits: 3}, {Core: core(1), Hits: 6}}}
	c := Build([]Source{{File: saved(t, "few.json", "info", info, nil)}}).Charts[0]
	if row := c.Table.Texts()[0]; row[6] != "too few" || !strings.Contains(c.Desc, "too few for a band") || len(c.Notes) != 1 || strings.Contains(c.Caption, "band") {
		t.Errorf("row %q, description %q, notes %q, caption %q", row, c.Desc, c.Notes, c.Caption)
	}
	svg, err := c.Inline("x")
	if err != nil || marksIn(t, svg) != 2 {
		t.Errorf("%v, %d marks, want the 2 shares", err, marksIn(t, svg))
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
