// Package nodes makes one target of several dataplanes: it opens them, balances
// over them, counts what each did, and lets them fail, leave and join on time.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"tbl/cmd/tbl/internal/render"
	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

// Options say how to balance.
type Options struct {
	// Config of the cluster; its Family, Name and Transport are set here.
	Config cluster.Config
	// Transport of remote nodes.
	Transport cluster.Transport
	// TxSize is the number of requests of a transaction, for callers that know
	// none; with Config.Sticky only.
	TxSize int
}

// Cluster makes the cluster of all nodes but the absent ones. It owns none of them:
// see Owner.
func (o Options) Cluster(nodes []cluster.Node, absent map[string]bool) (*cluster.Proxy, *cluster.Family, error) {
	var there []cluster.Node
	for _, n := range nodes {
		if !absent[n.Name] {
			there = append(there, n)
		}
	}
	if len(nodes) > 0 {
		o.Config.Transport = o.Transport
		if nodes[0].Targets[o.Transport] == nil {
			o.Config.Transport = cluster.Embedded
		}
	}
	fam, err := cluster.NewFamily(cluster.FamilyConfig{Name: strconv.Itoa(len(nodes)) + " nodes", Seed: o.Config.Seed}, there...)
	if err != nil {
		return nil, nil, err
	}
	o.Config.Family = fam
	o.Config.Name = o.describe(nodes)
	p, err := cluster.New(o.Config)
	if err != nil {
		return nil, nil, err
	}
	return p, fam, nil
}

// describe names the cluster by its nodes and by how it picks from them.
func (o Options) describe(nodes []cluster.Node) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n.Name)
	}
	fmt.Fprintf(&b, ": %v", o.Config.Policy)
	switch {
	case !o.Config.Sticky:
		b.WriteString(", not sticky")
	case o.Config.Gone == cluster.Repin:
		b.WriteString(", sticky with moves")
	default:
		b.WriteString(", sticky")
	}
	if o.Config.Mode == cluster.AtBegin {
		b.WriteString(", pinned at begin")
	}
	return "nodes " + b.String()
}

// Embedded makes n reference dataplanes, called 1 to n.
func Embedded(cfg refplane.Config, n int) ([]cluster.Node, error) {
	var nodes []cluster.Node
	for i := range n {
		one := cfg
		if one.Seed != 0 {
			one.Seed += uint64(i)
		}
		plane, err := refplane.New(one)
		if err != nil {
			return nil, errors.Join(err, closeAll(nodes))
		}
		name := strconv.Itoa(i + 1)
		var node cluster.Node
		node.Name = name
		node.Targets[cluster.Embedded] = cluster.NewNamed(name, plane)
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// Remote makes a node of each URL, called by it.
func Remote(urls []string, cfg remote.Config, via cluster.Transport) ([]cluster.Node, error) {
	var nodes []cluster.Node
	for _, u := range urls {
		one := cfg
		one.URL, one.KeepAlive = u, via == cluster.Pooled
		r, err := remote.New(one)
		if err != nil {
			return nil, errors.Join(err, closeAll(nodes))
		}
		node := cluster.Node{Name: u}
		node.Targets[via] = r
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func closeAll(nodes []cluster.Node) error {
	var errs []error
	for _, n := range nodes {
		for _, t := range n.Targets {
			if t != nil {
				errs = append(errs, t.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// Owner is a cluster that closes its nodes, the absent ones too.
type Owner struct {
	target.Target
	Nodes []cluster.Node
}

// Close closes the cluster, then its nodes.
func (t *Owner) Close() error { return errors.Join(t.Target.Close(), closeAll(t.Nodes)) }

// node counts what one node of a load did, and gives its cores the
// node's number as their blade's, so that they stay apart in every table.
// Nodes that are chassis themselves can't be told apart in this way.
type node struct {
	target.Target
	number                int
	sent, ok, chassis     atomic.Int64
	sum, longest, refused atomic.Int64 // ns, ns, requests
}

// Do performs one request.
func (n *node) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpStats {
		// One node's counters would pass for those of all.
		ans.Reset()
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: http.StatusNotFound}
	}
	clock := n.Clock()
	start := clock.Now()
	err := n.Target.Do(ctx, req, ans)
	n.sent.Add(1)
	if err != nil {
		if target.ClassOf(err) == target.ClassRefused {
			n.refused.Add(1)
		}
		return err
	}
	n.ok.Add(1)
	took := int64(clock.Now().Sub(start))
	n.sum.Add(took)
	for was := n.longest.Load(); took > was && !n.longest.CompareAndSwap(was, took); {
		was = n.longest.Load()
	}
	if ans.Slot != 0 {
		n.chassis.Add(1)
	}
	ans.Slot = n.number
	return nil
}

// Load is what the nodes of a load did.
type Load struct {
	nodes  []*node
	policy cluster.Policy
	sticky bool
	txSize int
}

// Open makes one target of the nodes, which it closes, also on an error.
func Open(list []cluster.Node, o Options) (target.Target, *Load, error) {
	load := &Load{policy: o.Config.Policy, sticky: o.Config.Sticky, txSize: o.TxSize}
	for i := range list {
		n := &node{Target: list[i].Targets[o.Transport], number: i + 1}
		load.nodes = append(load.nodes, n)
		list[i].Targets[o.Transport] = n
	}
	p, _, err := o.Cluster(list, nil)
	if err != nil {
		return nil, nil, errors.Join(err, closeAll(list))
	}
	var tgt target.Target = p
	if o.Config.Sticky {
		tgt = cluster.NewBatched(p, o.TxSize)
	}
	return &Owner{tgt, list}, load, nil
}

// Report adds the nodes to a load's result. The load must be over.
func (r *Load) Report(d *render.Document) {
	var nodes []render.Node
	var all int64
	for _, n := range r.nodes {
		all += n.ok.Load()
	}
	for _, n := range r.nodes {
		ok := n.ok.Load()
		shown := render.Node{Node: n.Name(), Number: n.number, Sent: n.sent.Load(), OK: ok, Failed: n.sent.Load() - ok, Refused: n.refused.Load(), MaxNS: n.longest.Load()}
		if ok > 0 {
			shown.Share, shown.AvgNS = float64(ok)/float64(all), n.sum.Load()/ok
		}
		nodes = append(nodes, shown)
		if ok == 0 && shown.Failed > 0 {
			// The others took over, so that no request failed; the node did.
			d.Verdicts = append(d.Verdicts, verdict.Verdict{Name: verdict.Coverage, Of: fmt.Sprintf("node %d", n.number), State: verdict.Incomplete,
				Line: fmt.Sprintf("INCOMPLETE: node %d, %s, answered none of %d attempts", n.number, n.Name(), shown.Failed)})
		}
		if n.chassis.Load() > 0 {
			d.Linef("warning: node %d says which blade answered: its blades are counted as one", n.number)
		}
	}
	how := r.policy.String()
	if r.sticky {
		how += fmt.Sprintf(", sticky in transactions of %d", r.txSize)
	}
	render.Nodes(d, how, nodes)
}
