package cluster_test

import (
	"context"
	"errors"

	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/httpserve"
	"tbl/target/remote"
)

// fakeNode is what answers on a node. hook, when set, runs within a request.
type fakeNode struct {
	hook atomic.Pointer[func(ctx context.Context)]
}

func (n *fakeNode) Do(ctx context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	if h := n.hook.Load(); h != nil {
		(*h)(ctx)
	}
	ans.Cores = 1
	return nil
}

func (*fakeNode) Clock() target.Clock { return target.Wall{} }
func (*fakeNode) Name() string        { return "fake" }
func (*fakeNode) Close() error        { return nil }

// manualClock is moved by the test.
type manualClock struct {
	target.Wall
	ns atomic.Int64
}

func (c *manualClock) Now() time.Time          { return time.Unix(1_000_000, c.ns.Load()) }
func (c *manualClock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// fate decides what becomes of a request that a client is about to send to a
// node.
type fate func(node string) (cluster.FaultKind, bool)

// rig is nodes that can be reached over every transport, and what failures
// are injected between them and the clients.
type rig struct {
	t      *testing.T
	nodes  map[string]cluster.Node
	fakes  map[string]*fakeNode
	served map[string]*cluster.Named
	fate   atomic.Pointer[fate]
	clock  *manualClock
}

// newRig starts the nodes. They listen only for transports over HTTP.
func newRig(t *testing.T, listen bool, names ...string) *rig {
	t.Helper()
	r := &rig{
		t: t, nodes: map[string]cluster.Node{}, fakes: map[string]*fakeNode{},
		served: map[string]*cluster.Named{}, clock: &manualClock{},
	}
	for _, name := range names {
		fake := &fakeNode{}
		named := cluster.NewNamed(name, fake)
		r.fakes[name], r.served[name] = fake, named
		node := cluster.Node{Name: name}
		node.Targets[cluster.Embedded] = r.faulty(name, named)
		if listen {
			url := serve(t, named, name)
			for _, via := range []cluster.Transport{cluster.Fresh, cluster.Pooled} {
				tgt, err := remote.New(remote.Config{URL: url, KeepAlive: via == cluster.Pooled})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { tgt.Close() })
				node.Targets[via] = r.faulty(name, tgt)
			}
		}
		r.nodes[name] = node
	}
	return r
}

// serve puts a target behind a listener until the test ends.
func serve(t *testing.T, tgt target.Target, node string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	srv := httpserve.New(tgt, httpserve.Config{Node: node})
	go func() { done <- srv.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving %s: %v", node, err)
		}
	})
	return "http://" + ln.Addr().String()
}

func (r *rig) faulty(name string, tgt target.Target) *cluster.Faulty {
	f := cluster.NewFaulty(tgt, 1)
	f.Script(func(*target.Request) (cluster.FaultKind, bool) {
		if fn := r.fate.Load(); fn != nil {
			return (*fn)(name)
		}
		return 0, false
	})
	return f
}

// setFate installs fn for all nodes; nil: no failures.
func (r *rig) setFate(fn fate) {
	if fn == nil {
		r.fate.Store(nil)
		return
	}
	r.fate.Store(&fn)
}

// failNext makes the next requests of whatever node fail, one after the other.
func (r *rig) failNext(kinds ...cluster.FaultKind) {
	var n atomic.Int64
	r.setFate(func(string) (cluster.FaultKind, bool) {
		if i := int(n.Add(1)) - 1; i < len(kinds) {
			return kinds[i], true
		}
		return 0, false
	})
}

func (r *rig) list(names ...string) []cluster.Node {
	var out []cluster.Node
	for _, n := range names {
		out = append(out, r.nodes[n])
	}
	return out
}

// family is a service of the nodes called names. Its health re-checks are off.
func (r *rig) family(service string, seed uint64, names ...string) *cluster.Family {
	r.t.Helper()
	f, err := cluster.NewFamily(cluster.FamilyConfig{Name: service, Clock: r.clock, Seed: seed, Backoff: -1}, r.list(names...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

func (r *rig) servedBy(name string) int64 { return r.served[name].Served() }

func newProxy(t *testing.T, cfg cluster.Config) *cluster.Proxy {
	t.Helper()
	p, err := cluster.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// client is a proxy with what its last invocation did. For one goroutine.
type client struct {
	t *testing.T
	*cluster.Proxy
	inv  cluster.Invocation
	ans  target.Answer
	node string // that served it, by its own word; empty after an error
}

func newClient(t *testing.T, cfg cluster.Config) *client {
	return &client{t: t, Proxy: newProxy(t, cfg)}
}

// call makes one invocation.
func (c *client) call(ctx context.Context) error {
	err := c.Invoke(ctx, &target.Request{}, &c.ans, &c.inv)
	c.node = ""
	if err == nil {
		c.node = string(c.ans.Node)
		if c.node != c.inv.Node {
			c.t.Errorf("node used %q, node chosen %q", c.node, c.inv.Node)
		}
	}
	var te *target.Error
	if err != nil && !errors.As(err, &te) {
		c.t.Errorf("error %v is no *target.Error", err)
	}
	return err
}

// good makes one invocation that must succeed, and returns its node.
func (c *client) good(ctx context.Context) string {
	c.t.Helper()
	if err := c.call(ctx); err != nil {
		c.t.Fatalf("call failed: %v", err)
	}
	return c.node
}

// setting is one combination that a row of the table is tried in.
type setting struct {
	policy cluster.Policy
	via    cluster.Transport
}

func (s setting) String() string { return s.policy.String() + "/" + transportNames[s.via] }

var transportNames = [cluster.NumTransports]string{"embedded", "fresh", "pooled"}

// each runs a row for every policy, or those given, on every transport.
func each(t *testing.T, row string, run func(t *testing.T, s setting), policies ...cluster.Policy) {
	t.Helper()
	if len(policies) == 0 {
		for p := range cluster.NumPolicies {
			policies = append(policies, p)
		}
	}
	for _, p := range policies {
		for via := range cluster.NumTransports {
			s := setting{p, via}
			t.Run(row+"/"+s.String(), func(t *testing.T) { run(t, s) })
		}
	}
}

// pair is two nodes A and B, a sticky client of theirs and its pin store.
func pair(t *testing.T, s setting, mod ...func(*cluster.Config)) (*rig, *cluster.Family, *cluster.Pins, *client) {
	t.Helper()
	r := newRig(t, s.via != cluster.Embedded, "A", "B", "C")
	f := r.family("svc", 7, "A", "B")
	pins := cluster.NewPins(cluster.PinsConfig{Clock: r.clock})
	cfg := cluster.Config{Family: f, Policy: s.policy, Sticky: true, Pins: pins, Transport: s.via, Seed: 11}
	for _, m := range mod {
		m(&cfg)
	}
	return r, f, pins, newClient(t, cfg)
}

func begin(t *testing.T) (context.Context, *cluster.Tx) {
	ctx, tx := cluster.Begin(context.Background())
	t.Cleanup(tx.End)
	return ctx, tx
}

// want checks what an invocation in a scenario left behind.
type want struct {
	is       error              // in the error's chain; nil: not looked at
	fault    *cluster.FaultKind // whose class and completion the error has; nil: not looked at
	fc       int
	attempts int
	n        int    // nodes left in the family
	pin      string // "": no pin
	firm     bool
}

func fault(k cluster.FaultKind) *cluster.FaultKind { return &k }

func check(t *testing.T, c *client, f *cluster.Family, pins *cluster.Pins, tx *cluster.Tx, err error, w want) {
	t.Helper()
	if w.is == nil && w.fault == nil && err != nil {
		t.Errorf("error %v, want none", err)
	}
	if w.is != nil && !errors.Is(err, w.is) {
		t.Errorf("error %v, want %v", err, w.is)
	}
	if w.fault != nil {
		var te *target.Error
		if !errors.As(err, &te) || te.Class != faultClasses[*w.fault] {
			t.Errorf("error %v, want class %v", err, faultClasses[*w.fault])
		}
	}
	if c.inv.Failovers != w.fc || c.inv.Attempts != w.attempts || f.Len() != w.n {
		t.Errorf("failovers %d, attempts %d, nodes left %d; want %d, %d, %d",
			c.inv.Failovers, c.inv.Attempts, f.Len(), w.fc, w.attempts, w.n)
	}
	pin, firm, _ := pins.Pin(tx.ID())
	if pin != w.pin || firm != w.firm {
		t.Errorf("pin %q firm %v, want %q firm %v", pin, firm, w.pin, w.firm)
	}
}

// faultClasses is what each injected failure looks like to the client.
var faultClasses = [cluster.NumFaults]target.Class{
	cluster.FaultClient: target.ClassClient, cluster.FaultNotReached: target.ClassRefused, cluster.FaultNo: target.ClassReset,
	cluster.FaultMaybe: target.ClassReset, cluster.FaultCut: target.ClassTruncated, cluster.FaultYes: target.ClassMalformed,
	cluster.FaultStatus: target.ClassHTTP5xx,
}

func other(node string) string {
	if node == "A" {
		return "B"
	}
	return "A"
}

// together runs n functions at once and waits for all.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
