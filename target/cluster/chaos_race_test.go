package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
	"tbl/target/cluster"
)

// raceNode notes which transactions it has performed something of.
type raceNode struct {
	fakeNode
	name  string
	owner *sync.Map // transaction id → node
	calls *atomic.Int64
	split func(id cluster.TxID, a, b any)
}

func (n *raceNode) Do(ctx context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	n.calls.Add(1)
	if tx := cluster.FromContext(ctx); tx != nil {
		if was, loaded := n.owner.LoadOrStore(tx.ID(), n.name); loaded && was != n.name {
			n.split(tx.ID(), was, n.name)
		}
	}
	return nil
}

// TestChaosRace is the same on 64 goroutines: nothing is decided by the test,
// and nothing shrunk. Run it under the race detector.
func TestChaosRace(t *testing.T) {
	transactions := 100_000
	if testing.Short() {
		transactions = 5_000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var owner sync.Map
	var calls, attempts, notCalled, next, view atomic.Int64
	pins := cluster.NewPins(cluster.PinsConfig{})
	nodes := map[string]cluster.Node{}
	for i, name := range chaosNames {
		f := cluster.NewFaulty(&raceNode{name: name, owner: &owner, calls: &calls, split: func(id cluster.TxID, a, b any) {
			t.Errorf("transaction %v reached %v and %v", id, a, b)
		}}, seed+uint64(i))
		var faults []cluster.Fault
		for k := range cluster.NumFaults {
			faults = append(faults, cluster.Fault{Kind: k, P: 0.01})
		}
		f.Set(faults...)
		nodes[name] = cluster.NodeOf(name, f)
	}
	list := func(mask int) (out []cluster.Node) {
		for i, n := range chaosNames {
			if mask>>i&1 == 1 {
				out = append(out, nodes[n])
			}
		}
		return out
	}
	family, err := cluster.NewFamily(cluster.FamilyConfig{
		Name: "svc", Backoff: time.Microsecond, MaxBackoff: time.Millisecond,
		Check: func(context.Context, target.Target) error { return nil },
	}, list(15)...)
	if err != nil {
		t.Fatal(err)
	}
	var proxies []*cluster.Proxy
	for policy := range cluster.NumPolicies {
		for mode := range cluster.AtBegin + 1 {
			proxies = append(proxies, newProxy(t, cluster.Config{Family: family, Policy: policy, Sticky: true, Pins: pins, Mode: mode}))
		}
	}
	var outcomes [6]atomic.Int64
	invoke := func(p *cluster.Proxy, ctx context.Context) {
		var inv cluster.Invocation
		err := p.Invoke(ctx, &target.Request{}, &target.Answer{}, &inv)
		attempts.Add(int64(inv.Attempts))
		notCalled.Add(int64(len(inv.Failed))) // injected before the node
		kinds := []error{cluster.ErrStickyTargetGone, cluster.ErrUnavailableInTransaction, cluster.ErrUnavailable}
		i := slices.IndexFunc(kinds, func(k error) bool { return errors.Is(err, k) })
		switch {
		case err == nil:
			outcomes[0].Add(1)
		case i >= 0:
			outcomes[1+i].Add(1)
		case errors.Is(err, cluster.ErrTransactionEnded):
			t.Errorf("in a running transaction: %v", err)
		default:
			outcomes[4].Add(1)
			if target.ClassOf(err) == target.ClassHTTP5xx {
				notCalled.Add(1) // injected too
			}
		}
	}
	together(64, func(w int) {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		for {
			n := next.Add(1)
			if n > int64(transactions) {
				return
			}
			if n%50 == 0 {
				family.Update(uint64(view.Add(1)), list(rnd.IntN(16))...)
			}
			p := proxies[rnd.IntN(len(proxies))]
			ctx, tx := p.Begin(context.Background())
			if rnd.IntN(8) == 0 { // calls at the same time
				together(2, func(int) { invoke(p, ctx) })
			}
			for range rnd.IntN(5) {
				invoke(p, ctx)
			}
			tx.End()
			if _, _, ok := pins.Pin(tx.ID()); ok {
				t.Error("a pin outlives its transaction")
			}
			invoke(p, context.Background())
			owner.Delete(tx.ID())
		}
	})
	if got := calls.Load(); got != attempts.Load()-notCalled.Load() {
		t.Errorf("nodes were called %d times; %d attempts, of which %d did not come through", got, attempts.Load(), notCalled.Load())
	}
	for i, what := range []string{"fine", "gone", "unavailable in transaction", "unavailable", "other errors"} {
		t.Logf("%s: %d", what, outcomes[i].Load())
		if outcomes[i].Load() == 0 {
			t.Errorf("no invocation was %q: the test tests too little", what)
		}
	}
	if n := pins.Len(); n != 0 {
		t.Errorf("%d transactions remembered at the end", n)
	}
}
