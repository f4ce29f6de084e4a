package cluster_test

import (
	"context"
	"fmt"
	"testing"

	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/target/targettest"
)

// within makes every invocation in one transaction.
type within struct {
	*cluster.Proxy
	ctx context.Context
	tx  *cluster.Tx
}

func (w *within) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	joined, _ := cluster.Join(ctx, w.tx.ID())
	return w.Proxy.Do(joined, req, ans)
}

// TestConformance holds clusters against the suite for every target. A
// cluster of one, one that elects a node, and one within a transaction are as
// good as a node; one that spreads requests has no state of its own to be
// held to.
func TestConformance(t *testing.T) {
	node := func(t *testing.T, via cluster.Transport, seed uint64) cluster.Node {
		cores := 2
		if via == cluster.Pooled {
			cores = 1 // a kept connection stays on one core
		}
		plane, err := refplane.New(refplane.Config{Cores: cores, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { plane.Close() })
		n := cluster.Node{Name: fmt.Sprint("node ", seed)}
		if n.Targets[via] = plane; via != cluster.Embedded {
			r, err := remote.New(remote.Config{URL: serve(t, plane, n.Name), KeepAlive: via == cluster.Pooled})
			if err != nil {
				t.Fatal(err)
			}
			n.Targets[via] = r
		}
		return n
	}
	run := func(nodes int, via cluster.Transport, policy cluster.Policy, tx bool) {
		t.Run(fmt.Sprintf("%d/%s/%v/transaction=%v", nodes, transportNames[via], policy, tx), func(t *testing.T) {
			t.Parallel() // the suite waits for timers of the table
			one := nodes == 1 || tx || policy == cluster.FirstAvailable || policy == cluster.FirstAvailableIdentical
			targettest.Run(t, func(t *testing.T) target.Target {
				var list []cluster.Node
				for i := range nodes {
					list = append(list, node(t, via, uint64(i+1)))
				}
				f, err := cluster.NewFamily(cluster.FamilyConfig{Name: "svc"}, list...)
				if err != nil {
					t.Fatal(err)
				}
				p := newProxy(t, cluster.Config{Family: f, Policy: policy, Transport: via, Sticky: tx, CloseNodes: true})
				t.Cleanup(func() { p.Close() })
				if !tx {
					return p
				}
				ctx, tx := cluster.Begin(bg)
				t.Cleanup(tx.End)
				return &within{p, ctx, tx}
			}, targettest.Options{NoTable: !one, NoReload: !one, Shared: !one, NoSteering: !one || via == cluster.Pooled})
		})
	}
	for via := range cluster.NumTransports {
		run(1, via, cluster.RoundRobin, false)
		run(3, via, cluster.RoundRobin, true)
		for policy := range cluster.NumPolicies {
			run(3, via, policy, false)
		}
	}
}
