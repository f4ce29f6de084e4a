package prober

import (
	"math"
	"slices"

	"tbl/timingstats/verdict"
)

// What one write adds to the log odds that its core is the owner, in the
// model of verdict.Odds: ln(0.95/0.06) when fast, ln(0.05/0.94) when slow.
// Here they only plan how many requests to send, verdict.Odds decides.
const (
	perFast = 2.76
	perSlow = -2.93
)

// fastIfOther is that model's share of fast writes on a core that does not own
// the name.
const fastIfOther = 0.06

// binomialTail is the chance of at least k successes in n trials of chance p.
func binomialTail(n, k int, p float64) float64 {
	below := 0.0
	term := math.Pow(1-p, float64(n))
	for i := range k {
		below += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return max(0, 1-below)
}

// weight is the log odds that the core is the owner.
func (t *tally) weight() float64 {
	return perFast*float64(t.fast) + perSlow*float64(t.n-t.fast)
}

// lacking is how many more fast writes on the owner would decide.
func lacking(o *verdict.Odds, maxError float64) int {
	return max(1, int(math.Ceil(math.Log(math.Min(o.ErrorOdds(), 1)/maxError)/perFast)))
}

// wanted is how many more writes a name needs, roughly, on n cores of which
// `unheard` did not answer yet, with random ports: the quarter of what is
// expected, so that little is sent too much.
func wanted(o *verdict.Odds, n, unheard int, maxError float64) int {
	return max(nextRound(n, unheard), n*lacking(o, maxError)/4, 1)
}

// findThreshold looks for the widest gap between two populations of clicks:
// the pair a < b with the largest ratio such that next to nothing lies
// between, and at least minSide samples on each side. The threshold is its
// geometric middle. ok is false when no gap is wide enough to be one.
func findThreshold(clicks []int64) (threshold int64, ok bool) {
	const (
		perOctave = 8
		minSide   = 3
		minRatio  = 2.5
		between   = 0.02 // of the smaller side
	)
	var bins [64 * perOctave]int
	for _, c := range clicks {
		bins[int(math.Log2(float64(max(c, 0))+1)*perOctave)]++
	}
	edges := []int{} // bins that hold something
	below := make([]int, len(bins)+1)
	for i, n := range bins {
		below[i+1] = below[i] + n
		if n > 0 {
			edges = append(edges, i)
		}
	}
	total := len(clicks)
	bestWidth := math.Log2(minRatio) * perOctave
	for _, lo := range edges {
		left := below[lo+1]
		if left < minSide {
			continue
		}
		for _, hi := range slices.Backward(edges) {
			if float64(hi-lo) <= bestWidth {
				break
			}
			right := total - below[hi]
			if right < minSide {
				continue
			}
			if inside := below[hi] - left; float64(inside) <= between*float64(min(left, right)) {
				bestWidth, ok = float64(hi-lo), true
				threshold = int64(math.Exp2((float64(lo+hi)+1)/2/perOctave) - 1 + 0.5)
			}
		}
	}
	return max(threshold, 1), ok
}
