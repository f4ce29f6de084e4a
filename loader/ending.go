package loader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tbl/target"
)

// ending is how the runs of a load or a bulk load follow each other and end.
// Its fields may be used by all workers.
type ending struct {
	ended atomic.Bool // no more requests are given out in this run
	cut   atomic.Bool // ctx ended the run
	fatal atomic.Pointer[error]
}

// stop ends the run for all workers. A nil err is a run that is over.
func (e *ending) stop(err error) {
	if err != nil {
		e.fatal.CompareAndSwap(nil, &err)
	}
	e.ended.Store(true)
}

// interrupt ends it because ctx is done.
func (e *ending) interrupt() {
	e.cut.Store(true)
	e.stop(nil)
}

// await waits for the moment at, a zero or past one not at all; false when ctx
// ended the run before.
func (e *ending) await(ctx context.Context, clock target.Clock, at time.Time) bool {
	for wait := at.Sub(clock.Now()); !at.IsZero() && wait > 0; wait = at.Sub(clock.Now()) {
		if clock.Sleep(ctx, wait) != nil {
			e.interrupt()
			return false
		}
	}
	return true
}

// stopped says whether the run was cut short, and why.
func (e *ending) stopped() (partial bool, why string) {
	if p := e.fatal.Load(); p != nil {
		return true, (*p).Error()
	}
	if e.cut.Load() {
		return true, "interrupted"
	}
	return false, ""
}

// runAll runs one as often as asked for, with k's reset before each, and
// returns what ended it early; nil when that was ctx. one says whether the run
// began.
func (e *ending) runAll(ctx context.Context, k *keeper, col *collector, runs int, pause time.Duration, one func(run int) bool) error {
	for run := range max(1, runs) {
		deleted, err := k.before(ctx, run, runs, pause)
		errors.As(err, &col.uncleared)
		if err == nil {
			e.ended.Store(false)
			if one(run) {
				col.endRun(deleted)
			}
			if p := e.fatal.Load(); p != nil {
				err = *p
			}
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			e.cut.Store(true)
			return nil
		}
		if err != nil || e.cut.Load() {
			return err
		}
	}
	return nil
}
