package prober_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tbl/prober"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func plane(t testing.TB, cfg refplane.Config) *refplane.Plane {
	t.Helper()
	p, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("app_name_%d", i)
	}
	return out
}

// Every owner is right against the dataplane's own map, with and without
// steering, and steering needs far fewer requests.
func TestOwnersAgainstTheMap(t *testing.T) {
	for _, cores := range []int{1, 2, 4, 16, 64} {
		for _, steer := range []bool{false, true} {
			p := plane(t, refplane.Config{Cores: cores, Seed: 77, Clock: refplane.Model})
			r, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: names(50), Steer: steer})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range r.Names {
				if want := p.OwnerOf([]byte(n.Name)); n.Owner == nil || n.Owner.Core != want {
					t.Errorf("%d cores, steer %v: %s: %s; want core %d", cores, steer, n.Name, n.Line, want)
				}
			}
			if v := verdict.Overall(r.Verdicts, false); v != verdict.Pass {
				t.Errorf("%d cores, steer %v: %v", cores, steer, r.Verdicts)
			}
			t.Logf("%d cores, steer %v: %d requests for 50 names, virtual %v", cores, steer, r.Accounting.Sent, r.Elapsed.Round(time.Microsecond))
			if per := float64(r.Accounting.Sent) / 50; steer && per > 2*float64(cores)+20 {
				t.Errorf("%d cores, steered: %.0f requests per name", cores, per)
			}
		}
	}
}

// entry is what the dataplane knows of one entry.
type entry struct {
	value string
	meta  target.Meta
}

// entries reads a subtable without touching it.
func entries(t testing.TB, tgt target.Target, subtable string) map[string]entry {
	t.Helper()
	var ans, one target.Answer
	do := func(req target.Request, ans *target.Answer) {
		t.Helper()
		req.Subtable = []byte(subtable)
		if err := tgt.Do(t.Context(), &req, ans); err != nil {
			t.Fatal(err)
		}
	}
	do(target.Request{Op: target.OpTable, Table: target.TableKeys, Flags: target.FlagNoTouch}, &ans)
	out := make(map[string]entry)
	for _, k := range ans.List {
		do(target.Request{Op: target.OpMeta, Key: k}, &one)
		meta := one.Meta
		meta.TimeoutRemaining, meta.LifetimeRemaining = 0, 0 // time goes on; Touched and Created tell
		do(target.Request{Op: target.OpTable, Table: target.TableLookup, Flags: target.FlagNoTouch, Key: k}, &one)
		out[string(k)] = entry{string(one.Result), meta}
	}
	return out
}

// The entries of others and their timers are the same before and after, and
// nothing of the probe's own is left.
func TestProbeIsGentle(t *testing.T) {
	p := plane(t, refplane.Config{Seed: 5, Clock: refplane.Model})
	var ans target.Answer
	for i := range 50 {
		req := target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte("theirs"),
			Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Appendf(nil, "value %d", i),
			Timeout: target.Seconds(100 + i), Lifetime: target.Seconds(1000 + i)}
		if err := p.Do(t.Context(), &req, &ans); err != nil {
			t.Fatal(err)
		}
	}
	before := entries(t, p, "theirs")
	if len(before) != 50 {
		t.Fatalf("%d entries before", len(before))
	}
	if err := p.Clock().Sleep(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []prober.ProbeConfig{{}, {Steer: true}, {Exhaust: true, Requests: 500}} {
		cfg.Names = []string{"theirs"}
		r, err := prober.Probe(t.Context(), p, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Removed != 4 {
			t.Errorf("%d entries removed, want 4: %v", r.Removed, r.Warnings)
		}
		if d := cmp.Diff(before, entries(t, p, "theirs"), cmp.AllowUnexported(entry{})); d != "" {
			t.Errorf("changed by probing (-before +after):\n%s", d)
		}
	}
	// Asking changes nothing either.
	if _, err := prober.Whoami(t.Context(), p, prober.AskConfig{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, entries(t, p, "theirs"), cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("changed by asking (-before +after):\n%s", d)
	}
	// Left alone, the probe's entries expire within a minute.
	if _, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: []string{"theirs"}, KeepEntries: true}); err != nil {
		t.Fatal(err)
	}
	if n := len(entries(t, p, "theirs")); n != 54 {
		t.Errorf("%d entries with those of the probe, want 54", n)
	}
	if err := p.Clock().Sleep(t.Context(), 62*time.Second); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, entries(t, p, "theirs"), cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("a minute later (-before +after):\n%s", d)
	}
}

// A large subtable makes remote writes slow, but the answer no less sure.
func TestProbeLargeSubtable(t *testing.T) {
	p := plane(t, refplane.Config{Seed: 6, Clock: refplane.Model})
	var ans target.Answer
	for i := range 25_000 {
		req := target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte("large"), Key: fmt.Append(nil, i), Value: []byte("1"), Timeout: target.Indefinite}
		if err := p.Do(t.Context(), &req, &ans); err != nil {
			t.Fatal(err)
		}
	}
	r, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: []string{"large"}})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Names[0]
	if n.Owner == nil || n.Owner.Core != p.OwnerOf([]byte("large")) || n.Entries < 25_000 {
		t.Errorf("%s; %d entries", n.Line, n.Entries)
	}
}

func TestFindNames(t *testing.T) {
	for _, cores := range []int{1, 4, 16, 64} {
		for _, steer := range []bool{false, true} {
			if cores == 64 && !steer {
				continue // 85,000 requests
			}
			p := plane(t, refplane.Config{Cores: cores, Seed: 8, Clock: refplane.Model})
			r, err := prober.FindNames(t.Context(), p, prober.FindConfig{Each: 2, Steer: steer, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[string]bool)
			for _, c := range r.Found {
				if len(c.Names) != 2 {
					t.Errorf("%d cores, steer %v: %d names for core %s", cores, steer, len(c.Names), c.Core)
				}
				for _, n := range c.Names {
					if p.OwnerOf([]byte(n)) != c.Core.Core || seen[n] || !strings.HasPrefix(n, "sess_") {
						t.Errorf("%d cores, steer %v: %q for core %s, core %d owns it", cores, steer, n, c.Core, p.OwnerOf([]byte(n)))
					}
					seen[n] = true
				}
			}
			if len(r.Found) != cores || verdict.Overall(r.Verdicts, false) != verdict.Pass {
				t.Errorf("%d cores, steer %v: found for %d: %v", cores, steer, len(r.Found), r.Verdicts)
			}
			t.Logf("%d cores, steer %v: %d names tried, %d requests, %d removed", cores, steer, r.Tried, r.Accounting.Sent, r.Removed)
		}
	}
}

func TestFindNamesForSomeCores(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 8, Seed: 8, Clock: refplane.Model, Faults: []refplane.Fault{{Name: refplane.DeadCore, Core: 5}}})
	r, err := prober.FindNames(t.Context(), p, prober.FindConfig{Cores: []timingstats.CoreID{{Core: 2}, {Core: 5}}, Pattern: "app-{n}-x"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Found) != 2 || len(r.Found[0].Names)+len(r.Found[1].Names) > 1 || len(r.Found[1].Names) != 0 || verdict.Overall(r.Verdicts, false) != verdict.Incomplete {
		t.Errorf("%+v %v", r.Found, r.Verdicts)
	}
	if r, err := prober.FindNames(t.Context(), p, prober.FindConfig{Pattern: "no placeholder"}); r != nil || !errors.Is(err, prober.ErrConfig) {
		t.Errorf("a pattern without a placeholder: %v", err)
	}
}

// An automatic threshold moves while samples come in. What was decided by an
// earlier one is decided anew: no name is left undecided that may be asked
// about again.
func TestAutoThreshold(t *testing.T) {
	for seed := range uint64(60) {
		seed++
		p := plane(t, refplane.Config{Seed: seed, Clock: refplane.Model})
		r, err := prober.Probe(t.Context(), p, prober.ProbeConfig{Names: names(20), AutoThreshold: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r.ThresholdRule != "auto" {
			t.Errorf("seed %d: threshold %d, %s", seed, r.ThresholdClicks, r.ThresholdRule)
		}
		for _, n := range r.Names {
			if n.Outcome == string(verdict.OutcomeIncomplete) && n.Requests < r.Ceiling {
				t.Errorf("seed %d: %s after %d of %d requests: %s", seed, n.Name, n.Requests, r.Ceiling, n.Line)
			}
			if n.Owner != nil && n.Owner.Core != p.OwnerOf([]byte(n.Name)) {
				t.Errorf("seed %d: %s; core %d owns it", seed, n.Line, p.OwnerOf([]byte(n.Name)))
			}
		}
	}
}

// without is a target that has no such operation.
type without struct {
	target.Target
	op target.Op
}

func (w without) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == w.op {
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404, Err: errors.New("not found")}
	}
	return w.Target.Do(ctx, req, ans)
}

// TestResetTellsWhatIsLeft: entries under names of an earlier discovery have
// survived the reset, those of applications may stay, and AllNames clears both.
func TestResetTellsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name        string
		reload, app bool
		without     target.Op // 0: nothing is missing
		left        int64     // -1: not told
		state       verdict.State
		line        string
	}{
		{"clean", false, false, 0, 0, verdict.Pass, "nothing left under any name"},
		{"reload", true, false, 0, 40, verdict.Fail, "40 entries left under other names than the cores' own, those of an earlier discovery among them: localdb_tmm_"},
		{"application", false, true, 0, 1, verdict.Warn, "1 entry left under other names than the cores' own; "},
		{"both", true, true, 0, 41, verdict.Fail, "41 entries left under other names"},
		{"names not told", true, false, target.OpNames, 40, verdict.Warn, "40 entries left under other names than the cores' own; "},
		{"counts not told", true, false, target.OpStats, -1, verdict.Fail, "LEAK: entries left under other names than the cores' own, those of an earlier discovery"},
		{"counts not told, clean", false, true, target.OpStats, -1, verdict.Pass, "nothing left under their names and an earlier discovery's; what is under others, the dataplane doesn't tell"},
	} {
		p := plane(t, refplane.Config{Cores: 4, Seed: 7, Clock: refplane.Model})
		var tgt target.Target = p
		if c.without != 0 {
			tgt = without{p, c.without}
		}
		var ans target.Answer
		do := func(req target.Request) {
			t.Helper()
			if err := p.Do(t.Context(), &req, &ans); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
		}
		if c.reload {
			do(target.Request{Op: target.OpReload})
		}
		if c.app {
			do(target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte("app"), Key: []byte("k"), Value: []byte("v")})
		}
		left := func(cfg prober.ResetConfig) (int64, verdict.Verdict) {
			t.Helper()
			r, err := prober.Reset(t.Context(), tgt, cfg)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if r.EntriesLeft == nil {
				return -1, r.Verdicts[len(r.Verdicts)-1]
			}
			return *r.EntriesLeft, r.Verdicts[len(r.Verdicts)-1]
		}
		if n, v := left(prober.ResetConfig{}); n != c.left || v.Name != verdict.Leak || v.State != c.state || !strings.Contains(v.Line, c.line) {
			t.Errorf("%s: %d left, want %d: %v %q", c.name, n, c.left, v.State, v.Line)
		}
		if c.without == target.OpNames { // those asked for can't be found
			if n, v := left(prober.ResetConfig{AllNames: true}); n != c.left || v.Name != verdict.Leak || v.State != verdict.Fail || !strings.Contains(v.Line, "40 entries survived") || !strings.Contains(v.Causes[0], "`--all-names` cleared") {
				t.Errorf("%s: %d left of all names: %+v", c.name, n, v)
			}
			continue
		}
		if n, v := left(prober.ResetConfig{AllNames: true}); n > 0 || v.Name != verdict.Leak || v.State != verdict.Pass {
			t.Errorf("%s: %d left of all names: %+v", c.name, n, v)
		}
	}
}

// losing loses the first few answers to each operation that it names, and -1 has
// never heard of it.
type losing struct {
	target.Target
	answers map[target.Op]int
}

func (l losing) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	switch n := l.answers[req.Op]; {
	case n < 0:
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404}
	case n > 0:
		l.answers[req.Op]--
		return &target.Error{Class: target.ClassReset, Completion: target.CompletionMaybe}
	}
	return l.Target.Do(ctx, req, ans)
}

// TestResetNeedsEvidence: LEAK passes for what is known and says what isn't; an
// answer that is lost is asked for again.
func TestResetNeedsEvidence(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers map[target.Op]int
		told    bool
		state   verdict.State
		line    string
	}{
		{"lost twice", map[target.Op]int{target.OpStats: 2}, true, verdict.Fail, "40 entries left under other names"},
		{"lost for good", map[target.Op]int{target.OpStats: 1000}, false, verdict.Fail, "LEAK: entries left under other names than the cores' own, those of an earlier discovery"},
		{"names lost twice", map[target.Op]int{target.OpStats: -1, target.OpNames: 2}, false, verdict.Fail, "LEAK: entries left under other names"},
		{"neither", map[target.Op]int{target.OpStats: -1, target.OpNames: -1}, false, verdict.Pass,
			"0 entries removed, nothing left under their names; what is under others, the dataplane doesn't tell"},
	} {
		p := plane(t, refplane.Config{Cores: 4, Seed: 7, Clock: refplane.Model})
		fill(t, p, 40)
		r, err := prober.Reset(t.Context(), losing{p, c.answers}, prober.ResetConfig{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		v := r.Verdicts[len(r.Verdicts)-1]
		_, after := v.Figures["entries_after"]
		if v.Name != verdict.Leak || v.State != c.state || !strings.Contains(v.Line, c.line) || after != c.told || (r.EntriesLeft != nil) != c.told {
			t.Errorf("%s: %v %q, figures %v, left %v", c.name, v.State, v.Line, v.Figures, r.EntriesLeft)
		}
	}
}

// writing is a dataplane into which somebody writes whenever it is asked for its
// holdings: behind the back of who resets it.
type writing struct {
	target.Target
	n *int
}

func (w writing) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpStats {
		for range 3 {
			*w.n++
			var own target.Answer
			if err := w.Target.Do(ctx, &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "w%d", *w.n)}, &own); err != nil {
				return err
			}
		}
	}
	return w.Target.Do(ctx, req, ans)
}

// TestResetWhileSomebodyWrites: what was written since a core was cleared has
// not survived its reset; with entries of an earlier discovery it is no excuse.
func TestResetWhileSomebodyWrites(t *testing.T) {
	for _, all := range []bool{false, true} {
		p := plane(t, refplane.Config{Cores: 4, Seed: 7, Clock: refplane.Model})
		r, err := prober.Reset(t.Context(), writing{p, new(int)}, prober.ResetConfig{AllNames: all})
		if err != nil || r.Clean || !strings.Contains(strings.Join(r.Warnings, "\n"), "somebody else writes") {
			t.Errorf("all names %v: %v, clean %v, warnings %q", all, err, r.Clean, r.Warnings)
		}
		for _, v := range r.Verdicts {
			if v.Name == verdict.Leak && v.State != verdict.Incomplete {
				t.Errorf("all names %v: %v %s", all, v.State, v.Line)
			}
		}
		names := map[string]bool{}
		for _, o := range r.Orphans {
			if names[o.Subtable] {
				t.Errorf("%s listed twice", o.Subtable)
			}
			names[o.Subtable] = true
		}
	}
	p := plane(t, refplane.Config{Cores: 4, Seed: 7, Clock: refplane.Model})
	fill(t, p, 40)
	r, err := prober.Reset(t.Context(), losing{p, nil}, prober.ResetConfig{})
	if err != nil || !r.Clean || r.Verdicts[len(r.Verdicts)-1].State != verdict.Fail {
		t.Errorf("%v: %+v", err, r.Verdicts)
	}
}

// fill writes so many keys, and lets the cores forget under which names.
func fill(t *testing.T, p *refplane.Plane, n int) {
	t.Helper()
	var ans target.Answer
	for i := range n {
		if err := p.Do(t.Context(), &target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)}, &ans); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Do(t.Context(), &target.Request{Op: target.OpReload}, &ans); err != nil {
		t.Fatal(err)
	}
}

// TestResetOfManyNames: also more names than a core lists at once are cleared by
// one call, and its requests are no more than it said it would send.
func TestResetOfManyNames(t *testing.T) {
	const names = 70_000
	p := plane(t, refplane.Config{Cores: 1, Seed: 7, Clock: refplane.Model})
	var ans target.Answer
	for i := range names {
		req := target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: fmt.Appendf(nil, "app_%d", i), Key: []byte("k"), Value: []byte("v"), Timeout: target.Indefinite}
		if err := p.Do(t.Context(), &req, &ans); err != nil {
			t.Fatal(err)
		}
	}
	progress := new(prober.Progress)
	r, err := prober.Reset(t.Context(), p, prober.ResetConfig{AllNames: true, Progress: progress})
	if err != nil || r.EntriesLeft == nil || *r.EntriesLeft != 0 || len(r.Orphans) != names || r.OrphansDeleted != names || len(r.Warnings) > 0 {
		t.Fatalf("%v: %d names cleared of %d entries, %v left, warnings %q", err, len(r.Orphans), r.OrphansDeleted, r.EntriesLeft, r.Warnings)
	}
	if !slices.IsSortedFunc(r.Orphans, func(a, b prober.Orphan) int { return strings.Compare(a.Subtable, b.Subtable) }) {
		t.Error("the names are in no order")
	}
	if v := r.Verdicts[len(r.Verdicts)-1]; v.Name != verdict.Leak || v.State != verdict.Pass {
		t.Errorf("%+v", v)
	}
	if sent, planned := progress.Sent.Load(), progress.Planned.Load(); sent < names || sent > planned {
		t.Errorf("%d requests sent of %d planned", sent, planned)
	}
}

// TestResetThroughFailures: a name whose deletion failed is tried again.
func TestResetThroughFailures(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model, Faults: []refplane.Fault{{Name: refplane.Flap, Share: 0.3}}})
		var ans target.Answer
		for i := range 50 {
			for range 100 {
				req := target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: fmt.Appendf(nil, "app_%d", i), Key: []byte("k"), Value: []byte("v")}
				if p.Do(t.Context(), &req, &ans) == nil {
					break
				}
			}
		}
		r, err := prober.Reset(t.Context(), p, prober.ResetConfig{AllNames: true, MaxErrors: 1})
		if err != nil || r.EntriesLeft == nil || *r.EntriesLeft != 0 {
			t.Errorf("seed %d: %v, %+v", seed, err, r)
		}
	}
}
