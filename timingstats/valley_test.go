package timingstats

import (
	"math/rand/v2"
	"testing"
)

// draw makes a recorder of n samples from a distribution.
func draw(n int, f func(i int) int64) *Recorder {
	r := NewRecorder(MaxClicks)
	for i := range n {
		r.Record(f(i))
	}
	return r
}

func TestFindValley(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	fast := func(int) int64 { return 3 + rng.Int64N(15) }
	far := func(int) int64 { return 2000 + rng.Int64N(5000) }
	for name, c := range map[string]struct {
		cores []*Recorder
		found bool
	}{
		"one local, three remote": {[]*Recorder{draw(50, fast), draw(50, far), draw(50, far), draw(50, far)}, true},
		"one of 64 remote": {append([]*Recorder{draw(30, far)}, func() (out []*Recorder) {
			for range 63 {
				out = append(out, draw(30, fast))
			}
			return
		}()...), true},
		"all fast":         {[]*Recorder{draw(100, fast), draw(100, fast)}, false},
		"all slow":         {[]*Recorder{draw(100, far), draw(100, far)}, false},
		"all the same":     {[]*Recorder{draw(100, func(int) int64 { return 7 })}, false},
		"too few":          {[]*Recorder{draw(3, fast), draw(3, far)}, false},
		"none":             {nil, false},
		"strays only":      {[]*Recorder{draw(200, func(i int) int64 { return []int64{5, 400_000}[min(i%100/99, 1)] })}, false},
		"a broad single":   {[]*Recorder{draw(5000, func(int) int64 { return int64(float64(10) * (1 + 300*rng.Float64()*rng.Float64())) })}, false},
		"slow machine":     {[]*Recorder{draw(50, func(int) int64 { return 150 + rng.Int64N(80) }), draw(50, func(int) int64 { return 9000 + rng.Int64N(4000) })}, true},
		"near, but a gap":  {[]*Recorder{draw(50, func(int) int64 { return 10 + rng.Int64N(5) }), draw(50, func(int) int64 { return 121 + rng.Int64N(50) })}, true},
		"mixed on one":     {[]*Recorder{draw(100, func(i int) int64 { return []int64{6, 3000}[i%2] })}, true},
		"log-scale spread": {[]*Recorder{draw(60, fast), draw(60, func(int) int64 { return 121 << rng.IntN(11) })}, true},
	} {
		t.Run(name, func(t *testing.T) {
			v := FindValley(c.cores...)
			if v.Found != c.found {
				t.Fatalf("found %v: %+v", v.Found, v)
			}
			if !v.Found {
				if v.Reason == "" {
					t.Error("no reason given")
				}
				return
			}
			if v.FastClicks >= v.ThresholdClicks || v.SlowClicks < v.ThresholdClicks {
				t.Errorf("medians %d and %d are not on both sides of %d", v.FastClicks, v.SlowClicks, v.ThresholdClicks)
			}
			var n int64
			for _, r := range c.cores {
				n += r.N()
			}
			if v.FastN+v.SlowN != n {
				t.Errorf("%d + %d of %d samples", v.FastN, v.SlowN, n)
			}
		})
	}
}
