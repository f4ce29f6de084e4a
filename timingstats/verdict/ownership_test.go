package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tbl/timingstats"
)

func coreRange(n int) []timingstats.CoreID {
	out := make([]timingstats.CoreID, n)
	for i := range out {
		out[i] = core(i)
	}
	return out
}

func TestOddsWeights(t *testing.T) {
	if w := math.Log((1 - pSlowOwner) / pFastOther); math.Abs(w-FastWeight) > 1e-12 {
		t.Errorf("fast %v, want %v", FastWeight, w)
	}
	if w := math.Log(pSlowOwner / (1 - pFastOther)); math.Abs(w-SlowWeight) > 1e-12 {
		t.Errorf("slow %v, want %v", SlowWeight, w)
	}
}

// The posterior, spelt out with products of probabilities.
func TestPosterior(t *testing.T) {
	o := NewOdds(OwnershipConfig{Expected: coreRange(3)})
	hits := [][2]int{{4, 1}, {1, 3}, {0, 2}} // fast, slow
	for c, h := range hits {
		for range h[0] {
			o.Add(core(c), 5, timingstats.Fast)
		}
		for range h[1] {
			o.Add(core(c), 5000, timingstats.Slow)
		}
	}
	likelihood := func(owner int) float64 {
		p := 1.0
		for c, h := range hits {
			fast, slow := 0.06, 0.94
			if c == owner {
				fast, slow = 0.95, 0.05
			}
			p *= math.Pow(fast, float64(h[0])) * math.Pow(slow, float64(h[1]))
		}
		return p
	}
	sum := likelihood(-1)
	for c := range hits {
		sum += likelihood(c)
	}
	r := o.Report()
	for c := range hits {
		if want := likelihood(c) / sum; math.Abs(r.Cores[c].Posterior-want) > 1e-12 {
			t.Errorf("core %d: posterior %v, want %v", c, r.Cores[c].Posterior, want)
		}
	}
	if want := sum/likelihood(0) - 1; math.Abs(r.ErrorOdds-want) > 1e-9*want {
		t.Errorf("odds of error %v, want %v", r.ErrorOdds, want)
	}
}

func TestOwnership(t *testing.T) {
	type hits struct{ fast, slow int }
	want := func(k int) *timingstats.CoreID { id := core(k); return &id }
	for name, c := range map[string]struct {
		hits    []hits
		cores   int
		want    *timingstats.CoreID
		outcome Outcome
		state   State
		mention string
	}{
		"clear":                  {[]hits{{0, 8}, {0, 9}, {8, 0}, {0, 7}}, 4, nil, OutcomeOwner, Pass, "OWNER TMM 2"},
		"as expected":            {[]hits{{0, 8}, {8, 0}}, 2, want(1), OutcomeOwner, Pass, "OWNER TMM 1"},
		"not as expected":        {[]hits{{0, 8}, {8, 0}}, 2, want(0), OutcomeOwner, Fail, "expected TMM 0"},
		"strays elsewhere":       {[]hits{{3, 47}, {1, 49}, {50, 0}, {2, 48}}, 4, nil, OutcomeOwner, Pass, "OWNER TMM 2"},
		"an owner slow at times": {[]hits{{0, 30}, {20, 5}}, 2, nil, OutcomeOwner, Pass, "OWNER TMM 1"},
		"none":                   {[]hits{{0, 10}, {0, 10}, {1, 12}}, 3, nil, OutcomeNoOwner, Fail, "NO OWNER"},
		"two":                    {[]hits{{10, 0}, {9, 0}, {0, 10}}, 3, nil, OutcomeAmbiguous, Incomplete, "TMM 0 (10 of 10), TMM 1 (9 of 9)"},
		"all":                    {[]hits{{10, 0}, {10, 0}}, 2, nil, OutcomeAmbiguous, Incomplete, "AMBIGUOUS"},
		"one not heard":          {[]hits{{0, 50}, {50, 0}}, 3, nil, OutcomeIncomplete, Incomplete, "TMM 2 not heard"},
		"a gap":                  {[]hits{{0, 50}, {}, {50, 0}}, 0, nil, OutcomeIncomplete, Incomplete, "TMM 1 not heard"},
		"too few":                {[]hits{{0, 1}, {3, 0}}, 2, nil, OutcomeIncomplete, Incomplete, "undecided"},
		"no samples":             {nil, 0, nil, OutcomeIncomplete, Incomplete, "no samples"},
		"no core count":          {[]hits{{0, 8}, {8, 0}}, 0, nil, OutcomeOwner, Pass, "OWNER TMM 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var s []OwnershipSample
			for k, h := range c.hits {
				for range h.fast {
					s = append(s, OwnershipSample{core(k), 6, timingstats.Fast})
				}
				for range h.slow {
					s = append(s, OwnershipSample{core(k), 2104, timingstats.Slow})
				}
			}
			r := JudgeOwnership(s, OwnershipConfig{Subtable: "uuid_01", Expected: coreRange(c.cores), Want: c.want})
			if r.Outcome != c.outcome || r.State != c.state || !strings.Contains(r.Line, c.mention) {
				t.Errorf("%v %v: %s", r.Outcome, r.State, r.Line)
			}
			if (r.Owner != nil) != (c.outcome == OutcomeOwner) {
				t.Errorf("owner %v", r.Owner)
			}
		})
	}
}

// The table of the published probe: 8 hits on the owner, avg 8.6.
func TestOwnershipTable(t *testing.T) {
	o := NewOdds(OwnershipConfig{Expected: coreRange(1)})
	for _, clicks := range []int64{3, 4, 5, 6, 8, 10, 13, 20} {
		o.Add(core(0), clicks, timingstats.Fast)
	}
	o.Add(core(0), -5, timingstats.Fast) // a wrapped counter
	c := o.Report().Cores[0]
	if c.Hits != 8 || c.Owner != 8 || c.NonOwner != 0 || c.MinClicks != 3 || c.MaxClicks != 20 {
		t.Errorf("%+v", c)
	}
	if b, _ := c.AvgClicks.MarshalJSON(); string(b) != "8.6" {
		t.Errorf("avg %s", b)
	}
}

// The order of the samples doesn't matter, and asking in between neither.
func TestOddsOrder(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) OwnershipSample {
		return OwnershipSample{core(rapid.IntRange(0, 5).Draw(t, "core")), rapid.Int64Range(-1, 200).Draw(t, "clicks"),
			timingstats.Tag(rapid.IntRange(0, 2).Draw(t, "tag"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOf(gen).Draw(t, "samples")
		cfg := OwnershipConfig{Expected: coreRange(rapid.IntRange(0, 6).Draw(t, "cores"))}
		batch := JudgeOwnership(s, cfg)
		seed := rapid.Uint64().Draw(t, "seed")
		shuffled := slices.Clone(s)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		o := NewOdds(cfg)
		for _, x := range shuffled {
			o.Add(x.Core, x.Clicks, x.Tag)
			o.Decided()
		}
		if d := cmp.Diff(batch, o.Report(), cmpopts.IgnoreUnexported(OwnershipCore{}), cmpopts.EquateApprox(1e-9, 0)); d != "" {
			t.Fatalf("batch and singles differ:\n%s", d)
		}
		if out := o.Report().Outcome; o.Decided() && out == OutcomeIncomplete {
			t.Fatalf("decided, and reported as %v", out)
		}
	})
}

// Deciding sample by sample, with stray fast samples on 2 % of foreign writes
// and stray slow ones on 2 % of own: never wrong, hardly ever undecided.
func TestSequentialDecision(t *testing.T) {
	for _, n := range []int{2, 4, 16, 64} {
		runs := 10_000 / n
		undecided := 0
		for run := range runs {
			seed := uint64(run)
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			owner := rng.IntN(n)
			o := NewOdds(OwnershipConfig{Expected: coreRange(n)})
			for range 500 * max(n/4, 1) {
				k := rng.IntN(n)
				clicks, stray := int64(3000), int64(10)
				if k == owner {
					clicks, stray = stray, clicks
				}
				if rng.Float64() < 0.02 {
					clicks = stray
				}
				o.Add(core(k), clicks, timingstats.Untagged)
				if o.Decided() {
					break
				}
			}
			r := o.Report()
			switch {
			case r.Outcome != OutcomeOwner:
				undecided++
			case *r.Owner != core(owner):
				t.Fatalf("%d cores, seed %d: %s, true owner %d", n, seed, r.Line, owner)
			}
		}
		if undecided > runs/1000 {
			t.Errorf("%d cores: %d of %d runs undecided", n, undecided, runs)
		}
	}
}

func TestOddsAllocatesNothing(t *testing.T) {
	o := NewOdds(OwnershipConfig{Expected: coreRange(16)})
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		o.Add(core(i%16), int64(i%200), timingstats.Untagged)
		o.Decided()
		i++
	}); n != 0 {
		t.Errorf("%v allocations per sample", n)
	}
}

func BenchmarkOdds16(b *testing.B) {
	o := NewOdds(OwnershipConfig{Expected: coreRange(16)})
	b.ReportAllocs()
	for i := range b.N {
		o.Add(core(i&15), 3000, timingstats.Untagged)
		o.Decided()
	}
}
