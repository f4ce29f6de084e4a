package session

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// plan says who visits when, and what they do: a pure function of the
// configuration, the same for every design.
type plan struct {
	cfg      *Config
	arrivals float64 // per second; also where it only orders the visits
	harmonic float64 // Zipf: the sum of 1/rank
}

func newPlan(cfg *Config) *plan {
	p := &plan{cfg: cfg, arrivals: count(cfg.Arrivals, DefaultArrivals)}
	if cfg.Zipf {
		for i := range cfg.Sessions {
			p.harmonic += 1 / float64(i+1)
		}
	}
	return p
}

// total is how many visits all sessions have, first ones included.
func (p *plan) total() (n int64) {
	for i := range p.cfg.Sessions {
		n += 1 + p.visits(i)
	}
	return n
}

// visits is how many visits session i has after its first.
func (p *plan) visits(i int64) int64 {
	if !p.cfg.Zipf {
		return int64(p.cfg.Visits)
	}
	// The ranks are dealt out by a stride, so that popular sessions come at
	// any time.
	n := p.cfg.Sessions
	rank := (uint64(i)*zipfStride + p.cfg.Seed) % uint64(n)
	if n%zipfStride == 0 {
		rank = uint64(i)
	}
	return int64(math.Round(float64(n) * float64(p.cfg.Visits) / (float64(rank+1) * p.harmonic)))
}

// zipfStride is prime.
const zipfStride = 1_000_003

// think is the time before the next visit of session i.
func (p *plan) think(i int64, r *rand.Rand) time.Duration {
	mean := float64(p.cfg.Think)
	if v := p.visits(i); p.cfg.Zipf && v > 0 {
		mean *= float64(p.cfg.Visits) / float64(v) // all sessions last equally long
	}
	return time.Duration(mean * r.ExpFloat64())
}

// arrival is when session i begins.
func (p *plan) arrival(i int64) time.Duration {
	return time.Duration(float64(i) / p.arrivals * 1e9)
}

// kindOf is the timer of a session's key number j. The keys of a session are
// spread evenly over the mix, from a start that moves on by the golden ratio
// from session to session (Kronecker's sequence): the shares hold over all
// sessions, and nearly over any few in a row, however few keys each has.
func (p *plan) kindOf(session int64, j int) keyKind {
	// 32 bits, so that the sum below is exact.
	start := float64((uint64(session)*golden+mix64(p.cfg.Seed))>>32) / (1 << 32)
	switch x := (float64(j) + start) / float64(p.cfg.Keys); {
	case x < p.cfg.Mix.Timeout:
		return idle
	case x < p.cfg.Mix.Timeout+p.cfg.Mix.Lifetime:
		return bounded
	}
	return forever
}

// golden is 2^64 over the golden ratio.
const golden = 0x9e3779b97f4a7c15

type keyKind uint8

const (
	idle    keyKind = iota // dies when untouched
	bounded                // dies of age
	forever
)

// visit is one visit of one session; the first has number 0.
type visit struct {
	at      time.Duration
	session int64
	num     int64
	scan    int64 // from 1: list the whole subtable as well, for the so manieth time; 0: don't
}

func (v *visit) before(o *visit) bool {
	return v.at < o.at || v.at == o.at && v.session < o.session
}

// agenda gives out visits in the order of their times.
type agenda struct {
	*plan
	mu    sync.Mutex
	next  int64   // session that arrives next
	heap  []visit // of those that have arrived, the next visit
	given int64   // visits given out
	// The subtable is listed at as many of the visits, evenly over all.
	total, scans int64
}

// take gives out the next visit; false when there is none at hand. Whoever
// still plays one may put its successor in, and will then take it itself.
func (a *agenda) take() (v visit, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() {
		if ok {
			v.scan = a.scanAt(a.given)
			a.given++
		}
	}()
	if a.next < a.cfg.Sessions {
		v = visit{at: a.arrival(a.next), session: a.next}
		if len(a.heap) == 0 || v.before(&a.heap[0]) {
			a.next++
			return v, true
		}
	}
	if len(a.heap) == 0 {
		return visit{}, false
	}
	v = a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap = a.heap[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && a.heap[c+1].before(&a.heap[c]) {
			c++
		}
		if !a.heap[c].before(&a.heap[i]) {
			break
		}
		a.heap[i], a.heap[c] = a.heap[c], a.heap[i]
		i = c
	}
	return v, true
}

// scanAt is the number of the listing that goes with visit number n, 0 for none:
// each is in the middle of one of as many parts of all visits.
func (a *agenda) scanAt(n int64) int64 {
	part := func(n int64) int64 { return int64(float64(n)*float64(a.scans)/float64(a.total) + 0.5) }
	if i := part(n + 1); i > part(n) {
		return i
	}
	return 0
}

// put adds a visit to come.
func (a *agenda) put(v visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heap = append(a.heap, v)
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.heap[i].before(&a.heap[up]) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// mix64 is the finaliser of Steele, Lea and Flood's SplitMix64.
func mix64(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
