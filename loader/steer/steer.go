// Package steer picks source ports that reach the core that is wanted. A
// dataplane that spreads its connections by address and port sends the same port
// to the same core each time, so which one a port reaches can be learnt by asking.
package steer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

const (
	// The ports that are steered with: all that need no privilege and are
	// rarely listened on.
	firstPort, lastPort = 10240, 65535
	// portsPerWorker is how many ports of each core are learnt beforehand, for
	// each worker that may want one at a time.
	portsPerWorker = 2
	// checked ports are asked twice. That many answers agree by chance with
	// probability 2^-24 or less.
	checkedPorts = 24
)

// ErrNotSteerable says that the source port does not decide the core as seen
// from here, or that a core that was asked for was not found.
var ErrNotSteerable = errors.New("source ports do not steer")

// Result is what was learnt about source ports.
type Result struct {
	OnlyCore *int `json:"only_core,omitempty"`
	// PortsLearnt is how many ports' cores are known, Hits how many requests
	// reached the core that their port promised, Misses how many another one.
	PortsLearnt int   `json:"ports_learnt"`
	Hits        int64 `json:"hits"`
	Misses      int64 `json:"misses"`
	// Consistent says that ports that were asked twice answered the same.
	Consistent bool `json:"consistent"`
	// Skipped counts ports that the system had not free when their turn came.
	Skipped int64 `json:"skipped"`
}

// Steering knows which source port reaches which core. Workers share it.
type Steering struct {
	tgt   target.Target
	clock target.Clock
	only  *timingstats.CoreID // nil: all evenly

	mu      sync.Mutex // never held across a request
	cores   []*steered
	byID    map[timingstats.CoreID]*steered
	nextTry int // the next port to try, from firstPort
	step    int // ports tried
	result  Result
}

// steered is one core with the ports that reach it, in the order of their
// last use.
type steered struct {
	id     timingstats.CoreID
	ports  []*Port
	writes int64 // given out
}

// Port is a source port. It belongs to one worker between Pick and Done.
type Port struct {
	num   uint16
	core  *steered
	ready time.Time // not before
	wait  time.Duration
}

// Addr leaves the address to the target.
func (p *Port) Addr() netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), p.num) }

// Learn asks which of the known cores the ports reach, until every core has
// enough for so many workers, or only one of them, where only is not nil. Where to
// begin among the ports comes from seed. What was learnt is returned with an error,
// too: one that wraps ErrNotSteerable, or ctx's.
func Learn(ctx context.Context, tgt target.Target, known, workers int, only *int, seed uint64) (*Steering, error) {
	s := &Steering{tgt: tgt, clock: tgt.Clock(), byID: map[timingstats.CoreID]*steered{}}
	s.nextTry = int(seed % (lastPort - firstPort + 1))
	s.result.OnlyCore, s.result.Consistent = only, true
	if known == 0 {
		return s, fmt.Errorf("%w: the dataplane doesn't say how many cores it has", ErrNotSteerable)
	}
	if only != nil {
		if *only >= known {
			return s, fmt.Errorf("%w: core %d of %d", ErrNotSteerable, *only, known)
		}
		s.only = &timingstats.CoreID{Core: *only}
	}
	need := portsPerWorker * workers
	limit := min(4*need*known+64*known, lastPort-firstPort+1)
	var differ, asked int
	s.clock.Run(min(workers, 64), func(int) {
		var ans target.Answer
		for {
			s.mu.Lock()
			enough := s.enough(known, need) || s.step >= limit
			s.mu.Unlock()
			if enough || ctx.Err() != nil {
				return
			}
			p, err := s.explore(ctx, &ans)
			if err != nil || p == nil {
				continue
			}
			s.mu.Lock()
			again := asked < checkedPorts
			if again {
				asked++
			}
			s.mu.Unlock()
			if again {
				req := target.Request{Conn: target.Conn{Src: p.Addr()}}
				if tgt.Do(ctx, &req, &ans) == nil && (timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}) != p.core.id {
					s.mu.Lock()
					differ++
					s.mu.Unlock()
				}
			}
			s.mu.Lock()
			p.core.ports = append(p.core.ports, p)
			s.mu.Unlock()
		}
	})
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case differ > checkedPorts/10:
		s.result.Consistent = false
		return s, fmt.Errorf("%w: %d of %d ports reached another core when asked again: an address translation in between picks other ports",
			ErrNotSteerable, differ, asked)
	case len(s.cores) == 0:
		return s, fmt.Errorf("%w: no port got an answer", ErrNotSteerable)
	case len(s.cores) == 1 && known > 1:
		return s, fmt.Errorf("%w: all %d ports reached core %v: the client's address alone decides, or an address translation in between holds on to one port",
			ErrNotSteerable, len(s.cores[0].ports), s.cores[0].id)
	case len(s.cores) < known && s.only == nil:
		return s, fmt.Errorf("%w: %d ports reached %d of %d cores", ErrNotSteerable, s.result.PortsLearnt, len(s.cores), known)
	case s.only != nil && s.byID[*s.only] == nil:
		return s, fmt.Errorf("%w: none of %d ports reached core %v", ErrNotSteerable, s.result.PortsLearnt, *s.only)
	}
	return s, nil
}

// Result is what was learnt, and what came of it so far. It may be read when no
// worker uses s.
func (s *Steering) Result() *Result { return &s.result }

// enough says whether the cores that are wanted have enough ports.
func (s *Steering) enough(known, need int) bool {
	if s.only != nil {
		c := s.byID[*s.only]
		return c != nil && len(c.ports) >= need
	}
	if len(s.cores) < known {
		return false
	}
	for _, c := range s.cores {
		if len(c.ports) < need {
			return false
		}
	}
	return true
}

// explore asks which core a fresh port reaches. The port is the caller's. Nil
// when it could not be learnt.
func (s *Steering) explore(ctx context.Context, ans *target.Answer) (*Port, error) {
	const n = lastPort - firstPort + 1
	s.mu.Lock()
	if s.step >= n {
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: all ports are in use", ErrNotSteerable)
	}
	s.step++
	p := &Port{num: uint16(firstPort + s.nextTry)}
	s.nextTry = (s.nextTry + portStride) % n
	s.mu.Unlock()
	req := target.Request{Conn: target.Conn{Src: p.Addr()}}
	if err := s.tgt.Do(ctx, &req, ans); err != nil {
		return nil, nil // in use, or lost: another port will do
	}
	id := timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil {
		c = &steered{id: id}
		s.byID[id] = c
		s.cores = append(s.cores, c)
	}
	s.result.PortsLearnt++
	p.core = c
	return p, nil
}

// portStride shares no factor with the number of ports: each is visited once.
const portStride = 7919

// Pick takes a port that reaches the core whose turn it is: the one with the
// fewest writes, or the only one. It may use ans.
func (s *Steering) Pick(ctx context.Context, ans *target.Answer) (*Port, error) {
	s.mu.Lock()
	var c *steered
	if s.only != nil {
		c = s.byID[*s.only]
	} else {
		for _, o := range s.cores {
			if c == nil || o.writes < c.writes || o.writes == c.writes && o.id.Compare(c.id) < 0 {
				c = o
			}
		}
	}
	c.writes++
	s.mu.Unlock()
	for {
		now := s.clock.Now()
		s.mu.Lock()
		var wait time.Duration
		for i, p := range c.ports {
			if !p.ready.After(now) {
				c.ports = append(c.ports[:i], c.ports[i+1:]...)
				s.mu.Unlock()
				return p, nil
			}
			if d := p.ready.Sub(now); wait == 0 || d < wait {
				wait = d
			}
		}
		s.mu.Unlock()
		p, err := s.explore(ctx, ans)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrNotSteerable): // no fresh port: wait for a used one
			if wait == 0 {
				wait = 10 * time.Millisecond // all are with other workers
			}
			if err := s.clock.Sleep(ctx, wait); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case p != nil && p.core == c:
			return p, nil
		case p != nil:
			s.mu.Lock()
			p.core.ports = append(p.core.ports, p)
			s.mu.Unlock()
		}
	}
}

// Done gives a port back. again says that the system had it not free: nothing
// was sent, and another port is to be picked.
func (s *Steering) Done(p *Port, ans *target.Answer, err error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if target.ClassOf(err) == target.ClassAddressExhausted {
		// In TIME_WAIT, or somebody else's: from one second to a minute.
		p.wait = min(max(2*p.wait, time.Second), time.Minute)
		p.ready = s.clock.Now().Add(p.wait)
		s.result.Skipped++
		p.core.writes--
		again = true
	} else if err == nil {
		p.wait = 0
		if got := (timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}); got != p.core.id {
			s.result.Misses++
			p.core.writes--
			if c := s.byID[got]; c != nil {
				c.writes++
				p.core = c
			}
		} else {
			s.result.Hits++
		}
	}
	p.core.ports = append(p.core.ports, p)
	return again
}
