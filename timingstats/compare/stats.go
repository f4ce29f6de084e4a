package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat/distuv"

	"tbl/timingstats"
)

// change estimates how new runs relate to base runs from all pairs of them: the
// median of the pairs' ratios, and the order statistics of these that the
// distribution of Mann and Whitney's U leaves at the confidence (J. L. Hodges
// and E. L. Lehmann, Ann. Math. Stat. 34, 1963).
func (row *Row) change(base, now []float64, confidence float64) {
	row.Absolute = slices.Min(base) <= 0 || slices.Min(now) <= 0
	pairs := make([]float64, 0, len(base)*len(now))
	for _, b := range base {
		for _, n := range now {
			if row.Absolute {
				pairs = append(pairs, n-b)
			} else {
				pairs = append(pairs, n/b)
			}
		}
	}
	slices.Sort(pairs)
	off := 1.0
	if row.Absolute {
		off = 0
	}
	row.Change = middle(pairs) - off
	if k := pairsCutOff(len(base), len(now), (1-confidence)/2); k > 0 {
		row.ChangeLow, row.ChangeHigh = pairs[k-1]-off, pairs[len(pairs)-k]-off
		row.ChangeKnown = true
	}
}

// pairsCutOff is the largest k with P(U ≤ k−1) ≤ tail, 0 when there is none.
func pairsCutOff(n1, n2 int, tail float64) int {
	if n1 > 25 || n2 > 25 { // the normal approximation
		f1, f2 := float64(n1), float64(n2)
		z := distuv.UnitNormal.Quantile(1 - tail)
		return max(int(f1*f2/2-z*math.Sqrt(f1*f2*(f1+f2+1)/12)), 0)
	}
	u := stats.UDist{N1: n1, N2: n2}
	k := 0
	for k < n1*n2/2 && u.CDF(float64(k)) <= tail {
		k++
	}
	return k
}

// cliff is the share of pairs in which now is higher less that in which it is
// lower (N. Cliff, Psychological Bulletin 114, 1993).
func cliff(base, now []float64) float64 {
	s := 0
	for _, b := range base {
		for _, n := range now {
			switch {
			case n > b:
				s++
			case n < b:
				s--
			}
		}
	}
	return float64(s) / float64(len(base)*len(now))
}

// smallestP is the two-sided p-value of samples that don't overlap at all:
// 2/C(n1+n2, n1).
func smallestP(n1, n2 int) float64 {
	l1, _ := math.Lgamma(float64(n1 + 1))
	l2, _ := math.Lgamma(float64(n2 + 1))
	l3, _ := math.Lgamma(float64(n1 + n2 + 1))
	return min(1, 2*math.Exp(l1+l2-l3))
}

// minRuns is how many runs a side needs so that one of m comparisons can be
// significant at alpha in all.
func minRuns(alpha float64, m int) int {
	for n := 2; ; n++ {
		if smallestP(n, n) < alpha/float64(m) {
			return n
		}
	}
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// bootstrapDraws of a quantile's ratio.
const bootstrapDraws = 4000

// single fills in what one run a side tells: a ratio, and where there are
// distributions the interval that the samples within these runs allow.
func single(row *Row, f Figure, cfg Config, rng *rand.Rand) {
	b, n := row.Base.Median, row.New.Median
	row.Absolute = b <= 0
	if row.Absolute {
		row.Change = n - b
	} else {
		row.Change = n/b - 1
	}
	if f.BaseDist == nil || f.NewDist == nil || f.BaseDist.N() == 0 || f.NewDist.N() == 0 || row.Absolute || f.Quantile <= 0 {
		return
	}
	base, now := newQuantile(f.BaseDist, f.Quantile), newQuantile(f.NewDist, f.Quantile)
	ratios := make([]float64, bootstrapDraws)
	for i := range ratios {
		ratios[i] = now.draw(rng)/max(base.draw(rng), 1) - 1
	}
	slices.Sort(ratios)
	tail := (1 - cfg.Confidence) / 2
	cut := int(tail * bootstrapDraws)
	row.ChangeLow, row.ChangeHigh, row.ChangeKnown = ratios[cut], ratios[bootstrapDraws-1-cut], true
	row.Note = "the interval covers what varies within these two runs; "
}

// quantile draws the quantile of bootstrap samples of a distribution. The k-th
// of n values drawn with replacement is the distribution's value at a share
// that has a Beta(k, n+1−k) distribution, so that no sample has to be drawn.
type quantile struct {
	values []float64 // highest of each bucket
	upTo   []float64 // share of samples up to and including it
	a, b   float64
}

func newQuantile(r *timingstats.Recorder, p float64) quantile {
	n := float64(r.N())
	k := min(max(math.Ceil(p/100*n), 1), n)
	q := quantile{a: k, b: n + 1 - k}
	var upTo float64
	r.Each(func(_, high, c int64) {
		upTo += float64(c)
		q.values = append(q.values, float64(high))
		q.upTo = append(q.upTo, upTo/n)
	})
	return q
}

func (q quantile) draw(rng *rand.Rand) float64 {
	u := distuv.Beta{Alpha: q.a, Beta: q.b, Src: rng}.Rand()
	i, _ := slices.BinarySearch(q.upTo, u)
	return q.values[min(i, len(q.values)-1)]
}
