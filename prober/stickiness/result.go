package stickiness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

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
	e := verdict.ErrorsInput{Sent: r.Sent, MaxShare: r.maxErrors}
	for _, c := range r.Errors {
		e.Add(c.Class.String(), c.Count, c.First)
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
