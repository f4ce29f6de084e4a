package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
	"tbl/target/cluster"
)

func isUnavailable(err error) bool { return errors.Is(err, cluster.ErrUnavailable) }

func atBegin(c *cluster.Config) { c.Mode = cluster.AtBegin }

// Test4a: the client's own error before sending blames no node.
func Test4a(t *testing.T) {
	for _, nth := range []int{0, 1, 4} {
		each(t, fmt.Sprintf("4a after %d", nth), func(t *testing.T, s setting) {
			r, f, pins, c := pair(t, s)
			ctx, tx := begin(t)
			for range nth {
				c.good(ctx)
			}
			pin, firm, _ := pins.Pin(tx.ID())
			r.failNext(cluster.FaultClient)
			err := c.call(ctx)
			check(t, c, f, pins, tx, err, want{fault: fault(cluster.FaultClient), n: 2, pin: pin, firm: firm})
			if c.good(ctx); nth > 0 && c.node != pin {
				t.Errorf("afterwards on %s, pin was %s", c.node, pin)
			}
		})
	}
}

// Test4b: the Nth call fails with Yes. Maybe, a cut answer and an answered
// error are treated the same.
func Test4b(t *testing.T) {
	for _, kind := range []cluster.FaultKind{cluster.FaultYes, cluster.FaultMaybe, cluster.FaultCut, cluster.FaultStatus} {
		each(t, "4b "+kind.String(), func(t *testing.T, s setting) {
			r, f, pins, c := pair(t, s)
			ctx, tx := begin(t)
			a := c.good(ctx)
			r.failNext(kind)
			err := c.call(ctx)
			check(t, c, f, pins, tx, err, want{fault: fault(kind), attempts: 1, n: 2, pin: a, firm: true})
			if got := c.good(ctx); got != a {
				t.Errorf("afterwards on %s, want %s", got, a)
			}
		})
	}
}

// Test4bPrime is rows 4b′ and 4b″: the Nth call fails with No, or does not
// reach the node.
func Test4bPrime(t *testing.T) {
	for row, kind := range map[string]cluster.FaultKind{"4b′": cluster.FaultNo, "4b″": cluster.FaultNotReached} {
		for _, mode := range []cluster.PinMode{cluster.FirstCall, cluster.AtBegin} {
			each(t, fmt.Sprintf("%s mode %d", row, mode), func(t *testing.T, s setting) {
				r, f, pins, c := pair(t, s, func(c *cluster.Config) { c.Mode = mode })
				ctx, tx := begin(t)
				a := c.good(ctx)
				before := r.servedBy(other(a))
				r.failNext(kind)
				err := c.call(ctx)
				check(t, c, f, pins, tx, err, want{is: cluster.ErrUnavailableInTransaction, fc: 1, attempts: 1, n: 1, pin: a, firm: true})
				if target.ClassOf(err) != faultClasses[kind] {
					t.Errorf("class %v", target.ClassOf(err))
				}
				if r.servedBy(other(a)) != before {
					t.Error("the other node saw something")
				}
				if err := c.call(ctx); !errors.Is(err, cluster.ErrStickyTargetGone) {
					t.Errorf("then: %v", err)
				}
			})
		}
	}
}

// Test4c: in a fresh transaction the first call fails over.
func Test4c(t *testing.T) {
	for _, kind := range []cluster.FaultKind{cluster.FaultNo, cluster.FaultNotReached} {
		each(t, "4c "+kind.String(), func(t *testing.T, s setting) {
			r, f, pins, c := pair(t, s)
			ctx, tx := begin(t)
			r.failNext(kind)
			err := c.call(ctx)
			b := c.node
			check(t, c, f, pins, tx, err, want{fc: 1, attempts: 2, n: 1, pin: b, firm: true})
			if a := c.inv.Failed[0].Node; a == b {
				t.Errorf("failed on %s, served by %s", a, b)
			}
			f.Update(1, r.list("A", "B")...)
			for range 4 {
				if got := c.good(ctx); got != b {
					t.Errorf("later call on %s, want %s", got, b)
				}
			}
		})
	}
}

// Test4cPrime is row 4c′: Yes or Maybe on the first call pins.
func Test4cPrime(t *testing.T) {
	for _, kind := range []cluster.FaultKind{cluster.FaultYes, cluster.FaultMaybe, cluster.FaultCut, cluster.FaultStatus} {
		each(t, "4c′ "+kind.String(), func(t *testing.T, s setting) {
			r, f, pins, c := pair(t, s)
			ctx, tx := begin(t)
			r.failNext(kind, cluster.FaultNo)
			err := c.call(ctx)
			a := c.inv.Node
			check(t, c, f, pins, tx, err, want{fault: fault(kind), attempts: 1, n: 2, pin: a, firm: true})
			err = c.call(ctx)
			check(t, c, f, pins, tx, err, want{is: cluster.ErrUnavailableInTransaction, fc: 1, attempts: 1, n: 1, pin: a, firm: true})
		})
	}
}

// Test4d: the first call fails on every node.
func Test4d(t *testing.T) {
	each(t, "4d", func(t *testing.T, s setting) {
		r, f, pins, c := pair(t, s)
		ctx, tx := begin(t)
		r.failNext(cluster.FaultNo, cluster.FaultNo)
		err := c.call(ctx)
		check(t, c, f, pins, tx, err, want{is: cluster.ErrUnavailable, fc: 2, attempts: 2, n: 0})
		if errors.Is(err, cluster.ErrUnavailableInTransaction) || len(c.inv.Failed) != 2 {
			t.Errorf("error %v, failed %v", err, c.inv.Failed)
		}
		for _, a := range c.inv.Failed {
			if !errors.Is(err, a.Err) {
				t.Errorf("%v does not hold %v", err, a.Err)
			}
		}
	})
}

// Test4cBegin is rows 4c and 4d in mode begin: the first choice is firm.
func Test4cBegin(t *testing.T) {
	for _, eager := range []bool{false, true} {
		each(t, fmt.Sprintf("4c 4d in mode begin, eager %v", eager), func(t *testing.T, s setting) {
			r, f, pins, c := pair(t, s, atBegin)
			ctx, tx := begin(t)
			if eager {
				ctx, tx = c.Begin(bg)
				defer tx.End()
				if _, firm, ok := pins.Pin(tx.ID()); !ok || !firm {
					t.Error("not pinned at its beginning")
				}
			}
			r.failNext(cluster.FaultNo, cluster.FaultNo)
			err := c.call(ctx)
			check(t, c, f, pins, tx, err, want{
				is: cluster.ErrUnavailableInTransaction, fc: 1, attempts: 1, n: 1, pin: c.inv.Failed[0].Node, firm: true,
			})
		})
	}
}

// TestS1: two services, two transactions.
func TestS1(t *testing.T) {
	each(t, "S1", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B")
		pins := cluster.NewPins(cluster.PinsConfig{})
		cfg := cluster.Config{Policy: s.policy, Sticky: true, Pins: pins, Transport: s.via, Seed: 5}
		cfg.Family = r.family("one", 7, "A", "B")
		one := newClient(t, cfg)
		cfg.Family = r.family("two", 8, "B", "A")
		two := newClient(t, cfg)
		var first [2]string
		for i := range first {
			ctx, tx := cluster.Begin(bg)
			for range 3 {
				x, y := one.good(ctx), two.good(ctx)
				if first[i] == "" {
					first[i] = x
				}
				if x != first[i] || y != first[i] {
					t.Fatalf("transaction %d began on %s, then %s and %s", i, first[i], x, y)
				}
			}
			tx.End()
		}
		switch s.policy {
		case cluster.RoundRobin:
			if first[0] == first[1] {
				t.Errorf("both transactions on %s", first[0])
			}
		case cluster.FirstAvailable, cluster.FirstAvailableIdentical:
			if first[0] != first[1] {
				t.Errorf("transactions on %v", first)
			}
		}
	})
}

// TestS2: one transaction over two transports.
func TestS2(t *testing.T) {
	for policy := range cluster.NumPolicies {
		for a := range cluster.NumTransports {
			for b := range cluster.NumTransports {
				if a == b {
					continue
				}
				t.Run(fmt.Sprintf("S2/%v/%s+%s", policy, transportNames[a], transportNames[b]), func(t *testing.T) {
					r := newRig(t, true, "A", "B", "C")
					f := r.family("svc", 7, "A", "B", "C")
					pins := cluster.NewPins(cluster.PinsConfig{})
					cfg := cluster.Config{Family: f, Policy: policy, Sticky: true, Pins: pins, Seed: 5}
					cfg.Transport = a
					x := newClient(t, cfg)
					cfg.Transport, cfg.Seed = b, 6
					y := newClient(t, cfg)
					for range 6 {
						ctx, tx := cluster.Begin(bg)
						node := x.good(ctx)
						for range 2 {
							if got := []string{y.good(ctx), x.good(ctx)}; got[0] != node || got[1] != node {
								t.Fatalf("began on %s, then %v", node, got)
							}
						}
						tx.End()
						x, y = y, x
					}
				})
			}
		}
	}
}

// TestS3: without a transaction the sticky decorator does not exist; with
// S8, a transaction takes exactly one choice of the base policy.
func TestS3(t *testing.T) {
	each(t, "S3", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C")
		mk := func(sticky bool) *client {
			f := r.family("svc", 7, "A", "B", "C")
			return newClient(t, cluster.Config{Family: f, Policy: s.policy, Sticky: sticky, Transport: s.via, Seed: 5})
		}
		base, sticky := mk(false), mk(true)
		calls := 1000
		if s.via != cluster.Embedded {
			calls = 200 // real connections
		}
		for i := range calls {
			if a, b := base.good(bg), sticky.good(bg); a != b {
				t.Fatalf("call %d: base policy %s, sticky %s", i, a, b)
			}
		}
		// Also between and after transactions.
		for i := range calls / 10 {
			a := base.good(bg)
			ctx, tx := cluster.Begin(bg)
			for range 1 + i%4 {
				if b := sticky.good(ctx); a != b {
					t.Fatalf("transaction %d: base policy %s, sticky %s", i, a, b)
				}
			}
			tx.End()
			for range i % 3 {
				if a, b := base.good(bg), sticky.good(bg); a != b {
					t.Fatalf("after transaction %d: base policy %s, sticky %s", i, a, b)
				}
			}
		}
	})
}

// TestS5: a node begins a transaction while it serves a request.
func TestS5(t *testing.T) {
	each(t, "S5", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C", "front")
		pins := cluster.NewPins(cluster.PinsConfig{})
		cfg := cluster.Config{Policy: s.policy, Sticky: true, Pins: pins, Transport: s.via, Seed: 5}
		cfg.Family = r.family("one", 7, "A", "B", "C")
		one := newClient(t, cfg)
		cfg.Family = r.family("two", 8, "C", "B", "A")
		two := newClient(t, cfg)
		cfg.Family = r.family("front", 8, "front")
		front := newClient(t, cfg)

		var nodes []string
		var hidden atomic.Bool
		hook := func(ctx context.Context) {
			outer := cluster.FromContext(ctx)
			ctx, tx := cluster.Begin(ctx)
			defer tx.End()
			hidden.Store(outer == nil || outer.ID() != tx.ID())
			nodes = nil
			for range 4 {
				nodes = append(nodes, one.good(ctx), two.good(ctx))
			}
		}
		r.fakes["front"].hook.Store(&hook)
		for _, inTx := range []bool{false, true} {
			ctx := bg
			if inTx {
				ctx, _ = begin(t)
			}
			front.good(ctx)
			if d := distinct(nodes); len(nodes) != 8 || len(d) != 1 || !hidden.Load() {
				t.Errorf("client in a transaction: %v; nodes %v", inTx, nodes)
			}
		}
		if inner := pins.Len(); inner != 1 { // the client's own is still open
			t.Errorf("%d transactions remembered, want 1", inner)
		}
	})
}

// TestS8: the rotation moves by exactly one for a transaction.
func TestS8(t *testing.T) {
	each(t, "S8", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C")
		names := []string{"A", "B", "C"}
		f := r.family("svc", 7, names...)
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Sticky: true, Transport: s.via})
		for k := 1; k < 8; k++ {
			before := slices.Index(names, c.good(bg))
			ctx, tx := cluster.Begin(bg)
			for range k {
				if got := c.good(ctx); got != names[(before+1)%3] {
					t.Fatalf("in the transaction: %s", got)
				}
			}
			tx.End()
			if got := c.good(bg); got != names[(before+2)%3] {
				t.Fatalf("after %d calls in a transaction: %s, want %s", k, got, names[(before+2)%3])
			}
		}
	}, cluster.RoundRobin)
}

// TestS9: a transaction does not unstick a session.
func TestS9(t *testing.T) {
	each(t, "S9", func(t *testing.T, s setting) {
		_, _, _, c := pair(t, s)
		nodes := []string{c.good(bg)}
		ctx, tx := cluster.Begin(bg)
		for range 3 {
			nodes = append(nodes, c.good(ctx))
		}
		tx.End()
		nodes = append(nodes, c.good(bg))
		if d := distinct(nodes); len(d) != 1 {
			t.Errorf("nodes %v", nodes)
		}
	}, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
}

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
