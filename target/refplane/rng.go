package refplane

import "math/bits"

// Odd constants without structure: the golden ratio's fraction and its images
// under mix.
const (
	k0 = 0x9e3779b97f4a7c15
	k1 = 0xbf58476d1ce4e5b9
	k2 = 0x94d049bb133111eb
)

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection
// in which every input bit changes half of the output's.
func mix(x uint64) uint64 {
	x += k0
	x = (x ^ x>>30) * k1
	x = (x ^ x>>27) * k2
	return x ^ x>>31
}

// rng is splitmix64: a small seeded generator of a core or a fault.
type rng struct{ state uint64 }

func (r *rng) next() uint64 {
	r.state += k0
	return mix(r.state)
}

// float is uniform in [0, 1).
func (r *rng) float() float64 { return float64(r.next()>>11) * 0x1p-53 }

// below is uniform in [0, n), n > 0, by Lemire's multiplication without its
// rejection step: the bias of n/2⁶⁴ doesn't matter here.
func (r *rng) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}
