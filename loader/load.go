package loader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tbl/loader/pace"
	"tbl/loader/source"
	"tbl/loader/steer"
	"tbl/target"
	"tbl/timingstats"
)

// load is a Load under way.
type load struct {
	cfg      *LoadConfig
	tgt      target.Target
	clock    target.Clock
	col      *collector
	workers  int
	seed     uint64
	repeat   bool // keys are a function of the seed
	value    []byte
	limit    int64 // requests of a run, 0: none
	coverage bool
	sched    pace.Schedule
	steer    *steer.Steering // nil: the target picks ports
	keeper   keeper

	ending
	// of the current run
	base time.Time
	next atomic.Int64 // requests given out
}

// Load writes to tgt as cfg says, one write per connection.
//
// A run that was cut short by ctx returns its result, with Partial set, and a
// nil error. Errors wrap ErrConfig (nothing was sent, no result),
// ErrUnreachable, ErrNoDataplane, ErrAllFailed, ErrNotCleared or
// steer.ErrNotSteerable, or are the source's own; all but the first come with the
// result of what was done.
func Load(ctx context.Context, tgt target.Target, cfg LoadConfig) (*LoadResult, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &load{
		cfg: &cfg, tgt: tgt, clock: tgt.Clock(), value: cfg.Value,
		workers: cmp.Or(cfg.Workers, DefaultWorkers), limit: cfg.Count, sched: pace.New(cfg.Rate, cfg.Ramp, cfg.Stages),
	}
	l.seed, l.repeat = effectiveSeed(cfg.Seed, l.clock)
	if l.value == nil {
		l.value = bytes.Repeat([]byte{'1'}, cmp.Or(cfg.ValueSize, DefaultValueSize))
	}
	known, err := preflight(ctx, tgt)
	l.col = newCollector(cfg.Progress, tgt, known)
	l.col.openLoop, l.col.warmup = cfg.openLoop(), cfg.Warmup
	if cfg.ModeOf() == "coverage" {
		l.coverage = true
		l.limit = cmp.Or(cfg.MaxConnections, DefaultMaxConnections)
		l.col.minWrites = cmp.Or(cfg.MinWritesPerCore, DefaultMinWritesPerCore)
	}
	if cfg.Progress != nil {
		cfg.Progress.Total.Store(l.requested() * int64(max(1, cfg.Runs)))
	}
	if cfg.OnlyCore != nil {
		l.col.expectOnly(timingstats.CoreID{Core: *cfg.OnlyCore})
	}
	if err == nil && (cfg.Steer || cfg.OnlyCore != nil) {
		l.steer, err = steer.Learn(ctx, tgt, known, l.workers, cfg.OnlyCore, l.seed)
	}
	if err != nil {
		if ctx.Err() != nil {
			l.cut.Store(true)
			err = nil
		}
		return l.result(), err
	}
	l.keeper = keeper{tgt: tgt, known: known, workers: l.workers, most: cfg.MaxImbalance}
	err = l.runAll(ctx, &l.keeper, l.col, cfg.Runs, cfg.Pause, func(int) bool { return l.run(ctx) })
	r := l.result()
	if !l.cut.Load() && l.steer == nil {
		r.Verdicts = append(r.Verdicts, l.keeper.verdicts(ctx, r.Missing)...)
	}
	return r, err
}

func (l *load) generator() *source.Generator {
	prefix := l.cfg.KeyPrefix
	if prefix == "" {
		prefix = DefaultKeyPrefix
	}
	return source.NewGenerator(l.cfg.Keys, prefix, cmp.Or(l.cfg.KeySpace, DefaultKeySpace), l.seed, l.repeat)
}

// effectiveSeed is the seed to use, and whether what comes of it is to be
// repeatable.
func effectiveSeed(seed uint64, clock target.Clock) (uint64, bool) {
	if seed != 0 || clock.Virtual() {
		return seed, true
	}
	return rand.Uint64() | 1, false
}

// requested is how many writes a run asks for, 0 where that isn't known.
func (l *load) requested() int64 {
	switch {
	case l.coverage:
		return 0
	case l.cfg.Source != nil:
		return l.cfg.SourceRows
	case l.limit > 0:
		return l.limit
	}
	total := l.sched.Total()
	if d := l.cfg.Duration; d > 0 && l.cfg.openLoop() {
		if n := int64(l.sched.Due(d)); total == 0 || n < total {
			total = n
		}
	}
	return total
}

// run is one run; false when it was ended before its first request.
func (l *load) run(ctx context.Context) bool {
	l.next.Store(0)
	if !l.await(ctx, l.clock, l.cfg.StartAt) {
		return false
	}
	l.base = l.clock.Now()
	l.col.beginRun(l.base)
	settle := l.announce()
	l.clock.Run(l.workers, func(i int) {
		w := &loadWorker{load: l, keys: l.generator()}
		for w.one(ctx) {
		}
	})
	settle()
	return true
}

// announce lets the progress tell what the run's schedule has due, until settle
// is called: after its end a run has nothing more due, however early that was.
// Virtual time is its workers' own.
func (l *load) announce() (settle func()) {
	p := l.cfg.Progress
	if p == nil || !l.cfg.openLoop() || l.clock.Virtual() {
		return func() {}
	}
	before, most, base := p.Scheduled(), l.requested(), l.base
	due := func() int64 {
		n := int64(l.sched.Due(l.clock.Now().Sub(base)))
		if most > 0 {
			n = min(n, most)
		}
		return before + n
	}
	p.schedule.Store(&due)
	return func() {
		n := due()
		fixed := func() int64 { return n }
		p.schedule.Store(&fixed)
	}
}

// loadWorker is one worker's state; its buffers are used again and again.
type loadWorker struct {
	*load
	keys    *source.Generator
	req     target.Request
	ans     target.Answer
	key     []byte
	val     []byte
	backoff time.Duration
}

func (l *load) now() time.Duration { return l.clock.Now().Sub(l.base) }

// take gives out the next request's number and its scheduled moment, which it
// waits for; false when there is none. In a closed loop due is -1.
func (w *loadWorker) take(ctx context.Context) (n int64, due time.Duration, ok bool) {
	if w.ended.Load() {
		return 0, 0, false
	}
	if ctx.Err() != nil {
		w.interrupt()
		return 0, 0, false
	}
	d := w.cfg.Duration
	if !w.col.openLoop {
		if d > 0 && w.now() >= d {
			return 0, 0, false
		}
		n = w.next.Add(1) - 1
		return n, -1, w.limit == 0 || n < w.limit
	}
	n = w.next.Add(1) - 1
	if w.limit > 0 && n >= w.limit {
		return 0, 0, false
	}
	if due, ok = w.sched.At(n); !ok || d > 0 && due >= d {
		return 0, 0, false
	}
	for wait := due - w.now(); wait > 0; wait = due - w.now() {
		if w.clock.Sleep(ctx, wait) != nil {
			w.interrupt()
			return 0, 0, false
		}
	}
	// What is late by now was still to be sent: only a stop by others isn't.
	return n, due, !w.ended.Load()
}

// one writes once; false when there is nothing more to write.
func (w *loadWorker) one(ctx context.Context) bool {
	n, due, ok := w.take(ctx)
	if !ok {
		return false
	}
	if src := w.cfg.Source; src != nil {
		var err error
		if w.key, w.val, err = src.Next(w.key[:0], w.val[:0]); err != nil {
			if err == io.EOF {
				err = nil
			}
			w.stop(err)
			return false
		}
		w.req.Value = w.val
	} else {
		w.key = w.keys.Append(w.key[:0], n)
		w.req.Value = w.value
	}
	w.req.Op, w.req.Key = target.OpLoad, w.key

	o := outcome{due: due, keys: 1}
	for attempt := 0; ; attempt++ {
		var port *steer.Port
		if w.steer != nil {
			if port, o.err = w.steer.Pick(ctx, &w.ans); o.err != nil {
				if ctx.Err() != nil {
					w.cut.Store(true)
					o.err = nil
				}
				w.stop(o.err) // nothing was sent
				return false
			}
			w.req.Conn.Src = port.Addr()
		}
		o.start = w.now()
		o.err = w.tgt.Do(ctx, &w.req, &w.ans)
		o.end = w.now()
		if port != nil && w.steer.Done(port, &w.ans, o.err) {
			attempt-- // the port was not free: nothing was sent
			continue
		}
		if o.err == nil || attempt >= w.cfg.Retries || !surelyNotArrived(o.err) || ctx.Err() != nil {
			break
		}
		o.retries++
		if w.clock.Sleep(ctx, retryPause<<min(attempt, 6)) != nil {
			break
		}
	}
	if due < 0 {
		o.due = o.start
	}
	if o.err == nil && len(w.ans.Key) > 0 && !bytes.Equal(w.ans.Key, w.key) {
		// Whatever was written, it was not this.
		w.col.echo(w.key, w.ans.Key)
		o.err = &target.Error{Class: target.ClassMalformed, Completion: target.CompletionYes, Err: errOtherKey}
	}
	st := w.col.add(&o, &w.ans)
	if o.err != nil {
		w.failed(ctx, o.err, st)
	} else {
		w.backoff = 0
		if w.coverage && w.col.coverage() {
			w.stop(nil)
			return false
		}
	}
	return true
}

// retryPause is the pause before the first further attempt, doubled up to 64
// times of it.
const retryPause = 10 * time.Millisecond

// giveUp is how long a target may be unreachable in mid-run before the run
// ends: long enough for a restart.
const giveUp = 30 * time.Second

// hopeless says that a failure ends the run: nothing ever succeeded in the
// first many requests, or nothing has for a long time.
func hopeless(err error, st standing, many int64) error {
	switch {
	case st.ok == 0 && st.failed >= many:
		return allFailed(st.failed, err)
	case st.ok > 0 && st.silence >= giveUp && unreached(target.ClassOf(err)):
		return fmt.Errorf("%w: no answer for %v: %w", ErrUnreachable, st.silence.Round(time.Second), err)
	}
	return nil
}

// failed ends a run that has become hopeless, and slows a closed loop down
// while nobody listens: else it would burn its requests in the gap.
func (w *loadWorker) failed(ctx context.Context, err error, st standing) {
	if end := hopeless(err, st, int64(max(100, 2*w.workers))); end != nil {
		w.stop(end)
		return
	}
	if w.col.openLoop || target.ClassOf(err) != target.ClassRefused {
		return
	}
	w.backoff = min(max(2*w.backoff, time.Millisecond), 100*time.Millisecond)
	if w.clock.Sleep(ctx, w.backoff) != nil {
		w.backoff = 0
	}
}

// surelyNotArrived says that a request failed without effect on the server,
// so that sending it again can't do it twice.
func surelyNotArrived(err error) bool {
	var e *target.Error
	if !errors.As(err, &e) || e.Class == target.ClassClient || e.Class == target.ClassCanceled || e.Class == target.ClassClosed {
		return false
	}
	switch e.Completion {
	case target.CompletionUnsent, target.CompletionNotReached, target.CompletionNo:
		return true
	}
	return false
}

// allFailed says what it means that the first n requests all failed, judged
// by the latest failure.
func allFailed(n int64, err error) error {
	kind := ErrAllFailed
	switch class := target.ClassOf(err); {
	case unreached(class):
		kind = ErrUnreachable
	case class == target.ClassMalformed || target.Unsupported(err):
		kind = ErrNoDataplane
	}
	return fmt.Errorf("%w: the first %d requests failed: %w", kind, n, err)
}

var errOtherKey = errors.New("the answer names another key than the one that was sent")

// preflight asks how many cores there are; 0 where the dataplane doesn't say.
// A refused connection decides at once, a lost answer doesn't.
func preflight(ctx context.Context, tgt target.Target) (cores int, err error) {
	var ans target.Answer
	for tries := 10; tries > 0; {
		err = tgt.Do(ctx, &target.Request{Op: target.OpInfo}, &ans)
		if err == nil {
			return ans.Cores, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		switch target.ClassOf(err) {
		case target.ClassReset, target.ClassTruncated, target.ClassHTTP5xx:
			tries--
		case target.ClassTimeout:
			tries -= 5
		default:
			tries = 0
		}
	}
	switch class := target.ClassOf(err); {
	case class == target.ClassClient, class == target.ClassClosed:
		return 0, fmt.Errorf("ask %s: %w", tgt.Name(), err)
	case unreached(class):
		return 0, fmt.Errorf("%w: %s: %w", ErrUnreachable, tgt.Name(), err)
	}
	return 0, fmt.Errorf("%w: %s: %w", ErrNoDataplane, tgt.Name(), err)
}
