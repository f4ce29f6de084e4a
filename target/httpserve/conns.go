package httpserve

import (
	"context"
	"net"
	"net/http"
	"sync"

	"tbl/target"
)

// conn is what the server knows of one connection.
type conn struct {
	net   net.Conn
	tuple target.Conn

	// Under connTable.mu.
	busy       bool // its request is being worked on
	prev, next *conn
}

type connKey struct{}

// connTable holds the open connections, the one that made no progress for the
// longest time first.
type connTable struct {
	mu       sync.Mutex
	max      int
	byConn   map[net.Conn]*conn
	root     conn // of the ring; root.next is the oldest
	accepted int64
	evicted  int64
}

func (t *connTable) counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{Accepted: t.accepted, Evicted: t.evicted, Open: int64(len(t.byConn))}
}

func (t *connTable) pushBack(c *conn) {
	if t.root.next == nil {
		t.root.next, t.root.prev = &t.root, &t.root
	}
	c.prev, c.next = t.root.prev, &t.root
	c.prev.next, c.next.prev = c, c
}

func (c *conn) unlink() {
	if c.next != nil {
		c.prev.next, c.next.prev = c.next, c.prev
		c.prev, c.next = nil, nil
	}
}

// add enters c and returns the connection that has to go for it, or nil.
func (t *connTable) add(c *conn) (victim net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accepted++
	if t.byConn == nil {
		t.byConn = make(map[net.Conn]*conn)
	}
	if len(t.byConn) >= t.max {
		v := t.root.next
		for v != &t.root && v.busy {
			v = v.next
		}
		if v == &t.root {
			v = c // all are at work: the newcomer goes
		} else {
			v.unlink()
			delete(t.byConn, v.net)
		}
		t.evicted++
		victim = v.net
		if v == c {
			return victim
		}
	}
	t.byConn[c.net] = c
	t.pushBack(c)
	return victim
}

func (t *connTable) remove(n net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.byConn[n]; c != nil {
		c.unlink()
		delete(t.byConn, n)
	}
}

// setBusy marks the time in which c's request is worked on. Both ends of it
// are progress.
func (t *connTable) setBusy(c *conn, busy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.busy = busy
	if c.next != nil {
		c.unlink()
		t.pushBack(c)
	}
}

func (s *Server) connContext(ctx context.Context, n net.Conn) context.Context {
	c := &conn{net: n}
	if a, ok := n.RemoteAddr().(*net.TCPAddr); ok {
		c.tuple.Src = unmap(a.AddrPort())
	}
	if a, ok := n.LocalAddr().(*net.TCPAddr); ok {
		c.tuple.Dst = unmap(a.AddrPort())
	}
	if victim := s.conns.add(c); victim != nil {
		victim.Close()
	}
	return context.WithValue(ctx, connKey{}, c)
}

func (s *Server) connState(n net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		s.conns.remove(n)
	}
}
