package cluster_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"tbl/target/cluster"
)

var bg = context.Background()

// TestP1 is row P1: what each base policy does alone.
func TestP1(t *testing.T) {
	names := []string{"A", "B", "C"}
	setup := func(t *testing.T, s setting, seed uint64) (*rig, *client, *client) {
		r := newRig(t, s.via != cluster.Embedded, names...)
		f := r.family("svc", seed, names...)
		cfg := cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: seed}
		a := newClient(t, cfg)
		cfg.Seed++
		return r, a, newClient(t, cfg)
	}
	each(t, "P1", func(t *testing.T, s setting) {
		_, x, y := setup(t, s, 3)
		at := slices.Index(names, x.good(bg))
		for i := range 60 {
			c := x
			if i%3 == 1 {
				c = y // the rotation is the family's
			}
			at = (at + 1) % 3
			if got := c.good(bg); got != names[at] {
				t.Fatalf("call %d: node %s, want %s", i, got, names[at])
			}
		}
	}, cluster.RoundRobin)
	each(t, "P1 random start", func(t *testing.T, s setting) {
		counts := map[string]int{}
		for seed := range uint64(60) {
			_, x, _ := setup(t, setting{s.policy, cluster.Embedded}, seed+1)
			counts[x.good(bg)]++
		}
		// 60 draws of 3: each within 4 standard deviations of 20.
		for _, n := range names {
			if math.Abs(float64(counts[n])-20) > 4*3.65 {
				t.Errorf("first nodes %v: not at random", counts)
			}
		}
	}, cluster.RoundRobin, cluster.Random, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
	each(t, "P1", func(t *testing.T, s setting) {
		_, x, _ := setup(t, s, 5)
		const calls = 900
		counts := map[string]int{}
		for range calls {
			counts[x.good(bg)]++
		}
		for _, n := range names {
			if math.Abs(float64(counts[n])-calls/3) > 4*math.Sqrt(calls*2.0/9) {
				t.Errorf("%v of %d calls: not uniform", counts, calls)
			}
		}
	}, cluster.Random, cluster.LeastLoaded)
	each(t, "P1", func(t *testing.T, s setting) {
		differ := false
		for seed := range uint64(8) {
			_, x, y := setup(t, setting{s.policy, s.via}, 20+2*seed)
			first := [2]string{x.good(bg), y.good(bg)}
			for range 10 {
				if got := [2]string{x.good(bg), y.good(bg)}; got != first {
					t.Fatalf("nodes %v, before %v: not constant", got, first)
				}
			}
			differ = differ || first[0] != first[1]
		}
		if identical := s.policy == cluster.FirstAvailableIdentical; differ == identical {
			t.Errorf("two proxies of a family elect differently: %v", differ)
		}
	}, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
	each(t, "P1 other families", func(t *testing.T, s setting) {
		r, x, y := setup(t, s, 3)
		one := x.good(bg)
		if y.good(bg) != one {
			t.Fatal("the same family elects twice")
		}
		for seed := range uint64(20) {
			f := r.family("other", 100+seed, names...)
			if newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via}).good(bg) != one {
				return
			}
		}
		t.Error("20 other families all elected the same node")
	}, cluster.FirstAvailableIdentical)
}

// TestP2 is row P2: a target is removed.
func TestP2(t *testing.T) {
	names := []string{"A", "B", "C", "D"}
	each(t, "P2", func(t *testing.T, s setting) {
		for gone := range names {
			for calls := range names { // wherever the rotation stands
				r := newRig(t, s.via != cluster.Embedded, names...)
				f := r.family("svc", 9, names...)
				c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via})
				at := 0
				for range calls + 1 {
					at = slices.Index(names, c.good(bg))
				}
				left := slices.Delete(slices.Clone(names), gone, gone+1)
				f.Update(1, r.list(left...)...)
				for range 2 * len(left) {
					if at = (at + 1) % 4; at == gone {
						at = (at + 1) % 4
					}
					if got := c.good(bg); got != names[at] {
						t.Fatalf("%s gone after %d calls: node %s, want %s", names[gone], calls+1, got, names[at])
					}
				}
			}
		}
	}, cluster.RoundRobin)
	each(t, "P2", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, names...)
		f := r.family("svc", 9, names...)
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: 1})
		was := c.good(bg)
		f.Update(1, r.list(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == was })...)...)
		now := c.good(bg)
		for range 10 {
			if got := c.good(bg); got == was || got != now {
				t.Fatalf("node %s after %s, which had left, and %s", got, was, now)
			}
		}
	}, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
	each(t, "P2 failing", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, names...)
		f := r.family("svc", 9, names...)
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: 1})
		r.failNext(cluster.FaultNotReached)
		c.good(bg)
		was := c.inv.Failed[0].Node
		for range 30 {
			if got := c.good(bg); got == was {
				t.Fatalf("%s called after it had failed", was)
			}
		}
	})
}

// TestP3 is row P3: no failback.
func TestP3(t *testing.T) {
	each(t, "P3", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C")
		f := r.family("svc", 9, "A", "B", "C")
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: 1})
		r.failNext(cluster.FaultNotReached)
		now := c.good(bg)
		f.Update(1, r.list("A", "B", "C")...)
		for range 20 {
			if got := c.good(bg); got != now {
				t.Fatalf("node %s, want %s still", got, now)
			}
		}
	}, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
}

// TestP4 is row P4: the order of the list means nothing to an election.
func TestP4(t *testing.T) {
	each(t, "P4", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C")
		f := r.family("svc", 9, "A", "B", "C")
		c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: 1})
		was := c.good(bg)
		for i, order := range [][]string{{"B", "C", "A"}, {"C", "A", "B"}, {"C", "B", "A"}} {
			f.Update(uint64(i+1), r.list(order...)...)
			if got := c.good(bg); got != was {
				t.Fatalf("order %v: node %s, before %s", order, got, was)
			}
		}
	}, cluster.FirstAvailable, cluster.FirstAvailableIdentical)
}

// TestP5 is row P5: an empty list, then one target.
func TestP5(t *testing.T) {
	each(t, "P5", func(t *testing.T, s setting) {
		for _, sticky := range []bool{false, true} {
			r := newRig(t, s.via != cluster.Embedded, "A", "B")
			f := r.family("svc", 9)
			c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Transport: s.via, Seed: 1, Sticky: sticky})
			for range 5 {
				if err := c.call(bg); !isUnavailable(err) || c.inv.Attempts != 0 {
					t.Fatalf("empty list: error %v, %d attempts", err, c.inv.Attempts)
				}
			}
			f.Update(1, r.list("B")...)
			for range 5 {
				if got := c.good(bg); got != "B" {
					t.Fatalf("node %s", got)
				}
			}
		}
	})
	// State untouched: calls on an empty list in between change nothing.
	each(t, "P5 untouched", func(t *testing.T, s setting) {
		run := func(empty bool) (out []string) {
			r := newRig(t, false, "A", "B", "C")
			f := r.family("svc", 9)
			c := newClient(t, cluster.Config{Family: f, Policy: s.policy, Seed: 1})
			if empty {
				for range 7 {
					c.call(bg)
				}
			}
			f.Update(1, r.list("A", "B", "C")...)
			for range 20 {
				out = append(out, c.good(bg))
			}
			return out
		}
		if a, b := run(false), run(true); !slices.Equal(a, b) {
			t.Errorf("with calls on the empty list %v, without %v", b, a)
		}
	})
}

// TestPolicyTable checks the enumeration: names, help, parsing.
func TestPolicyTable(t *testing.T) {
	for p := range cluster.NumPolicies {
		got, err := cluster.ParsePolicy(p.String())
		if err != nil || got != p || p.Help() == "" {
			t.Errorf("%v: parsed as %v, %v, help %q", p, got, err, p.Help())
		}
	}
	if _, err := cluster.ParsePolicy("roundrobin"); err == nil {
		t.Error("a wrong name was accepted")
	}
	for k := range cluster.NumFaults {
		got, err := cluster.ParseFaultKind(k.String())
		if err != nil || got != k || k.Help() == "" {
			t.Errorf("%v: parsed as %v, %v, help %q", k, got, err, k.Help())
		}
	}
}

// TestLeastLoadedAvoidsTheBusy holds calls on one node: with two nodes both
// are compared, and the free one is picked every time.
func TestLeastLoadedAvoidsTheBusy(t *testing.T) {
	r := newRig(t, false, "A", "B")
	f := r.family("svc", 9, "A", "B")
	cfg := cluster.Config{Family: f, Policy: cluster.LeastLoaded, Seed: 4}
	hold, held := make(chan struct{}), make(chan string)
	hook := func(name string) *func(context.Context) {
		fn := func(ctx context.Context) {
			if ctx.Value(holdKey{}) != nil {
				held <- name
				<-hold
			}
		}
		return &fn
	}
	for name, n := range r.fakes {
		n.hook.Store(hook(name))
	}
	slow := newClient(t, cfg)
	done := make(chan error)
	go func() { done <- slow.call(context.WithValue(bg, holdKey{}, true)) }()
	busy := <-held
	c := newClient(t, cfg)
	for range 50 {
		if got := c.good(bg); got == busy {
			t.Errorf("picked %s, which is busy", got)
		}
	}
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 50 {
		seen[c.good(bg)] = true
	}
	if len(seen) != 2 {
		t.Errorf("all free: only %v picked", fmt.Sprint(seen))
	}
}

type holdKey struct{}
