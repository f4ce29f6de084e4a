package app

import (
	"errors"

	"strconv"

	"github.com/urfave/cli/v2"

	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/refplane"
	"tbl/target/remote"
)

// clusterFlags are the flags of commands that balance over several nodes.
func clusterFlags() []cli.Flag {
	names := ""
	for p := range cluster.NumPolicies {
		if p > 0 {
			names += ", "
		}
		names += p.String()
	}
	return []cli.Flag{
		stringFlag(catTarget, "policy", cluster.RoundRobin.String(), "how to pick a node: "+names),
		boolFlag(catTarget, "sticky", "keep each transaction on one node"),
		boolFlag(catTarget, "repin", "with --sticky: let another node go on with a transaction whose node has left, instead of refusing"),
		stringFlag(catTarget, "pin-at", "first-call", "with --sticky: pin at the first-call that reached a node, or at begin"),
		stringFlag(catTarget, "transport", "fresh", "remote nodes: fresh or pooled connections"),
	}
}

// clusterOptions are the checked cluster flags.
type clusterOptions struct {
	cfg       cluster.Config
	transport cluster.Transport // of remote nodes
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
	if err := oneOf("pin-at", c.String("pin-at"), "first-call", "begin"); err != nil {
		return o, err
	}
	if c.String("pin-at") == "begin" {
		o.cfg.Mode = cluster.AtBegin
	}
	if err := oneOf("transport", c.String("transport"), "fresh", "pooled"); err != nil {
		return o, err
	}
	o.transport = cluster.Fresh
	if c.String("transport") == "pooled" {
		o.transport = cluster.Pooled
	}
	o.cfg.Seed = c.Uint64("seed")
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
	p, err := cluster.New(o.cfg)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	return p, fam, nil
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
