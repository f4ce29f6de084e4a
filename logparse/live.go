package logparse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tbl/logparse/input"
)

// pollEvery is how often a live input is looked at when nothing comes.
const pollEvery = 100 * time.Millisecond

// Watcher reads inputs in the background, a live one among them.
type Watcher struct {
	scan    *scan
	cancel  context.CancelFunc
	done    chan struct{}
	stop    chan stopping // of one
	once    sync.Once
	samples atomic.Int64
	lines   atomic.Int64
	addr    net.Addr
	err     error // set when done is closed
}

type stopping struct{ quiet, limit time.Duration }

// Start opens inputs — when it returns the port is bound, the command runs, the
// end of a followed file is noted — and reads them until Stop, until ctx is done,
// or until the last of them ends. One of them may be live, or an open pipe; it is read last.
func Start(ctx context.Context, inputs []input.Input, opt Options) (*Watcher, error) {
	opt.defaults()
	s := &scan{opt: &opt}
	if err := s.open(inputs); err != nil {
		return nil, err
	}
	var live *input.Source
	kept := s.items[:0:0]
	for _, it := range s.items {
		if !it.Watch() {
			kept = append(kept, it)
			continue
		}
		if live != nil {
			s.close()
			return nil, fmt.Errorf("%s, %s: only one live input can be read", live.Name, it.Name)
		}
		live = it
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{scan: s, cancel: cancel, done: make(chan struct{}), stop: make(chan stopping, 1)}
	s.items = kept
	if live != nil {
		w.addr = live.Addr()
	}
	go func() {
		defer close(w.done)
		defer s.close()
		if live != nil {
			defer live.Close()
		}
		w.err = s.run(ctx)
		w.count()
		if w.err == nil && live != nil {
			w.err = w.follow(ctx, live)
		}
		if ctx.Err() != nil && errors.Is(w.err, ctx.Err()) {
			w.err = nil
		}
	}()
	return w, nil
}

// Samples is the number of samples so far. Safe for concurrent use.
func (w *Watcher) Samples() int64 { return w.samples.Load() }

// Lines is the number of lines so far. Safe for concurrent use.
func (w *Watcher) Lines() int64 { return w.lines.Load() }

// Addr is where a syslog input listens, nil for others.
func (w *Watcher) Addr() net.Addr { return w.addr }

// Done is closed when the reading has ended.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Stop ends the reading: when no line has come for quiet, at the latest after
// limit (0: at once). It returns what was read. Later calls return the same.
func (w *Watcher) Stop(quiet, limit time.Duration) (*Result, error) {
	w.once.Do(func() { w.stop <- stopping{quiet, limit} })
	return w.wait()
}

// wait waits for the end.
func (w *Watcher) wait() (*Result, error) {
	<-w.done
	w.cancel()
	return w.scan.result(), w.err
}

func (w *Watcher) count() {
	w.samples.Store(w.scan.main.counts.Samples)
	w.lines.Store(w.scan.main.counts.Lines)
}

// follow reads a live input into the main engine.
func (w *Watcher) follow(ctx context.Context, it *input.Source) error {
	s := w.scan
	e, b := s.main, &s.buf
	b.n, b.shorter = 0, false
	e.reference(time.Time{})
	s.read = append(s.read, infoOf(it)) // snapshots name it, too
	defer func() {
		b.end(e)
		for n := it.Rest(b.room(e)); n > 0; n = it.Rest(b.room(e)) {
			b.fed(n, e)
			b.end(e)
		}
		w.count()
		s.warnings = append(s.warnings, it.Warnings()...)
	}()
	shown := time.Now()
	var stop *stopping
	var asked, heard time.Time
	for {
		n, err := it.Next(ctx, b.room(e), min(pollEvery, s.opt.Every))
		now := time.Now()
		if n > 0 {
			b.fed(n, e)
			w.count()
			heard = now
		}
		switch {
		case err == input.ErrBoundary:
			b.end(e)
		case err == io.EOF:
			if s.broken = it.Failure(); e.counts.Lines == 0 {
				return s.broken
			}
			return nil
		case err != nil:
			return it.Named(err)
		case ctx.Err() != nil:
			return nil
		case e.mixed && !it.Messages():
			return it.Named(ErrMixed)
		}
		if stop == nil {
			select {
			case p := <-w.stop:
				stop, asked, heard = &p, now, now
			default:
			}
		}
		if stop != nil && (now.Sub(heard) >= stop.quiet || now.Sub(asked) >= stop.limit) {
			return nil
		}
		if s.opt.Snapshot != nil && now.Sub(shown) >= s.opt.Every {
			shown = now
			s.opt.Snapshot(s.result())
		}
	}
}
