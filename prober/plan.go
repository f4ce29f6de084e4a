package prober

import "math"

// NeededRequests is the number of requests on ports drawn at random after
// which every one of n cores was heard, but for a chance of miss: the
// smallest r with n·(1−1/n)^r ≤ miss (the union bound of the coupon
// collector). 29, 150 and 703 for 4, 16 and 64 cores at one in a thousand.
func NeededRequests(n int, miss float64) int {
	if n <= 1 {
		return 1
	}
	return int(math.Ceil(math.Log(float64(n)/miss) / -math.Log1p(-1/float64(n))))
}

// DefaultRequests is the ceiling per name that Probe uses for n cores: 500,
// and EnoughRequests where that is more.
func DefaultRequests(n int) int { return max(500, EnoughRequests(n)) }

// EnoughRequests is the number of requests on random ports after which on n
// cores every core was heard, and the owner ten times, but for a chance of one
// in ten thousand each.
func EnoughRequests(n int) int {
	return max(NeededRequests(n, 1e-4), ownerRequests(n, 10, 1e-4))
}

// ownerRequests is the number of requests after which one given core of n was
// heard at least k times, but for a chance of miss. Poisson's distribution
// with mean r/n bounds the binomial tail from above here, since r/n > k.
func ownerRequests(n, k int, miss float64) int {
	for mean := float64(k); ; mean += 0.25 {
		term, tail := math.Exp(-mean), 0.0
		for i := range k {
			tail += term
			term *= mean / float64(i+1)
		}
		if tail <= miss {
			return int(math.Ceil(mean * float64(n)))
		}
	}
}

// missChance is the chance that one given core of n, with an equal share,
// stays unheard in r requests.
func missChance(n int, r int64) float64 {
	if n <= 1 {
		return 0
	}
	return math.Exp(float64(r) * math.Log1p(-1/float64(n)))
}

// nextRound is how many requests to send next on the way to hearing `unheard`
// more of n cores: a quarter of what is expected to be needed (n·H(unheard),
// the coupon collector's mean), so that little is sent too much.
func nextRound(n, unheard int) int {
	h := 0.0
	for i := 1; i <= unheard; i++ {
		h += 1 / float64(i)
	}
	return max(1, int(float64(n)*h/4))
}
