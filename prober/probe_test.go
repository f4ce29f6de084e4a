package prober

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func TestNeededRequests(t *testing.T) {
	for n, want := range map[int]int{1: 1, 4: 29, 16: 150, 64: 703} {
		if got := NeededRequests(n, 1e-3); got != want {
			t.Errorf("%d cores: %d requests, want %d", n, got, want)
		}
	}
	for n := 1; n <= 256; n++ {
		d := DefaultRequests(n)
		if d < 500 || float64(n)*missChance(n, int64(d)) > 1e-4 {
			t.Errorf("%d cores: default %d misses a core with %g", n, d, missChance(n, int64(d)))
		}
	}
}

func find(vs []verdict.Verdict, name verdict.Name) verdict.Verdict {
	for _, v := range vs {
		if v.Name == name {
			return v
		}
	}
	return verdict.Verdict{Line: "(no such verdict)"}
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("name_%d", i)
	}
	return out
}

func checkAccount(t *testing.T, f *fake, a Accounting) {
	t.Helper()
	var failed int64
	for _, e := range a.Errors {
		failed += e.Count
	}
	if a.Sent != a.OK+failed {
		t.Errorf("sent %d, ok %d, failed %d: one is lost", a.Sent, a.OK, failed)
	}
	if a.Sent > int64(f.requests) {
		t.Errorf("sent %d, the target saw %d", a.Sent, f.requests)
	}
}

func TestProbeManyNames(t *testing.T) {
	for _, cores := range []int{1, 2, 4, 16, 64} {
		f := newFake(cores, uint64(cores))
		r, err := Probe(t.Context(), f, ProbeConfig{Names: names(100)})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, f, r.Accounting)
		owned := 0
		for _, n := range r.Names {
			if n.Owner == nil || n.Owner.Core != f.owner(n.Name) {
				t.Errorf("%d cores: %s: owner %v, want %d (%s)", cores, n.Name, n.Owner, f.owner(n.Name), n.Line)
			}
			if n.Odds >= 1e-6 {
				t.Errorf("%s: decided at odds %g", n.Name, n.Odds)
			}
		}
		for _, o := range r.Owned {
			owned += o.Names
		}
		if owned != 100 {
			t.Errorf("%d cores: %d of 100 names owned", cores, owned)
		}
		if v := find(r.Verdicts, verdict.Ownership); v.State != verdict.Pass {
			t.Errorf("%d cores: %s", cores, v.Line)
		}
		if r.Removed == 0 {
			t.Errorf("%d cores: no entry of the probe was removed", cores)
		}
		for name, tab := range f.tables {
			if len(tab) > 0 {
				t.Errorf("%d cores: %d entries left in %s", cores, len(tab), name)
			}
		}
	}
}

func TestProbeOutcomes(t *testing.T) {
	three := timingstats.CoreID{Core: 3}
	cases := []struct {
		name    string
		set     func(*fake)
		cfg     ProbeConfig
		outcome verdict.Outcome
		state   verdict.State // of OWNERSHIP
		overall verdict.State
	}{
		{name: "healthy", outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
		{name: "nobody owns it", set: func(f *fake) { f.owner = func(string) int { return -1 } }, outcome: verdict.OutcomeNoOwner, state: verdict.Fail, overall: verdict.Fail},
		{name: "all alike and fast", set: func(f *fake) { f.other = f.own }, outcome: verdict.OutcomeAmbiguous, state: verdict.Incomplete, overall: verdict.Incomplete},
		{name: "all alike, automatic threshold", set: func(f *fake) { f.own = f.other }, cfg: ProbeConfig{AutoThreshold: true}, outcome: verdict.OutcomeNoOwner, state: verdict.Fail, overall: verdict.Fail},
		{name: "slow owner, automatic threshold", set: func(f *fake) {
			f.own = func() int64 { return 150 + f.rng.Int64N(50) }
			f.other = func() int64 { return 1500 + f.rng.Int64N(5000) }
		}, cfg: ProbeConfig{AutoThreshold: true}, outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
		{name: "dead core", set: func(f *fake) { f.dead = map[int]bool{1: true} }, outcome: verdict.OutcomeIncomplete, state: verdict.NotJudged, overall: verdict.Incomplete},
		{name: "too few requests", cfg: ProbeConfig{Requests: 3}, outcome: verdict.OutcomeIncomplete, state: verdict.NotJudged, overall: verdict.Incomplete},
		{name: "unexpected owner", cfg: ProbeConfig{Expect: map[string]timingstats.CoreID{"uuid_01": {Core: 9}}}, outcome: verdict.OutcomeOwner, state: verdict.Fail, overall: verdict.Fail},
		{name: "expected owner", set: func(f *fake) { f.owner = func(string) int { return 3 } }, cfg: ProbeConfig{Expect: map[string]timingstats.CoreID{"uuid_01": three}}, outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
		{name: "no count of cores", set: func(f *fake) { f.noCount = true }, outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
		{name: "no table commands", set: func(f *fake) { f.noTable = true }, outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
		{name: "steady number", cfg: ProbeConfig{Exhaust: true, Requests: 500}, outcome: verdict.OutcomeOwner, state: verdict.Pass, overall: verdict.Pass},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(4, 7)
			f.names = func(core int) string { return fmt.Sprintf("localdb_tmm_%d_1", core) }
			if c.set != nil {
				c.set(f)
			}
			c.cfg.Names = []string{"uuid_01"}
			r, err := Probe(t.Context(), f, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			checkAccount(t, f, r.Accounting)
			n := r.Names[0]
			if n.Outcome != string(c.outcome) {
				t.Errorf("outcome %s, want %s: %s", n.Outcome, c.outcome, n.Line)
			}
			if v := find(r.Verdicts, verdict.Ownership); v.State != c.state {
				t.Errorf("state %v, want %v: %s", v.State, c.state, v.Line)
			}
			if got := verdict.Overall(r.Verdicts, false); got != c.overall {
				t.Errorf("overall %v, want %v: %v", got, c.overall, r.Verdicts)
			}
			if c.cfg.Exhaust && n.Requests != c.cfg.Requests {
				t.Errorf("%d requests, want %d", n.Requests, c.cfg.Requests)
			}
		})
	}
}

// Where the client's address alone decides, steering finds no other core, and
// says so instead of trying for ever.
func TestSteeringWithoutPorts(t *testing.T) {
	f := newFake(4, 3)
	f.weights = []int{0, 0, 1, 0}
	r, err := Probe(t.Context(), f, ProbeConfig{Names: names(200), Steer: true})
	if err != nil || len(r.Missing) != 3 || verdict.Overall(r.Verdicts, false) != verdict.Incomplete || f.requests > 20_000 {
		t.Errorf("%v; missing %v after %d requests; %v", err, r.Missing, f.requests, r.Verdicts)
	}
}

// A dead core is found out once, not for each name anew.
func TestProbeDeadCoreIsBounded(t *testing.T) {
	f := newFake(4, 3)
	f.dead = map[int]bool{2: true}
	r, err := Probe(t.Context(), f, ProbeConfig{Names: names(500)})
	if err != nil {
		t.Fatal(err)
	}
	if f.requests > 60*500 {
		t.Errorf("%d requests for 500 names", f.requests)
	}
	if want := []timingstats.CoreID{{Core: 2}}; !slices.Equal(r.Missing, want) {
		t.Errorf("missing %v, want %v", r.Missing, want)
	}
}

func TestTargetGone(t *testing.T) {
	calls := map[string]func(context.Context, target.Target) error{
		"probe": func(ctx context.Context, f target.Target) error {
			_, err := Probe(ctx, f, ProbeConfig{Names: names(3)})
			return err
		},
		"info":   func(ctx context.Context, f target.Target) error { _, err := Info(ctx, f, AskConfig{}); return err },
		"whoami": func(ctx context.Context, f target.Target) error { _, err := Whoami(ctx, f, AskConfig{}); return err },
		"dump":   func(ctx context.Context, f target.Target) error { _, err := Dump(ctx, f, AskConfig{}); return err },
		"reset":  func(ctx context.Context, f target.Target) error { _, err := Reset(ctx, f, ResetConfig{}); return err },
		"timed": func(ctx context.Context, f target.Target) error {
			_, err := TimedWrites(ctx, f, TimedConfig{})
			return err
		},
	}
	for name, call := range calls {
		for class, want := range map[target.Class]error{target.ClassRefused: ErrUnreachable, target.ClassTimeout: ErrUnreachable, target.ClassMalformed: ErrNoDataplane, target.ClassHTTP5xx: ErrNoDataplane} {
			f := newFake(4, 1)
			f.failWith = class
			err := call(t.Context(), f)
			if !errors.Is(err, want) || target.ClassOf(err) != class {
				t.Errorf("%s, %v: error %v, want %v", name, class, err, want)
			}
			if f.requests > goneAfter {
				t.Errorf("%s, %v: %d requests to a dead target", name, class, f.requests)
			}
		}
		f := newFake(4, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := call(ctx, f); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: error %v", name, err)
		}
	}
}

func TestProbeGoneInMidRun(t *testing.T) {
	f := newFake(4, 1)
	f.goneAt = 100
	r, err := Probe(t.Context(), f, ProbeConfig{Names: names(50)})
	if !errors.Is(err, ErrUnreachable) {
		t.Fatalf("error %v", err)
	}
	if !r.Partial || r.Accounting.OK != 99 {
		t.Errorf("partial %v, ok %d", r.Partial, r.Accounting.OK)
	}
	checkAccount(t, f, r.Accounting)
}

func TestConfigErrors(t *testing.T) {
	f := newFake(4, 1)
	for i, cfg := range []ProbeConfig{
		{}, {Names: []string{""}}, {Names: names(1), Requests: -1}, {Names: names(1), Workers: -1}, {Names: names(1), MaxError: -1},
		{Names: names(1), MaxError: 0.7}, {Names: names(1), Threshold: -5}, {Names: names(1), Exhaust: true}, {Names: names(1), MaxErrors: 2},
	} {
		if r, err := Probe(t.Context(), f, cfg); r != nil || !errors.Is(err, ErrConfig) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	if f.requests != 0 {
		t.Errorf("%d requests were sent", f.requests)
	}
}

// Strays, a slow owner and outliers: right, or honestly undecided, never wrong.
func TestProbeDisturbed(t *testing.T) {
	cases := []struct {
		name      string
		set       func(*fake)
		cfg       ProbeConfig
		undecided int // of 50, at most
	}{
		{"1 of 50 strays", func(f *fake) { stray(f, 50) }, ProbeConfig{}, 0},
		{"3 of 50 strays", func(f *fake) { stray(f, 16) }, ProbeConfig{}, 1},
		{"1 of 4 strays", func(f *fake) { stray(f, 4) }, ProbeConfig{}, 50},
		{"an owner slow in 1 of 5", func(f *fake) {
			own := f.own
			f.own = func() int64 {
				if f.rng.IntN(5) == 0 {
					return 2000
				}
				return own()
			}
		}, ProbeConfig{}, 1},
		{"an owner slow in 1 of 2", func(f *fake) {
			own := f.own
			f.own = func() int64 {
				if f.rng.IntN(2) == 0 {
					return 2000
				}
				return own()
			}
		}, ProbeConfig{}, 50},
		{"outliers of 400,000 clicks", func(f *fake) {
			own := f.own
			f.own = func() int64 {
				if f.rng.IntN(50) == 0 {
					return 400_000
				}
				return own()
			}
		}, ProbeConfig{}, 0},
		{"a slow machine, automatic threshold", func(f *fake) {
			f.own = func() int64 { return 90 + f.rng.Int64N(200) }
			f.other = func() int64 { return 3000 + f.rng.Int64N(100_000) }
		}, ProbeConfig{AutoThreshold: true}, 0},
	}
	for _, c := range cases {
		for _, cores := range []int{2, 4, 16} {
			undecided := 0
			for seed := range uint64(50) {
				f := newFake(cores, seed)
				c.set(f)
				c.cfg.Names = []string{"x"}
				r, err := Probe(t.Context(), f, c.cfg)
				if err != nil {
					t.Fatal(err)
				}
				switch n := r.Names[0]; {
				case n.Outcome == string(verdict.OutcomeNoOwner), n.Owner != nil && n.Owner.Core != f.owner("x"):
					t.Errorf("%s, %d cores, seed %d: %s; it is core %d", c.name, cores, seed, n.Line, f.owner("x"))
				case n.Owner == nil:
					undecided++
				}
			}
			if undecided > c.undecided {
				t.Errorf("%s, %d cores: %d of 50 undecided", c.name, cores, undecided)
			}
		}
	}
}

// stray makes one in n writes of other cores fast.
func stray(f *fake, n int) {
	other := f.other
	f.other = func() int64 {
		if f.rng.IntN(n) == 0 {
			return f.own()
		}
		return other()
	}
}

// An older harness lists the subtable on each probe: that shows and is said.
func TestProbeSaysThatProbingIsSlow(t *testing.T) {
	f := newFake(4, 3)
	f.tables["large"] = make(map[string]string)
	for i := range 5000 {
		f.tables["large"][fmt.Sprint(i)] = "1"
	}
	f.perEntry = time.Microsecond
	r, err := Probe(t.Context(), f, ProbeConfig{Names: []string{"small", "large"}})
	if err != nil {
		t.Fatal(err)
	}
	if w := strings.Join(r.Warnings, "\n"); !strings.Contains(w, `"large"`) || strings.Contains(w, `"small"`) {
		t.Errorf("warnings: %s", w)
	}
}

func TestProbePlan(t *testing.T) {
	for cores, want := range map[int]ProbePlan{4: {4, 1, 29, 500}, 16: {16, 1, 150, 500}, 64: {64, 1, 703, DefaultRequests(64)}} {
		var got ProbePlan
		f := newFake(cores, 1)
		asked := 0
		if _, err := Probe(t.Context(), f, ProbeConfig{Names: names(1), OnPlan: func(p ProbePlan) { got, asked = p, f.requests }}); err != nil {
			t.Fatal(err)
		}
		if got != want || asked > 1 {
			t.Errorf("%d cores: plan %+v after %d requests, want %+v", cores, got, asked, want)
		}
	}
}
