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
	"slices"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
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
	// started before it in the run. It is for faults on schedule. Nil: nothing.
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

// Result is what a run found.
type Result struct {
	Target      string        `json:"target"`
	Started     time.Time     `json:"started,omitzero"`
	Duration    time.Duration `json:"duration_ns"`
	Workers     int           `json:"workers"`
	Planned     int64         `json:"planned_transactions"`
	PerTx       int           `json:"invocations_per_transaction"`
	Interrupted bool          `json:"interrupted"` // the context ended the run: figures are partial

	// Transactions begun. Each is in exactly one of Whole, Split, Refused and
	// Cut, but for those that split before they were refused or cut: these
	// are in Split alone, and also in SplitRefused when refused.
	Transactions int64 `json:"transactions"`
	Whole        int64 `json:"whole"`         // all invocations served, by one node as far as was told
	Split        int64 `json:"split"`         // served by two nodes or more
	Refused      int64 `json:"refused"`       // ended by an error, on one node until then
	SplitRefused int64 `json:"split_refused"` // of Split, those that an error ended
	Cut          int64 `json:"cut"`           // ended by the end of the run
	Judged       int64 `json:"judged"`        // with two or more invocations served by a named node

	// Sent is Served plus the sum of Errors.
	Sent    int64        `json:"sent"`
	Served  int64        `json:"served"`
	Unnamed int64        `json:"unnamed"` // of Served: the answer named no node
	Errors  []ErrorCount `json:"errors,omitempty"`

	Nodes []Node `json:"nodes"` // by name
	// Causes counts the transactions that an error ended, by cause.
	Causes []Cause `json:"causes,omitempty"`
	// SplitExamples and RefusedExamples are some of them, the earliest kept.
	SplitExamples   []Example `json:"split_examples,omitempty"`
	RefusedExamples []Example `json:"refused_examples,omitempty"`

	Verdicts []verdict.Verdict `json:"verdicts"` // ERRORS, then STICKY
	Warnings []string          `json:"warnings,omitempty"`

	maxErrors float64
}

// ErrorCount counts failed invocations of one class.
type ErrorCount struct {
	Class target.Class `json:"class"`
	Count int64        `json:"count"`
	First string       `json:"first"` // the text of the first one's error
}

// Node is what one node served.
type Node struct {
	Name string `json:"node"`
	// Transactions of which it served at least one invocation.
	Transactions int64 `json:"transactions"`
	Invocations  int64 `json:"invocations"`
	// Share of all invocations served by a named node, 0 to 1.
	Share float64 `json:"share"`
	// Cores are its invocations by the core that accepted them.
	Cores []Core `json:"cores"`
	// Latency of its invocations, as the client saw it, in ns.
	Latency Latency `json:"latency"`
}

// Core is what one core of a node served.
type Core struct {
	Core        timingstats.CoreID `json:"core"`
	Invocations int64              `json:"invocations"`
}

// Latency sums up response times.
type Latency struct {
	Min  time.Duration `json:"min_ns"`
	Mean time.Duration `json:"mean_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Cause counts refusals of one kind.
type Cause struct {
	Cause        string `json:"cause"`
	Transactions int64  `json:"transactions"`
	Example      string `json:"example"` // the text of the first one's error
}

// Example is one transaction.
type Example struct {
	Transaction int64 `json:"transaction"` // its number, from 0
	// Nodes that served its invocations, in their order; "?" for one that did
	// not say its name.
	Nodes []string `json:"nodes"`
	Error string   `json:"error,omitempty"` // what ended it early
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
	started atomic.Int64 // invocations started
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

// merge adds up the workers' counts.
func (r *run) merge(workers []*worker) *Result {
	res := &Result{
		Target: r.tgt.Name(), Workers: r.cfg.Workers, Planned: int64(r.cfg.Transactions), PerTx: r.cfg.Invocations,
		Nodes: []Node{}, maxErrors: r.cfg.MaxErrors,
	}
	var errs [target.NumClasses]ErrorCount
	nodes := make(map[string]*nodeCount)
	causes := make(map[string]*Cause)
	for _, w := range workers {
		s := &w.sum
		res.Transactions += s.Transactions
		res.Whole += s.Whole
		res.Split += s.Split
		res.Refused += s.Refused
		res.SplitRefused += s.SplitRefused
		res.Cut += s.Cut
		res.Judged += s.Judged
		res.Sent += s.Sent
		res.Served += s.Served
		res.Unnamed += s.Unnamed
		for class, e := range w.errs {
			if errs[class].Count == 0 {
				errs[class].First = e.First
			}
			errs[class].Count += e.Count
		}
		res.SplitExamples = append(res.SplitExamples, s.SplitExamples...)
		res.RefusedExamples = append(res.RefusedExamples, s.RefusedExamples...)
		for name, c := range w.nodes {
			nodes[name] = c.plus(nodes[name])
		}
		for name, c := range w.cause {
			if sum := causes[name]; sum == nil {
				causes[name] = c
			} else {
				sum.Transactions += c.Transactions
				sum.Example = min(sum.Example, c.Example)
			}
		}
	}
	for class, e := range errs {
		if e.Count > 0 {
			e.Class = target.Class(class)
			res.Errors = append(res.Errors, e)
		}
	}
	res.SplitExamples = earliest(res.SplitExamples, r.cfg.Examples)
	res.RefusedExamples = earliest(res.RefusedExamples, r.cfg.Examples)
	for _, c := range nodes {
		res.Nodes = append(res.Nodes, c.node(res.Served-res.Unnamed))
	}
	slices.SortFunc(res.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range causes {
		res.Causes = append(res.Causes, *c)
	}
	slices.SortFunc(res.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Transactions, a.Transactions), cmp.Compare(a.Cause, b.Cause))
	})
	return res
}

func earliest(list []Example, n int) []Example {
	slices.SortFunc(list, func(a, b Example) int { return cmp.Compare(a.Transaction, b.Transaction) })
	return list[:min(len(list), max(n, 0))]
}

// plus merges another worker's figures of the same node, which may be nil.
func (c *nodeCount) plus(o *nodeCount) *nodeCount {
	if o == nil {
		return c
	}
	o.tx += c.tx
	o.inv += c.inv
	o.sum += c.sum
	o.least = min(o.least, c.least)
	o.most = max(o.most, c.most)
	for core, n := range c.cores {
		o.cores[core] += n
	}
	return o
}

// node writes the figures out; all is the number of invocations of all nodes.
func (c *nodeCount) node(all int64) Node {
	n := Node{
		Name: c.name, Transactions: c.tx, Invocations: c.inv, Share: float64(c.inv) / float64(all),
		Latency: Latency{Min: c.least, Mean: c.sum / time.Duration(c.inv), Max: c.most},
	}
	for core, k := range c.cores {
		n.Cores = append(n.Cores, Core{core, k})
	}
	slices.SortFunc(n.Cores, func(a, b Core) int { return a.Core.Compare(b.Core) })
	return n
}

// judge fills in the verdict and the doubts.
func (r *Result) judge() {
	d := verdict.StickyData{
		Transactions: r.Transactions, Judged: r.Judged, Split: r.Split, Refused: r.Refused + r.SplitRefused,
		Invocations: r.PerTx, Unnamed: r.Unnamed, Nodes: len(r.Nodes),
	}
	for _, e := range r.SplitExamples[:min(3, len(r.SplitExamples))] {
		d.Examples = append(d.Examples, e.String())
	}
	e := verdict.ErrorsInput{Sent: r.Sent, MaxShare: r.maxErrors, Classes: map[string]int64{}, First: map[string]string{}}
	for _, c := range r.Errors {
		e.Classes[c.Class.String()], e.First[c.Class.String()] = c.Count, c.First
	}
	r.Verdicts = []verdict.Verdict{verdict.JudgeErrors(e), verdict.JudgeSticky(d)}
	if r.Interrupted {
		r.Warnings = append(r.Warnings, fmt.Sprintf("interrupted after %d of %d transactions: the figures are partial", r.Transactions-r.Cut, r.Planned))
	}
	if bad := r.Refused + r.SplitRefused; bad > 0 && bad < r.Transactions {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d transactions were refused: what they would have done is not known", bad, r.Transactions))
	}
}

// String is the transaction in a few words: its number, and its nodes with
// runs of the same node drawn together.
func (e Example) String() string {
	s := fmt.Sprintf("#%d:", e.Transaction)
	for i := 0; i < len(e.Nodes); {
		j := i
		for j < len(e.Nodes) && e.Nodes[j] == e.Nodes[i] {
			j++
		}
		s += " " + e.Nodes[i]
		if j-i > 1 {
			s += fmt.Sprintf("×%d", j-i)
		}
		i = j
	}
	return s
}
