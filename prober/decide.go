package prober

import (
	"math"

	"tbl/timingstats/verdict"
)

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
	return verdict.FastWeight*float64(t.fast) + verdict.SlowWeight*float64(t.n-t.fast)
}

// lacking is how many more fast writes on the owner would decide.
func lacking(o *verdict.Odds, maxError float64) int {
	return max(1, int(math.Ceil(math.Log(math.Min(o.ErrorOdds(), 1)/maxError)/verdict.FastWeight)))
}

// wanted is how many more writes a name needs, roughly, on n cores of which
// `unheard` did not answer yet, with random ports: the quarter of what is
// expected, so that little is sent too much.
func wanted(o *verdict.Odds, n, unheard int, maxError float64) int {
	return max(nextRound(n, unheard), n*lacking(o, maxError)/4, 1)
}
