package timingstats

import (
	"cmp"
	"math"
	"slices"
)

// Valley is the place between two populations of click counts, a fast and a
// slow one, or the statement that there is only one.
type Valley struct {
	// Found: there are two populations, and ThresholdClicks parts them.
	Found           bool  `json:"found"`
	ThresholdClicks int64 `json:"threshold_clicks,omitempty"`
	// FastClicks and SlowClicks are the medians of the two; with one
	// population FastClicks is its median.
	FastClicks int64 `json:"fast_clicks"`
	SlowClicks int64 `json:"slow_clicks,omitempty"`
	FastN      int64 `json:"fast_n"`
	SlowN      int64 `json:"slow_n,omitempty"`
	// Reason says in words why there is no second population; empty when found.
	Reason string `json:"reason,omitempty"`
}

// What makes two populations: they are minRatio apart, the space between is
// nearly empty, and neither is mere noise, which is up to noiseShare of each
// core's samples.
const (
	minRatio   = 4.0  // lower edge of the slow over upper edge of the fast
	edgeTrim   = 0.05 // share of each population that lies beyond its edge
	noiseShare = 0.05 // stray samples of a core
	noiseN     = 2    // stray samples that are noise in any case
	valleyMinN = 8    // samples of a core that can show a population
	midFilled  = 0.05 // samples in the middle of the space between, as a share of the smaller population
)

// step is a value with the number of samples up to and including it.
type step struct{ value, upTo int64 }

// FindValley looks for two populations in the samples of all cores together. Of
// all places at which the sorted samples can be parted so that the parts are
// four times from each other, without the outer 5 % of each, it takes the one
// with the widest step from one sample to the next whose parts are both more
// than noise on some core.
func FindValley(cores ...*Recorder) Valley {
	all := NewRecorder(MaxClicks)
	for _, c := range cores {
		all.Merge(c)
	}
	n := all.N()
	one := Valley{FastN: n, FastClicks: all.Percentile(50)}
	if n < valleyMinN {
		one.Reason = "too few samples to tell one population from two"
		return one
	}
	var steps []step
	var upTo int64
	all.Each(func(_, high, k int64) {
		upTo += k
		steps = append(steps, step{max(high, 1), upTo})
	})
	at := func(rank int64) int64 {
		i, _ := slices.BinarySearchFunc(steps, rank, func(s step, r int64) int { return cmp.Compare(s.upTo, r) })
		return steps[min(i, len(steps)-1)].value
	}
	edges := func(i int) (fast, slow int64) {
		f := steps[i].upTo
		return at(f - int64(edgeTrim*float64(f))), at(f + 1 + int64(edgeTrim*float64(n-f)))
	}
	var splits []int // by their last fast step
	for i := range len(steps) - 1 {
		if fast, slow := edges(i); float64(slow) >= minRatio*float64(fast) {
			splits = append(splits, i)
		}
	}
	width := func(i int) float64 { return float64(steps[i+1].value) / float64(steps[i].value) }
	slices.SortStableFunc(splits, func(a, b int) int { return cmp.Compare(width(b), width(a)) })

	one.Reason = "the samples spread without a gap: there is only one population"
	for _, i := range splits {
		fast, slow := edges(i)
		geo := func(a, b int64) int64 { return int64(math.Sqrt(float64(a)*float64(b)) + 0.5) }
		threshold := max(geo(fast, slow), fast+1)
		slowN := all.CountFrom(threshold)
		fastN := n - slowN
		mid := all.CountFrom(geo(fast, threshold)) - all.CountFrom(geo(threshold, slow))
		if float64(mid) > midFilled*float64(min(fastN, slowN))+1 {
			continue
		}
		if !population(cores, fastN, n, func(c *Recorder) int64 { return c.N() - c.CountFrom(threshold) }) ||
			!population(cores, slowN, n, func(c *Recorder) int64 { return c.CountFrom(threshold) }) {
			one.Reason = "the few samples apart are no more than noise: there is only one population"
			continue
		}
		return Valley{
			Found: true, ThresholdClicks: threshold, FastN: fastN, SlowN: slowN,
			FastClicks: at((fastN + 1) / 2), SlowClicks: at(fastN + (slowN+1)/2),
		}
	}
	return one
}

// population says that the k of n samples that part counts core by core are
// more than noise, on all cores together or on one of them.
func population(cores []*Recorder, k, n int64, part func(*Recorder) int64) bool {
	beyond := func(k, n int64) bool { return float64(k) > noiseShare*float64(n)+noiseN }
	return beyond(k, n) || slices.ContainsFunc(cores, func(c *Recorder) bool {
		return c.N() >= valleyMinN && beyond(part(c), c.N())
	})
}

// Valley looks for two populations in the samples of all cores of s.
func (s *Set) Valley() Valley {
	var rs []*Recorder
	for _, id := range s.IDs() {
		rs = append(rs, s.cores[id].Distribution())
	}
	return FindValley(rs...)
}
