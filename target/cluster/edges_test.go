package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/remote"
)

// TestRepin: in mode repin another node goes on with the transaction, and
// the pin moves with it.
func TestRepin(t *testing.T) {
	each(t, "repin", func(t *testing.T, s setting) {
		r, f, pins, c := pair(t, s, func(c *cluster.Config) { c.Gone = cluster.Repin })
		ctx, tx := begin(t)
		a := c.good(ctx)
		f.Update(1, r.list(other(a))...)
		for range 3 {
			if got := c.good(ctx); got != other(a) {
				t.Fatalf("served by %s", got)
			}
		}
		f.Update(2, r.list("A", "B")...)
		if got := c.good(ctx); got != other(a) {
			t.Errorf("returned to %s", got)
		}
		if pin, firm, _ := pins.Pin(tx.ID()); pin != other(a) || !firm {
			t.Errorf("pin %q firm %v", pin, firm)
		}
		// A failure within a call is still no reason to send it elsewhere.
		r.failNext(cluster.FaultNo)
		if err := c.call(ctx); !errors.Is(err, cluster.ErrUnavailableInTransaction) {
			t.Errorf("error %v", err)
		}
	})
}

// TestOtherListsMeanNothing: neither another order of the list nor a change
// that has nothing to do with the pinned node drops a pin.
func TestOtherListsMeanNothing(t *testing.T) {
	each(t, "lists", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		ctx, _ := begin(t)
		a := c.good(ctx)
		for i, list := range [][]string{{"B", "A"}, {a}, {"C", a}, {"B", "C", "A"}, {"A", "B"}} {
			f.Update(uint64(i+1), r.list(list...)...)
			if got := c.good(ctx); got != a {
				t.Errorf("list %v: served by %s, want %s", list, got, a)
			}
		}
	})
}

// TestPinIsClearedAtOnce: what comes after a transaction is not stuck.
func TestPinIsClearedAtOnce(t *testing.T) {
	each(t, "cleared", func(t *testing.T, s setting) {
		_, _, _, c := pair(t, s)
		for range 4 {
			ctx, tx := cluster.Begin(bg)
			in := c.good(ctx)
			tx.End()
			if out := c.good(bg); out == in {
				t.Errorf("%s in the transaction, %s after it", in, out)
			}
			if err := c.call(ctx); !errors.Is(err, cluster.ErrTransactionEnded) || c.inv.Attempts != 0 {
				t.Errorf("a late call: %v after %d attempts", err, c.inv.Attempts)
			}
		}
	}, cluster.RoundRobin)
}

// TestCancelledContextEnds: a cancelled transaction is forgotten, whether it
// was idle or not.
func TestCancelledContextEnds(t *testing.T) {
	_, _, pins, c := pair(t, setting{})
	outer, cancel := context.WithCancel(bg)
	ctx, tx := cluster.Begin(outer)
	c.good(ctx)
	cancel()
	for deadline := time.Now().Add(10 * time.Second); pins.Len() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("still remembered")
		}
		time.Sleep(time.Millisecond)
	}
	tx.End() // does nothing
	already, stop := context.WithCancel(bg)
	stop()
	_, tx = cluster.Begin(already)
	tx.End()
}

// TestTTL: a transaction that lasts too long is forgotten, its later calls
// are refused, and the pin is not honoured in between.
func TestTTL(t *testing.T) {
	r := newRig(t, false, "A", "B")
	pins := cluster.NewPins(cluster.PinsConfig{Clock: r.clock, TTL: time.Minute, Max: 64})
	c := newClient(t, cluster.Config{Family: r.family("svc", 1, "A", "B"), Sticky: true, Pins: pins})
	ctx, tx := begin(t)
	a := c.good(ctx)
	r.clock.advance(time.Minute - 1)
	if got := c.good(ctx); got != a {
		t.Errorf("%s, then %s", a, got)
	}
	r.clock.advance(1)
	if err := c.call(ctx); !errors.Is(err, cluster.ErrTransactionEnded) {
		t.Errorf("after its time: %v", err)
	}
	if _, _, ok := pins.Pin(tx.ID()); ok || pins.Len() != 0 {
		t.Error("still pinned")
	}
	// Abandoned transactions make room for new ones.
	for i := range 1000 {
		ctx, _ := cluster.Begin(bg)
		c.good(ctx)
		r.clock.advance(2 * time.Second)
		if n := pins.Len(); n > 50 {
			t.Fatalf("%d remembered after %d", n, i)
		}
	}
}

// TestMax: a full store refuses new transactions and keeps the old ones.
func TestMax(t *testing.T) {
	r := newRig(t, false, "A", "B")
	pins := cluster.NewPins(cluster.PinsConfig{Clock: r.clock, Max: 10})
	c := newClient(t, cluster.Config{Family: r.family("svc", 1, "A", "B"), Sticky: true, Pins: pins})
	var open []context.Context
	var nodes []string
	var first *cluster.Tx
	for i := range 10 {
		ctx, tx := begin(t)
		if i == 0 {
			first = tx
		}
		open, nodes = append(open, ctx), append(nodes, c.good(ctx))
	}
	ctx, _ := begin(t)
	err := c.call(ctx)
	if !errors.Is(err, cluster.ErrTooManyTransactions) || target.ClassOf(err) != target.ClassClient {
		t.Errorf("the eleventh: %v", err)
	}
	for i, ctx := range open[1:] {
		if got := c.good(ctx); got != nodes[i+1] {
			t.Errorf("transaction %d on %s, then %s", i+1, nodes[i+1], got)
		}
	}
	first.End()
	c.good(ctx)
}

// TestTxID: the id is a plain value that can be handed over.
func TestTxID(t *testing.T) {
	_, _, pins, c := pair(t, setting{})
	ctx, tx := begin(t)
	a := c.good(ctx)
	id, err := cluster.ParseTxID(tx.ID().String())
	if err != nil || id != tx.ID() {
		t.Fatalf("%v read back as %v, %v", tx.ID(), id, err)
	}
	joined, participant := cluster.Join(bg, id)
	for range 3 {
		if got := c.good(joined); got != a {
			t.Errorf("a participant on %s, the transaction on %s", got, a)
		}
	}
	participant.End()
	if _, _, ok := pins.Pin(id); ok {
		t.Error("pinned after its end")
	}
	if err := c.call(ctx); !errors.Is(err, cluster.ErrTransactionEnded) {
		t.Errorf("after another participant's End: %v", err)
	}
	for _, bad := range []string{"", "12", "zz" + tx.ID().String()[2:], tx.ID().String() + "0"} {
		if _, err := cluster.ParseTxID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	zero, _ := cluster.Join(bg, cluster.NewTxID(0, 0))
	if b := c.good(zero); b != c.good(zero) {
		t.Error("the zero id is not sticky")
	}
}

// TestViews: an older view never overwrites a newer one, in any order.
func TestViews(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}, {3, 3, 1}} {
		r := newRig(t, false, "A", "B", "C")
		f := r.family("svc", 1)
		views := map[uint64][]string{1: {"A"}, 2: {"B", "A"}, 3: {"C"}}
		newest := uint64(0)
		for _, id := range order {
			if changed := f.Update(id, r.list(views[id]...)...); changed != (id > newest) {
				t.Errorf("%v: view %d over %d: changed %v", order, id, newest, changed)
			}
			newest = max(newest, id)
			if id, names := f.View(); id != newest || !slices.Equal(names, views[newest]) {
				t.Errorf("%v: view %d of %v", order, id, names)
			}
		}
	}
}

// TestConcurrentFailuresRemoveOnce: many calls fail on one node together;
// the list changes once, and a node that has returned meanwhile stays.
func TestConcurrentFailuresRemoveOnce(t *testing.T) {
	each(t, "once", func(t *testing.T, s setting) {
		r, f, _, c := pair(t, s)
		f.Update(1, r.list("A")...)
		const calls = 8
		entered, release := make(chan bool), make(chan bool)
		r.setFate(func(node string) (cluster.FaultKind, bool) {
			if node == "A" {
				entered <- true
				<-release
			}
			return cluster.FaultNotReached, node == "A"
		})
		done := make(chan error, calls)
		for range calls {
			go func() { done <- (&client{t: t, Proxy: c.Proxy}).call(bg) }()
		}
		for range calls {
			<-entered
		}
		f.Update(2, r.list("A", "B")...) // the same A, not yet known to fail
		close(release)
		for range calls {
			if err := <-done; err != nil && !isUnavailable(err) {
				t.Errorf("error %v", err)
			}
		}
		if _, names := f.View(); !slices.Equal(names, []string{"B"}) {
			t.Errorf("left: %v", names)
		}
		f.Update(3, r.list("A", "B")...)
		if f.Len() != 2 {
			t.Error("A did not return")
		}
	})
}

// TestRealFailures are failures of real sockets, over both HTTP transports.
func TestRealFailures(t *testing.T) {
	type server func(net.Conn)
	read := func(c net.Conn) { c.Read(make([]byte, 4096)) }
	for name, tc := range map[string]struct {
		serve server // nil: nobody listens
		class target.Class
		over  bool // fails over
	}{
		"refused":      {nil, target.ClassRefused, true},
		"reset":        {func(c net.Conn) { read(c); c.(*net.TCPConn).SetLinger(0) }, target.ClassReset, false},
		"no answer":    {read, target.ClassReset, false},
		"answer cut":   {func(c net.Conn) { read(c); fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ntmm=") }, target.ClassTruncated, false},
		"no dataplane": {func(c net.Conn) { read(c); fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") }, target.ClassMalformed, false},
		"status 500":   {func(c net.Conn) { read(c); fmt.Fprint(c, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") }, target.ClassHTTP5xx, false},
	} {
		for _, via := range []cluster.Transport{cluster.Fresh, cluster.Pooled} {
			t.Run(name+"/"+transportNames[via], func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				if tc.serve == nil {
					ln.Close()
				} else {
					ended := make(chan bool)
					go func() {
						defer close(ended)
						for {
							c, err := ln.Accept()
							if err != nil {
								return
							}
							tc.serve(c)
							c.Close()
						}
					}()
					t.Cleanup(func() { ln.Close(); <-ended })
				}
				r := newRig(t, true, "B")
				bad, err := remote.New(remote.Config{URL: "http://" + ln.Addr().String(), KeepAlive: via == cluster.Pooled})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { bad.Close() })
				f, err := cluster.NewFamily(cluster.FamilyConfig{Name: "svc", Backoff: -1}, cluster.NodeOf("A", bad))
				if err != nil {
					t.Fatal(err)
				}
				pins := cluster.NewPins(cluster.PinsConfig{})
				c := newClient(t, cluster.Config{Family: f, Policy: cluster.FirstAvailable, Sticky: true, Pins: pins, Transport: via})
				// Elect A, while it is alone, then let B in.
				probe, _ := begin(t)
				first := c.call(probe)
				if target.ClassOf(first) != tc.class {
					t.Fatalf("A alone: %v, want class %v", first, tc.class)
				}
				f.Update(1, cluster.NodeOf("A", bad), r.nodes["B"])
				ctx, tx := begin(t)
				err = c.call(ctx)
				if tc.over {
					for err == nil && c.inv.Failovers == 0 { // until it has tried A
						f.Update(func() uint64 { id, _ := f.View(); return id + 1 }(), cluster.NodeOf("A", bad), r.nodes["B"])
						c = newClient(t, cluster.Config{Family: f, Sticky: true, Pins: pins, Transport: via})
						ctx, tx = begin(t)
						err = c.call(ctx)
					}
					check(t, c, f, pins, tx, err, want{fc: 1, attempts: 2, n: 1, pin: "B", firm: true})
					return
				}
				if target.ClassOf(err) != tc.class || c.inv.Attempts != 1 || f.Len() != 2 {
					t.Errorf("error %v, %d attempts, %d left", err, c.inv.Attempts, f.Len())
				}
				if pin, firm, _ := pins.Pin(tx.ID()); pin != "A" || !firm {
					t.Errorf("pin %q firm %v", pin, firm)
				}
			})
		}
	}
}

// TestBatched: invocations grouped in the order of their start.
func TestBatched(t *testing.T) {
	each(t, "batched", func(t *testing.T, s setting) {
		_, _, pins, c := pair(t, s)
		b := cluster.NewBatched(c.Proxy, 4)
		var nodes []string
		for range 22 {
			var ans target.Answer
			if err := b.Do(bg, &target.Request{}, &ans); err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, string(ans.Node))
		}
		for i := 0; i+4 <= len(nodes); i += 4 {
			if d := distinct(nodes[i : i+4]); len(d) != 1 {
				t.Errorf("invocations %d to %d on %v", i, i+3, nodes[i:i+4])
			}
			if s.policy == cluster.RoundRobin && i > 0 && nodes[i] == nodes[i-1] {
				t.Errorf("the next transaction on %s again", nodes[i])
			}
		}
		if n := pins.Len(); n != 1 {
			t.Errorf("%d transactions remembered in mid-batch", n)
		}
		b.Close()
		if n := pins.Len(); n != 0 {
			t.Errorf("%d transactions remembered at the end", n)
		}
	})
}

// TestNew: wrong configurations are refused.
func TestNew(t *testing.T) {
	r := newRig(t, false, "A")
	f := r.family("svc", 1, "A")
	for name, cfg := range map[string]cluster.Config{
		"no family":    {},
		"no policy":    {Family: f, Policy: cluster.NumPolicies},
		"no transport": {Family: f, Transport: cluster.NumTransports},
	} {
		if _, err := cluster.New(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, nodes := range map[string][]cluster.Node{
		"no name":   {cluster.Node{Targets: r.nodes["A"].Targets}},
		"no target": {cluster.Node{Name: "A"}},
		"twice":     r.list("A", "A"),
	} {
		if _, err := cluster.NewFamily(cluster.FamilyConfig{}, nodes...); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	// A node that does not offer the transport.
	c := newClient(t, cluster.Config{Family: f, Transport: cluster.Fresh})
	if err := c.call(bg); target.ClassOf(err) != target.ClassClient || f.Len() != 1 {
		t.Errorf("a transport that the node does not offer: %v", err)
	}
}

// TestClose: a closed proxy refuses, and closes its nodes once if it owns
// them.
func TestClose(t *testing.T) {
	for _, owns := range []bool{false, true} {
		var closed atomic.Int64
		node := &closing{closed: &closed}
		f, err := cluster.NewFamily(cluster.FamilyConfig{}, cluster.NodeOf("A", node))
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, cluster.Config{Family: f, CloseNodes: owns})
		c.Close()
		c.Close()
		if n := closed.Load(); n != map[bool]int64{true: 1}[owns] {
			t.Errorf("owns %v: closed %d times", owns, n)
		}
		if err := c.call(bg); target.ClassOf(err) != target.ClassClosed {
			t.Errorf("after Close: %v", err)
		}
	}
}

type closing struct {
	fakeNode
	closed *atomic.Int64
}

func (c *closing) Close() error { c.closed.Add(1); return nil }

// TestSteadyStateAllocatesNothing covers calls without a transaction and
// pinned ones.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	f, err := cluster.NewFamily(cluster.FamilyConfig{}, cluster.NodeOf("A", &fakeNode{}), cluster.NodeOf("B", &fakeNode{}))
	if err != nil {
		t.Fatal(err)
	}
	var req target.Request
	var ans target.Answer
	for policy := range cluster.NumPolicies {
		p := newProxy(t, cluster.Config{Family: f, Policy: policy, Sticky: true})
		ctx, tx := cluster.Begin(bg)
		for what, ctx := range map[string]context.Context{"without a transaction": bg, "pinned": ctx} {
			if n := testing.AllocsPerRun(500, func() {
				if err := p.Do(ctx, &req, &ans); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v, %s: %v allocations", policy, what, n)
			}
		}
		tx.End()
	}
}

// TestMillionPins bounds the memory of a million live pins.
func TestMillionPins(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("measures memory")
	}
	f, err := cluster.NewFamily(cluster.FamilyConfig{}, cluster.NodeOf("A", &fakeNode{}), cluster.NodeOf("B", &fakeNode{}))
	if err != nil {
		t.Fatal(err)
	}
	const n = 1_000_000
	ctxs := make([]context.Context, n)
	for i := range ctxs {
		ctxs[i], _ = cluster.Begin(bg)
	}
	before := heapInUse()
	pins := cluster.NewPins(cluster.PinsConfig{})
	p := newProxy(t, cluster.Config{Family: f, Sticky: true, Pins: pins})
	var ans target.Answer
	for _, ctx := range ctxs {
		if err := p.Do(ctx, &target.Request{}, &ans); err != nil {
			t.Fatal(err)
		}
	}
	used := heapInUse() - before
	t.Logf("%d MB for %d pins", used/1e6, pins.Len())
	if pins.Len() != n || used > 120e6 {
		t.Errorf("%d bytes for %d pins", used, pins.Len())
	}
	for _, ctx := range ctxs {
		cluster.FromContext(ctx).End()
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNested: a cluster whose nodes are clusters. What an inner one refuses
// within a transaction is not tried on another, and one End reaches both pin
// stores.
func TestNested(t *testing.T) {
	each(t, "nested", func(t *testing.T, s setting) {
		r := newRig(t, s.via != cluster.Embedded, "A", "B", "C", "D")
		pins := cluster.NewPins(cluster.PinsConfig{})
		var inner []cluster.Node
		families := map[string]*cluster.Family{}
		for name, nodes := range map[string][]string{"left": {"A", "B"}, "right": {"C", "D"}} {
			families[name] = r.family(name, 3, nodes...)
			inner = append(inner, cluster.NodeOf(name, newProxy(t, cluster.Config{
				Family: families[name], Policy: s.policy, Sticky: true, Pins: pins, Transport: s.via, Seed: 1,
			})))
		}
		f, err := cluster.NewFamily(cluster.FamilyConfig{Name: "outer", Seed: 2, Backoff: -1}, inner...)
		if err != nil {
			t.Fatal(err)
		}
		outerPins := cluster.NewPins(cluster.PinsConfig{})
		outer := newProxy(t, cluster.Config{Family: f, Policy: s.policy, Sticky: true, Pins: outerPins, Seed: 1})
		ctx, tx := begin(t)
		call := func() (string, error) {
			var ans target.Answer
			var inv cluster.Invocation
			err := outer.Invoke(ctx, &target.Request{}, &ans, &inv)
			return string(ans.Node), err
		}
		node, err := call()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := call(); err != nil || again != node {
			t.Errorf("%s, then %s, %v", node, again, err)
		}
		r.failNext(cluster.FaultNo)
		if _, err := call(); !errors.Is(err, cluster.ErrUnavailableInTransaction) || f.Len() != 2 {
			t.Errorf("error %v, %d inner clusters left", err, f.Len())
		}
		if _, err := call(); !errors.Is(err, cluster.ErrStickyTargetGone) || f.Len() != 2 {
			t.Errorf("error %v, %d inner clusters left", err, f.Len())
		}
		tx.End()
		if n, m := pins.Len(), outerPins.Len(); n+m != 0 {
			t.Errorf("%d and %d remembered after the end", n, m)
		}
	})
}
