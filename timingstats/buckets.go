package timingstats

import "math/bits"

// Bucket layouts: half the number of sub-buckets of an octave, as a power of
// two. hdrBits is HdrHistogram's layout for lowest value 1 and 3 significant
// digits, so that counts move to and from its V2 encoding bucket by bucket;
// sketchBits is the coarse one of a series' points.
const (
	hdrBits    = 10 // relative width at most 2^-10
	sketchBits = 5  // relative width at most 2^-5
)

// buckets are the counts of a histogram in HdrHistogram's layout, octave by
// octave, each octave allocated at its first use: a distribution that spans
// three octaves costs 24 KiB where the dense form costs 180. Octave 0 holds
// [0, 2^bits) in steps of 1, octave k ≥ 1 holds [2^(bits+k-1), 2^(bits+k)) in
// steps of 2^(k-1).
//
// Values must not be negative. The zero value is not ready: set bits.
type buckets struct {
	bits uint8
	oct  [][]uint64
}

// bucketOf is the octave of v and the place in it.
func bucketOf(v int64, b uint8) (octave, place int) {
	shift := bits.Len64(uint64(v)) - int(b) - 1
	if shift < 0 {
		return 0, int(v)
	}
	return shift + 1, int(uint64(v)>>shift) - 1<<b
}

// bucketBounds are the lowest and the highest value that share a bucket.
func bucketBounds(octave, place int, b uint8) (low, high int64) {
	if octave == 0 {
		return int64(place), int64(place)
	}
	shift := octave - 1
	low = (int64(place) + 1<<b) << shift
	return low, low + 1<<shift - 1
}

// add counts n values v.
func (h *buckets) add(v int64, n uint64) {
	o, p := bucketOf(v, h.bits)
	if o >= len(h.oct) || h.oct[o] == nil {
		h.grow(o)
	}
	h.oct[o][p] += n
}

func (h *buckets) grow(o int) {
	for o >= len(h.oct) {
		h.oct = append(h.oct, nil)
	}
	if h.oct[o] == nil {
		h.oct[o] = make([]uint64, 1<<h.bits)
	}
}

// merge adds the counts of o, which must have the same layout.
func (h *buckets) merge(o *buckets) {
	for k, src := range o.oct {
		if src == nil {
			continue
		}
		h.grow(k)
		for i, c := range src {
			h.oct[k][i] += c
		}
	}
}

// clear sets all counts to zero and keeps the memory.
func (h *buckets) clear() {
	for _, o := range h.oct {
		clear(o)
	}
}

// each calls f for every bucket that holds something, in ascending order,
// until f returns false.
func (h *buckets) each(f func(low, high int64, n uint64) bool) {
	for k, o := range h.oct {
		for i, c := range o {
			if c == 0 {
				continue
			}
			low, high := bucketBounds(k, i, h.bits)
			if !f(low, high, c) {
				return
			}
		}
	}
}

// atRank is the highest value of the bucket that holds the value of the given
// rank, counted from 1; 0 when there are fewer values.
func (h *buckets) atRank(rank uint64) int64 {
	var v int64
	var seen uint64
	h.each(func(_, high int64, n uint64) bool {
		if seen += n; seen >= rank {
			v = high
			return false
		}
		return true
	})
	return v
}

// nearestRank is the rank of the p-th percentile among n values, counted from
// 1: ceil(p/100·n), within [1, n]. The product is formed so that percentiles
// with few decimals have exact ranks (99 % of 100 is 99, not 99.00000000000001).
func nearestRank(p float64, n uint64) uint64 {
	const scale = 1e6 // percentiles to six decimals
	hi, lo := bits.Mul64(uint64(p*scale+0.5), n)
	q, r := bits.Div64(hi, lo, 100*scale)
	if r > 0 {
		q++
	}
	return min(max(q, 1), n)
}
