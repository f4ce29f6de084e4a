package timingstats

import (
	"math/bits"
	"slices"
)

// ExactLimit is the number of samples up to which a Recorder keeps each one.
const ExactLimit = 10_000

// Highest values that a Recorder takes, by what it records.
const (
	MaxClicks    int64 = 1<<31 - 1 // above: a wrapped counter
	MaxLatencyNS int64 = 1<<42 - 1 // 73 minutes
)

// Recorder accumulates one distribution of whole numbers: clicks, or
// nanoseconds. Up to ExactLimit samples it keeps every one, and all its
// figures are exact; beyond, it counts them in HdrHistogram's buckets of 3
// significant digits. Count, sum, minimum and maximum are always exact. What a
// Recorder holds depends on the recorded values alone, not on their order nor
// on how many recorders they went through before being merged.
//
// The zero value is ready and takes 0 to MaxLatencyNS. Not safe for concurrent
// use: keep one per worker and merge.
type Recorder struct {
	highest int64 // 0: MaxLatencyNS
	sorted  bool
	exact   []int64
	hist    buckets // in use when hist.bits is set

	n            uint64
	sumHi, sumLo uint64
	min, max     int64 // valid when n > 0
	outOfRange   int64
}

// NewRecorder takes values from 0 to highest; 0 means MaxLatencyNS.
func NewRecorder(highest int64) *Recorder { return &Recorder{highest: highest} }

// newHistogram is a Recorder that never keeps single samples.
func newHistogram(highest int64) *Recorder {
	return &Recorder{highest: highest, hist: buckets{bits: hdrBits}}
}

// Record adds one value. A negative one, or one above the highest, is counted
// as out of range and takes no part in anything else.
func (r *Recorder) Record(v int64) {
	if uint64(v) > uint64(r.limit()) { // negative values are huge as unsigned
		r.outOfRange++
		return
	}
	if r.n == 0 {
		r.min, r.max = v, v
	} else {
		r.min, r.max = min(r.min, v), max(r.max, v)
	}
	r.n++
	var carry uint64
	r.sumLo, carry = bits.Add64(r.sumLo, uint64(v), 0)
	r.sumHi += carry

	if r.hist.bits == 0 {
		if r.n <= ExactLimit {
			r.sorted = false
			if n := len(r.exact); n == cap(r.exact) && n >= 64 { // in fewer steps than append's
				r.exact = slices.Grow(r.exact, min(3*n, ExactLimit-n))
			}
			r.exact = append(r.exact, v)
			return
		}
		r.spill()
	}
	r.hist.add(v, 1)
}

func (r *Recorder) limit() int64 {
	if r.highest == 0 {
		return MaxLatencyNS
	}
	return r.highest
}

// spill moves the exact samples into buckets.
func (r *Recorder) spill() {
	r.hist.bits = hdrBits
	for _, v := range r.exact {
		r.hist.add(v, 1)
	}
	r.exact = nil
}

// Merge adds everything that o holds; o stays as it is. Values of o above r's
// own highest are not dropped.
func (r *Recorder) Merge(o *Recorder) {
	if o.n > 0 {
		if r.n == 0 {
			r.min, r.max = o.min, o.max
		} else {
			r.min, r.max = min(r.min, o.min), max(r.max, o.max)
		}
	}
	r.n += o.n
	var carry uint64
	r.sumLo, carry = bits.Add64(r.sumLo, o.sumLo, 0)
	r.sumHi += o.sumHi + carry
	r.outOfRange += o.outOfRange
	if r.hist.bits == 0 {
		if r.n <= ExactLimit && o.hist.bits == 0 {
			r.sorted = false
			r.exact = append(r.exact, o.exact...)
			return
		}
		r.spill()
	}
	for _, v := range o.exact {
		r.hist.add(v, 1)
	}
	if o.hist.bits != 0 {
		r.hist.merge(&o.hist)
	}
}

// N is the number of values recorded, without those out of range.
func (r *Recorder) N() int64 { return int64(r.n) }

// OutOfRange is the number of values that were refused.
func (r *Recorder) OutOfRange() int64 { return r.outOfRange }

// Exact says that every value is kept, so that percentiles are exact.
func (r *Recorder) Exact() bool { return r.hist.bits == 0 }

// Min is the lowest value; 0 when there is none.
func (r *Recorder) Min() int64 { return r.min }

// Max is the highest value; 0 when there is none.
func (r *Recorder) Max() int64 { return r.max }

// Mean is the average; 0 when there is no value.
func (r *Recorder) Mean() float64 {
	if r.n == 0 {
		return 0
	}
	if r.sumHi == 0 {
		return float64(r.sumLo) / float64(r.n)
	}
	return (float64(r.sumHi)*(1<<64) + float64(r.sumLo)) / float64(r.n)
}

// Percentile is the value at nearest rank ceil(p/100·n), for p from 0 to 100;
// 0 when there is no value. Beyond ExactLimit it is the highest value of its
// bucket, at most 0.1 % above the true one, and never outside Min and Max.
func (r *Recorder) Percentile(p float64) int64 {
	if r.n == 0 {
		return 0
	}
	return r.atRank(nearestRank(min(max(p, 0), 100), r.n))
}

// atRank is the value at a rank from 1 to N.
func (r *Recorder) atRank(rank uint64) int64 {
	if r.hist.bits == 0 {
		r.sort()
		return r.exact[rank-1]
	}
	if rank == 1 {
		return r.min
	}
	return min(max(r.hist.atRank(rank), r.min), r.max)
}

func (r *Recorder) sort() {
	if !r.sorted {
		slices.Sort(r.exact)
		r.sorted = true
	}
}

// CountFrom is the number of values ≥ v. It is exact for a Recorder that is,
// and for v up to 2,048 in any case; above, v is taken down to the lower edge
// of its bucket.
func (r *Recorder) CountFrom(v int64) int64 {
	if v <= 0 {
		return int64(r.n)
	}
	if r.hist.bits == 0 {
		r.sort()
		i, _ := slices.BinarySearch(r.exact, v)
		return int64(len(r.exact) - i)
	}
	var below uint64
	r.hist.each(func(_, high int64, n uint64) bool {
		if high >= v {
			return false
		}
		below += n
		return true
	})
	return int64(r.n - below)
}

// Each calls f with every bucket that holds values, in ascending order: its
// lowest and highest value and how many there are. Exact samples are buckets
// of one value.
func (r *Recorder) Each(f func(low, high, n int64)) {
	if r.hist.bits != 0 {
		r.hist.each(func(low, high int64, n uint64) bool {
			f(max(low, r.min), min(high, r.max), int64(n))
			return true
		})
		return
	}
	r.sort()
	for i := 0; i < len(r.exact); {
		j := i + 1
		for j < len(r.exact) && r.exact[j] == r.exact[i] {
			j++
		}
		f(r.exact[i], r.exact[i], int64(j-i))
		i = j
	}
}
