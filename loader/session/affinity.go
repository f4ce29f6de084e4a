package session

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"tbl/target"
	"tbl/timingstats"
)

// affinity holds sessions to cores: it knows source ports that reach each core,
// and each core's own subtable.
type affinity struct {
	homes    []*home
	answered int64 // requests that asked for it
}

type home struct {
	id    timingstats.CoreID
	name  []byte // its subtable
	ports []uint16
	next  atomic.Uint64
}

const (
	portsPerCore = 48
	firstPort    = 10240
	lastPort     = 65535
	portStep     = 7919 // prime: visits every port once
)

// learn asks which core each of many ports reaches. The error says why
// sessions can't be held to a core; it is no failure of the run. The cores that
// answered are known in any case.
func learn(ctx context.Context, tgt target.Target, known int, seed uint64) (*affinity, error) {
	const n = lastPort - firstPort + 1
	a := &affinity{}
	by := map[timingstats.CoreID]*home{}
	var ans target.Answer
	enough, tried := 0, 0
	at := int(seed % n)
	differ := 0
	for ; tried < min(n, known*portsPerCore*6+200) && enough < known; tried++ {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		port := uint16(firstPort + at)
		at = (at + portStep) % n
		req := target.Request{Op: target.OpWhoami, Conn: pinned(port)}
		if tgt.Do(ctx, &req, &ans) != nil {
			continue // in use, or lost: another port will do
		}
		a.answered++
		id := timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}
		h := by[id]
		if h == nil {
			h = &home{id: id, name: append([]byte(nil), ans.Subtable...)}
			by[id] = h
			a.homes = append(a.homes, h)
		}
		if tried < 24 && tgt.Do(ctx, &req, &ans) == nil && (timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}) != id {
			differ++
		}
		if h.ports = append(h.ports, port); len(h.ports) == portsPerCore {
			enough++
		}
	}
	switch {
	case differ > 2:
		return a, fmt.Errorf("a source port does not lead to the same core twice: an address translation in between picks other ports")
	case len(a.homes) < known:
		return a, fmt.Errorf("%d source ports reached %d of %d cores", tried, len(a.homes), known)
	}
	return a, nil
}

func pinned(port uint16) target.Conn {
	return target.Conn{Src: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
}

// of is the home of a session.
func (a *affinity) of(session int64, seed uint64) *home {
	return a.homes[mix64(seed^mix64(uint64(session)))%uint64(len(a.homes))]
}

// conn is a connection that reaches h, another one every time.
func (h *home) conn() target.Conn {
	return pinned(h.ports[(h.next.Add(1)-1)%uint64(len(h.ports))])
}
