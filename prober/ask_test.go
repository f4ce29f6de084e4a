package prober

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func TestWhoami(t *testing.T) {
	cases := []struct {
		name    string
		cores   int
		set     func(*fake)
		state   verdict.State // of all
		names   int
		doubts  []string // one substring each
		missing []timingstats.CoreID
	}{
		{name: "healthy", cores: 4, state: verdict.Pass, names: 4},
		{name: "healthy, older", cores: 4, set: func(f *fake) { f.noTable, f.noCount = true, true }, state: verdict.Pass, names: 4},
		{name: "healthy, 64 cores", cores: 64, state: verdict.Pass, names: 64},
		{name: "two with one name", cores: 4, set: func(f *fake) { f.names = func(int) string { return "shared" } }, state: verdict.Fail, names: 4, doubts: []string{"use one name"}},
		{name: "a lying prefix", cores: 4, set: func(f *fake) {
			f.owner = func(name string) int { return int(name[len(name)-1] - '0') }
			f.names = func(c int) string { return fmt.Sprintf("localdb_tmm_%d_%d", (c+1)%4, c) }
		}, state: verdict.Pass, names: 4, doubts: []string{"carries the number 1, but is core 0's"}},
		{name: "built names", cores: 4, set: func(f *fake) { f.names = func(c int) string { return fmt.Sprintf("localdb_tmm_%d", c) } }, state: verdict.Pass, names: 4, doubts: []string{"was built, not found"}},
		{name: "somebody else's", cores: 4, set: func(f *fake) {
			f.knowsOwn, f.owner = true, func(string) int { return 1 }
			f.names = func(c int) string { return fmt.Sprintf("localdb_tmm_%d_7", c) }
		}, state: verdict.Fail, names: 4, doubts: []string{`core 0 writes into "localdb_tmm_0_7", which core 1 owns`}},
		{name: "somebody else's, by timing", cores: 4, set: func(f *fake) {
			f.owner = func(string) int { return 1 }
			f.names = func(c int) string { return fmt.Sprintf("localdb_tmm_%d_7", c) }
		}, state: verdict.Pass, names: 4, doubts: []string{"core 0 takes long on its own name"}},
		{name: "no name", cores: 4, set: func(f *fake) {
			f.names = func(c int) string { return map[int]string{0: "a", 1: "b", 2: "c"}[c] }
		}, state: verdict.Fail, names: 4, doubts: []string{"core 3 gave no name"}},
		{name: "a dead core", cores: 4, set: func(f *fake) { f.dead = map[int]bool{2: true} }, state: verdict.Incomplete, names: 3, missing: []timingstats.CoreID{{Core: 2}}},
		{name: "one core reached", cores: 4, set: func(f *fake) { f.weights = []int{0, 1, 0, 0} }, state: verdict.Incomplete, names: 1, missing: []timingstats.CoreID{{Core: 0}, {Core: 2}, {Core: 3}}},
		{name: "a restart", cores: 4, set: func(f *fake) {
			before := f.names
			f.names = func(c int) string {
				if f.requests > 15 {
					return fmt.Sprintf("localdb_tmm_%d_99", c)
				}
				return before(c)
			}
		}, state: verdict.Pass, names: 4, doubts: []string{"changed its name"}},
		{name: "a chassis", cores: 2, set: func(f *fake) {
			f.slots = 2
		}, state: verdict.Fail, names: 4, doubts: []string{"cores 1/0 and 2/0 use one name"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(c.cores, 11)
			if c.set != nil {
				c.set(f)
			}
			r, err := Whoami(t.Context(), f, AskConfig{})
			if err != nil {
				t.Fatal(err)
			}
			checkAccount(t, f, r.Accounting)
			if got := verdict.Overall(r.Verdicts, false); got != c.state {
				t.Errorf("state %v, want %v: %v", got, c.state, r.Verdicts)
			}
			if len(r.Names) != c.names {
				t.Errorf("%d names, want %d", len(r.Names), c.names)
			}
			if !slices.Equal(r.Missing, append([]timingstats.CoreID{}, c.missing...)) {
				t.Errorf("missing %v, want %v", r.Missing, c.missing)
			}
			all := strings.Join(r.Warnings, "\n")
			for _, d := range c.doubts {
				if !strings.Contains(all, d) {
					t.Errorf("no doubt says %q:\n%s", d, all)
				}
			}
			if len(c.doubts) == 0 && all != "" {
				t.Errorf("unexpected doubts:\n%s", all)
			}
			for name, tab := range f.tables {
				if len(tab) > 0 {
					t.Errorf("asking left %d entries in %q", len(tab), name)
				}
			}
		})
	}
}

func TestRenamed(t *testing.T) {
	f := newFake(4, 1)
	before, err := Whoami(t.Context(), f, AskConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Renamed(before, before); got != nil {
		t.Errorf("same names: %v", got)
	}
	f.names = func(c int) string { return fmt.Sprintf("localdb_tmm_%d_5", c+10) }
	after, err := Whoami(t.Context(), f, AskConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Renamed(before, after); len(got) != 4 {
		t.Errorf("%d renamed, want 4: %v", len(got), got)
	}
}

func TestInfoAndDump(t *testing.T) {
	f := newFake(4, 2)
	for i := range 400 {
		load(t, f, fmt.Sprintf("key %d", i))
	}
	info, err := Info(t.Context(), f, AskConfig{})
	if err != nil || len(info.Hits) != 4 || verdict.Overall(info.Verdicts, false) != verdict.Pass {
		t.Errorf("info: %v, %+v", err, info)
	}
	dump, err := Dump(t.Context(), f, AskConfig{})
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, d := range dump.Dumps {
		keys += len(d.Keys)
		if int64(len(d.Keys)) != d.Count {
			t.Errorf("core %s: %d keys, count %d", d.Core, len(d.Keys), d.Count)
		}
	}
	if keys != 400 || len(dump.Dumps) != 4 {
		t.Errorf("%d keys of %d cores", keys, len(dump.Dumps))
	}
}

func load(t *testing.T, f *fake, key string) {
	t.Helper()
	var ans target.Answer
	if err := f.Do(t.Context(), &target.Request{Op: target.OpLoad, Key: []byte(key)}, &ans); err != nil {
		t.Fatal(err)
	}
}

func TestReset(t *testing.T) {
	f := newFake(4, 3)
	for i := range 400 {
		load(t, f, fmt.Sprint(i))
	}
	f.table("orphan")["x"] = "1"
	r, err := Reset(t.Context(), f, ResetConfig{AllNames: true, UntilClean: true})
	if err != nil {
		t.Fatal(err)
	}
	checkAccount(t, f, r.Accounting)
	if r.FirstDeleted != 400 || r.TotalDeleted != 400 || !r.Clean || len(r.Resets) != 4 {
		t.Errorf("first %d, total %d, clean %v, %d cores", r.FirstDeleted, r.TotalDeleted, r.Clean, len(r.Resets))
	}
	if want := []Orphan{{"orphan", 1}}; !slices.Equal(r.Orphans, want) {
		t.Errorf("orphans %v, want %v", r.Orphans, want)
	}
	var hits int64
	for _, c := range r.Resets {
		hits += c.Hits
	}
	if hits != 200 {
		t.Errorf("%d hits, want 200", hits)
	}
}

func TestResetHearsEveryCore(t *testing.T) {
	f := newFake(64, 3)
	r, err := Reset(t.Context(), f, ResetConfig{Requests: 10})
	if err != nil || len(r.Resets) != 64 || len(r.Missing) != 0 {
		t.Errorf("%v; %d cores, missing %v", err, len(r.Resets), r.Missing)
	}
	f = newFake(4, 3)
	f.dead = map[int]bool{0: true}
	r, err = Reset(t.Context(), f, ResetConfig{})
	if err != nil || r.Clean || !slices.Equal(r.Missing, []timingstats.CoreID{{Core: 0}}) || verdict.Overall(r.Verdicts, false) != verdict.Incomplete {
		t.Errorf("%v; clean %v, missing %v, %v", err, r.Clean, r.Missing, r.Verdicts)
	}
}

// Somebody who goes on writing is noticed, and not waited for without end.
func TestResetUntilClean(t *testing.T) {
	f := newFake(4, 3)
	f.busy = 2
	r, err := Reset(t.Context(), f, ResetConfig{UntilClean: true})
	if err != nil || r.Clean || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "core 2 still had") || f.requests > 2100 {
		t.Errorf("%v; clean %v, %v after %d requests", err, r.Clean, r.Warnings, f.requests)
	}
	if v := r.Verdicts[len(r.Verdicts)-1]; v.Name != verdict.Leak || v.State != verdict.Incomplete || !strings.Contains(v.Line, "somebody else writes") {
		t.Errorf("%+v", v)
	}
	// Who doesn't wait for the end of it is told of no leak: nothing is known.
	f = newFake(4, 3)
	f.busy = 2
	r, err = Reset(t.Context(), f, ResetConfig{})
	if err != nil || r.Clean || len(r.Warnings) != 1 || slices.ContainsFunc(r.Verdicts, func(v verdict.Verdict) bool { return v.Name == verdict.Leak }) {
		t.Errorf("%v; clean %v, %v, %+v", err, r.Clean, r.Warnings, r.Verdicts)
	}
}

// A silent core keeps nobody from clearing the names that the others tell.
func TestResetNamesBesideASilentCore(t *testing.T) {
	f := newFake(4, 3)
	f.dead = map[int]bool{2: true}
	f.table("app_0")["x"] = "1"
	r, err := Reset(t.Context(), f, ResetConfig{AllNames: true})
	if err != nil || len(r.Orphans) != 1 || r.OrphansDeleted != 1 || !strings.Contains(strings.Join(r.Warnings, " "), "may have been missed") {
		t.Errorf("%v: cleared %v, warnings %q", err, r.Orphans, r.Warnings)
	}
}

// TestResetOfNamesWithoutEnd: an application that makes new names as fast as they
// are cleared is not run after for ever.
func TestResetOfNamesWithoutEnd(t *testing.T) {
	f := newFake(4, 3)
	f.table("app_0")["x"] = "1"
	f.renames = true
	r, err := Reset(t.Context(), f, ResetConfig{AllNames: true})
	if err != nil || len(r.Orphans) != maxNameRounds {
		t.Errorf("%v; %d names cleared, want %d", err, len(r.Orphans), maxNameRounds)
	}
}

// Requests that were on their way at the same time have no order of their own.
func TestResetOrder(t *testing.T) {
	cases := []struct {
		answers            []resetAnswer
		first, last, total int64
	}{
		{[]resetAnswer{{1, 2, 7}, {3, 4, 0}}, 7, 0, 7},
		{[]resetAnswer{{1, 4, 7}, {2, 3, 0}}, 7, 0, 7},
		{[]resetAnswer{{2, 3, 0}, {1, 4, 7}, {5, 6, 0}}, 7, 0, 7},
		{[]resetAnswer{{1, 2, 0}, {3, 4, 7}}, 0, 7, 7},
		{[]resetAnswer{{1, 2, 5}, {3, 4, 0}, {5, 6, 2}}, 5, 2, 7},
	}
	for i, c := range cases {
		r := CoreReset{answers: c.answers}
		r.summarise()
		if r.FirstDeleted != c.first || r.LastDeleted != c.last || r.TotalDeleted != c.total {
			t.Errorf("case %d: first %d last %d total %d, want %d %d %d", i, r.FirstDeleted, r.LastDeleted, r.TotalDeleted, c.first, c.last, c.total)
		}
	}
}

func TestTimedWrites(t *testing.T) {
	for _, cores := range []int{1, 4, 64} {
		f := newFake(cores, 9)
		r, err := TimedWrites(t.Context(), f, TimedConfig{})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, f, r.Accounting)
		ids := r.Samples.IDs()
		if len(ids) != cores {
			t.Errorf("%d of %d cores", len(ids), cores)
		}
		for _, id := range ids {
			if n := r.Samples.Core(id).N(); n < 25 {
				t.Errorf("core %s: %d samples", id, n)
			}
		}
		if v := verdict.JudgeLocality(r.Samples.Summaries(100), verdict.LocalityOptions{Cores: cores}); v.State != verdict.Pass {
			t.Errorf("%d cores: %s", cores, v.Line)
		}
	}
}
