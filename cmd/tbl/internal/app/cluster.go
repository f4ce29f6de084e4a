package app

import (
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/nodes"
	"tbl/target/cluster"
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

func parseCluster(c *cli.Context) (nodes.Options, error) {
	var o nodes.Options
	var err error
	if o.Config.Policy, err = cluster.ParsePolicy(c.String("policy")); err != nil {
		return o, usagef("--policy: %w", err)
	}
	o.Config.Sticky = c.Bool("sticky")
	if g := given(c, "repin", "pin-at", "tx-size"); len(g) > 0 && !o.Config.Sticky {
		return o, usagef("--%s needs --sticky", g[0])
	}
	if c.Bool("repin") {
		o.Config.Gone = cluster.Repin
	}
	if err := oneOf("pin-at", c.String("pin-at"), pinMoments()...); err != nil {
		return o, err
	}
	if c.String("pin-at") == "begin" {
		o.Config.Mode = cluster.AtBegin
	}
	if err := oneOf("transport", c.String("transport"), transports()...); err != nil {
		return o, err
	}
	o.Transport = cluster.Fresh
	if c.String("transport") == "pooled" {
		o.Transport = cluster.Pooled
	}
	o.Config.Seed = c.Uint64("seed")
	if o.TxSize = c.Int("tx-size"); c.IsSet("tx-size") && o.TxSize < 1 {
		return o, usagef("--tx-size %d: want at least 1", o.TxSize)
	}
	return o, nil
}

// remoteNodes makes a node of each --target, called by its URL.
func (o *targetOptions) remoteNodes(via cluster.Transport) ([]cluster.Node, error) {
	list, err := nodes.Remote(o.urls, o.remote, via)
	if err != nil {
		return nil, usagef("--target: %w", err)
	}
	return list, nil
}

// openCluster opens several targets as one.
func (o *targetOptions) openCluster() (*plane, error) {
	list, err := o.remoteNodes(o.balance.Transport)
	if err != nil {
		return nil, err
	}
	tgt, load, err := nodes.Open(list, *o.balance)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &plane{Target: tgt, nodes: load}, nil
}
