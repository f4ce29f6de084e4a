package prober

import (
	"math"
	"slices"
)

// The model of a timed write, by spec: a stray fast one on a core that does
// not own the name, a slow one on the core that does.
const (
	fastIfOther = 0.06
	slowIfOwner = 0.05
)

// tally are one core's timed writes into one name.
type tally struct {
	n, fast, tagged int64
	min, max, sum   int64
}

func (t *tally) add(clicks int64, fast, tagged bool) {
	if t.n == 0 || clicks < t.min {
		t.min = clicks
	}
	t.max = max(t.max, clicks)
	t.sum += clicks
	t.n++
	if fast {
		t.fast++
	}
	if tagged {
		t.tagged++
	}
}

// score is the log-likelihood ratio of "this core owns the name" against "it
// doesn't".
func (t *tally) score() float64 {
	return float64(t.fast)*math.Log((1-slowIfOwner)/fastIfOther) +
		float64(t.n-t.fast)*math.Log(slowIfOwner/(1-fastIfOther))
}

// mostlyFast says that the core looks like an owner by itself: over half of
// its writes were fast, and it is likelier an owner than not by 1,000 to 1.
func (t *tally) mostlyFast() bool { return 2*t.fast > t.n && t.score() > math.Log(1000) }

// belief is the posterior over "core k owns it", for each core with an equal
// prior, and "none does", with the prior of one core.
type belief struct {
	best   int     // index of the likeliest core, −1: none
	odds   float64 // that anything else is true
	top    float64 // score of the likeliest core
	rivals []int   // cores that are mostly fast, when there are several
	unsure bool    // some other core than the best is likelier owner than not
}

func believe(cores []tally) belief {
	b := belief{best: -1}
	top := math.Inf(-1)
	for i := range cores {
		if s := cores[i].score(); s > top && cores[i].n > 0 {
			top, b.best = s, i
		}
		if cores[i].mostlyFast() {
			b.rivals = append(b.rivals, i)
		}
	}
	if b.best < 0 {
		b.odds = 1
		return b
	}
	b.top = top
	likeliest := b.best
	if top < 0 {
		b.best = -1 // none is likelier
	}
	// Everything relative to the larger of the best core's and none's weight.
	scale := math.Max(top, 0)
	best, rest := math.Exp(top-scale), math.Exp(-scale)
	for i := range cores {
		if i != likeliest {
			rest += math.Exp(cores[i].score() - scale)
			b.unsure = b.unsure || cores[i].score() > 0
		}
	}
	if b.best < 0 {
		best, rest = math.Exp(-scale), rest-math.Exp(-scale)+best
	}
	b.odds = rest / (best + rest)
	if len(b.rivals) < 2 {
		b.rivals = nil
	}
	return b
}

// wanted is how many more writes a name needs, roughly: on n cores of which
// `unheard` did not answer yet, with random ports.
func (b *belief) wanted(n, unheard int, maxError float64) int {
	goal := math.Log(float64(n)/maxError) - math.Max(b.top, 0)
	samples := math.Max(1, math.Ceil(goal/math.Log((1-slowIfOwner)/fastIfOther)))
	return max(nextRound(n, unheard), int(float64(n)*samples/4), 1)
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
