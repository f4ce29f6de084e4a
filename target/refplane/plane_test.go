package refplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tbl/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start makes a plane that ends with the test.
func start(t testing.TB, cfg Config) *Plane {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// must sends a request that has to succeed.
func must(t testing.TB, p *Plane, req target.Request) *target.Answer {
	t.Helper()
	var ans target.Answer
	if err := p.Do(context.Background(), &req, &ans); err != nil {
		t.Fatalf("%+v: %v (seed %d)", req, err, p.cfg.Seed)
	}
	return &ans
}

// connTo is a connection that core k accepts.
func connTo(t testing.TB, p *Plane, k int) target.Conn {
	t.Helper()
	for port := uint16(1024); port < 65535; port++ {
		c := target.Conn{
			Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port),
			Dst: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 8080),
		}
		if p.CoreOf(c) == k {
			return c
		}
	}
	t.Fatalf("no port reaches core %d", k)
	return target.Conn{}
}

// slowClick is a click so long that own writes are far below the threshold
// also under the race detector and beside others, while waking a thread is
// still far above it.
func slowClick(t testing.TB) time.Duration {
	p, err := New(Config{Cores: 1, Click: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var times []int64
	for i := range 200 {
		times = append(times, must(t, p, target.Request{Op: target.OpProbe, Subtable: fmt.Appendf(nil, "n%d", i%7)}).Clicks)
	}
	slices.Sort(times)
	return max(10, time.Duration(times[100]/15))
}

func TestCoresFindTheirOwnNames(t *testing.T) {
	p := start(t, Config{Cores: 8, Click: slowClick(t)})
	for k := range 8 {
		who := must(t, p, target.Request{Op: target.OpWhoami, Conn: connTo(t, p, k)})
		if who.Core != k || who.Cores != 8 {
			t.Fatalf("answered by %d of %d, want %d of 8", who.Core, who.Cores, k)
		}
		if !bytes.HasPrefix(who.Subtable, fmt.Appendf(nil, "localdb_tmm_%d_", k)) {
			t.Errorf("core %d calls its subtable %q", k, who.Subtable)
		}
		if o := p.OwnerOf(who.Subtable); o != k {
			t.Errorf("core %d chose %q, which is core %d's (seed %d)", k, who.Subtable, o, p.cfg.Seed)
		}
	}
	for _, s := range must(t, p, target.Request{Op: target.OpStats}).Stats {
		if s.Entries != 0 || s.Subtables != 0 || s.Bytes != 0 {
			t.Errorf("core %d: discovery left litter: %+v", s.Core, s)
		}
	}
	if w := p.Warnings(); w != nil {
		t.Errorf("warnings %q", w)
	}
}

func TestTooFewTriesWarn(t *testing.T) {
	for _, clock := range []ClockKind{Wall, Model} {
		var log bytes.Buffer
		p := start(t, Config{Cores: 64, MaxTries: 1, Clock: clock, Seed: 5, Log: &log})
		if len(p.Warnings()) != 1 {
			t.Errorf("%v: warnings %q, want one with the odds", clock, p.Warnings())
		}
		for k := range 64 {
			must(t, p, target.Request{Op: target.OpWhoami, Conn: connTo(t, p, k)})
		}
		if err := p.FlushLog(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(log.Bytes(), []byte("WARNING could not find local subtable after 1 probes; using localdb_tmm_")) {
			t.Errorf("%v: no warning in the log", clock)
		}
	}
}

func TestNamesOfClocksAndHashes(t *testing.T) {
	for i, n := range ClockNames() {
		if k, err := ParseClock(n); err != nil || k != ClockKind(i) || k.String() != n {
			t.Errorf("clock %q: %v, %v", n, k, err)
		}
	}
	for i, n := range DAGNames() {
		if k, err := ParseDAG(n); err != nil || k != DAGKind(i) || k.String() != n {
			t.Errorf("dag %q: %v, %v", n, k, err)
		}
	}
	if _, err := ParseClock("sun"); err == nil {
		t.Error("a clock named sun")
	}
	if _, err := ParseDAG("ip"); err == nil {
		t.Error("a hash named ip")
	}
}

func TestConfigTellsWhatIsInForce(t *testing.T) {
	cfg := start(t, Config{}).Config()
	if cfg.Cores != 4 || cfg.Seed == 0 || cfg.Click != 10*time.Nanosecond || cfg.MaxTries != 200 || cfg.Threshold != 100 || cfg.LogSample != 0 {
		t.Errorf("%+v", cfg)
	}
	var log bytes.Buffer
	if cfg := start(t, Config{Log: &log}).Config(); cfg.LogSample != 1000 {
		t.Errorf("with a log one in %d writes is sampled, want 1000", cfg.LogSample)
	}
}

func TestDiscoveryOdds(t *testing.T) {
	for _, c := range []struct {
		cores, tries int
		low, high    float64
	}{
		{32, 200, .04, .06}, {64, 200, .93, .95}, {64, DefaultMaxTries(64), 0, 1e-9}, {256, DefaultMaxTries(256), 0, 1e-8},
		{4, DefaultMaxTries(4), 0, 1e-9}, {1, 1, 0, 0},
	} {
		if got := DiscoveryOdds(c.cores, c.tries); got < c.low || got > c.high {
			t.Errorf("%d cores, %d tries: %g, want %g to %g", c.cores, c.tries, got, c.low, c.high)
		}
	}
}

func TestBuiltNamesAreNeverAllOwn(t *testing.T) {
	for _, cores := range []int{2, 4} {
		for seed := uint64(1); seed < 200; seed++ {
			p := start(t, Config{Cores: cores, Seed: seed, Clock: Model, Faults: []Fault{{Name: DeterministicNames}}})
			if p.builtAllOwn() {
				t.Fatalf("seed %d: every built name is its own core's", seed)
			}
			who := must(t, p, target.Request{Op: target.OpWhoami})
			if want := builtName(who.Core); !bytes.Equal(who.Subtable, want) {
				t.Fatalf("seed %d: name %q, want %q", seed, who.Subtable, want)
			}
		}
	}
}

func TestRemoteWritesCostAHundredTimesMore(t *testing.T) {
	if testing.Short() {
		t.Skip("judges real timings")
	}
	click := slowClick(t)
	p := start(t, Config{Cores: 4, Click: click, Faults: []Fault{{Name: DeterministicNames}}})
	own, other := medianClicks(t, p, true), medianClicks(t, p, false)
	t.Logf("click %v: own %d, other %d clicks", click, own, other)
	if own >= p.cfg.Threshold || other < p.cfg.Threshold {
		t.Errorf("own writes take %d clicks and others %d at a threshold of %d", own, other, p.cfg.Threshold)
	}
}

// medianClicks probes names that are, or are not, the accepting core's.
func medianClicks(t *testing.T, p *Plane, own bool) int64 {
	var clicks []int64
	for i := 0; len(clicks) < 201; i++ {
		name := fmt.Appendf(nil, "name%d", i%50)
		k := i % 4
		if (p.OwnerOf(name) == k) == own {
			a := must(t, p, target.Request{Op: target.OpProbe, Subtable: name, Conn: connTo(t, p, k)})
			clicks = append(clicks, a.Clicks)
		}
	}
	slices.Sort(clicks)
	return clicks[len(clicks)/2]
}

func TestDisaggregator(t *testing.T) {
	ctx := context.Background()
	share := func(cfg Config, n int) []int {
		cfg.Clock = Model
		p := start(t, cfg)
		hits := make([]int, p.cfg.Cores)
		var ans target.Answer
		for range n {
			if err := p.Do(ctx, &target.Request{}, &ans); err != nil {
				t.Fatal(err)
			}
			hits[ans.Core]++
		}
		return hits
	}
	const n = 40_000
	for _, h := range share(Config{Cores: 8, Seed: 3}, n) {
		if h < n/8*95/100 || h > n/8*105/100 {
			t.Errorf("a core of eight got %d of %d connections", h, n)
		}
	}
	for _, h := range share(Config{Cores: 8, Seed: 3, DAG: Ports}, n) {
		if h < n/8*90/100 || h > n/8*110/100 {
			t.Errorf("ports: a core of eight got %d of %d connections", h, n)
		}
	}
	if hits := share(Config{Cores: 8, Seed: 3, DAG: SrcIP}, 100); slices.Max(hits) != 100 {
		t.Errorf("one client address reached several cores: %v", hits)
	}
	if hits := share(Config{Cores: 4, Seed: 3, Faults: []Fault{{Name: DeadCore, Core: 2}}}, n); hits[2] != 0 || slices.Min([]int{hits[0], hits[1], hits[3]}) < n/3*9/10 {
		t.Errorf("dead core 2: %v", hits)
	}
	f, err := ParseFault("dag-skew=6:0:3")
	if err != nil {
		t.Fatal(err)
	}
	if hits := share(Config{Cores: 4, Seed: 3, Faults: []Fault{f}}, n); hits[1] != 0 || hits[0] < n/2 || hits[0] > n*7/10 || hits[3] > n/8 {
		t.Errorf("skew 6:0:3(:1): %v", hits)
	}
}

// TestPortsInTurnAreSpreadEvenly takes the ports as a kernel gives them out.
func TestPortsInTurnAreSpreadEvenly(t *testing.T) {
	for _, kind := range []DAGKind{Tuple, Ports} {
		for _, cores := range []int{2, 4, 7, 64} {
			for seed := uint64(1); seed <= 20; seed++ {
				d := newDAG(Config{Cores: cores, Seed: seed, DAG: kind})
				hits := make([]int, cores)
				total := 0
				for port := 32768 + seed%2; port < 60999; port += 2 {
					hits[d.core(target.Conn{
						Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
						Dst: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 8080),
					})]++
					total++
				}
				if lo, hi := slices.Min(hits), slices.Max(hits); hi-lo > total/cores/50+5 {
					t.Errorf("%v, %d cores, seed %d: from %d to %d of %d connections", kind, cores, seed, lo, hi, total)
				}
			}
		}
	}
}

func TestConnectionDecidesTheCore(t *testing.T) {
	p := start(t, Config{Cores: 16})
	for port := uint16(2000); port < 2200; port++ {
		full := target.Conn{Src: netip.AddrPortFrom(netip.MustParseAddr("::1"), port), Dst: netip.MustParseAddrPort("[::1]:80")}
		steered := target.Conn{Src: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
		for _, c := range []target.Conn{full, steered} {
			want := p.CoreOf(c)
			for range 2 {
				if got := must(t, p, target.Request{Conn: c}).Core; got != want {
					t.Fatalf("%v: core %d, then %d (seed %d)", c, want, got, p.cfg.Seed)
				}
			}
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, clock := range []ClockKind{Wall, Model} {
		t.Run(clock.String(), func(t *testing.T) {
			p := start(t, Config{Cores: 3, Clock: clock, Click: slowClick(t), Seed: 9, Slot: 2})
			c := connTo(t, p, 1)
			load := must(t, p, target.Request{Op: target.OpLoad, Conn: c, Key: []byte("k 1"), Value: []byte("v")})
			if load.Core != 1 || load.Slot != 2 || string(load.Key) != "k 1" || p.OwnerOf(load.Subtable) != 1 {
				t.Errorf("load: %+v", load)
			}
			bulk := must(t, p, target.Request{Op: target.OpBulkLoad, Conn: c, Body: []byte("a\r\n\n\nb\nk 1\n")})
			if bulk.Written != 3 || !bytes.Equal(bulk.Subtable, load.Subtable) || bulk.ClicksPerWrite != bulk.Clicks/3 {
				t.Errorf("bulk: %+v", bulk)
			}
			who := must(t, p, target.Request{Op: target.OpWhoami, Conn: c})
			if who.Writes != 4 || who.Entries != 3 {
				t.Errorf("whoami: %d writes, %d entries, want 4 and 3", who.Writes, who.Entries)
			}
			dump := must(t, p, target.Request{Op: target.OpDump, Conn: c})
			if dump.Count != 3 || string(bytes.Join(dump.List, []byte("|"))) != "k 1|a|b" {
				t.Errorf("dump: %d %q", dump.Count, dump.List)
			}
			names := must(t, p, target.Request{Op: target.OpNames, Conn: c})
			if len(names.List) != 1 || !bytes.Equal(names.List[0], load.Subtable) {
				t.Errorf("names: %q", names.List)
			}
			meta := must(t, p, target.Request{Op: target.OpMeta, Conn: c, Subtable: load.Subtable, Key: []byte("a")}).Meta
			if !meta.Found || meta.Timeout != 3600 || meta.Lifetime != target.Indefinite || meta.Created != meta.Touched {
				t.Errorf("meta: %+v", meta)
			}
			probe := must(t, p, target.Request{Op: target.OpProbe, Conn: c, Subtable: load.Subtable})
			if probe.Entries != 4 {
				t.Errorf("probe: %d entries, want 4", probe.Entries)
			}
			far := must(t, p, target.Request{Op: target.OpTable, Conn: connTo(t, p, 0), Table: target.TableLookup, Subtable: load.Subtable, Key: []byte("probe_1")})
			if string(far.Result) != "1" || !far.OwnerKnown || far.Owner != 1 {
				t.Errorf("table lookup from afar: %+v", far)
			}
			must(t, p, target.Request{Op: target.OpReload})
			if r := must(t, p, target.Request{Op: target.OpReset, Conn: c}); r.Deleted != 0 {
				t.Errorf("reset after a reload deleted %d", r.Deleted)
			}
			if r := must(t, p, target.Request{Op: target.OpResetName, Conn: connTo(t, p, 2), Subtable: load.Subtable}); r.Deleted != 4 {
				t.Errorf("reset of the orphaned name deleted %d, want 4", r.Deleted)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 1})
	for _, c := range []struct {
		req    target.Request
		status int
	}{
		{target.Request{Op: target.OpLoad}, 400},
		{target.Request{Op: target.OpBulkLoad}, 411},
		{target.Request{Op: target.OpBulkLoad, Body: make([]byte, 16<<20+1)}, 413},
		{target.Request{Op: target.OpResetName}, 400},
		{target.Request{Op: target.OpTable, Subtable: []byte("s")}, 400},
		{target.Request{Op: target.OpTable, Subtable: []byte("s"), Key: []byte("k"), Table: 99}, 400},
		{target.Request{Op: target.OpTable, Subtable: []byte("s"), Key: []byte("k"), Timeout: -7}, 400},
		{target.Request{Op: target.OpTable, Subtable: []byte("s"), Key: []byte("k"), Table: target.TableIncr, Value: []byte("x")}, 400},
		{target.Request{Op: target.OpMeta, Subtable: []byte("s")}, 400},
		{target.Request{Op: 200}, 404},
	} {
		var ans target.Answer
		var te *target.Error
		if err := p.Do(context.Background(), &c.req, &ans); !errors.As(err, &te) || te.Status != c.status || te.Class != target.ClassHTTP4xx {
			t.Errorf("op %d: %v, want status %d", c.req.Op, err, c.status)
		}
	}
}

func TestWaitingRequestCanBeGivenUp(t *testing.T) {
	const pause = 2 * time.Second
	p := start(t, Config{Cores: 1, Faults: []Fault{{Name: Stall, Core: 0, Pause: pause, Every: time.Hour}}})
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		var ans target.Answer
		p.Do(context.Background(), &target.Request{Op: target.OpLoad, Key: []byte("a")}, &ans)
	}()
	for p.cores[0].box.calls.Load() != nil || p.inflight.Load() == 0 { // until the core has taken it over
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		var ans target.Answer
		done <- p.Do(ctx, &target.Request{Op: target.OpLoad, Key: []byte("b")}, &ans)
	}()
	for p.inflight.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	err := <-done
	if target.ClassOf(err) != target.ClassCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	<-blocked
	if who := must(t, p, target.Request{Op: target.OpWhoami}); who.Writes != 1 {
		t.Errorf("%d writes, want the first only", who.Writes)
	}
}

func TestCloseLetsRequestsEnd(t *testing.T) {
	p := start(t, Config{Cores: 4})
	var ok, closed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var ans target.Answer
			for i := 0; ; i++ {
				err := p.Do(context.Background(), &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)}, &ans)
				if target.ClassOf(err) == target.ClassClosed {
					closed.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				ok.Add(1)
			}
		})
	}
	for ok.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if closed.Load() != 8 {
		t.Errorf("%d of 8 clients were told that the plane is closed", closed.Load())
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, clock := range []ClockKind{Wall, Model} {
		p := start(t, Config{Clock: clock, Click: slowClick(t), Log: discard{}, LogSample: 1})
		var ans target.Answer
		reqs := []target.Request{
			{Op: target.OpLoad, Key: []byte("key"), Value: []byte("v")},
			{Op: target.OpBulkLoad, Body: []byte("k1\nk2\nk3\n")},
			{Op: target.OpProbe, Subtable: []byte("uuid_01")},
			{Op: target.OpTable, Table: target.TableLookup, Subtable: []byte("s"), Key: []byte("k")},
		}
		all := func() {
			for i := range reqs {
				if err := p.Do(context.Background(), &reqs[i], &ans); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2000 {
			all()
		}
		if n := testing.AllocsPerRun(2000, all); n > 0 && !raceEnabled {
			t.Errorf("%v: %v allocations for %d requests", clock, n, len(reqs))
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestAllPairs lets every core write into every other's subtable at full
// speed: they wait for each other all the time and must never lock up.
func TestAllPairs(t *testing.T) {
	length := 10 * time.Second
	if testing.Short() || raceEnabled {
		length = time.Second
	}
	const cores = 8
	p := start(t, Config{Cores: cores})
	var names [cores][]byte
	for i, left := 0, cores; left > 0; i++ {
		name := fmt.Appendf(nil, "pair%d", i)
		if o := p.OwnerOf(name); names[o] == nil {
			names[o] = name
			left--
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var sent [cores * cores]int64
	p.Clock().Run(cores*cores, func(i int) {
		req := target.Request{Op: target.OpTable, Conn: connTo(t, p, i/cores), Subtable: names[i%cores], Key: fmt.Appendf(nil, "k%d", i), Value: []byte("v")}
		var ans target.Answer
		for ctx.Err() == nil {
			err := p.Do(context.Background(), &req, &ans)
			if err != nil || ans.Core != i/cores || ans.Owner != i%cores {
				t.Errorf("pair %d to %d: %v, core %d, owner %d", i/cores, i%cores, err, ans.Core, ans.Owner)
				return
			}
			sent[i]++
		}
	})
	stats := must(t, p, target.Request{Op: target.OpStats}).Stats
	for k, s := range stats {
		var remote int64
		for j := range cores {
			if j != k {
				remote += sent[k*cores+j]
			}
		}
		if s.Entries != cores || s.WritesRemote != remote {
			t.Errorf("core %d: %d entries, %d remote writes; want %d and %d", k, s.Entries, s.WritesRemote, cores, remote)
		}
	}
	if slices.Min(sent[:]) == 0 {
		t.Error("some pair never got a turn")
	}
}

// A batch's clicks hold the time that it waited for other cores, though the
// thread sleeps meanwhile and has no processor.
func TestBulkCountsWaiting(t *testing.T) {
	const delay = 200 * time.Microsecond
	p, err := New(Config{Seed: 1, HandoffDelay: delay, Faults: []Fault{{Name: DeterministicNames}}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	remote := 0
	var ans target.Answer
	for range 40 {
		req := target.Request{Op: target.OpBulkLoad, Body: []byte("a\nb\nc\nd\ne\n")}
		if err := p.Do(t.Context(), &req, &ans); err != nil {
			t.Fatal(err)
		}
		if p.OwnerOf(ans.Subtable) == ans.Core {
			continue
		}
		remote++
		if least := int64(delay / p.cfg.Click); ans.ClicksPerWrite < least*95/100 {
			t.Errorf("%d clicks per write on core %d, want %d or more", ans.ClicksPerWrite, ans.Core, least)
		}
	}
	if remote == 0 {
		t.Error("no core writes to another")
	}
}
