package session

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// costing is a design with a cost, how far that may be off, and a spread.
func costing(d Design, cost, off, spread float64) DesignResult {
	return DesignResult{Design: d, Title: d.Title(), ClicksPerVisit: cost, ClicksPerVisitError: off, ExecutedRatio: spread, Load: make([]CoreLoad, 4)}
}

// TestRecommend: the cheapest, or the best spread of those as cheap, with the
// reason, where the figures carry it.
func TestRecommend(t *testing.T) {
	all := func(off float64, v ...float64) (out []DesignResult) {
		for i, d := range Designs() {
			out = append(out, costing(d, v[2*i], off, v[2*i+1]))
		}
		return out
	}
	for _, c := range []struct {
		name     string
		designs  []DesignResult
		sessions int64
		cores    int
		best     Design
		says     []string
		not      []string
	}{
		{"least by far", all(1, 300, 1, 500, 4, 100, 1), 100_000, 4, Local, []string{"which is the least,", "3 times as much", "It needs affinity"}, nil},
		{"no affinity on one core", all(1, 300, 1, 500, 1, 100, 1), 100_000, 1, Local, []string{"which is the least,"}, []string{"It needs affinity"}},
		{"tie is of the cheapest", all(0.1, 100, 1.2, 109, 1.1, 118, 1), 100_000, 4, Shared,
			[]string{"as good as the 100 of per-session", "1.10 times the mean instead of 1.20", "8 % more"}, nil},
		{"the same from the other end", all(0.1, 118, 1, 109, 1.1, 100, 1.2), 100_000, 4, Shared, []string{"as good as the 100 of local"}, nil},
		{"beyond a tie", all(0.1, 100, 1.2, 111, 1, 130, 1), 100_000, 4, PerSession, []string{"which is the least,"}, nil},
		{"equal spread", all(0.2, 40.5, 1, 39.7, 1, 39.6, 1), 2000, 1, Local, []string{"which is the least (up to 10 % more counts as the same, and spreads no better)"}, nil},
		{"spread but for chance", all(0.2, 40.5, 1.01, 39.6, 1.05, 45, 1), 2000, 4, Shared, []string{"which is the least (up to 10 %"}, nil},
		{"spread unknown", all(0.2, 40.5, 0, 39.6, 0, 45, 0), 2000, 4, Shared, []string{"which is the least (up to 10 % more counts as the same)"}, nil},
		{"wide, but as good as the same", all(5, 100, 1, 103, 1, 130, 1), 2000, 4, PerSession, []string{"Take one subtable"}, nil},
		{"too wide", all(10, 100, 1, 103, 1, 130, 1), 2000, 4, "", []string{"Too few visits", "About 6,000 --sessions are enough"}, []string{"Take"}},
		{"too wide for a tie only", all(40, 100, 1, 200, 1, 300, 1), 2000, 4, PerSession, nil, nil},
		{"hopeless", all(10_000, 100, 1, 103, 1, 130, 1), 2000, 4, "", []string{"Play more --sessions"}, []string{"About"}},
		{"alone", []DesignResult{costing(Shared, 100, 1, 4)}, 2000, 4, "", []string{"no other design"}, nil},
	} {
		r := &Result{Cores: c.cores, Sessions: c.sessions, Keys: 10, Designs: c.designs}
		by := map[Design]*DesignResult{}
		for i := range r.Designs {
			by[r.Designs[i].Design] = &r.Designs[i]
		}
		recommend(r, nil, by)
		var text strings.Builder
		for _, a := range r.Recommendation {
			text.WriteString(a.Text + "\n")
		}
		if r.Best != c.best {
			t.Errorf("%s: best %q, want %q:\n%s", c.name, r.Best, c.best, &text)
		}
		for _, s := range c.says {
			if !strings.Contains(text.String(), s) {
				t.Errorf("%s: no %q in\n%s", c.name, s, &text)
			}
		}
		for _, s := range c.not {
			if strings.Contains(text.String(), s) {
				t.Errorf("%s: %q in\n%s", c.name, s, &text)
			}
		}
	}
}

// TestIndexAdvice: what is quicker beyond chance is advised.
func TestIndexAdvice(t *testing.T) {
	for _, c := range []struct {
		name  string
		scan  float64 // what listing the whole costs
		off   float64
		scans int64
		looks int64
		want  string
	}{
		{"listing is dear", 1000, 10, 12, 100, "keep the index"},
		{"listing is cheap", 20, 1, 12, 100, "an index doesn't pay"}, // 10 + 100/100·20 + 50/100·30 = 45
		{"chance of the listings", 60, 20, 12, 100, "no difference"},
		{"chance of how often", 52, 0, 12, 100, "no difference"},
		{"as many more", 52, 0, 12, 100_000, "keep the index"},
		{"few listings", 1000, 0, 7, 100, "no difference"},
		{"the same", 10.5, 0, 12, 10_000_000, "as good as the same"},
	} {
		d := costing(Shared, 100, 1, 4)
		d.Scan = OpCost{N: c.scans, TrimmedClicks: c.scan, off: c.off}
		d.Ops = []OpCost{{Op: "set", N: 1000, TrimmedClicks: 20}, {Op: "enumerate", N: c.looks, TrimmedClicks: 10}, {Op: "delete", N: 500, TrimmedClicks: 30}}
		d.IndexSets, d.IndexDeletes = 100, 50
		var text string
		listing(map[Design]*DesignResult{Shared: &d}, func(_, format string, args ...any) { text += format + args[len(args)-1].(string) })
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %s", c.name, text, c.want)
		}
	}
}

// TestSetApart: the limits that USAGE names, and some more.
func TestSetApart(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 1: 0, 2: 1, 3: 1, 34: 3, 300: 10, 2000: 40, 1_000_000: 20_000} {
		if got := setApart(n); got != want {
			t.Errorf("of %d operations %d are set apart, want %d", n, got, want)
		}
	}
}

// TestSlowest keeps what a sorted list would.
func TestSlowest(t *testing.T) {
	var s slowest
	s.reset(300)
	groups := make([]group, 2)
	for i := range int64(300) {
		v := i * 7919 % 300 // each of 0 to 299 once
		g := int(v % 2)
		groups[g].ops[opSet].n++
		groups[g].ops[opSet].clicks += v
		s.add(slow{v, g})
	}
	got := s.trim(opSet, groups)
	if want := 289.0 / 2; got.n != 300 || math.Abs(got.mean-want) > 1e-9 { // of 0 to 289
		t.Errorf("mean %v of %d, want %v of 300", got.mean, got.n, want)
	}
	if sum := got.sums[0] + got.sums[1]; math.Abs(sum-300*got.mean) > 1e-6 {
		t.Errorf("sums of groups make %v, want %v", sum, 300*got.mean)
	}
	if len(s.heap) != 11 || s.heap[0].clicks != 289 {
		t.Errorf("%d kept, from %d on", len(s.heap), s.heap[0].clicks)
	}
}

// TestOffBy: known intervals, and a single sum that says nothing of chance.
func TestOffBy(t *testing.T) {
	for _, c := range []struct {
		sums, per []float64
		want      float64
	}{
		{nil, nil, 0},
		{[]float64{0, 5}, []float64{0, 1}, 5 * 63.657}, // Student's with 1 degree of freedom
		{[]float64{1, 3}, []float64{1, 1}, 63.657},
		{[]float64{1, 2, 3}, []float64{1, 1, 1}, 9.925 / math.Sqrt(3)},
		{[]float64{10, 20, 30}, []float64{10, 20, 30}, 0},
	} {
		if got := offBy(c.sums, c.per); math.Abs(got-c.want) > 1e-3*max(1, c.want) {
			t.Errorf("%v over %v: off by %v, want %v", c.sums, c.per, got, c.want)
		}
	}
}

// TestThinkOfPopular: all sessions last equally long, however popular.
func TestThinkOfPopular(t *testing.T) {
	cfg, err := Config{Sessions: 1000, Visits: 10, Zipf: true, Think: time.Minute}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(&cfg)
	r := rand.New(rand.NewPCG(1, 1))
	tried := 0
	for i := range cfg.Sessions {
		n := p.visits(i)
		if n < 100 {
			continue
		}
		tried++
		var lasts time.Duration
		for range n {
			lasts += p.think(i, r)
		}
		// √n off by chance, five times.
		if ratio := float64(lasts) / float64(10*time.Minute); math.Abs(ratio-1) > 5/math.Sqrt(float64(n)) {
			t.Errorf("a session of %d visits lasts %v, want about %v", n, lasts, 10*time.Minute)
		}
	}
	if tried < 5 {
		t.Errorf("%d popular sessions", tried)
	}
}
