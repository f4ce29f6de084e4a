package refplane

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
)

func TestParseFault(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Fault
	}{
		{"deterministic-names", Fault{Name: DeterministicNames}},
		{"enumerate-count", Fault{Name: EnumerateCount}},
		{"chatty-log", Fault{Name: ChattyLog, Rate: 1000}},
		{"chatty-log=250.5", Fault{Name: ChattyLog, Rate: 250.5}},
		{"reload-orphans", Fault{Name: ReloadOrphans}},
		{"dag-skew=1:0:30", Fault{Name: DAGSkew, Weights: []int{1, 0, 30}}},
		{"dead-core=2", Fault{Name: DeadCore, Core: 2}},
		{"stall=1:20ms:1s", Fault{Name: Stall, Core: 1, Pause: 20 * time.Millisecond, Every: time.Second}},
		{"jitter", Fault{Name: Jitter, Share: .01, Clicks: 400_000}},
		{"jitter=2%", Fault{Name: Jitter, Share: .02, Clicks: 400_000}},
		{"jitter=0.005:1000", Fault{Name: Jitter, Share: .005, Clicks: 1000}},
		{"flap", Fault{Name: Flap, Share: .05}},
		{"flap=100%", Fault{Name: Flap, Share: 1}},
	} {
		got, err := ParseFault(c.in)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.in, got, err, c.want)
		}
		if again, err := ParseFault(got.String()); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s printed as %s reads back as %+v, %v", c.in, got, again, err)
		}
	}
	for _, in := range []string{
		"", "nothing", "deterministic-names=1", "dead-core", "dead-core=", "dead-core=-1", "dead-core=x", "dag-skew=", "dag-skew=0:0", "dag-skew=1:x",
		"dag-skew=-1", "stall=1", "stall=0:1s:1s", "stall=0:-1s:2s", "stall=x:1s:2s", "jitter=101%", "jitter=1%:0", "jitter=1%:x", "jitter=NaN", "flap=2",
		"flap=-1%", "chatty-log=0", "chatty-log=x",
	} {
		if f, err := ParseFault(in); err == nil {
			t.Errorf("%q is accepted as %+v", in, f)
		}
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	for _, cfg := range []Config{
		{Cores: -1}, {Cores: 257}, {Clock: 9}, {DAG: 9}, {Click: -1}, {HandoffDelay: -1}, {MaxTries: -1}, {Threshold: -1}, {Slot: -1},
		{Cores: 2, Faults: []Fault{{Name: DeadCore, Core: 2}}}, {Cores: 1, Faults: []Fault{{Name: DeadCore}}},
		{Cores: 2, Faults: []Fault{{Name: Stall, Core: 2, Pause: 1, Every: 2}}},
		{Cores: 2, Faults: []Fault{{Name: DAGSkew, Weights: []int{1, 2, 3}}}},
		{Cores: 2, Faults: []Fault{{Name: DAGSkew, Weights: []int{1, 0}}, {Name: DeadCore, Core: 0}}},
		{Faults: []Fault{{Name: "dead core"}}},
	} {
		if p, err := New(cfg); err == nil {
			p.Close()
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestFaultTableNamesVerdicts(t *testing.T) {
	for _, k := range FaultKinds() {
		if k.Name != Jitter && len(k.MustName) == 0 {
			t.Errorf("%s: no verdict has to name it", k.Name)
		}
		for _, v := range k.MustName {
			if !slices.Contains(k.MayTrip, v) {
				t.Errorf("%s: %s must name it and may not trip", k.Name, v)
			}
		}
	}
}

// outcome counts what became of n loads.
func outcome(t *testing.T, p *Plane, n int) (by [target.NumClasses]int64) {
	var counts [target.NumClasses]atomic.Int64
	var next atomic.Int64
	p.Clock().Run(8, func(int) {
		var ans target.Answer
		for {
			i := next.Add(1)
			if i > int64(n) {
				return
			}
			err := p.Do(context.Background(), &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "key%d", i)}, &ans)
			counts[target.ClassOf(err)].Add(1)
		}
	})
	for i := range counts {
		by[i] = counts[i].Load()
	}
	return by
}

func TestFlapFailsEveryRequestOnce(t *testing.T) {
	const n = 2000
	for _, clock := range []ClockKind{Wall, Model} {
		p := start(t, Config{Clock: clock, Seed: 11, Faults: []Fault{{Name: Flap, Share: .2}}})
		by := outcome(t, p, n)
		var sum int64
		for _, c := range by {
			sum += c
		}
		bad := by[target.ClassReset] + by[target.ClassTruncated] + by[target.ClassHTTP5xx]
		if sum != n || by[target.ClassOK]+bad != n {
			t.Errorf("%v: %v of %d", clock, by, n)
		}
		// A fifth meets the fault, a fifth of which is only late.
		if bad < n*.2*.8*7/10 || bad > n*.2*.8*13/10 || by[target.ClassReset] < by[target.ClassTruncated] {
			t.Errorf("%v: %v", clock, by)
		}
		var written int64
		for _, s := range must2(t, p, target.OpStats).Stats {
			written += s.Entries
		}
		// A quarter of the failures is a reset before the write, a quarter a 500.
		if lost := n - written; lost < by[target.ClassHTTP5xx] || lost > by[target.ClassHTTP5xx]+by[target.ClassReset] {
			t.Errorf("%v: %d written, classes %v", clock, written, by)
		}
	}
}

// must2 retries a request through flaps.
func must2(t *testing.T, p *Plane, op target.Op) *target.Answer {
	var ans target.Answer
	var err error
	for range 100 {
		if err = p.Do(context.Background(), &target.Request{Op: op}, &ans); err == nil {
			return &ans
		}
	}
	t.Fatal(err)
	return nil
}

func TestStallHoldsOneCoreUp(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 4, Cores: 4, Faults: []Fault{{Name: Stall, Core: 3, Pause: 50 * time.Millisecond, Every: time.Second}}})
	var late [4]int
	var longest [4]time.Duration
	p.Clock().Run(1, func(int) {
		var ans target.Answer
		for i := range 20_000 {
			if err := p.Do(context.Background(), &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "key%d", i)}, &ans); err != nil {
				t.Error(err)
			}
			if ans.Timing.Total > 10*time.Millisecond {
				late[ans.Core]++
			}
			longest[ans.Core] = max(longest[ans.Core], ans.Timing.Total)
		}
	})
	if late[0]+late[1]+late[2] > 0 || late[3] < 5 || longest[3] > 60*time.Millisecond {
		t.Errorf("late %v, longest %v", late, longest)
	}
}

// rates is the throughput of successive runs of n loads.
func rates(t *testing.T, p *Plane, runs, n int) (r []float64) {
	for range runs {
		begin := p.Clock().Now()
		if by := outcome(t, p, n); by[target.ClassOK] != int64(n) {
			t.Fatalf("%v", by)
		}
		r = append(r, float64(n)/p.Clock().Now().Sub(begin).Seconds())
	}
	return r
}

func TestChattyLogSlowsDownRunByRun(t *testing.T) {
	var log bytes.Buffer
	p := start(t, Config{Clock: Model, Seed: 4, Log: &log, Faults: []Fault{{Name: ChattyLog, Rate: 1000}}})
	r := rates(t, p, 5, 20_000)
	for i := range r[1:] {
		if r[i+1] > r[i]*.95 {
			t.Errorf("rates %.0f: no fall", r)
			break
		}
	}
	if lines, dropped := p.LogLines(); lines < 100_000 || dropped != 0 {
		t.Errorf("%d log lines for 100,000 requests, %d dropped", lines, dropped)
	}
	if err := p.FlushLog(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log.Bytes(), []byte(" /load key=key")) {
		t.Error("no line of a request in the log")
	}
	healthy := rates(t, start(t, Config{Clock: Model, Seed: 4}), 5, 20_000)
	if slices.Min(healthy) < slices.Max(healthy)*.97 {
		t.Errorf("healthy rates %.0f", healthy)
	}
}

func TestEnumerateCountSlowsDownAsTheSubtableGrows(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 4, Faults: []Fault{{Name: EnumerateCount}}})
	var r []float64
	for i := range 5 {
		begin := p.Clock().Now()
		var next atomic.Int64
		p.Clock().Run(8, func(int) {
			var ans target.Answer
			for k := next.Add(1); k <= 20_000; k = next.Add(1) {
				if err := p.Do(context.Background(), &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "%d-%d", i, k)}, &ans); err != nil {
					t.Error(err)
				}
			}
		})
		r = append(r, 1/p.Clock().Now().Sub(begin).Seconds())
	}
	if r[4] > r[0]/2 {
		t.Errorf("relative rates %v: no 1/n", r)
	}
}

func TestReloadOrphansLeavesEntriesBehind(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 4, Faults: []Fault{{Name: ReloadOrphans}}})
	outcome(t, p, 1000)
	var deleted, left int64
	for range 100 {
		deleted += must(t, p, target.Request{Op: target.OpReset}).Deleted
	}
	for _, s := range must(t, p, target.Request{Op: target.OpStats}).Stats {
		left += s.Entries
	}
	if deleted != 0 || left != 1000 {
		t.Errorf("resets deleted %d and left %d, want 0 and 1000", deleted, left)
	}
	for range 100 {
		names := must(t, p, target.Request{Op: target.OpNames})
		for _, n := range names.List {
			deleted += must(t, p, target.Request{Op: target.OpResetName, Subtable: n}).Deleted
		}
	}
	if deleted != 1000 {
		t.Errorf("clearing every known name deleted %d of 1000", deleted)
	}
}

func TestJitterInflatesAShareOfTimings(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 4, Faults: []Fault{{Name: Jitter, Share: .02, Clicks: 777_777}}})
	n := 0
	for range 10_000 {
		if must(t, p, target.Request{Op: target.OpProbe}).Clicks == 777_777 {
			n++
		}
	}
	if n < 140 || n > 260 {
		t.Errorf("%d of 10,000 timings inflated at 2 %%", n)
	}
}

func TestFaultsCombine(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var faults []Fault
		for _, k := range FaultKinds() {
			arg := k.Name
			if k.Default == "required" {
				arg += "=1"
			}
			f, err := ParseFault(arg)
			if err != nil {
				t.Fatal(err)
			}
			faults = append(faults, f)
		}
		p := start(t, Config{Clock: Model, Seed: seed, Faults: faults})
		by := outcome(t, p, 2000)
		if by[target.ClassOK] < 1600 || by[target.ClassOK] == 2000 {
			t.Errorf("seed %d: %v", seed, by)
		}
		for _, s := range must2(t, p, target.OpStats).Stats {
			if s.Core == 1 && s.Connections > 0 {
				t.Errorf("seed %d: the dead core took %d connections", seed, s.Connections)
			}
		}
	}
}

func TestChattyLogMakesRealRequestsWait(t *testing.T) {
	p := start(t, Config{Cores: 1, Faults: []Fault{{Name: ChattyLog, Rate: 1}}})
	must(t, p, target.Request{})
	p.chatty.mu.Lock()
	p.chatty.lines = 1e6 // each waits for 2 ms
	p.chatty.mu.Unlock()
	begin := p.elapsed()
	for range 20 {
		must(t, p, target.Request{})
	}
	if d := p.elapsed() - begin; d < 35*time.Millisecond {
		t.Errorf("20 requests behind a backlog of a million lines took %v, want 40 ms", d)
	}
}

func TestHandoffDelayIsAddedToRemoteWritesOnly(t *testing.T) {
	for _, clock := range []ClockKind{Wall, Model} {
		p := start(t, Config{Cores: 2, Clock: clock, Seed: 3, Click: time.Microsecond, HandoffDelay: 3 * time.Millisecond})
		for k := range 2 {
			for i := range 5 {
				name := fmt.Appendf(nil, "n%d", i)
				a := must(t, p, target.Request{Op: target.OpTable, Table: target.TableLookup, Conn: connTo(t, p, k), Subtable: name, Key: []byte("k")})
				far := p.OwnerOf(name) != k
				if far && a.Clicks < 3000 {
					t.Errorf("%v: %d clicks for a remote look-up, want 3000 and more", clock, a.Clicks)
				}
				if !far && clock == Model && a.Clicks >= 3000 && a.Clicks != p.jitterClicks {
					t.Errorf("%v: %d clicks for an own look-up", clock, a.Clicks)
				}
			}
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"dead-core=2", "dag-skew=1:2", "stall=0:1ms:1s", "jitter=1%:5", "flap=5%", "chatty-log=10", "enumerate-count"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := ParseFault(s)
		if err != nil {
			return
		}
		again, err := ParseFault(fault.String())
		if err != nil || again.String() != fault.String() {
			t.Errorf("%q prints as %q, which reads as %q, %v", s, fault, again, err)
		}
	})
}
