package timingstats

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCoreSummary(t *testing.T) {
	var c CoreRecorder
	for i := range int64(24) {
		c.Add(4+i%10, Fast, 1000)
	}
	c.Add(400_000, Slow, 1000)
	s := c.Summary(CoreID{Core: 1}, 0)
	if s.N != 25 || s.Fast != 24 || s.Slow != 1 || s.MinClicks != 4 || s.MaxClicks != 400_000 {
		t.Errorf("%+v", s)
	}
	if !s.P99IsMax || s.P99Clicks != 400_000 || s.P95Clicks != 13 {
		t.Errorf("p95 %d, p99 %d, only the maximum %v", s.P95Clicks, s.P99Clicks, s.P99IsMax)
	}
	if s.MixedRates || s.EffectiveN != 25 || s.SlowShare != 0.04 || s.Disagreements != 0 {
		t.Errorf("share %v of %v, %d disagreements", s.SlowShare, s.EffectiveN, s.Disagreements)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"core":"1","n":25,"fast":24,"slow":1,"min_clicks":4,`; !strings.Contains(string(b), want) {
		t.Errorf("JSON %s lacks %s", b, want)
	}
	if !strings.Contains(string(b), `"avg_clicks":16007.7`) {
		t.Errorf("average not to one decimal: %s", b)
	}
}

func TestP99OfAHundred(t *testing.T) {
	var c CoreRecorder
	for i := range int64(99) {
		c.Add(i, Untagged, 1)
	}
	if !c.Summary(CoreID{}, 0).P99IsMax {
		t.Error("p99 of 99 samples passes for more than the maximum")
	}
	c.Add(99, Untagged, 1)
	if s := c.Summary(CoreID{}, 0); s.P99IsMax || s.P99Clicks != 98 {
		t.Errorf("of 100: %+v", s)
	}
}

func TestMixedRatesAreWeighted(t *testing.T) {
	var c CoreRecorder
	for range 30 {
		c.Add(5, Fast, 1000)
	}
	for range 10 {
		c.Add(5000, Slow, 10)
	}
	s := c.Summary(CoreID{}, 100)
	// (Σw)² / Σw² = (30·1000 + 10·10)² / (30·1000² + 10·10²)
	if want := 30100.0 * 30100 / (30e6 + 1000); math.Abs(s.EffectiveN-want) > 1e-9 {
		t.Errorf("n_eff %v, want %v", s.EffectiveN, want)
	}
	if want := 100.0 / 30100; math.Abs(s.SlowShare-want) > 1e-12 {
		t.Errorf("share %v, want %v", s.SlowShare, want)
	}
	if !s.MixedRates || s.N != 40 || s.AtThreshold != 10 || s.P50Clicks != 5 || s.P95Clicks != 5000 {
		t.Errorf("%+v", s)
	}
	if got := c.Rates(); !slices.Equal(got, []int64{10, 1000}) {
		t.Errorf("rates %v", got)
	}
}

func TestTagsAgainstThreshold(t *testing.T) {
	var c CoreRecorder
	c.Add(99, Fast, 1)
	c.Add(100, Fast, 1)     // the threshold says slow
	c.Add(99, Slow, 1)      // the threshold says fast
	c.Add(100, Slow, 1)     //
	c.Add(100, Untagged, 1) // slow
	c.Add(3, Untagged, 1)   // fast
	s := c.Summary(CoreID{}, 100)
	if s.Fast != 3 || s.Slow != 3 || s.AtThreshold != 3 || s.Disagreements != 2 {
		t.Errorf("fast %d slow %d at threshold %d disagreements %d", s.Fast, s.Slow, s.AtThreshold, s.Disagreements)
	}
	if s := c.Summary(CoreID{}, 50); s.Fast != 3 || s.AtThreshold != 5 || s.Disagreements != 2 {
		t.Errorf("at 50: fast %d at threshold %d disagreements %d", s.Fast, s.AtThreshold, s.Disagreements)
	}
}

// Sets merged are the set of all samples.
func TestSetMergeConserves(t *testing.T) {
	type sample struct {
		core   int
		clicks int64
		tag    Tag
		rate   int64
	}
	gen := rapid.Custom(func(t *rapid.T) sample {
		return sample{
			rapid.IntRange(0, 4).Draw(t, "core"), rapid.Int64Range(-2, 400).Draw(t, "clicks"),
			Tag(rapid.IntRange(0, 2).Draw(t, "tag")), rapid.SampledFrom([]int64{0, 1, 10, 1000}).Draw(t, "rate"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOf(gen).Draw(t, "samples")
		var whole, a, b Set
		for i, s := range samples {
			id := CoreID{Core: s.core}
			whole.Core(id).Add(s.clicks, s.tag, s.rate)
			if i%3 == 0 {
				a.Core(id).Add(s.clicks, s.tag, s.rate)
			} else {
				b.Core(id).Add(s.clicks, s.tag, s.rate)
			}
		}
		b.Merge(&a)
		if d := cmp.Diff(whole.Summaries(100), b.Summaries(100), approx); d != "" {
			t.Fatalf("merged set differs:\n%s", d)
		}
	})
}

// Weighted sums are floating point, so their order shows in the last digits.
var approx = cmp.Comparer(func(x, y float64) bool {
	return x == y || math.Abs(x-y) <= 1e-12*max(math.Abs(x), math.Abs(y))
})

// Past the limit of single samples, too, parts merged are the whole.
func TestCoreMergeBeyondLimit(t *testing.T) {
	for _, n := range []int{ExactLimit, ExactLimit + 1, 3 * ExactLimit} {
		var whole, a, b CoreRecorder
		for i := range n {
			clicks, tag, rate := int64(i*7919%250_000), Tag(i%3), []int64{10, 1000}[i/3%2]
			whole.Add(clicks, tag, rate)
			if i%5 == 0 {
				a.Add(clicks, tag, rate)
			} else {
				b.Add(clicks, tag, rate)
			}
			whole.Add(-1, tag, rate) // out of range: doesn't count
			a.Add(-1, tag, rate)
		}
		a.Merge(&b)
		if d := cmp.Diff(whole.Summary(CoreID{}, 2000), a.Summary(CoreID{}, 2000), approx); d != "" {
			t.Errorf("%d samples: merged differs:\n%s", n, d)
		}
		for _, c := range []*CoreRecorder{&whole, &a} {
			if exact := c.Distribution().Exact(); exact != (n <= ExactLimit) {
				t.Errorf("%d samples: exact %v", n, exact)
			}
			for i := range c.strata {
				for tag := range numTags {
					if c.strata[i].tags[tag].Exact() != (n <= ExactLimit) {
						t.Errorf("%d samples: single ones of tag %d are kept: %v", n, tag, n > ExactLimit)
					}
				}
			}
		}
	}
}

func TestMissing(t *testing.T) {
	ids := func(cores ...int) []CoreID {
		var out []CoreID
		for _, c := range cores {
			out = append(out, CoreID{Core: c})
		}
		return out
	}
	for name, c := range map[string]struct {
		seen, known []CoreID
		perBlade    int
		want        []CoreID
	}{
		"gap":             {seen: ids(0, 1, 3), want: ids(2)},
		"none":            {seen: ids(0, 1, 2)},
		"count given":     {seen: ids(0, 1), perBlade: 4, want: ids(2, 3)},
		"known elsewhere": {seen: ids(0), known: ids(2), want: ids(1, 2)},
		"nothing seen":    {perBlade: 2, want: ids(0, 1)},
		"nothing at all":  {},
		"chassis": {seen: []CoreID{{1, 0}, {1, 1}, {2, 1}}, perBlade: 3,
			want: []CoreID{{1, 2}, {2, 0}, {2, 2}}},
	} {
		if got := Missing(c.seen, c.known, c.perBlade); !slices.Equal(got, c.want) {
			t.Errorf("%s: missing %v, want %v", name, got, c.want)
		}
	}
}

func TestCoreIDText(t *testing.T) {
	for text, id := range map[string]CoreID{"3": {Core: 3}, "1/12": {1, 12}} {
		var got CoreID
		if err := got.UnmarshalText([]byte(text)); err != nil || got != id || id.String() != text {
			t.Errorf("%q: %v, %v; written %q", text, got, err, id)
		}
	}
	for _, bad := range []string{"", "x", "-1", "1/", "/1", "1/2/3", "65536", "65536/1", "400000000"} {
		if new(CoreID).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
