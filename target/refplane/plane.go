// Package refplane is the reference dataplane: a shared-nothing engine of N
// cores, small enough to embed and real enough to show what writes to
// somebody else's storage cost.
//
// A core is a goroutine locked to an OS thread, with storage that nothing
// else touches and a mailbox. A request runs on the core of its connection;
// an operation on a subtable that another core owns travels to that core's
// mailbox and back. On the model clock the same cores, storage and requests
// are stepped through by one simulated timeline instead of threads.
package refplane

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/target/refplane/table"
)

// Plane is a dataplane in this process. All methods are safe for concurrent
// use; on the model clock, though, only the workers of Clock.Run may call Do
// while a Run is under way.
type Plane struct {
	cfg   Config
	start time.Time
	dag   dag
	cores []*core
	log   *sampleLog // nil: none
	model *model     // nil: wall clock
	pool  sync.Pool  // of *call

	ownerSeed uint64
	glance    time.Duration // what reading the clock costs by itself
	conns     atomic.Uint64 // numbers the invented connections and the flaps
	reloads   atomic.Uint32
	inflight  atomic.Int64
	closed    atomic.Bool
	idle      chan struct{} // a token when the last request of a closed plane ends
	stop      chan struct{}
	threads   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error

	mu       sync.Mutex
	warnings []string

	built, enumerate, orphans bool // faults
	stall                     *Fault
	chatty                    *backlog
	flapShare, jitterShare    float64
	jitterClicks              int64
}

var _ target.Target = (*Plane)(nil)

// minProcs is the least GOMAXPROCS for cores on threads.
const minProcs = 4

// New starts a dataplane. Close ends it. The error says which field of cfg
// makes no sense.
//
// On the wall clock it raises GOMAXPROCS to 4 where that is less: with as few
// as two, the scheduler passes them from thread to thread by way of a third,
// which costs the cores throughput and blurs the time of a hand-over. It stays
// raised.
func New(cfg Config) (*Plane, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("reference dataplane: %w", err)
	}
	for cfg.Seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, fmt.Errorf("reference dataplane: seed: %w", err)
		}
		cfg.Seed = binary.LittleEndian.Uint64(b[:])
	}
	p := &Plane{
		cfg: cfg, start: time.Now(), dag: newDAG(cfg), ownerSeed: mix(cfg.Seed ^ 2),
		idle: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	p.pool.New = func() any { return &call{done: make(chan struct{}, 1)} }
	if cfg.Clock == Model {
		p.model = newModel(p)
	} else {
		p.glance = p.readingCost()
	}
	p.applyFaults()
	if least := DefaultMaxTries(cfg.Cores); cfg.MaxTries < least && cfg.Cores > 1 && !p.built {
		p.warnf("with %d tries on %d cores, some core finds no subtable of its own with a probability of %.2g%%; the default is %d",
			cfg.MaxTries, cfg.Cores, 100*DiscoveryOdds(cfg.Cores, cfg.MaxTries), least)
	}
	logTo := cfg.Log
	if logTo == nil && p.chatty != nil {
		logTo = io.Discard // what the fault would log is counted, whoever reads it
	}
	if logTo != nil && (cfg.LogSample > 0 || p.chatty != nil) {
		pid := os.Getpid()
		if p.model != nil {
			pid = 4242
		}
		p.log = newSampleLog(logTo, cfg.Slot, pid, p.model != nil)
	}
	now := p.unix()
	for i := range cfg.Cores {
		c := &core{p: p, id: i, now: now, rng: rng{mix(cfg.Seed ^ 3 + uint64(i)*k1)}}
		c.store.Init(mix(cfg.Seed^4), now)
		c.box.wake = make(chan struct{}, 1)
		p.cores = append(p.cores, c)
	}
	if p.model == nil {
		if runtime.GOMAXPROCS(0) < minProcs {
			runtime.GOMAXPROCS(minProcs)
		}
		p.threads.Add(len(p.cores) + 1)
		for _, c := range p.cores {
			go c.run()
		}
		go p.tick()
	}
	return p, nil
}

// applyFaults turns the list of faults into what the cores look at.
func (p *Plane) applyFaults() {
	if p.model != nil {
		p.jitterShare, p.jitterClicks = 0.01, 400_000 // healthy noise
	}
	for i := range p.cfg.Faults {
		f := &p.cfg.Faults[i]
		switch f.Name {
		case DeterministicNames:
			p.built = true
		case EnumerateCount:
			p.enumerate = true
		case ReloadOrphans:
			p.orphans = true
		case ChattyLog:
			p.chatty = &backlog{rate: f.Rate}
		case Stall:
			p.stall = f
		case Jitter:
			p.jitterShare, p.jitterClicks = f.Share, f.Clicks
		case Flap:
			p.flapShare = f.Share
		}
	}
	if p.built && p.cfg.Cores > 1 {
		for p.builtAllOwn() {
			p.ownerSeed = mix(p.ownerSeed)
		}
	}
}

// builtAllOwn says that by luck every built name is its own core's.
func (p *Plane) builtAllOwn() bool {
	for i := range p.cfg.Cores {
		if p.OwnerOf(builtName(i)) != i {
			return false
		}
	}
	return true
}

// Do serves req on the core that the disaggregator picks for req.Conn; what
// is unset in that is invented: one client, and ports and destinations anew
// for each request.
//
// A request that is waiting for its core is given up when ctx is done; one
// that the core has begun is waited for.
func (p *Plane) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
	}
	p.inflight.Add(1)
	defer p.leave()
	if p.closed.Load() {
		return &target.Error{Class: target.ClassClosed, Completion: target.CompletionNotReached}
	}
	if p.model != nil {
		return p.model.do(ctx, req, ans)
	}
	begin := p.elapsed()
	after, err := p.flap(ctx, target.Wall{})
	if err == nil {
		err = p.doWall(ctx, p.cores[p.accept(req.Conn)], req, ans)
	}
	ans.Timing.Total = p.elapsed() - begin
	if err == nil {
		err = after
	}
	return err
}

// accept picks the core for a connection whose unset parts it invents.
func (p *Plane) accept(c target.Conn) int {
	if !c.Src.IsValid() || c.Src.Port() == 0 || c.Src.Addr().IsUnspecified() || !c.Dst.IsValid() {
		c = complete(c, mix(p.cfg.Seed^5+p.conns.Add(1)*k0))
	}
	return p.dag.core(c)
}

// leave counts a request out.
func (p *Plane) leave() {
	if p.inflight.Add(-1) == 0 && p.closed.Load() {
		select {
		case p.idle <- struct{}{}:
		default:
		}
	}
}

// Clock is the wall's, or the simulation's.
func (p *Plane) Clock() target.Clock {
	if p.model != nil {
		return p.model
	}
	return target.Wall{}
}

// Name is "embedded".
func (p *Plane) Name() string { return "embedded" }

// Seed is Config.Seed, or the one that was drawn in its place.
func (p *Plane) Seed() uint64 { return p.cfg.Seed }

// Close waits for the requests under way, ends the cores and writes out the
// log. Calling it again returns the first call's error, which is the log
// writer's.
func (p *Plane) Close() error {
	p.closeOnce.Do(func() {
		p.closed.Store(true)
		for p.inflight.Load() > 0 {
			<-p.idle
		}
		close(p.stop)
		for _, c := range p.cores {
			c.box.quit.Store(true)
			c.rouse()
		}
		p.threads.Wait()
		if p.log != nil {
			if err := p.log.close(); err != nil {
				p.closeErr = fmt.Errorf("sampled log: %w", err)
			}
		}
	})
	return p.closeErr
}

// OwnerOf is the core that owns the subtable. It is the oracle for tests and
// for reports about names that were built, not found: measuring code must
// learn owners by asking.
func (p *Plane) OwnerOf(name []byte) int {
	return int(table.Hash(p.ownerSeed, name) % uint64(p.cfg.Cores))
}

// CoreOf is the core that accepts the connection, its unset parts filled with
// constants: the oracle for tests of steering.
func (p *Plane) CoreOf(c target.Conn) int { return p.dag.core(complete(c, 0)) }

// Config is the configuration in force, defaults filled in, the drawn seed
// included.
func (p *Plane) Config() Config {
	cfg := p.cfg
	cfg.Faults = slices.Clone(cfg.Faults)
	return cfg
}

// Warnings are doubts that a report should print: about the configuration,
// and cores that found no subtable of their own.
func (p *Plane) Warnings() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.warnings)
}

func (p *Plane) warnf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// FlushLog returns when every line sampled before the call has been written
// to Config.Log, or with the writer's first error.
func (p *Plane) FlushLog() error {
	if p.log == nil {
		return nil
	}
	return p.log.flush()
}

// LogLines is how many lines were handed to the log so far, those of
// chatty-log included, and how many were dropped because the writer was too
// slow or failed.
func (p *Plane) LogLines() (written, dropped int64) {
	if p.log == nil {
		return 0, 0
	}
	return p.log.counts()
}

// elapsed is the time since the plane started: monotonic and cheap.
func (p *Plane) elapsed() time.Duration { return time.Since(p.start) }

// readingCost is the shortest time between two readings of the clock. It is
// no part of what is timed and may be half as much as an own write.
func (p *Plane) readingCost() time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 1000 {
		a := p.elapsed()
		least = min(least, p.elapsed()-a)
	}
	return max(0, least)
}

// clicks turns the time between two readings of the clock into clicks.
func (p *Plane) clicks(d time.Duration) int64 {
	return int64(max(0, d-p.glance) / p.cfg.Click)
}

// unix is the present second on the plane's clock.
func (p *Plane) unix() uint32 {
	if p.model != nil {
		return p.model.unix()
	}
	return uint32(time.Now().Unix())
}

// sinceStart is the plane's clock as the core sees it.
func (p *Plane) sinceStart(c *core) time.Duration {
	if p.model != nil {
		return p.model.sinceStart(c)
	}
	return p.elapsed()
}

// wallTime is what core c's log lines are stamped with.
func (p *Plane) wallTime(c *core) time.Time {
	if p.model != nil {
		return time.Unix(epoch, int64(p.model.sinceStart(c)))
	}
	return time.Now()
}

// backlog is chatty-log's sink: lines come in one by one and drain at a rate.
type backlog struct {
	mu    sync.Mutex
	rate  float64 // lines per second
	lines float64
	last  time.Duration
}

// backlogWait is what one line of backlog adds to the wait of a new one.
const backlogWait = 2 // ns

// line adds one and says how long it waits.
func (b *backlog) line(now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now > b.last {
		b.lines = max(0, b.lines-b.rate*(now-b.last).Seconds())
		b.last = now
	}
	wait := time.Duration(b.lines * backlogWait)
	b.lines++
	return wait
}

// flapDelay is how long flap holds a request up.
const flapDelay = 50 * time.Millisecond

// flap decides a request's bad luck: before is an error instead of serving it,
// after one despite having served it.
func (p *Plane) flap(ctx context.Context, clock target.Clock) (after, before error) {
	if p.flapShare <= 0 {
		return nil, nil
	}
	r := rng{mix(p.cfg.Seed^6) + p.conns.Add(1)*k1}
	if r.float() >= p.flapShare {
		return nil, nil
	}
	switch r.below(5) {
	case 0:
		return nil, &target.Error{Class: target.ClassReset, Err: errors.New("connection reset")}
	case 1:
		return &target.Error{Class: target.ClassReset, Err: errors.New("connection reset after the request was served")}, nil
	case 2:
		return &target.Error{Class: target.ClassTruncated, Err: errors.New("answer cut short")}, nil
	case 3:
		return nil, &target.Error{Class: target.ClassHTTP5xx, Completion: target.CompletionYes, Status: 500}
	}
	if err := clock.Sleep(ctx, flapDelay); err != nil {
		return nil, &target.Error{Class: target.ClassCanceled, Completion: target.CompletionNo, Err: err}
	}
	return nil, nil
}
