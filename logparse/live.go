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
)

// pollEvery is how often a live input is looked at when nothing comes.
const pollEvery = 100 * time.Millisecond

// errBoundary ends the line that a live input is in: what follows is another file.
var errBoundary = errors.New("boundary between files")

// liveSource is an opened live input.
type liveSource interface {
	// next reads into p, at least 64 KiB long, and waits for data for about wait.
	// No data: 0 and no error. io.EOF: the input ended by itself.
	next(ctx context.Context, p []byte, wait time.Duration) (int, error)
	// warnings are doubts so far.
	warnings() []string
	io.Closer
}

// openLive opens a live input.
func (in Input) openLive() (liveSource, error) {
	switch in.kind {
	case inputFollow:
		return openFollow(in.name, in.fromEnd)
	case inputCommand:
		return startCommand(in.name)
	case inputSyslog:
		return listenSyslog(in.name)
	}
	return nil, fmt.Errorf("input kind %d is not live", in.kind)
}

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
func Start(ctx context.Context, inputs []Input, opt Options) (*Watcher, error) {
	opt.defaults()
	s := &scan{opt: &opt}
	if err := s.open(inputs); err != nil {
		return nil, err
	}
	var live *item
	kept := s.items[:0:0]
	for _, it := range s.items {
		if it.live == nil && !(it.file != nil && !it.regular && it.in.kind == inputStdin) {
			kept = append(kept, it)
			continue
		}
		if live != nil {
			s.close()
			return nil, fmt.Errorf("%s, %s: only one live input can be read", live.in.name, it.in.name)
		}
		live = it
	}
	if live != nil && live.live == nil {
		live.live = &pipeSource{f: live.file}
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{scan: s, cancel: cancel, done: make(chan struct{}), stop: make(chan stopping, 1)}
	s.items = kept
	if live != nil {
		if l, ok := live.live.(*listener); ok {
			w.addr = l.addr()
		}
	}
	go func() {
		defer close(w.done)
		defer s.close()
		if live != nil {
			defer live.shut()
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
func (w *Watcher) follow(ctx context.Context, it *item) error {
	s := w.scan
	e, b := s.main, &s.buf
	b.n, b.shorter = 0, false
	e.reference(time.Time{})
	defer func() {
		b.end(e)
		w.count()
		s.read = append(s.read, it.info)
		s.live = it.live.warnings()
	}()
	shown := time.Now()
	var stop *stopping
	var asked, heard time.Time
	for {
		n, err := it.live.next(ctx, b.room(e), min(pollEvery, s.opt.Every))
		now := time.Now()
		if n > 0 {
			b.fed(n, e)
			w.count()
			heard = now
		}
		switch {
		case err == errBoundary:
			b.end(e)
		case err == io.EOF:
			if c, ok := it.live.(*command); ok && e.counts.Lines == 0 {
				return c.failure()
			}
			return nil
		case err != nil:
			return pathError(it.in.name, err)
		case ctx.Err() != nil:
			return nil
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

// feeder is the common part of sources that read in goroutines: whole lines come over a channel.
type feeder struct {
	data chan []byte
	rest []byte
	quit chan struct{}
	wg   sync.WaitGroup
	once sync.Once
}

func newFeeder() *feeder {
	return &feeder{data: make(chan []byte, 256), quit: make(chan struct{})}
}

// send hands data over; false when the source was closed.
func (f *feeder) send(data []byte) bool {
	select {
	case f.data <- data:
		return true
	case <-f.quit:
		return false
	}
}

func (f *feeder) next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	n := 0
	if len(f.rest) == 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case d, ok := <-f.data:
			if !ok {
				return 0, io.EOF
			}
			f.rest = d
		case <-ctx.Done():
			return 0, nil
		case <-t.C:
			return 0, nil
		}
	}
	for {
		k := copy(p[n:], f.rest)
		n += k
		f.rest = f.rest[k:]
		if len(f.rest) > 0 {
			return n, nil
		}
		select {
		case d, ok := <-f.data:
			if !ok {
				return n, nil
			}
			f.rest = d
		default:
			return n, nil
		}
	}
}

// end stops the goroutines once they have been unblocked.
func (f *feeder) end() {
	f.once.Do(func() { close(f.quit) })
	f.wg.Wait()
}
