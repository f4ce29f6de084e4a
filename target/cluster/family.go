package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"tbl/target"
)

// Transport is a way to reach a node. One node can be reached in several
// ways; it stays one node, and a transaction stays on it whichever is used.
type Transport uint8

// The transports.
const (
	Embedded      Transport = iota // in this process
	Fresh                          // over HTTP, a new connection for each request
	Pooled                         // over HTTP, on kept connections
	NumTransports                  // how many there are
)

// Node is one node of a service.
type Node struct {
	// Name identifies the node, in this family and in every other: the same
	// name is the same node. Not empty, unique within a family.
	Name string
	// Targets reach it, by transport; nil where a transport is not offered.
	// Their dynamic types must be comparable, as pointers are.
	Targets [NumTransports]target.Target
}

// NodeOf is a node that is reached through t whatever the transport.
// An empty name stands for t.Name().
func NodeOf(name string, t target.Target) Node {
	if name == "" {
		name = t.Name()
	}
	n := Node{Name: name}
	for i := range n.Targets {
		n.Targets[i] = t
	}
	return n
}

// member is a node while it is in a family's list. A node that leaves and
// returns is a new member, so that a late failure of the old one does not
// remove the new one.
type member struct {
	name    string
	id      unique.Handle[string]
	targets [NumTransports]target.Target

	_    [64]byte // the count is written on every call, the fields above are only read
	load atomic.Int64
	_    [56]byte
}

func newMember(n Node) *member {
	return &member{name: n.Name, id: unique.Make(n.Name), targets: n.Targets}
}

func (m *member) node() Node { return Node{Name: m.name, Targets: m.targets} }

// indexFrom is the list length from which a snapshot keeps an index by name;
// below it a scan of the list is faster.
const indexFrom = 12

// snapshot is an immutable list of members, except for its cursor.
type snapshot struct {
	id      uint64 // of the view that it came from
	members []*member
	index   map[unique.Handle[string]]*member // nil for short lists

	_      [64]byte
	cursor atomic.Uint64 // round-robin: the next index, modulo the length
	_      [56]byte
}

func newSnapshot(id uint64, members []*member) *snapshot {
	s := &snapshot{id: id, members: members}
	if len(members) >= indexFrom {
		s.index = make(map[unique.Handle[string]]*member, len(members))
		for _, m := range members {
			s.index[m.id] = m
		}
	}
	return s
}

// find is the member of that name, nil when it is not in the list.
func (s *snapshot) find(id unique.Handle[string]) *member {
	if s.index != nil {
		return s.index[id]
	}
	for _, m := range s.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// FamilyConfig configures a Family. The zero value is usable but for Name.
type FamilyConfig struct {
	// Name of the service, for error texts.
	Name string
	// Clock times the health re-checks. Nil: the clock of the first node's
	// target, or the wall's when there is none.
	Clock target.Clock
	// Seed makes the first index of round-robin and the shared elections
	// repeatable. 0: not repeatable.
	Seed uint64
	// Backoff is the pause before a removed node's first health re-check. It
	// doubles with each failed one up to MaxBackoff. 0: 100 ms and 10 s.
	// A negative Backoff turns re-checks off: nodes then return by Update only.
	Backoff, MaxBackoff time.Duration
	// CheckTimeout bounds one health re-check on a real clock. 0: 1 s.
	CheckTimeout time.Duration
	// Check asks whether a node is well again. Nil: OpInfo; any answer, also
	// an error status, means that it is.
	Check func(ctx context.Context, t target.Target) error
}

// Family is the current list of nodes of one service, shared by every proxy
// of that service. All methods are safe for concurrent use; readers take no
// lock.
type Family struct {
	cfg   FamilyConfig
	clock target.Clock
	base  time.Time
	rng   rng

	snap     atomic.Pointer[snapshot]
	elected  atomic.Pointer[member] // first-available-identical
	counting atomic.Bool            // a least-loaded proxy exists: calls in flight are counted
	due      atomic.Int64           // the next re-check, in ns since base; never when none is down

	mu   sync.Mutex // guards writers of snap, and down
	down []*downNode
}

const never = math.MaxInt64

// downNode is a node that was removed after a failure.
type downNode struct {
	m        *member
	pause    time.Duration
	next     int64 // ns since base
	checking bool
}

// NewFamily makes a family with view id 0. An empty list is allowed: calls
// are then unavailable until Update.
func NewFamily(cfg FamilyConfig, nodes ...Node) (*Family, error) {
	if cfg.Backoff == 0 {
		cfg.Backoff = 100 * time.Millisecond
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = 10 * time.Second
	}
	if cfg.CheckTimeout <= 0 {
		cfg.CheckTimeout = time.Second
	}
	if cfg.Check == nil {
		cfg.Check = func(ctx context.Context, t target.Target) error {
			var req target.Request
			var ans target.Answer
			return t.Do(ctx, &req, &ans)
		}
	}
	f := &Family{cfg: cfg, clock: cfg.Clock, rng: rng{seed: cfg.Seed}}
	for _, n := range nodes {
		for _, t := range n.Targets {
			if f.clock == nil && t != nil {
				f.clock = t.Clock()
			}
		}
	}
	if f.clock == nil {
		f.clock = target.Wall{}
	}
	f.base = f.clock.Now()
	f.due.Store(never)
	if err := checkNodes(nodes); err != nil {
		return nil, fmt.Errorf("family %s: %w", cfg.Name, err)
	}
	members := make([]*member, len(nodes))
	for i, n := range nodes {
		members[i] = newMember(n)
	}
	s := newSnapshot(0, members)
	s.cursor.Store(f.rng.next() >> 1) // halved: far from wrapping round
	f.snap.Store(s)
	return f, nil
}

func checkNodes(nodes []Node) error {
	seen := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		switch {
		case n.Name == "":
			return errors.New("a node has no name")
		case seen[n.Name]:
			return fmt.Errorf("node %s is listed twice", n.Name)
		case n.Targets == [NumTransports]target.Target{}:
			return fmt.Errorf("node %s has no target", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// Name is the service's name.
func (f *Family) Name() string { return f.cfg.Name }

// View is the current view id and the names of the nodes that can be picked.
func (f *Family) View() (id uint64, names []string) {
	s := f.snap.Load()
	names = make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.name
	}
	return s.id, names
}

// Len is the number of nodes that can be picked.
func (f *Family) Len() int { return len(f.snap.Load().members) }

// Update replaces the list by that of a newer view, and reports whether it
// did: a view whose id is not above the current one changes nothing. Nodes
// that had been removed after failures return if the view names them.
// It panics on a list that NewFamily would refuse.
func (f *Family) Update(id uint64, nodes ...Node) bool {
	if err := checkNodes(nodes); err != nil {
		panic(fmt.Sprintf("cluster: family %s: view %d: %v", f.cfg.Name, id, err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.snap.Load()
	if id <= old.id {
		return false
	}
	members := make([]*member, len(nodes))
	for i, n := range nodes {
		if m := old.find(unique.Make(n.Name)); m != nil && m.targets == n.Targets {
			members[i] = m
		} else {
			members[i] = newMember(n)
		}
	}
	f.down = nil
	f.due.Store(never)
	f.replace(old, id, members)
	return true
}

// replace publishes a new list. The rotation goes on with the first node, in
// the old order, that is in the new list too: nobody who stays is skipped.
func (f *Family) replace(old *snapshot, id uint64, members []*member) {
	s := newSnapshot(id, members)
	next := old.cursor.Load()
	s.cursor.Store(next)
	if n := uint64(len(old.members)); n > 0 && len(members) > 0 {
	search:
		for k := range n {
			gone := old.members[(next+k)%n]
			for i, m := range members {
				if m.id == gone.id {
					s.cursor.Store(uint64(i))
					break search
				}
			}
		}
	}
	f.snap.Store(s)
}

// remove takes a failed member out of the list; only the first of several
// concurrent failures does, and only while that member is still listed.
func (f *Family) remove(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.snap.Load()
	i := slices.Index(old.members, m)
	if i < 0 {
		return
	}
	members := slices.Delete(slices.Clone(old.members), i, i+1)
	f.replace(old, old.id, members)
	if f.cfg.Backoff > 0 {
		d := &downNode{m: m, pause: f.cfg.Backoff}
		d.next = f.now() + int64(d.pause)
		f.down = append(f.down, d)
		f.reckonDue()
	}
}

func (f *Family) now() int64 { return int64(f.clock.Now().Sub(f.base)) }

// reckonDue recomputes due. The caller holds mu.
func (f *Family) reckonDue() {
	due := int64(never)
	for _, d := range f.down {
		if !d.checking {
			due = min(due, d.next)
		}
	}
	f.due.Store(due)
}

// recheck asks the removed nodes whose back-off has passed, each by one
// caller at a time, and puts those that are well back into the list. It runs
// in the calling invocation: a simulated clock knows no background work.
func (f *Family) recheck(ctx context.Context, via Transport) {
	now := f.now()
	for f.due.Load() <= now {
		f.mu.Lock()
		var d *downNode
		for _, c := range f.down {
			if !c.checking && c.next <= now {
				d = c
				break
			}
		}
		if d != nil {
			d.checking = true
		}
		f.reckonDue()
		f.mu.Unlock()
		if d == nil {
			return
		}
		f.settleCheck(ctx, d, f.ask(ctx, d.m, via))
		if ctx.Err() != nil {
			return
		}
	}
}

// ask runs one health check.
func (f *Family) ask(ctx context.Context, m *member, via Transport) error {
	t := m.targets[via]
	for i := 0; t == nil; i++ {
		t = m.targets[i]
	}
	if !f.clock.Virtual() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.cfg.CheckTimeout)
		defer cancel()
	}
	return f.cfg.Check(withoutTx(ctx), t)
}

func (f *Family) settleCheck(ctx context.Context, d *downNode, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.down, d)
	if i < 0 {
		return // a view update took over meanwhile
	}
	d.checking = false
	switch {
	case classify(err) == outcomeOK || completionOf(err) == target.CompletionYes:
		f.down = slices.Delete(f.down, i, i+1)
		old := f.snap.Load()
		if old.find(d.m.id) == nil {
			f.replace(old, old.id, append(slices.Clone(old.members), newMember(d.m.node())))
		}
	case ctx.Err() != nil: // the caller gave up: nothing was learnt
	default:
		d.pause = min(2*d.pause, f.cfg.MaxBackoff)
		d.next = f.now() + int64(d.pause)
	}
	f.reckonDue()
}

// nodes is every node known, listed and down.
func (f *Family) nodes() []Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Node
	for _, m := range f.snap.Load().members {
		out = append(out, m.node())
	}
	for _, d := range f.down {
		out = append(out, d.m.node())
	}
	return out
}
