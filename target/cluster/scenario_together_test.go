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

// TestC1: 50 workers × 50 calls without a transaction. call checks that the
// node used is the node chosen.
func TestC1(t *testing.T) {
	each(t, "C1", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		var failovers atomic.Int64
		together(50, func(int) {
			own := &client{t: t, Proxy: c.Proxy}
			for range 50 {
				if err := own.call(bg); err != nil {
					t.Errorf("call failed: %v", err)
				}
				failovers.Add(int64(own.inv.Failovers))
			}
		})
		if n := r.servedBy("A") + r.servedBy("B"); n != 2500 || failovers.Load() != 0 || f.Len() != 2 {
			t.Errorf("%d served, %d failovers, %d nodes left", n, failovers.Load(), f.Len())
		}
	})
}

// TestC3: 1,000 transactions on 64 workers while nodes leave and return.
func TestC3(t *testing.T) {
	each(t, "C3", func(t *testing.T, s setting) {
		names := []string{"A", "B", "C", "D"}
		r := newRig(t, s.via != cluster.Embedded, names...)
		f := r.family("svc", 0, names...)
		pins := cluster.NewPins(cluster.PinsConfig{})
		p := newProxy(t, cluster.Config{Family: f, Policy: s.policy, Sticky: true, Pins: pins, Transport: s.via})
		var next, refused, whole, view atomic.Int64
		together(64, func(int) {
			c := &client{t: t, Proxy: p}
			for {
				n := next.Add(1)
				if n > 1000 {
					return
				}
				if n%5 == 0 { // one of the four leaves, or all are there
					list := slices.Clone(names)
					if gone := n / 5 % 5; gone < 4 {
						list = slices.Delete(list, int(gone), int(gone)+1)
					}
					f.Update(uint64(view.Add(1)), r.list(list...)...)
				}
				ctx, tx := cluster.Begin(bg)
				var nodes []string
				var err error
				for range 5 {
					if err = c.call(ctx); err != nil {
						break
					}
					nodes = append(nodes, c.node)
				}
				if len(distinct(nodes)) > 1 {
					t.Errorf("transaction %d on %v", n, nodes)
				}
				switch {
				case err == nil:
					whole.Add(1)
				case errors.Is(err, cluster.ErrStickyTargetGone):
					refused.Add(1)
				default:
					t.Errorf("transaction %d: %v", n, err)
				}
				tx.End()
			}
		})
		if whole.Load()+refused.Load() != 1000 || pins.Len() != 0 {
			t.Errorf("%d whole, %d refused, %d left in the store", whole.Load(), refused.Load(), pins.Len())
		}
	})
}

// TestC4: the first calls of one transaction at the same moment.
func TestC4(t *testing.T) {
	each(t, "C4", func(t *testing.T, s setting) {
		r, _, pins, c := pair(t, s)
		for range 20 {
			// Neither call is answered before both have arrived somewhere.
			var arrived sync.WaitGroup
			arrived.Add(2)
			hook := func(context.Context) { arrived.Done(); arrived.Wait() }
			for _, n := range r.fakes {
				n.hook.Store(&hook)
			}
			ctx, tx := cluster.Begin(bg)
			var nodes [2]string
			together(2, func(i int) {
				own := &client{t: t, Proxy: c.Proxy}
				if err := own.call(ctx); err != nil {
					t.Errorf("call failed: %v", err)
				}
				nodes[i] = own.node
			})
			if nodes[0] != nodes[1] {
				t.Errorf("one transaction on %v", nodes)
			}
			if pin, firm, _ := pins.Pin(tx.ID()); pin != nodes[0] || !firm {
				t.Errorf("pin %s", pin)
			}
			tx.End()
		}
	})
}

// TestC4Claim: while another call of the transaction holds the claim, a
// failed one does not fail over; the last one may.
func TestC4Claim(t *testing.T) {
	each(t, "C4 claim", func(t *testing.T, s setting) {
		r, f, pins, c := pair(t, s)
		ctx, tx := begin(t)
		entered, release := make(chan string), make(chan struct{})
		var n atomic.Int64
		r.setFate(func(node string) (cluster.FaultKind, bool) {
			switch n.Add(1) {
			case 1: // the first is on its way until the second has failed
				entered <- node
				<-release
				return cluster.FaultNo, true
			case 2:
				return cluster.FaultNo, true
			}
			return 0, false
		})
		x := &client{t: t, Proxy: c.Proxy}
		done := make(chan error)
		go func() { done <- x.call(ctx) }()
		a := <-entered
		if err := c.call(ctx); !errors.Is(err, cluster.ErrUnavailableInTransaction) || c.inv.Attempts != 1 || c.inv.Node != a {
			t.Errorf("second call: %v after %d attempts on %s", err, c.inv.Attempts, c.inv.Node)
		}
		if pin, firm, _ := pins.Pin(tx.ID()); pin != a || firm {
			t.Errorf("pin %q firm %v, want the claim of %s", pin, firm, a)
		}
		close(release)
		err := <-done
		check(t, x, f, pins, tx, err, want{fc: 1, attempts: 2, n: 1, pin: other(a), firm: true})
	})
}

// TestC5: X fails on A while Y uses B on the same proxy.
func TestC5(t *testing.T) {
	each(t, "C5", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		xctx, _ := begin(t)
		yctx, _ := begin(t)
		a := c.good(xctx)
		r.setFate(func(node string) (cluster.FaultKind, bool) { return cluster.FaultNo, node == a })
		if y := c.good(yctx); y == a {
			t.Fatal("served by the failing node")
		}
		f.Update(1, r.list("A", "B")...)

		entered, release := make(chan struct{}), make(chan struct{})
		r.setFate(func(node string) (cluster.FaultKind, bool) {
			if node != a {
				return 0, false
			}
			close(entered)
			<-release
			return cluster.FaultNo, true
		})
		x := &client{t: t, Proxy: c.Proxy}
		done := make(chan error)
		go func() { done <- x.call(xctx) }()
		<-entered
		c.good(yctx)
		close(release)
		if err := <-done; !errors.Is(err, cluster.ErrUnavailableInTransaction) {
			t.Errorf("X: %v", err)
		}
		if _, names := f.View(); !slices.Equal(names, []string{other(a)}) {
			t.Errorf("left: %v, want only %s removed", names, a)
		}
		c.good(yctx)
	})
}

// TestT1T3 is rows T1 and T3: the pinned node leaves the view, and returns.
func TestT1T3(t *testing.T) {
	each(t, "T1 T3", func(t *testing.T, s setting) {
		r, f, pins, c := pair(t, s)
		ctx, tx := begin(t)
		a := c.good(ctx)
		f.Update(1, r.list(other(a))...)
		err := c.call(ctx)
		check(t, c, f, pins, tx, err, want{is: cluster.ErrStickyTargetGone, n: 1, pin: a, firm: true})
		if got := c.good(bg); got != other(a) {
			t.Errorf("others use %s", got)
		}
		fresh, _ := begin(t)
		if got := c.good(fresh); got != other(a) {
			t.Errorf("another transaction uses %s", got)
		}
		f.Update(2, r.list("A", "B")...)
		if got := c.good(ctx); got != a {
			t.Errorf("returned, served by %s, want %s", got, a)
		}
	})
}

// TestT10: a node joins in mid-transaction.
func TestT10(t *testing.T) {
	each(t, "T10", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		ctx, _ := begin(t)
		a := c.good(ctx)
		f.Update(1, r.list("C", "A", "B")...)
		used := map[string]bool{}
		for range 40 {
			if got := c.good(ctx); got != a {
				t.Fatalf("on %s, want %s", got, a)
			}
			fresh, tx := cluster.Begin(bg)
			used[c.good(fresh)] = true
			tx.End()
		}
		elects := s.policy == cluster.FirstAvailable || s.policy == cluster.FirstAvailableIdentical
		if used["C"] == elects {
			t.Errorf("new transactions used %v", used)
		}
	})
}

// TestT9: all nodes fail, then are repaired; the re-check has its back-off.
func TestT9(t *testing.T) {
	each(t, "T9", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B")
		var checks atomic.Int64
		f, err := cluster.NewFamily(cluster.FamilyConfig{
			Name: "svc", Clock: r.clock, Seed: 7, Backoff: time.Second, MaxBackoff: 4 * time.Second,
			Check: func(ctx context.Context, tgt target.Target) error {
				checks.Add(1)
				return tgt.Do(ctx, &target.Request{}, &target.Answer{})
			},
		}, r.list("A", "B")...)
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Sticky: true, Transport: s.via, Seed: 1})
		ctx, _ := begin(t)
		r.setFate(func(string) (cluster.FaultKind, bool) { return cluster.FaultNotReached, true })
		if err := c.call(ctx); !isUnavailable(err) {
			t.Fatalf("all down: %v", err)
		}
		// Re-checks after 1, 3, 7, 11 and 15 s, of two nodes each.
		var seen []int64
		for range 15 {
			r.clock.advance(time.Second)
			if err := c.call(ctx); !isUnavailable(err) {
				t.Fatalf("still down: %v", err)
			}
			seen = append(seen, checks.Load())
		}
		if w := []int64{2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 8, 8, 8, 8, 10}; !slices.Equal(seen, w) {
			t.Errorf("re-checks by second %v, want %v", seen, w)
		}
		r.setFate(nil)
		r.clock.advance(4 * time.Second)
		node := c.good(ctx)
		if f.Len() != 2 {
			t.Errorf("%d nodes are back", f.Len())
		}
		if got := c.good(ctx); got != node {
			t.Errorf("%s, then %s", node, got)
		}
	})
}

// TestB4: a failed commit, a rollback and a panic all forget the pin.
func TestB4(t *testing.T) {
	errCommit := errors.New("commit failed")
	each(t, "B4", func(t *testing.T, s setting) {
		r, _, pins, c := pair(t, s)
		for _, ending := range []string{"commit", "rollback", "panic", "node lost"} {
			var id cluster.TxID
			func() {
				defer func() { _ = recover() }()
				err := cluster.Within(bg, func(ctx context.Context) error {
					id = cluster.FromContext(ctx).ID()
					c.good(ctx)
					if _, _, ok := pins.Pin(id); !ok {
						t.Error("no pin in the transaction")
					}
					switch ending {
					case "panic":
						panic(ending)
					case "node lost":
						r.failNext(cluster.FaultMaybe)
						return c.call(ctx)
					case "commit":
						return errCommit
					}
					return nil
				})
				if ending == "commit" && !errors.Is(err, errCommit) {
					t.Errorf("error %v", err)
				}
			}()
			if _, _, ok := pins.Pin(id); ok || pins.Len() != 0 {
				t.Errorf("after %s: pinned %v, %d remembered", ending, ok, pins.Len())
			}
		}
	})
}

// TestL1: 10 million transactions begun and ended leave nothing behind.
func TestL1(t *testing.T) {
	n := 10_000_000
	if raceEnabled || testing.Short() {
		n = 200_000
	}
	r := newRig(t, false, "A", "B")
	f, err := cluster.NewFamily(cluster.FamilyConfig{Name: "svc"}, cluster.NodeOf("A", r.fakes["A"]), cluster.NodeOf("B", r.fakes["B"]))
	if err != nil {
		t.Fatal(err)
	}
	pins := cluster.NewPins(cluster.PinsConfig{})
	p := newProxy(t, cluster.Config{Family: f, Sticky: true, Pins: pins})
	run := func(n int) {
		var req target.Request
		var ans target.Answer
		for range n {
			ctx, tx := cluster.Begin(bg)
			if err := p.Do(ctx, &req, &ans); err != nil {
				t.Fatal(err)
			}
			tx.End()
		}
	}
	run(n / 10)
	before := heapInUse()
	run(n - n/10)
	if after := heapInUse(); after > before+before/4+1<<20 || pins.Len() != 0 {
		t.Errorf("heap %d bytes after a tenth, %d at the end; %d remembered", before, after, pins.Len())
	}
}

// TestRandomKillsDoNotSplit is the users' experience in one: whatever fails
// and however, no transaction is served by two nodes.
func TestRandomKillsDoNotSplit(t *testing.T) {
	each(t, "random", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		seed := uint64(1)
		rnd := rand.New(rand.NewPCG(seed, 2))
		r.setFate(func(string) (cluster.FaultKind, bool) {
			return cluster.FaultKind(rnd.IntN(int(cluster.NumFaults))), rnd.IntN(4) == 0
		})
		view := uint64(0)
		for i := range 100 {
			ctx, tx := cluster.Begin(bg)
			var nodes []string
			for range 6 {
				if c.call(ctx) == nil {
					nodes = append(nodes, c.node)
				}
				if rnd.IntN(3) == 0 {
					view++
					f.Update(view, r.list([][]string{{"A", "B"}, {"B", "A"}, {"A", "C"}, {"B"}}[rnd.IntN(4)]...)...)
				}
			}
			if d := distinct(nodes); len(d) > 1 {
				t.Errorf("seed %d, transaction %d: %v", seed, i, nodes)
			}
			tx.End()
		}
	})
}
