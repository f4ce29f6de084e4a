package loader

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tbl/loader/source"
	"tbl/target"
	"tbl/timingstats"
)

// bulk is a Bulk under way.
type bulk struct {
	cfg     *BulkConfig
	tgt     target.Target
	clock   target.Clock
	col     *collector
	workers int
	seed    uint64
	repeat  bool
	posts   int64 // 0: as many as the source fills
	keys    int   // of a body at most
	bytes   int   // of a body at most

	ending
	base       time.Time
	reused     []byte // ReuseBodies: what goes out in each post of the run
	next       atomic.Int64
	mismatches atomic.Int64
}

// body is one batch, ready to be posted.
type body struct {
	num  int64
	data []byte
	keys int64
}

// Bulk posts batches of keys to tgt as cfg says. Its errors are as Load's.
func Bulk(ctx context.Context, tgt target.Target, cfg BulkConfig) (*BulkResult, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &bulk{
		cfg: &cfg, tgt: tgt, clock: tgt.Clock(),
		workers: cmp.Or(cfg.Workers, DefaultBulkWorkers),
		posts:   int64(cfg.NumPosts), keys: cfg.UUIDsPerPost, bytes: cmp.Or(cfg.BatchBytes, MaxBody),
	}
	if cfg.Source == nil {
		b.posts = cmp.Or(b.posts, DefaultNumPosts)
		b.workers = int(min(int64(b.workers), b.posts))
	}
	if b.keys == 0 && cfg.BatchBytes == 0 {
		b.keys = DefaultUUIDsPerPost
	}
	if fit := b.bytes / source.UUIDLine; cfg.Source == nil && (b.keys == 0 || b.keys > fit) {
		b.keys = fit
	}
	if m, ok := cfg.Source.(interface{ MaxKey() int }); ok && m.MaxKey() >= b.bytes {
		return nil, fmt.Errorf("%w: a key of %d bytes doesn't fit into a batch of %d", ErrConfig, m.MaxKey(), b.bytes)
	}
	b.seed, b.repeat = effectiveSeed(cfg.Seed, b.clock)
	known, err := preflight(ctx, tgt)
	b.col = newCollector(cfg.Progress, tgt, known)
	b.col.threshold = cmp.Or(cfg.Threshold, timingstats.DefaultThreshold)
	if cfg.Progress != nil && cfg.Source == nil {
		cfg.Progress.Total.Store(b.posts * int64(b.keys) * int64(max(1, cfg.Runs)))
	}
	if err != nil {
		if ctx.Err() != nil {
			b.cut.Store(true)
			err = nil
		}
		return b.result(), err
	}
	k := keeper{tgt: tgt, known: known, workers: b.workers, most: cfg.MaxImbalance}
	err = b.runAll(ctx, &k, b.col, cfg.Runs, cfg.Pause, func(run int) bool { return b.run(ctx, run) })
	r := b.result()
	if !b.cut.Load() {
		r.Verdicts = append(r.Verdicts, k.verdicts(ctx, r.Missing)...)
	}
	return r, err
}

func (b *bulk) now() time.Duration { return b.clock.Now().Sub(b.base) }

// run is one run; false when it was ended before its first post.
func (b *bulk) run(ctx context.Context, run int) bool {
	b.next.Store(0)
	if b.cfg.ReuseBodies && b.cfg.Source == nil {
		b.reused = source.FillUUIDs(b.reused, b.keys, b.random(run, 0))
	}
	fillers := make([]*filler, b.workers)
	for i := range fillers {
		fillers[i] = &filler{bulk: b, run: run}
		if !b.clock.Virtual() {
			fillers[i].ahead()
		}
	}
	if !b.await(ctx, b.clock, b.cfg.StartAt) {
		for _, f := range fillers {
			f.close()
		}
		return false
	}
	b.base = b.clock.Now()
	b.col.beginRun(b.base)
	b.clock.Run(b.workers, func(i int) {
		w := bulkWorker{bulk: b}
		f := fillers[i]
		defer f.close()
		for !b.ended.Load() {
			if ctx.Err() != nil {
				b.interrupt()
				return
			}
			body := f.get()
			if body == nil {
				return
			}
			if ctx.Err() != nil || b.ended.Load() {
				continue // the loop's head says why
			}
			w.post(ctx, body)
			f.put(body)
		}
	})
	return true
}

type bulkWorker struct {
	*bulk
	req target.Request
	ans target.Answer
}

// timeout of one body: the time-out asked for, plus a second for each 100,000
// keys or 4 MiB.
func (b *bulk) timeout(body *body) time.Duration {
	perKeys := time.Duration(body.keys) * time.Second / 100_000
	perBytes := time.Duration(len(body.data)) * time.Second / (4 << 20)
	return b.cfg.Timeout + max(perKeys, perBytes)
}

func (w *bulkWorker) do(ctx context.Context, body *body) error {
	if w.cfg.Timeout == 0 || w.clock.Virtual() {
		return w.tgt.Do(ctx, &w.req, &w.ans)
	}
	limited, cancel := context.WithTimeout(ctx, w.timeout(body))
	defer cancel()
	err := w.tgt.Do(limited, &w.req, &w.ans)
	if target.ClassOf(err) == target.ClassCanceled && ctx.Err() == nil && limited.Err() != nil {
		err = &target.Error{Class: target.ClassTimeout, Completion: target.CompletionMaybe,
			Err: fmt.Errorf("no answer within %v", w.timeout(body))}
	}
	return err
}

func (w *bulkWorker) post(ctx context.Context, body *body) {
	w.req.Op, w.req.Body = target.OpBulkLoad, body.data
	o := outcome{keys: body.keys, bytes: int64(len(body.data))}
	for attempt := 0; ; attempt++ {
		o.start = w.now()
		o.err = w.do(ctx, body)
		o.end = w.now()
		if o.err == nil || attempt >= w.cfg.Retries || !surelyNotArrived(o.err) || ctx.Err() != nil {
			break
		}
		o.retries++
		if w.clock.Sleep(ctx, retryPause<<min(attempt, 6)) != nil {
			break
		}
	}
	o.due = o.start
	if o.err == nil && w.ans.Written != body.keys {
		w.mismatches.Add(1)
		o.err = &target.Error{Class: target.ClassMalformed, Completion: target.CompletionMaybe,
			Err: fmt.Errorf("post %d: written=%d for %d keys", body.num+1, w.ans.Written, body.keys)}
	}
	st := w.col.addBatch(&o, &w.ans)
	if o.err == nil {
		return
	}
	if end := hopeless(o.err, st, int64(max(16, 2*w.workers))); end != nil {
		w.stop(end)
	} else if target.ClassOf(o.err) == target.ClassRefused {
		w.clock.Sleep(ctx, 100*time.Millisecond)
	}
}

// filler makes one worker's bodies. In real time it works ahead of the worker,
// in a goroutine of its own, on two bodies in turn; in virtual time, where
// making them takes no time, inside get.
type filler struct {
	*bulk
	run    int
	chacha *rand.ChaCha8
	carry  []byte // a source's key that did not fit into the last body
	key    []byte
	val    []byte
	own    body // virtual time
	// free and full hold both bodies, so that nobody waits to send.
	free, full chan *body
}

func (f *filler) ahead() {
	f.free, f.full = make(chan *body, 2), make(chan *body, 2)
	f.free <- &body{}
	f.free <- &body{}
	go func() {
		defer close(f.full)
		for b := range f.free {
			if !f.fill(b) {
				return
			}
			f.full <- b
		}
	}()
}

// get returns the next body, nil after the last.
func (f *filler) get() *body {
	if f.full != nil {
		return <-f.full
	}
	if f.fill(&f.own) {
		return &f.own
	}
	return nil
}

// put gives a body back.
func (f *filler) put(b *body) {
	if f.free != nil {
		f.free <- b
	}
}

// close ends the filler and waits for its goroutine.
func (f *filler) close() {
	if f.free != nil {
		close(f.free)
		for range f.full {
		}
	}
}

// fill makes the next body; false when there is none.
func (f *filler) fill(b *body) bool {
	if f.cfg.Source != nil {
		return f.fromSource(b)
	}
	n := f.next.Add(1) - 1
	if n >= f.posts {
		return false
	}
	b.num, b.keys = n, int64(f.keys)
	if f.reused != nil {
		b.data = f.reused
		return true
	}
	if f.repeat || f.chacha == nil {
		f.chacha = f.random(f.run, n)
	}
	b.data = source.FillUUIDs(b.data, f.keys, f.chacha)
	return true
}

// random is the source of the keys of a run from its post n on.
func (b *bulk) random(run int, n int64) *rand.ChaCha8 {
	if b.repeat {
		return source.NewSeeded(b.seed, uint64(run)<<32|uint64(n))
	}
	return source.NewRandom()
}

func (f *filler) fromSource(b *body) bool {
	if f.ended.Load() {
		return false
	}
	b.data, b.keys = b.data[:0], 0
	if f.carry != nil {
		b.data, b.keys = append(b.data, f.carry...), 1
		b.data = append(b.data, '\n')
		f.carry = nil
	}
	if f.posts > 0 && f.next.Load() >= f.posts {
		return false
	}
	for f.keys == 0 || b.keys < int64(f.keys) {
		var err error
		if f.key, f.val, err = f.cfg.Source.Next(f.key[:0], f.val[:0]); err == io.EOF {
			break
		} else if err == nil {
			err = checkBulkKey(f.key, f.bytes)
		}
		if err != nil {
			f.stop(err)
			return false
		}
		if len(b.data)+len(f.key)+1 > f.bytes {
			f.carry = append([]byte{}, f.key...)
			break
		}
		b.data = append(append(b.data, f.key...), '\n')
		b.keys++
	}
	if b.keys == 0 {
		return false
	}
	b.num = f.next.Add(1) - 1
	return f.posts == 0 || b.num < f.posts
}

// checkBulkKey refuses what a bulk body can't carry.
func checkBulkKey(key []byte, limit int) error {
	switch {
	case len(key) == 0:
		return fmt.Errorf("%w: empty key", ErrConfig)
	case bytes.IndexByte(key, '\n') >= 0 || bytes.IndexByte(key, '\r') >= 0:
		return fmt.Errorf("%w: key %.60q holds a line end, which a bulk body can't carry", ErrConfig, key)
	case len(key)+1 > limit:
		return fmt.Errorf("%w: key of %d bytes: a body takes %d", ErrConfig, len(key), limit)
	}
	return nil
}
