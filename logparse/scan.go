package logparse

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"tbl/logparse/input"
	"tbl/logparse/logline"
)

const (
	// readBytes is the size of one read: larger ones leave the cache.
	readBytes = 256 << 10
	// maxLineBytes is the longest line that is kept whole; of a longer one the
	// first and the last edgeBytes are.
	maxLineBytes = 8 << 20
	edgeBytes    = 64 << 10
	// minChunkBytes and maxChunkBytes bound the default of Options.ChunkBytes.
	// A chunk costs a set of collectors and their merging. All workers together
	// have half of mappedBytes mapped at a time, none more than an eighth.
	minChunkBytes = 4 << 20
	maxChunkBytes = 64 << 20
	mappedBytes   = 64 << 20
)

// ErrMixed is a file of text in whose midst a compressed file begins.
var ErrMixed = errors.New("a gzip file begins in the midst of its text: give both as files, or pipe it (cat FILE | tbl stats)")

// Scan reads inputs to their end and returns what they held. All are opened
// first; files are read in the order of their first times. On an error, or when
// ctx is cancelled, the result, if not nil, holds what was read until then.
// With a live input among them it reads until ctx is done, which is then no error.
func Scan(ctx context.Context, inputs []input.Input, opt Options) (*Result, error) {
	for _, in := range inputs {
		if in.Live() {
			w, err := Start(ctx, inputs, opt)
			if err != nil {
				return nil, err
			}
			return w.wait()
		}
	}
	opt.defaults()
	s := &scan{opt: &opt}
	if err := s.open(inputs); err != nil {
		return nil, err
	}
	defer s.close()
	err := s.run(ctx)
	return s.result(), err
}

// Read reads one uncompressed reader to its end and gives every sample,
// wrapped ones not, to fn: the short form for a window of a log.
func Read(r io.Reader, fn func(*logline.Line)) (Counts, error) {
	opt := Options{Run: RunAll, NewSamples: func() SampleCollector { return funcCollector(fn) }}
	opt.defaults()
	e := newEngine(&opt, &pool{}, false)
	var b block
	err := b.stream(context.Background(), r, e)
	return e.result().Counts, err
}

// funcCollector passes samples on.
type funcCollector func(*logline.Line)

func (f funcCollector) Add(l *logline.Line) { f(l) }
func (funcCollector) Merge(SampleCollector) {}
func (funcCollector) Reset()                {}

// defaults fills in what the zero value stands for.
func (o *Options) defaults() {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Clock == nil {
		// Without the monotonic clock, which may stop while the machine sleeps.
		now, started := o.Now.Round(0), time.Now().Round(0)
		o.Clock = func() time.Time { return now.Add(time.Since(started)) }
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
}

// chunk is the size of the chunks of a file of size bytes: several for each worker.
func (o *Options) chunk(size int64) int64 {
	if o.ChunkBytes > 0 {
		return o.ChunkBytes
	}
	return min(max(size/int64(4*o.Workers), minChunkBytes), maxChunkBytes)
}

// window is what a worker maps at a time: little, since what is mapped counts as
// memory in use, but not so little that mapping costs.
func (o *Options) window() int64 {
	return max(1<<20, min(mappedBytes/8, mappedBytes/2/int64(o.Workers)))
}

// scan is one run over inputs.
type scan struct {
	opt      *Options
	items    []*input.Source
	read     []InputInfo
	main     *engine
	pool     pool
	buf      block
	warnings []string // doubts about the inputs
	broken   error    // Result.Broken
}

func (s *scan) open(inputs []input.Input) error {
	s.main = newEngine(s.opt, &s.pool, false)
	var live []*input.Source
	room := input.NewRoom()
	for _, in := range inputs {
		it, err := in.Open()
		if err == nil {
			it.Room = room
		}
		switch {
		case err != nil:
			s.items = append(s.items, live...)
			s.close()
			return err
		case it.Live():
			live = append(live, it)
		default:
			s.items = append(s.items, it)
		}
	}
	if len(s.items) > 1 {
		inTimeOrder(s.items, s.opt)
	}
	s.items = append(s.items, live...)
	s.opt.limit(s.items)
	return nil
}

func (s *scan) close() {
	for _, it := range s.items {
		it.Close()
	}
}

func (s *scan) result() *Result {
	r := s.main.result()
	r.Inputs, r.Broken = s.read, s.broken
	r.Warnings = append(r.Warnings, s.warnings...)
	return r
}

// infoOf describes a source as results do.
func infoOf(it *input.Source) InputInfo {
	return InputInfo{Name: it.Name, Compression: it.Compression}
}

// task is a piece of an input: all of it, or a range of a regular file.
type task struct {
	it       *input.Source
	from, to int64
	last     bool // the input ends with this task

	// Set for a task that is read ahead by a worker.
	done chan struct{}
	eng  *engine
	err  error
}

// run reads all items. Pieces that can be read at any time are read ahead by
// workers, each into an engine of its own, and absorbed in order.
func (s *scan) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	workers := s.opt.Workers
	if s.opt.Run > 0 {
		workers = 1 // a run's number is known in order only
	}
	next := s.tasks(workers)
	ahead := 2 * workers
	work := make(chan *task, ahead)
	defer close(work)
	started := 0
	var queue []*task
	more := true
	for {
		for more && len(queue) < ahead {
			t := next()
			if t == nil {
				more = false
				break
			}
			if t.done != nil {
				work <- t // never blocks: at most ahead are on their way
				if started < workers {
					started++
					wg.Go(func() { s.worker(ctx, work) })
				}
			}
			queue = append(queue, t)
		}
		if len(queue) == 0 {
			return nil
		}
		t := queue[0]
		queue = queue[1:]
		err := s.finish(ctx, t)
		if t.last || err != nil {
			s.read = append(s.read, infoOf(t.it)) // in part, where it was interrupted
		}
		if err != nil {
			return err
		}
	}
}

// finish brings the next task in order into the main engine.
func (s *scan) finish(ctx context.Context, t *task) error {
	if t.done != nil {
		<-t.done
		if t.eng.mixed {
			return t.it.Named(ErrMixed)
		}
		if t.err == nil && s.main.absorb(t.eng) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The guess was wrong, or the piece broke off: once more, in order.
	}
	var err error
	if !t.it.Regular && len(s.main.devices()) == 0 {
		err = t.stream(ctx, true, func(r io.Reader) error { return s.readPieces(ctx, r, t.it.Changed) })
	} else {
		err = t.read(ctx, s.main, &s.buf, t.done == nil)
	}
	if err == nil && s.main.mixed {
		err = t.it.Named(ErrMixed)
	}
	return err
}

// worker reads tasks ahead of their turn.
func (s *scan) worker(ctx context.Context, work <-chan *task) {
	var buf block
	for t := range work {
		t.eng = newEngine(s.opt, &s.pool, true)
		t.err = t.read(ctx, t.eng, &buf, false)
		close(t.done)
	}
}

// tasks cuts the items into tasks, one per call, nil at the end.
func (s *scan) tasks(workers int) func() *task {
	i, at := 0, int64(-1)
	many := 0 // items that are worth a worker of their own
	for _, it := range s.items {
		if it.Regular {
			many++
		}
	}
	return func() *task {
		if i == len(s.items) {
			return nil
		}
		it := s.items[i]
		t := &task{it: it, from: it.From, to: it.To, last: true}
		switch {
		case !it.Regular || workers == 1:
		case it.Compression != "":
			if many > 1 {
				t.done = make(chan struct{})
			}
		case it.To-it.From > s.opt.chunk(0) || many > 1:
			if at < 0 {
				at = it.From
			}
			t.from, t.to = at, min(at+s.opt.chunk(it.To-it.From), it.To)
			t.last = t.to == it.To
			t.done = make(chan struct{})
			at = t.to
		}
		if t.last {
			i++
			at = -1
		}
		return t
	}
}

// read reads the lines of the task into e. beside: decode in a goroutine of its own.
func (t *task) read(ctx context.Context, e *engine, buf *block, beside bool) error {
	e.reference(t.it.Changed)
	if t.it.Regular && t.it.Compression == "" {
		return buf.lines(ctx, t.it, t.from, t.to, e)
	}
	return t.stream(ctx, beside, func(r io.Reader) error { return buf.stream(ctx, r, e) })
}

// stream gives the task's input to read, decompressed.
func (t *task) stream(ctx context.Context, beside bool, read func(r io.Reader) error) error {
	r, err := t.it.Stream(ctx, beside)
	if err != nil {
		return t.it.Named(err)
	}
	defer r.Close()
	if err := read(r); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return t.it.Named(err)
	}
	return nil
}
