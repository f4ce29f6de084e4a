package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

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

		// Real sockets order nothing in the eyes of the race detector.
		var told atomic.Pointer[[]string]
		var hidden atomic.Bool
		hook := func(ctx context.Context) {
			outer := cluster.FromContext(ctx)
			ctx, tx := cluster.Begin(ctx)
			defer tx.End()
			hidden.Store(outer == nil || outer.ID() != tx.ID())
			var nodes []string
			for range 4 {
				nodes = append(nodes, one.good(ctx), two.good(ctx))
			}
			told.Store(&nodes)
		}
		r.fakes["front"].hook.Store(&hook)
		for _, inTx := range []bool{false, true} {
			ctx := bg
			if inTx {
				ctx, _ = begin(t)
			}
			front.good(ctx)
			nodes := *told.Load()
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
