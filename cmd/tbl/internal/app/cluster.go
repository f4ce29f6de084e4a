package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

// clusterFlags are the flags of commands that balance over several nodes.
func clusterFlags() []cli.Flag {
	return []cli.Flag{
		among(stringFlag(catNodes, "policy", cluster.RoundRobin.String(), "how to pick a node: "+strings.Join(cluster.PolicyNames(), ", ")), cluster.PolicyNames()...),
		boolFlag(catNodes, "sticky", "keep each transaction on one node"),
		boolFlag(catNodes, "repin", "with --sticky: let another node go on with a transaction whose node has left, instead of refusing"),
		among(stringFlag(catNodes, "pin-at", "first-call", "with --sticky: pin at the first-call that reached a node, or at begin"), pinMoments()...),
		among(stringFlag(catNodes, "transport", "fresh", "remote nodes: fresh or pooled connections"), transports()...),
	}
}

// pinMoments are the values of --pin-at, transports those of --transport.
func pinMoments() []string { return []string{"first-call", "begin"} }
func transports() []string { return []string{"fresh", "pooled"} }

// clusterOptions are the checked cluster flags.
type clusterOptions struct {
	cfg       cluster.Config
	transport cluster.Transport // of remote nodes
	txSize    int               // invocations of a transaction, for commands that know none
}

// overNodes adds the flags of a command that can load several nodes.
func overNodes(own []cli.Flag) []cli.Flag {
	return flags(own, clusterFlags(), []cli.Flag{txSizeFlag()}, plotFlags())
}

// txSizeFlag is for commands that know no transactions.
func txSizeFlag() cli.Flag {
	return intFlag(catNodes, "tx-size", 10, "with --sticky: requests that make a transaction")
}

// loadOverNodes checks the cluster flags of a command that loads a target.
func loadOverNodes(c *cli.Context) error {
	if len(c.StringSlice("target")) > 1 {
		if g := given(c, "steer", "only-core"); len(g) > 0 {
			return usagef("--%s is for one target: ports are learnt of one dataplane", g[0])
		}
		_, err := parseCluster(c)
		return err
	}
	if g := given(c, "policy", "sticky", "repin", "pin-at", "transport", "tx-size"); len(g) > 0 {
		return usagef("--%s is for several targets: repeat --target", g[0])
	}
	return nil
}

func parseCluster(c *cli.Context) (clusterOptions, error) {
	var o clusterOptions
	var err error
	if o.cfg.Policy, err = cluster.ParsePolicy(c.String("policy")); err != nil {
		return o, usagef("--policy: %w", err)
	}
	o.cfg.Sticky = c.Bool("sticky")
	if g := given(c, "repin", "pin-at", "tx-size"); len(g) > 0 && !o.cfg.Sticky {
		return o, usagef("--%s needs --sticky", g[0])
	}
	if c.Bool("repin") {
		o.cfg.Gone = cluster.Repin
	}
	if err := oneOf("pin-at", c.String("pin-at"), pinMoments()...); err != nil {
		return o, err
	}
	if c.String("pin-at") == "begin" {
		o.cfg.Mode = cluster.AtBegin
	}
	if err := oneOf("transport", c.String("transport"), transports()...); err != nil {
		return o, err
	}
	o.transport = cluster.Fresh
	if c.String("transport") == "pooled" {
		o.transport = cluster.Pooled
	}
	o.cfg.Seed = c.Uint64("seed")
	if o.txSize = c.Int("tx-size"); c.IsSet("tx-size") && o.txSize < 1 {
		return o, usagef("--tx-size %d: want at least 1", o.txSize)
	}
	return o, nil
}

// open makes the cluster of all nodes but the absent ones. It owns them all.
func (o clusterOptions) open(nodes []cluster.Node, absent map[string]bool) (*cluster.Proxy, *cluster.Family, error) {
	var there []cluster.Node
	for _, n := range nodes {
		if !absent[n.Name] {
			there = append(there, n)
		}
	}
	if len(nodes) > 0 {
		o.cfg.Transport = o.transport
		if nodes[0].Targets[o.transport] == nil {
			o.cfg.Transport = cluster.Embedded
		}
	}
	fam, err := cluster.NewFamily(cluster.FamilyConfig{Name: strconv.Itoa(len(nodes)) + " nodes", Seed: o.cfg.Seed}, there...)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	o.cfg.Family = fam
	o.cfg.Name = o.describe(nodes)
	p, err := cluster.New(o.cfg)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	return p, fam, nil
}

// describe names the cluster by its nodes and by how it picks from them.
func (o clusterOptions) describe(nodes []cluster.Node) string {
	var b strings.Builder
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(n.Name)
	}
	fmt.Fprintf(&b, ": %v", o.cfg.Policy)
	switch {
	case !o.cfg.Sticky:
		b.WriteString(", not sticky")
	case o.cfg.Gone == cluster.Repin:
		b.WriteString(", sticky with moves")
	default:
		b.WriteString(", sticky")
	}
	if o.cfg.Mode == cluster.AtBegin {
		b.WriteString(", pinned at begin")
	}
	return "nodes " + b.String()
}

// embeddedNodes makes n reference dataplanes, called 1 to n.
func embeddedNodes(cfg refplane.Config, n int) ([]cluster.Node, error) {
	var nodes []cluster.Node
	for i := range n {
		one := cfg
		if one.Seed != 0 {
			one.Seed += uint64(i)
		}
		plane, err := refplane.New(one)
		if err != nil {
			return nil, usagef("%w", errors.Join(err, closeNodes(nodes)))
		}
		name := strconv.Itoa(i + 1)
		var node cluster.Node
		node.Name = name
		node.Targets[cluster.Embedded] = cluster.NewNamed(name, plane)
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// remoteNodes makes a node of each --target, called by its URL.
func (o *targetOptions) remoteNodes(via cluster.Transport) ([]cluster.Node, error) {
	var nodes []cluster.Node
	for _, u := range o.urls {
		cfg := o.remote
		cfg.URL, cfg.KeepAlive = u, via == cluster.Pooled
		r, err := remote.New(cfg)
		if err != nil {
			return nil, usagef("--target: %w", errors.Join(err, closeNodes(nodes)))
		}
		node := cluster.Node{Name: u}
		node.Targets[via] = r
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func closeNodes(nodes []cluster.Node) error {
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

// clusterTarget is a cluster that closes its nodes, the absent ones too.
type clusterTarget struct {
	target.Target
	nodes []cluster.Node
}

// Close closes the cluster, then its nodes.
func (t *clusterTarget) Close() error { return errors.Join(t.Target.Close(), closeNodes(t.nodes)) }

// clusterNode counts what one node of a load did, and gives its cores the
// node's number as their blade's, so that they stay apart in every table.
// Nodes that are chassis themselves can't be told apart in this way.
type clusterNode struct {
	target.Target
	number                int
	sent, ok, chassis     atomic.Int64
	sum, longest, refused atomic.Int64 // ns, ns, requests
}

// Do performs one request.
func (n *clusterNode) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
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

// clusterRun is a load over several nodes.
type clusterRun struct {
	nodes  []*clusterNode
	policy cluster.Policy
	sticky bool
	txSize int
}

// openCluster opens several targets as one.
func (o *targetOptions) openCluster() (*plane, error) {
	b := *o.balance
	nodes, err := o.remoteNodes(b.transport)
	if err != nil {
		return nil, err
	}
	run := &clusterRun{policy: b.cfg.Policy, sticky: b.cfg.Sticky, txSize: b.txSize}
	for i := range nodes {
		n := &clusterNode{Target: nodes[i].Targets[b.transport], number: i + 1}
		run.nodes = append(run.nodes, n)
		nodes[i].Targets[b.transport] = n
	}
	p, _, err := b.open(nodes, nil)
	if err != nil {
		return nil, errors.Join(err, closeNodes(nodes))
	}
	var tgt target.Target = p
	if b.cfg.Sticky {
		tgt = cluster.NewBatched(p, b.txSize)
	}
	return &plane{Target: &clusterTarget{tgt, nodes}, cluster: run}, nil
}

// report adds the nodes to a load's result.
func (r *clusterRun) report(d *render.Document) {
	var nodes []render.Node
	var all int64
	for _, n := range r.nodes {
		all += n.ok.Load()
	}
	for _, n := range r.nodes {
		ok := n.ok.Load()
		node := render.Node{Node: n.Name(), Number: n.number, Sent: n.sent.Load(), OK: ok, Failed: n.sent.Load() - ok, Refused: n.refused.Load(), MaxNS: n.longest.Load()}
		if ok > 0 {
			node.Share, node.AvgNS = float64(ok)/float64(all), n.sum.Load()/ok
		}
		nodes = append(nodes, node)
		if ok == 0 && node.Failed > 0 {
			// The others took over, so that no request failed; the node did.
			d.Verdicts = append(d.Verdicts, verdict.Verdict{Name: verdict.Coverage, State: verdict.Incomplete,
				Line: fmt.Sprintf("INCOMPLETE: node %d, %s, answered none of %d attempts", n.number, n.Name(), node.Failed)})
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
