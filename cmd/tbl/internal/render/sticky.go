package render

import (
	"fmt"
	"strings"
	"time"

	"tbl/prober/stickiness"
)

// Sticky is the document of sticky.
func Sticky(r *stickiness.Result) *Document {
	d := &Document{Command: "sticky", Data: r, Verdicts: r.Verdicts, Figures: map[string]float64{}}
	d.Linef("%s: %s of %d invocations, %d at a time, in %s",
		r.Target, Count(int(r.Transactions), "transaction"), r.PerTx, r.Workers, Duration(r.Duration))
	t := d.Append("nodes", "NODE", "transactions", "invocations", "share", "min", "avg", "max")
	for _, n := range r.Nodes {
		t.Row(n.Name, n.Transactions, n.Invocations, Percent(n.Share), n.Latency.Min, n.Latency.Mean, n.Latency.Max)
	}
	cores := d.Append("cores", "NODE", "TMM", "invocations")
	for _, n := range r.Nodes {
		for _, c := range n.Cores {
			cores.Row(n.Name, c.Core.String(), c.Invocations)
		}
	}
	d.Linef("transactions: one node %s, split %s, refused %s, cut %s; invocations: sent %s, served %s, without a node's name %s",
		Int(r.Whole), Int(r.Split), Int(r.Refused), Int(r.Cut), Int(r.Sent), Int(r.Served), Int(r.Unnamed))
	if r.Judged > 0 {
		d.Figures["split_share"] = float64(r.Split) / float64(r.Judged)
	}
	if r.Split > 0 {
		d.Linef("%s of the transactions judged were split%s", text(Percent(d.Figures["split_share"])), atRandom(r))
	}
	if r.SplitRefused > 0 {
		d.Linef("%s of the split transactions ended with an error", Int(r.SplitRefused))
	}
	causes := d.Append("refused", "cause", "transactions", "example")
	causes.Left = true
	for _, c := range r.Causes {
		causes.Row(c.Cause, c.Transactions, c.Example)
	}
	examples(d, "split_examples", r.SplitExamples)
	examples(d, "refused_examples", r.RefusedExamples)
	if len(r.Errors) > 0 {
		errs := d.Append("errors", "error", "count", "first")
		errs.Left = true
		for _, e := range r.Errors {
			errs.Row(e.Class.String(), e.Count, e.First)
		}
	}
	warnings(d, r.Warnings)
	return d
}

// atRandom says how many would have been split without any stickiness.
func atRandom(r *stickiness.Result) string {
	for _, v := range r.Verdicts {
		if share, ok := v.Figures["random_split_share"]; ok {
			return "; nodes picked at random would split " + text(Percent(share))
		}
	}
	return ""
}

// examples lists transactions with the nodes that served them, in order.
func examples(d *Document, name string, list []stickiness.Example) {
	what, _, _ := strings.Cut(name, "_")
	t := d.Append(name, what, "served_by", "error")
	t.Left = true
	for _, e := range list {
		t.Row(e.Transaction, strings.Join(e.Nodes, " "), e.Error)
	}
}

// Node is what one of several nodes did under a load.
type Node struct {
	Node    string  `json:"node"`
	Number  int     `json:"number"` // from 1; its cores carry it as their blade
	Sent    int64   `json:"sent"`
	OK      int64   `json:"ok"`
	Failed  int64   `json:"failed"`
	Refused int64   `json:"refused"` // of Failed
	Share   float64 `json:"share"`   // of all that was ok, 0 to 1
	AvgNS   int64   `json:"avg_ns"`
	MaxNS   int64   `json:"max_ns"`
}

// Nodes adds the nodes of a load to its document, before everything else.
func Nodes(d *Document, how string, nodes []Node) {
	t := &Table{Name: "nodes", Header: []string{"NODE", "number", "sent", "ok", "failed", "share", "avg", "max"}}
	for _, n := range nodes {
		t.Row(n.Node, n.Number, n.Sent, n.OK, n.Failed, Percent(n.Share), time.Duration(n.AvgNS), time.Duration(n.MaxNS))
	}
	head := Block{Line: fmt.Sprintf("%s, %s; their cores are shown as node/tmm", Count(len(nodes), "node"), how)}
	d.Blocks = append([]Block{head, {Table: t}}, d.Blocks...)
	d.Extra = map[string]any{"nodes": nodes, "balance": how}
}
