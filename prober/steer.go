package prober

import (
	"fmt"
	"net/netip"

	"tbl/target"
	"tbl/timingstats"
)

// The source ports that are steered with: all that need no privilege and are
// rarely listened on, taken in strides of a prime so that neighbours in time
// are no neighbours in number.
const (
	firstPort  = 10240
	numPorts   = 1<<16 - firstPort
	portStride = 7919
)

// steering knows which source port reaches which core. It learns from every
// answer, so learning costs no requests of its own. It is used between rounds
// only, by one goroutine.
type steering struct {
	ports        map[timingstats.CoreID][]uint16 // in order of last use
	promised     map[uint16]timingstats.CoreID
	tried        int
	hits, misses int64
	off          bool // ports don't decide the core, as seen from here
}

func newSteering() *steering {
	return &steering{ports: make(map[timingstats.CoreID][]uint16), promised: make(map[uint16]timingstats.CoreID)}
}

func portSrc(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
}

// src is where a connection to a core comes from: a port that led there
// before, or a new one, or, when all are in use, the target's own choice. A
// port is not given out again before done was called with its job.
func (s *steering) src(core timingstats.CoreID) netip.AddrPort {
	if list := s.ports[core]; len(list) > 0 {
		s.ports[core] = list[1:]
		return portSrc(list[0])
	}
	if s.tried < numPorts {
		port := uint16(firstPort + s.tried*portStride%numPorts)
		s.tried++
		return portSrc(port)
	}
	return netip.AddrPort{}
}

// done takes a port back, with what its job showed. A port that the system
// has not free is not used again.
func (s *steering) done(j *job) {
	port := j.src.Port()
	if port == 0 {
		return
	}
	core, known := s.promised[port]
	switch {
	case j.err == nil && j.sent:
		if known && core == j.core {
			s.hits++
		} else if known {
			s.misses++
		}
		s.promised[port] = j.core
		s.ports[j.core] = append(s.ports[j.core], port)
	case known && target.ClassOf(j.err) != target.ClassAddressExhausted:
		s.ports[core] = append(s.ports[core], port)
	}
	// A tenth of 50 promises broken is no accident: an address translation
	// picks other ports, or the cores changed.
	if s.hits+s.misses >= 50 && s.misses*10 > s.hits {
		s.off = true
	}
}

// warning says why ports did not steer, empty when they did.
func (s *steering) warning() string {
	if !s.off {
		return ""
	}
	return fmt.Sprintf("source ports do not steer: %d of %d reached another core than before (an address translation in between picks other ports?); went on with random ones",
		s.misses, s.hits+s.misses)
}
