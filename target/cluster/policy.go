package cluster

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// Policy picks a node from a family.
type Policy uint8

// The base policies. Each works alone or under the sticky decorator.
const (
	RoundRobin              Policy = iota // first a random node, then the next one; one rotation per family
	Random                                // uniformly
	FirstAvailable                        // the elected node while it is listed, else elects at random; per proxy, no failback
	FirstAvailableIdentical               // the same, one election per family
	LeastLoaded                           // the less busy of two random ones
	NumPolicies                           // how many there are
)

// policies is the one table of them.
var policies = [NumPolicies]struct {
	name, help string
	pick       func(*Proxy, *snapshot) *member
}{
	RoundRobin:              {"round-robin", "a random node first, then one after the other", (*Proxy).pickRoundRobin},
	Random:                  {"random", "any node, uniformly", (*Proxy).pickRandom},
	FirstAvailable:          {"first-available", "one elected node while it lives; per client", (*Proxy).pickFirst},
	FirstAvailableIdentical: {"first-available-identical", "one elected node while it lives; the same for all clients", (*Proxy).pickFirstIdentical},
	LeastLoaded:             {"least-loaded", "the less busy of two random nodes", (*Proxy).pickLeastLoaded},
}

// String is the policy as flags and JSON spell it.
func (p Policy) String() string {
	if p < NumPolicies {
		return policies[p].name
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// Help describes the policy in half a line.
func (p Policy) Help() string { return policies[p].help }

// ParsePolicy reads what String wrote.
func ParsePolicy(s string) (Policy, error) {
	for p := range NumPolicies {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown policy %q: want one of %s", s, strings.Join(PolicyNames(), ", "))
}

// PolicyNames lists the policies as flags spell them.
func PolicyNames() []string {
	names := make([]string, NumPolicies)
	for p := range NumPolicies {
		names[p] = p.String()
	}
	return names
}

// rng yields random numbers to many goroutines. With a seed the sequence is
// repeatable and its position is a shared counter; without one each thread
// draws from a generator of its own.
type rng struct {
	seed uint64
	_    [56]byte
	n    atomic.Uint64
	_    [56]byte
}

func (r *rng) next() uint64 {
	if r.seed == 0 {
		return rand.Uint64()
	}
	return mix(r.seed + r.n.Add(1)*0x9e3779b97f4a7c15)
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below maps a random word to 0 … n-1 without a division.
func below(x uint64, n int) int {
	hi, _ := bits.Mul64(x, uint64(n))
	return int(hi)
}

// The pickers return nil for an empty list and then touch no state.

func (p *Proxy) pickRoundRobin(s *snapshot) *member {
	n := len(s.members)
	if n == 0 {
		return nil
	}
	return s.members[(s.cursor.Add(1)-1)%uint64(n)]
}

func (p *Proxy) pickRandom(s *snapshot) *member {
	if len(s.members) == 0 {
		return nil
	}
	return s.members[below(p.rng.next(), len(s.members))]
}

func (p *Proxy) pickFirst(s *snapshot) *member { return elect(&p.elected, &p.rng, s) }

func (p *Proxy) pickFirstIdentical(s *snapshot) *member {
	return elect(&p.family.elected, &p.family.rng, s)
}

// elect returns the elected node while it is listed, and else elects another.
// The node counts, not its place in the list nor its incarnation.
func elect(slot *atomic.Pointer[member], r *rng, s *snapshot) *member {
	for {
		was := slot.Load()
		if was != nil {
			if m := s.find(was.id); m != nil {
				return m
			}
		}
		if len(s.members) == 0 {
			return nil
		}
		m := s.members[below(r.next(), len(s.members))]
		if slot.CompareAndSwap(was, m) {
			return m
		}
	}
}

// pickLeastLoaded compares two different random nodes, which comes close to
// the least loaded of all without reading all counts (Mitzenmacher: The Power
// of Two Choices in Randomized Load Balancing, 1996).
func (p *Proxy) pickLeastLoaded(s *snapshot) *member {
	n := len(s.members)
	switch n {
	case 0:
		return nil
	case 1:
		return s.members[0]
	}
	x := p.rng.next()
	i := below(x<<32, n)
	j := i + 1 + below(x>>32<<32, n-1)
	if j >= n {
		j -= n
	}
	a, b := s.members[i], s.members[j]
	if b.load.Load() < a.load.Load() {
		return b
	}
	return a
}
