package refplane

import (
	"context"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/refplane/table"
)

// model is the simulated clock and what things cost on it: one timeline for
// the dataplane and for its clients, which are coroutines that run one at a
// time, each until it waits. Cores, storage and requests are the same code as
// on the wall clock; only waiting and timing are computed instead of lived.
//
// A request travels for half a round trip, queues at its core in order of
// arrival, occupies the core for the cost of a connection plus that of its
// operations, and travels back. What it changes is changed when it is sent,
// which is also its order in the queue.
type model struct {
	p   *Plane
	now atomic.Int64 // ns since epoch; written by whoever holds mu
	at  int64        // when the request being computed began to be served, ns since epoch
	rng rng

	mu      sync.Mutex // held by a Run, or by a call outside one
	current *worker    // nil outside a Run
	queue   []event    // binary heap
	seq     uint64
	second  uint32 // the last one swept
}

// worker is a simulated client.
type worker struct {
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
}

type event struct {
	at  int64
	seq uint64 // first come, first served among equals
	w   *worker
}

// epoch is the first moment of every simulation, 2026-01-01T00:00:00Z.
const epoch = 1_767_225_600

// What things cost beside the operations' clicks, in nanoseconds.
const (
	roundTrip   = 300_000 // network, ±20 %
	connection  = 100_000 // a core's work per connection, ±20 %
	walkClicks  = 5       // per key listed
	clearClicks = 5       // per entry deleted
)

func newModel(p *Plane) *model {
	return &model{p: p, rng: rng{mix(p.cfg.Seed ^ 7)}, second: epoch}
}

// Now is virtual.
func (m *model) Now() time.Time { return time.Unix(epoch, m.now.Load()).UTC() }

// Virtual is true.
func (m *model) Virtual() bool { return true }

func (m *model) unix() uint32 { return uint32(epoch + m.now.Load()/1e9) }

// sinceStart is where core c is within the request that it serves.
func (m *model) sinceStart(c *core) time.Duration {
	return time.Duration(m.at) + time.Duration(c.spent*float64(m.p.cfg.Click))
}

// Sleep lets virtual time pass for the calling worker, or for everybody
// outside a Run.
func (m *model) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if m.current == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	m.wait(m.now.Load() + int64(d))
	return ctx.Err()
}

// Run runs the workers as coroutines of this goroutine, in the order of the
// events that they wait for.
func (m *model) Run(n int, work func(i int)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.current, m.queue = nil, m.queue[:0] }()
	for i := range n {
		w := new(worker)
		w.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
			w.yield = yield
			work(i)
		})
		m.push(event{m.now.Load(), m.tick(), w})
	}
	for len(m.queue) > 0 {
		e := m.pop()
		m.advance(e.at)
		m.current = e.w
		e.w.resume()
	}
}

func (m *model) tick() uint64 {
	m.seq++
	return m.seq
}

// wait lets the time come to at: by giving way to the other workers' events
// before it, where there are any.
func (m *model) wait(at int64) {
	w := m.current
	if w == nil || len(m.queue) == 0 || m.queue[0].at > at {
		m.advance(at)
		return
	}
	m.push(event{at, m.tick(), w})
	w.yield(struct{}{})
}

// advance moves the clock, and sweeps all cores when a second is over.
func (m *model) advance(at int64) {
	if at <= m.now.Load() {
		return
	}
	m.now.Store(at)
	if s := m.unix(); s != m.second {
		m.second = s
		for _, c := range m.p.cores {
			c.store.Tidy(s, math.MaxInt)
		}
	}
}

func (m *model) push(e event) {
	q := append(m.queue, e)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !before(&e, &q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
	m.queue = q
}

func (m *model) pop() event {
	q := m.queue
	top := q[0]
	e := q[len(q)-1]
	q = q[:len(q)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(q) {
			break
		}
		if down+1 < len(q) && before(&q[down+1], &q[down]) {
			down++
		}
		if !before(&q[down], &e) {
			break
		}
		q[i] = q[down]
		i = down
	}
	if len(q) > 0 {
		q[i] = e
	}
	m.queue = q
	return top
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// do is a request from sending to its answer.
func (m *model) do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	begin := m.now.Load()
	after, err := m.p.flap(ctx, m)
	if err != nil {
		ans.Timing.Total = time.Duration(m.now.Load() - begin)
		return err
	}
	if m.current == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
	}
	c := m.p.cores[m.p.accept(req.Conn)]
	way := m.vary(roundTrip)
	m.at = max(m.now.Load()+way/2, c.busy)
	c.now = uint32(epoch + m.at/1e9)
	c.spent = 0
	err = c.serve(req, ans)
	c.busy = max(c.busy, m.at+m.vary(connection)+int64(c.spent*float64(m.p.cfg.Click)))
	m.wait(c.busy + way - way/2)
	ans.Timing.Total = time.Duration(m.now.Load() - begin)
	if err == nil {
		err = after
	}
	return err
}

// vary is ns ± 20 %.
func (m *model) vary(ns int64) int64 { return ns*4/5 + int64(m.rng.below(uint64(ns*2/5))) }

// apply carries out cmd at its owner and adds up what it costs core c.
func (m *model) apply(c *core, owner int, cmd *table.Command) {
	o := m.p.cores[owner]
	if cmd.Verb == table.Walk {
		cmd.N = o.store.Size(cmd.Sub) // charged for, but not walked: simulations are long
	} else {
		o.execHere(cmd, c.now)
	}
	cost := ownClicks(c.rng.float())
	switch cmd.Verb {
	case table.Walk, table.Dump, table.Verb(target.TableKeys):
		cost += walkClicks * float64(cmd.N)
	case table.Verb(target.TableDeleteAll):
		cost += clearClicks * float64(cmd.N)
		o.store.Tidy(c.now, math.MaxInt)
	}
	if o != c {
		o.busy += int64(cost * float64(m.p.cfg.Click)) // it does the work between its own requests
		cost += otherClicks(&c.rng, float64(o.store.Size(cmd.Sub))) + float64(m.p.cfg.HandoffDelay)/float64(m.p.cfg.Click)
	}
	c.spent += cost
}

// ownClicks is the cost of an own write at quantile q, by the figures
// measured on a BIG-IP: 3, 6, 11 and 18 clicks at minimum, mean, 95 % and
// 99 %, and a median of 5.
func ownClicks(q float64) float64 {
	const (
		c0, c50, c75, c95, c99, c100 = 3, 5, 7, 11, 18, 24
	)
	switch {
	case q < .5:
		q = c0 + q/.5*(c50-c0)
	case q < .75:
		q = c50 + (q-.5)/.25*(c75-c50)
	case q < .95:
		q = c75 + (q-.75)/.2*(c95-c75)
	case q < .99:
		q = c95 + (q-.95)/.04*(c99-c95)
	default:
		q = c99 + (q-.99)/.01*(c100-c99)
	}
	return math.Round(q)
}

// otherClicks is the additional cost of a write into another core's subtable
// of n entries: by the figures measured on a BIG-IP 121 to 300,000, some
// thousand for a few entries and some hundred thousand for 25,000. The spread
// is log-normal with σ = 0.6.
func otherClicks(r *rng, n float64) float64 {
	const low, high = 121, 300_000
	u := r.next()
	// Four 16-bit uniforms summed are normal enough, with variance 4/12.
	sum := float64(u&0xffff+u>>16&0xffff+u>>32&0xffff+u>>48) * 0x1p-16
	z := (sum - 2) * math.Sqrt(3)
	median := min(2000*(1+n/500), 100_000)
	return min(max(math.Round(median*math.Exp(0.6*z)), low), high)
}
