package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tbl/target"
	"tbl/target/cluster"
)

// The chaos test runs invocations as coroutines: each stops when it arrives
// at a node, until the test decides what becomes of it. One goroutine thus
// interleaves calls, failures, view changes, health checks and ends of
// transactions in any order, repeatably, and a failing order is shrunk.
//
// More of it: go test -run TestChaos -rapid.checks 5000

const chaosPins = 40

var chaosNames = []string{"A", "B", "C", "D"}

// okKind is the outcome without a fault.
const okKind = cluster.NumFaults

// performed says that a node has done, or may have done, what was asked, or
// has answered.
func performed(k cluster.FaultKind) bool {
	return k != cluster.FaultClient && k != cluster.FaultNotReached && k != cluster.FaultNo
}

// chaosCall is one invocation.
type chaosCall struct {
	service *chaosService
	tx      *chaosTx // nil: none
	resume  func() (string, bool)
	yield   func(string) bool
	fate    cluster.FaultKind // of the attempt under way
	at      string            // node of the attempt under way
	born    int               // that node's incarnation
	limit   int               // nodes listed at the start
	arrived int
	unsent  int
	inv     cluster.Invocation
	err     error
}

type callKey struct{}

// chaosNode hands each request to the test.
type chaosNode struct {
	fakeNode
	name string
}

func (n *chaosNode) Do(ctx context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	c := ctx.Value(callKey{}).(*chaosCall)
	if !c.yield(n.name) {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent}
	}
	if c.fate == okKind {
		return nil
	}
	f := cluster.NewFaulty(&fakeNode{}, 1) // makes the error
	f.Set(cluster.Fault{Kind: c.fate, P: 1})
	return f.Do(ctx, &target.Request{}, ans)
}

// chaosService is a family with the oracle's idea of it.
type chaosService struct {
	family *cluster.Family
	proxy  *cluster.Proxy
	view   uint64
	live   map[string]int // listed nodes and their incarnation
	down   map[string]bool
}

// chaosTx is a transaction with the oracle's idea of it.
type chaosTx struct {
	ctx     context.Context
	tx      *cluster.Tx
	ended   bool
	reached map[string]bool // nodes that performed something of it
}

type chaos struct {
	*rapid.T
	mode     cluster.PinMode
	gone     cluster.GoneMode
	clock    *manualClock
	pins     *cluster.Pins
	nodes    map[string]cluster.Node
	services []*chaosService
	txs      []*chaosTx
	flying   []*chaosCall
	sick     map[string]bool // health checks fail
	births   int
	begun    int
}

// TestChaos checks against the oracle: no transaction is served by two
// nodes, no node is called while it is not listed, no pin outlives its
// transaction, failovers happen where they are safe and nowhere else, every
// error has its reason, and the counts add up.
func TestChaos(t *testing.T) {
	transactions := 0
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			c.step()
			c.invariants()
		}
		c.finish()
		transactions += c.begun
	})
	t.Logf("%d transactions", transactions)
}

func newChaos(t *rapid.T) *chaos {
	c := &chaos{
		T: t, clock: &manualClock{}, nodes: map[string]cluster.Node{}, sick: map[string]bool{},
		mode: cluster.PinMode(rapid.IntRange(0, 1).Draw(t, "mode")),
		gone: cluster.GoneMode(rapid.IntRange(0, 1).Draw(t, "gone")),
	}
	// Few records, so that they are used again while old calls are under way.
	c.pins = cluster.NewPins(cluster.PinsConfig{Clock: c.clock, TTL: -1, Max: chaosPins})
	for _, n := range chaosNames {
		c.nodes[n] = cluster.NodeOf(n, &chaosNode{name: n})
	}
	for i := range 2 {
		s := &chaosService{live: map[string]int{}, down: map[string]bool{}}
		list := c.draw("nodes at first")
		var err error
		s.family, err = cluster.NewFamily(cluster.FamilyConfig{
			Name: fmt.Sprint("service ", i), Clock: c.clock, Seed: 1, Backoff: time.Second,
			Check: func(_ context.Context, tgt target.Target) error {
				if c.sick[tgt.(*chaosNode).name] {
					return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached}
				}
				return nil
			},
		}, c.list(list)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			s.live[n] = c.birth()
		}
		s.proxy, err = cluster.New(cluster.Config{
			Family: s.family, Policy: cluster.Policy(rapid.IntRange(0, int(cluster.NumPolicies)-1).Draw(t, "policy")),
			Sticky: true, Pins: c.pins, Mode: c.mode, Gone: c.gone, Seed: uint64(i + 1),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.services = append(c.services, s)
	}
	return c
}

func (c *chaos) birth() int { c.births++; return c.births }

func (c *chaos) draw(label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(chaosNames), 0, len(chaosNames), rapid.ID[string]).Draw(c.T, label)
}

func (c *chaos) list(names []string) []cluster.Node {
	var out []cluster.Node
	for _, n := range names {
		out = append(out, c.nodes[n])
	}
	return out
}

func (c *chaos) step() {
	switch op := rapid.IntRange(0, 19).Draw(c.T, "op"); {
	case op < 3:
		c.begin()
	case op < 9:
		c.call()
	case op < 15:
		if len(c.flying) > 0 {
			c.answer(rapid.IntRange(0, len(c.flying)-1).Draw(c.T, "call"))
		}
	case op < 17:
		if len(c.txs) > 0 {
			c.end(c.txs[max(0, len(c.txs)-rapid.IntRange(1, 6).Draw(c.T, "tx"))])
		}
	case op < 18:
		c.update(c.services[rapid.IntRange(0, 1).Draw(c.T, "service")])
	case op < 19:
		c.clock.advance(time.Duration(rapid.IntRange(1, 5000).Draw(c.T, "ms")) * time.Millisecond)
	default:
		n := rapid.SampledFrom(chaosNames).Draw(c.T, "sick")
		c.sick[n] = !c.sick[n]
	}
}

func (c *chaos) begin() {
	c.begun++
	tx := &chaosTx{reached: map[string]bool{}}
	if rapid.Bool().Draw(c.T, "through a proxy") {
		tx.ctx, tx.tx = c.services[0].proxy.Begin(context.Background())
	} else {
		tx.ctx, tx.tx = cluster.Begin(context.Background())
	}
	c.txs = append(c.txs, tx)
}

func (c *chaos) call() {
	call := &chaosCall{service: c.services[rapid.IntRange(0, 1).Draw(c.T, "service")]}
	ctx := context.Background()
	// Among the latest few, for several calls of one transaction to meet.
	if back := rapid.IntRange(0, 4).Draw(c.T, "tx"); back > 0 && back <= len(c.txs) {
		call.tx = c.txs[len(c.txs)-back]
		ctx = call.tx.ctx
	}
	ctx = context.WithValue(ctx, callKey{}, call)
	var stop func()
	call.resume, stop = iter.Pull(func(yield func(string) bool) {
		call.yield = yield
		call.err = call.service.proxy.Invoke(ctx, &target.Request{}, &target.Answer{}, &call.inv)
	})
	c.Cleanup(stop)
	c.proceed(call)
}

// proceed runs a call up to its next arrival at a node, or to its end.
func (c *chaos) proceed(call *chaosCall) {
	s := call.service
	node, more := call.resume()
	c.sync(s)
	if call.arrived == 0 && call.limit == 0 {
		call.limit = max(1, len(s.live))
	}
	if !more {
		c.ended(call)
		return
	}
	born, listed := s.live[node]
	if !listed {
		c.Fatalf("%s called, which is not listed", node)
	}
	tx := call.tx
	if tx != nil {
		if tx.ended {
			c.Fatalf("%s called in a transaction that had ended", node)
		}
		if call.arrived > 0 && (len(tx.reached) > 0 || len(c.of(tx)) > 0 || c.mode == cluster.AtBegin) && c.gone == cluster.Refuse {
			c.Fatalf("failover to %s: reached %v, others under way %d, mode %d", node, tx.reached, len(c.of(tx)), c.mode)
		}
	}
	call.arrived++
	call.at, call.born = node, born
	c.flying = append(c.flying, call)
}

// of are the calls of a transaction that are under way.
func (c *chaos) of(tx *chaosTx) (out []*chaosCall) {
	for _, f := range c.flying {
		if f.tx == tx {
			out = append(out, f)
		}
	}
	return out
}

// sync takes over nodes that health checks have brought back.
func (c *chaos) sync(s *chaosService) {
	_, names := s.family.View()
	for _, n := range names {
		if _, listed := s.live[n]; !listed {
			if !s.down[n] || c.sick[n] {
				c.Fatalf("%s is listed: removed by a failure %v, sick %v", n, s.down[n], c.sick[n])
			}
			delete(s.down, n)
			s.live[n] = c.birth()
		}
	}
	if len(names) != len(s.live) {
		c.Fatalf("listed %v, want %v", names, slices.Sorted(maps.Keys(s.live)))
	}
}

func (c *chaos) answer(i int) {
	call := c.flying[i]
	c.flying = slices.Delete(c.flying, i, i+1)
	call.fate = cluster.FaultKind(rapid.IntRange(0, int(okKind)).Draw(c.T, "fate"))
	if rapid.Bool().Draw(c.T, "fine") {
		call.fate = okKind
	}
	s := call.service
	switch {
	case call.fate == cluster.FaultClient:
		call.unsent++
	case performed(call.fate):
		if call.tx != nil && !call.tx.ended {
			call.tx.reached[call.at] = true
			if len(call.tx.reached) > 1 && c.gone == cluster.Refuse {
				c.Fatalf("one transaction reached %v", call.tx.reached)
			}
		}
	case s.live[call.at] == call.born:
		delete(s.live, call.at)
		s.down[call.at] = true
	}
	c.proceed(call)
}

// ended checks the outcome of a call.
func (c *chaos) ended(call *chaosCall) {
	err, s, tx := call.err, call.service, call.tx
	if call.arrived != call.inv.Attempts+call.unsent {
		c.Fatalf("%d arrivals, %d attempts and %d unsent recorded", call.arrived, call.inv.Attempts, call.unsent)
	}
	others := 0
	if tx != nil {
		others = len(c.of(tx))
	}
	switch {
	case err == nil:
		if call.fate != okKind {
			c.Fatalf("success after %v", call.fate)
		}
		return
	case errors.Is(err, cluster.ErrTransactionEnded):
		if tx == nil || !tx.ended {
			c.Fatalf("%v, but it has not", err)
		}
	case errors.Is(err, cluster.ErrStickyTargetGone):
		if tx == nil || call.arrived > 0 || len(tx.reached) == 0 && others == 0 && c.mode == cluster.FirstCall || c.gone == cluster.Repin {
			c.Fatalf("%v without reason: %d attempts", err, call.arrived)
		}
		pin, _, ok := c.pins.Pin(tx.tx.ID())
		if _, listed := s.live[pin]; !ok || listed {
			c.Fatalf("%v, but the pin %q is listed", err, pin)
		}
	case errors.Is(err, cluster.ErrUnavailableInTransaction):
		if tx == nil || call.arrived == 0 {
			c.Fatalf("%v without reason: %d attempts", err, call.arrived)
		}
		if len(tx.reached) == 0 && others == 0 && c.mode == cluster.FirstCall && !tx.ended && c.gone == cluster.Refuse {
			c.Fatalf("%v, but it could have failed over", err)
		}
	case errors.Is(err, cluster.ErrUnavailable):
		if len(s.live) > 0 && call.arrived < call.limit {
			c.Fatalf("%v with %v listed, after %d attempts", err, s.live, call.arrived)
		}
	case errors.Is(err, cluster.ErrTooManyTransactions):
		if c.pins.Len() < chaosPins {
			c.Fatalf("%v with %d", err, c.pins.Len())
		}
	case call.arrived == 0:
		c.Fatalf("%v without an attempt", err)
	default:
		if call.fate == okKind || !performed(call.fate) && call.fate != cluster.FaultClient || target.ClassOf(err) != faultClasses[call.fate] {
			c.Fatalf("%v after %v", err, call.fate)
		}
	}
	for _, a := range call.inv.Failed {
		if !errors.Is(err, a.Err) && strings.Contains(err.Error(), "unavailable") {
			c.Fatalf("%v does not tell of %v", err, a.Err)
		}
	}
}

func (c *chaos) end(tx *chaosTx) {
	tx.tx.End()
	tx.ended = true
}

func (c *chaos) update(s *chaosService) {
	list := c.draw("view")
	id := s.view + 1
	if rapid.IntRange(0, 3).Draw(c.T, "late") == 0 {
		id = uint64(rapid.IntRange(0, int(s.view)).Draw(c.T, "old view"))
	}
	changed := s.family.Update(id, c.list(list)...)
	if changed != (id > s.view) {
		c.Fatalf("view %d over %d: changed %v", id, s.view, changed)
	}
	if !changed {
		return
	}
	s.view = id
	live := map[string]int{}
	for _, n := range list {
		if born, was := s.live[n]; was {
			live[n] = born
		} else {
			live[n] = c.birth()
		}
	}
	s.live, s.down = live, map[string]bool{}
	c.sync(s)
}

// invariants hold between any two steps.
func (c *chaos) invariants() {
	open := 0
	for _, tx := range c.txs {
		pin, firm, pinned := c.pins.Pin(tx.tx.ID())
		if tx.ended {
			if pinned {
				c.Fatalf("a pin to %s outlives its transaction", pin)
			}
			continue
		}
		open++
		calls := c.of(tx)
		if c.gone == cluster.Repin {
			continue
		}
		for _, f := range calls {
			if !pinned || f.at != pin {
				c.Fatalf("a call is under way to %s, the pin is %q", f.at, pin)
			}
		}
		switch {
		case len(tx.reached) > 0 && (!firm || !tx.reached[pin]):
			c.Fatalf("reached %v, pin %q firm %v", tx.reached, pin, firm)
		case len(tx.reached) == 0 && c.mode == cluster.FirstCall && (firm || pinned != (len(calls) > 0)):
			c.Fatalf("reached nothing, %d calls, pin %q firm %v", len(calls), pin, firm)
		}
	}
	if n := c.pins.Len(); n > open {
		c.Fatalf("%d transactions remembered, %d open", n, open)
	}
}

// finish answers what is under way and ends all transactions.
func (c *chaos) finish() {
	for len(c.flying) > 0 {
		c.answer(0)
		c.invariants()
	}
	for _, tx := range c.txs {
		c.end(tx)
	}
	c.invariants()
	if n := c.pins.Len(); n != 0 {
		c.Fatalf("%d transactions remembered at the end", n)
	}
}
