package session

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/stat/distuv"
)

// maxGroups bounds the parts into which the sessions are dealt: beyond, more
// would tell hardly more about chance.
const maxGroups = 1024

// group is what some of the sessions did. Sessions, unlike a session's
// operations, know nothing of one another: how much their sums differ is how
// much chance there is in the whole.
type group struct {
	visits int64
	ops    [opScan]tally
}

// tally is one kind of operation.
type tally struct{ n, clicks int64 }

// slow is one operation among the slowest of its kind.
type slow struct {
	clicks int64
	group  int
}

// slowest keeps the slowest operations of a kind. Safe for concurrent use.
type slowest struct {
	keep  int
	least atomic.Int64 // what it takes more than to be among them
	mu    sync.Mutex
	heap  []slow // the least first
}

// reset makes room for the slowest of up to n operations that are set apart,
// and the slowest of the others.
func (s *slowest) reset(n int64) {
	s.keep, s.heap = int(setApart(n))+1, nil
	s.least.Store(-1)
}

func (s *slowest) add(v slow) {
	if v.clicks <= s.least.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.heap
	switch {
	case len(h) < s.keep:
		h = append(h, v)
		s.heap = h
		for i := len(h) - 1; i > 0 && h[i].clicks < h[(i-1)/2].clicks; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
	case v.clicks > h[0].clicks:
		h[0] = v
		for i := 0; ; {
			c := 2*i + 1
			if c+1 < len(h) && h[c+1].clicks < h[c].clicks {
				c++
			}
			if c >= len(h) || h[i].clicks <= h[c].clicks {
				break
			}
			h[i], h[c] = h[c], h[i]
			i = c
		}
	}
	if len(h) == s.keep {
		s.least.Store(h[0].clicks)
	}
}

// preempted is the share of operations that something else may hold up for far
// longer than they take.
const preempted = 0.01

// setApart is how many of n operations of a kind, the slowest, are no part of
// what one costs: 2 %, but of few as many as may be pre-empted by chance, but
// for one case in a thousand, and no more than half.
func setApart(n int64) int64 {
	k := n / 50
	if n > 0 {
		held := distuv.Poisson{Lambda: preempted * float64(n)}
		for held.CDF(float64(k)) < 0.999 {
			k++
		}
	}
	return min(k, n/2)
}

// trimmed is what one kind of operation costs without the slowest.
type trimmed struct {
	n    int64
	mean float64
	off  float64 // of the mean, with 99 %
	// sums are what the operations of each group cost, such that they add up to
	// n times the mean, and differ by as much as chance makes of them: those set
	// apart count as the slowest of the others (Yuen 1974, for one side).
	sums []float64
}

func (s *slowest) trim(op opKind, groups []group) trimmed {
	t := trimmed{sums: make([]float64, len(groups))}
	var sum float64
	for i := range groups {
		t.n += groups[i].ops[op].n
		sum += float64(groups[i].ops[op].clicks)
		t.sums[i] = float64(groups[i].ops[op].clicks)
	}
	if t.n == 0 {
		return t
	}
	top := slices.Clone(s.heap)
	slices.SortFunc(top, func(a, b slow) int { return cmp.Compare(b.clicks, a.clicks) })
	apart := setApart(t.n)
	last := float64(top[apart].clicks)
	for _, x := range top[:apart] {
		sum -= float64(x.clicks)
		t.sums[x.group] -= float64(x.clicks) - last
	}
	n, rest := float64(t.n), float64(t.n-apart)
	t.mean = sum / rest
	level := (sum + float64(apart)*last) / n
	per := make([]float64, len(groups))
	for i := range groups {
		per[i] = float64(groups[i].ops[op].n)
		t.sums[i] = per[i]*t.mean + (t.sums[i]-per[i]*level)*n/rest
	}
	t.off = offBy(t.sums, per)
	return t
}

// offBy is how far the sum of all sums over the sum of all per may be off to
// either side, with 99 %, by the jackknife over the pairs. A single one says
// nothing of its variance, and is held to be off by as much as it says.
func offBy(sums, per []float64) float64 {
	var sum, whole, squares, pairs float64
	for i := range sums {
		if per[i] > 0 {
			sum, whole, squares, pairs = sum+sums[i], whole+per[i], squares+per[i]*per[i], pairs+1
		}
	}
	switch pairs {
	case 0:
		return 0
	case 1:
		return student99(1) * math.Abs(sum/whole)
	}
	var variance float64
	for i := range sums {
		if per[i] > 0 {
			without := (sums[i] - sum/whole*per[i]) / (whole - per[i])
			variance += without * without
		}
	}
	// Few large ones are as good as few.
	return student99(whole*whole/squares-1) * math.Sqrt(variance*(pairs-1)/pairs)
}

// z99 is how many standard errors hold 99 % of a normal distribution.
const z99 = 2.5758

// student99 is z99 where the variance is known from the samples alone, by so
// many degrees of freedom.
func student99(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: max(freedom, 1)}.Quantile(0.995)
}
