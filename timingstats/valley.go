package timingstats

import "math"

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

// What makes a second population: it is at least minRatio away, the space
// between the two is nearly empty, and it is more than noise, which is up to
// noiseShare of a core's samples.
const (
	valleyBins   = 4    // per doubling
	minRatio     = 4.0  // lower edge of the slow over upper edge of the fast, both without their outer 5 %
	noiseShare   = 0.05 // stray slow samples of a healthy core
	valleyMinN   = 8    // samples of a core that can show a population
	valleyFilled = 0.05 // samples allowed in the space between, as a share of the smaller population
)

// FindValley looks for two populations in the samples of all cores together.
// The split is the one that best separates the logarithms (Otsu, "A threshold
// selection method from gray-level histograms", IEEE Trans. SMC 9(1), 1979);
// it counts only if the populations are at least four times apart with next to
// nothing between them, and if some core has more of the slow one than noise.
func FindValley(cores ...*Recorder) Valley {
	all := NewRecorder(MaxClicks)
	for _, c := range cores {
		all.Merge(c)
	}
	v := Valley{FastN: all.N(), FastClicks: all.Percentile(50)}
	if all.N() < valleyMinN {
		v.Reason = "too few samples to tell one population from two"
		return v
	}
	const bins = 32*valleyBins + 1
	var count [bins]float64
	bin := func(clicks int64) int { return int(math.Log2(float64(clicks)+1) * valleyBins) }
	all.Each(func(low, high, n int64) { count[bin(low+(high-low)/2)] += float64(n) })

	// Otsu: the edge with the largest variance between the classes. A run of
	// empty bins gives the same variance for all its edges: take the middle.
	var n, sum float64
	for i, c := range count {
		n, sum = n+c, sum+c*float64(i)
	}
	var below, belowSum, best float64
	first, last := -1, -1
	for i := 0; i < bins-1; i++ {
		below, belowSum = below+count[i], belowSum+count[i]*float64(i)
		above := n - below
		if below == 0 || above == 0 {
			continue
		}
		d := belowSum/below - (sum-belowSum)/above
		switch between := below * above * d * d; {
		case between > best*(1+1e-12):
			best, first, last = between, i, i
		case between >= best*(1-1e-12) && last == i-1:
			last = i
		}
	}
	if first < 0 {
		v.Reason = "all samples are alike: there is only one population"
		return v
	}
	edge := float64(first+last)/2 + 1
	split := max(int64(math.Exp2(edge/valleyBins)-1+0.5), 1)

	slow := all.CountFrom(split)
	fast := all.N() - slow
	if fast == 0 || slow == 0 {
		v.Reason = "all samples are alike: there is only one population"
		return v
	}
	fastEdge := valueAtRank(all, (fast*95+99)/100)
	slowEdge := valueAtRank(all, fast+max(slow*5/100, 1))
	if float64(slowEdge) < minRatio*float64(max(fastEdge, 1)) {
		v.Reason = "the samples spread without a gap: there is only one population"
		return v
	}
	// The threshold lies in the geometric middle of the space between.
	threshold := max(int64(math.Sqrt(float64(max(fastEdge, 1))*float64(slowEdge))+0.5), fastEdge+1)
	lo := int64(math.Sqrt(float64(max(fastEdge, 1))*float64(threshold)) + 0.5)
	hi := int64(math.Sqrt(float64(threshold)*float64(slowEdge)) + 0.5)
	if between := all.CountFrom(lo) - all.CountFrom(hi); float64(between) > valleyFilled*float64(min(fast, slow))+1 {
		v.Reason = "the samples spread without a gap: there is only one population"
		return v
	}
	real := false
	for _, c := range cores {
		if c.N() >= valleyMinN && float64(c.CountFrom(threshold)) > noiseShare*float64(c.N())+2 {
			real = true
		}
	}
	if !real && float64(slow) <= noiseShare*float64(all.N())+2 {
		v.Reason = "the few slow samples are no more than noise: there is only one population"
		return v
	}
	slow = all.CountFrom(threshold)
	fast = all.N() - slow
	return Valley{
		Found: true, ThresholdClicks: threshold, FastN: fast, SlowN: slow,
		FastClicks: valueAtRank(all, (fast+1)/2), SlowClicks: valueAtRank(all, fast+(slow+1)/2),
	}
}

// valueAtRank is the value of a rank counted from 1, within [1, N].
func valueAtRank(r *Recorder, rank int64) int64 {
	rank = min(max(rank, 1), r.N())
	if r.Exact() {
		r.sort()
		return r.exact[rank-1]
	}
	return min(max(r.hist.atRank(uint64(rank)), r.min), r.max)
}

// Valley looks for two populations in the samples of all cores of s.
func (s *Set) Valley() Valley {
	var rs []*Recorder
	for _, id := range s.IDs() {
		rs = append(rs, s.cores[id].Distribution())
	}
	return FindValley(rs...)
}
