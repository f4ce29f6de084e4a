// Package stickiness finds out whether transactions stay on one node: it runs
// many of them and asks every answer which node gave it. What the client's
// own balancer chose does not count, and what stands between the two, ours or
// somebody else's, is not looked into.
package stickiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

// Config configures a run. The zero value is usable on a target that needs
// no Begin.
type Config struct {
	// Transactions to run. 0: 1,000.
	Transactions int
	// Invocations of each, at least 2. 0: 5.
	Invocations int
	// Workers that run them, each one transaction after the other. 0: 32.
	Workers int

	// Begin starts a transaction and returns the context that its invocations
	// are made with, and what ends it. It is called by one worker at a time for
	// one transaction, n counting them from 0, and by several at once. Nil: the
	// invocations carry no mark of belonging together.
	Begin func(ctx context.Context, n int64) (context.Context, func())
	// Request is what invocation i of a transaction sends. Nil: OpInfo, which
	// changes nothing.
	Request func(n int64, i int) *target.Request
	// Before is called before each invocation with the number of invocations
	// started before it in the run, or given up with their transaction. It is for
	// faults on schedule. Nil: nothing.
	Before func(started int64)
	// Cause names the reason of a refusal, in few words and from a small set.
	// Nil: the error's class.
	Cause func(error) string
	// Examples is how many split and how many refused transactions are kept.
	// 0: 10. Negative: none.
	Examples int
	// MaxErrors is the share of invocations that may fail, as the ERRORS
	// verdict takes it. 0: its default; negative: none.
	MaxErrors float64
	// Progress is updated while the run goes on. Nil: nobody looks.
	Progress *Progress
}

// Progress is the state of a run, to be read at any time.
type Progress struct {
	Planned, Ended, Errors atomic.Int64 // transactions, transactions, invocations
}

// ErrConfig is in the chain of errors about a Config.
var ErrConfig = errors.New("stickiness")

func (c *Config) setDefaults() error {
	switch {
	case c.Transactions < 0:
		return fmt.Errorf("%w: %d transactions: want 1 or more", ErrConfig, c.Transactions)
	case c.Invocations < 0 || c.Invocations == 1:
		return fmt.Errorf("%w: %d invocations per transaction: want 2 or more, one alone cannot split", ErrConfig, c.Invocations)
	case c.Workers < 0:
		return fmt.Errorf("%w: %d workers: want 1 or more", ErrConfig, c.Workers)
	}
	c.Transactions = cmp.Or(c.Transactions, 1000)
	c.Invocations = cmp.Or(c.Invocations, 5)
	c.Workers = min(cmp.Or(c.Workers, 32), c.Transactions)
	c.Examples = cmp.Or(c.Examples, 10)
	if c.Progress == nil {
		c.Progress = new(Progress)
	}
	c.Progress.Planned.Store(int64(c.Transactions))
	if c.Cause == nil {
		c.Cause = func(err error) string { return target.ClassOf(err).String() }
	}
	return nil
}

// Run runs the transactions. The error is about the configuration; what
// happened on the way is in the result, which is whole also when ctx ended
// the run early.
func Run(ctx context.Context, tgt target.Target, cfg Config) (*Result, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	clock := tgt.Clock()
	r := &run{cfg: cfg, tgt: tgt, clock: clock}
	workers := make([]*worker, cfg.Workers)
	for i := range workers {
		workers[i] = newWorker(r)
	}
	start := clock.Now()
	clock.Run(cfg.Workers, func(i int) { workers[i].work(ctx) })
	res := r.merge(workers)
	res.Duration = clock.Now().Sub(start)
	if !clock.Virtual() {
		res.Started = start
	}
	res.Interrupted = ctx.Err() != nil && res.Whole+res.Split+res.Refused < res.Planned
	res.judge()
	return res, nil
}

// run is what the workers share.
type run struct {
	cfg     Config
	tgt     target.Target
	clock   target.Clock
	next    atomic.Int64 // transactions handed out
	started atomic.Int64 // invocations started, or given up
}

// worker runs transactions one after the other and counts them.
type worker struct {
	*run
	req   target.Request
	ans   target.Answer
	sum   Result // its counters only
	nodes map[string]*nodeCount
	errs  [target.NumClasses]ErrorCount
	cause map[string]*Cause
	path  []*nodeCount // who served the current transaction, nil for unnamed
}

// nodeCount accumulates one node's figures.
type nodeCount struct {
	name        string
	tx, inv     int64
	last        int64 // the last transaction counted, plus 1
	cores       map[timingstats.CoreID]int64
	sum         time.Duration
	least, most time.Duration
}

func newWorker(r *run) *worker {
	return &worker{run: r, nodes: make(map[string]*nodeCount), cause: make(map[string]*Cause)}
}

func (w *worker) work(ctx context.Context) {
	for ctx.Err() == nil {
		n := w.next.Add(1) - 1
		if n >= int64(w.cfg.Transactions) {
			return
		}
		w.transaction(ctx, n)
		w.cfg.Progress.Ended.Add(1)
	}
}

// transaction runs one, up to its first error as a client would who rolls
// back, and sorts it.
func (w *worker) transaction(ctx context.Context, n int64) {
	txctx, end := ctx, func() {}
	if w.cfg.Begin != nil {
		txctx, end = w.cfg.Begin(ctx, n)
	}
	defer end()
	w.sum.Transactions++
	w.path = w.path[:0]
	var err error
	for i := range w.cfg.Invocations {
		if err = w.invoke(txctx, n, i); err != nil {
			w.started.Add(int64(w.cfg.Invocations - i - 1))
			break
		}
	}
	w.sort(ctx, n, err)
}

func (w *worker) invoke(ctx context.Context, n int64, i int) error {
	started := w.started.Add(1) - 1
	if w.cfg.Before != nil {
		w.cfg.Before(started)
	}
	req := &w.req
	if w.cfg.Request != nil {
		req = w.cfg.Request(n, i)
	}
	w.sum.Sent++
	err := w.tgt.Do(ctx, req, &w.ans)
	if err != nil {
		w.cfg.Progress.Errors.Add(1)
		e := &w.errs[target.ClassOf(err)]
		if e.Count++; e.Count == 1 {
			e.First = err.Error()
		}
		return err
	}
	w.sum.Served++
	if len(w.ans.Node) == 0 {
		w.sum.Unnamed++
		w.path = append(w.path, nil)
		return nil
	}
	c := w.nodes[string(w.ans.Node)]
	if c == nil {
		c = &nodeCount{name: string(w.ans.Node), cores: make(map[timingstats.CoreID]int64)}
		w.nodes[c.name] = c
	}
	c.add(n, &w.ans)
	w.path = append(w.path, c)
	return nil
}

func (c *nodeCount) add(n int64, ans *target.Answer) {
	if c.last != n+1 {
		c.last = n + 1
		c.tx++
	}
	t := ans.Timing.Total
	if c.inv == 0 || t < c.least {
		c.least = t
	}
	c.most = max(c.most, t)
	c.sum += t
	c.inv++
	c.cores[timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}]++
}

// sort counts the transaction that has just ended.
func (w *worker) sort(ctx context.Context, n int64, err error) {
	var first *nodeCount
	named, split := 0, false
	for _, c := range w.path {
		if c == nil {
			continue
		}
		named++
		if first == nil {
			first = c
		}
		split = split || c != first
	}
	if named >= 2 {
		w.sum.Judged++
	}
	refused := err != nil && ctx.Err() == nil
	switch {
	case split:
		w.sum.Split++
		w.keep(&w.sum.SplitExamples, n, err)
	case refused:
		w.sum.Refused++
	case err != nil:
		w.sum.Cut++
	default:
		w.sum.Whole++
	}
	if !refused {
		return
	}
	if split {
		w.sum.SplitRefused++
	} else {
		w.keep(&w.sum.RefusedExamples, n, err)
	}
	cause := w.cfg.Cause(err)
	k := w.cause[cause]
	if k == nil {
		k = &Cause{Cause: cause, Example: err.Error()}
		w.cause[cause] = k
	}
	k.Transactions++
}

func (w *worker) keep(list *[]Example, n int64, err error) {
	if len(*list) >= w.cfg.Examples {
		return
	}
	e := Example{Transaction: n, Nodes: make([]string, len(w.path))}
	for i, c := range w.path {
		e.Nodes[i] = "?"
		if c != nil {
			e.Nodes[i] = c.name
		}
	}
	if err != nil {
		e.Error = err.Error()
	}
	*list = append(*list, e)
}
