package logreport

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// log is a log being made. Every line is a second later than the one before.
type log struct {
	strings.Builder
	rng *rand.Rand
	at  time.Time
}

func newLog(seed uint64) *log {
	return &log{rng: rand.New(rand.NewPCG(seed, 1)), at: time.Date(2026, 5, 6, 16, 0, 0, 0, time.UTC)}
}

func (l *log) line(host string, core int, message string) {
	l.at = l.at.Add(time.Second)
	fmt.Fprintf(l, "%s %s info tmm%d[100]: Rule /Common/tbl <HTTP_REQUEST>: %s\n", l.at.Format("Jan _2 15:04:05"), host, core, message)
}

// sample is a sampled write; clicks at or above slowFrom carry the slow tag.
func (l *log) sample(host string, core int, subtable string, n int, clicks, slowFrom int64, rate int) {
	tag := "FAST_LOCAL"
	if clicks >= slowFrom {
		tag = "SLOW"
	}
	l.line(host, core, fmt.Sprintf("tmm=%d subtable=%s writes=%d key=k%d clicks=%d %s (sampled 1/%d)", core, subtable, n*rate, n, clicks, tag, rate))
}

func (l *log) probe(host string, core int, name string, clicks, slowFrom int64) {
	tag := "OWNER"
	if clicks >= slowFrom {
		tag = "NON_OWNER"
	}
	l.line(host, core, fmt.Sprintf("PROBE tmm=%d subtable=%s clicks=%d entries=4 %s", core, name, clicks, tag))
}

func report(t *testing.T, text string, opt Options) *Report {
	t.Helper()
	opt.Read.Now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	opt.Read.Location = time.UTC
	r, err := Run(t.Context(), []input.Input{input.Reader("log", strings.NewReader(text))}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fill writes n samples for each of the cores on host, own or others'.
func (l *log) fill(host string, n int, own, other func() int64, slowFrom int64, remote ...int) {
	for i := range n {
		for core := range 4 {
			clicks := own()
			if slices.Contains(remote, core) {
				clicks = other()
			}
			l.sample(host, core, fmt.Sprintf("localdb_tmm_%d_7", core), i+1, clicks, slowFrom, 1000)
		}
	}
}

func between(rng *rand.Rand, from, to int64) func() int64 {
	return func() int64 { return from + rng.Int64N(to-from) }
}

func TestDevice(t *testing.T) {
	for _, tc := range []struct {
		name      string
		log       func(*log)
		opt       Options
		state     verdict.State
		word      string
		remote    []Number
		missing   []Number
		threshold [2]int64 // from, to
		rule      string
		warnings  int
	}{
		{
			name: "healthy", log: func(l *log) { l.fill("a", 30, between(l.rng, 3, 20), nil, 100) },
			state: verdict.Pass, word: "OK", threshold: [2]int64{100, 100}, rule: "fixed",
		},
		{
			name: "one core remote", log: func(l *log) { l.fill("a", 30, between(l.rng, 3, 20), between(l.rng, 700, 3000), 100, 2) },
			state: verdict.Fail, word: "LOCALITY ISSUE", remote: []Number{{Core: 2}}, threshold: [2]int64{100, 100}, rule: "fixed",
		},
		{
			name: "a core that is known to exist", log: func(l *log) { l.fill("a", 30, between(l.rng, 3, 20), nil, 100) },
			opt: Options{Cores: 5}, state: verdict.Incomplete, word: "INCOMPLETE", missing: []Number{{Core: 4}}, threshold: [2]int64{100, 100}, rule: "fixed",
		},
		{
			name: "a slow machine, fixed", log: func(l *log) { l.fill("a", 30, between(l.rng, 150, 250), between(l.rng, 4000, 9000), 100, 2) },
			state: verdict.Fail, word: "LOCALITY ISSUE", remote: []Number{{Core: 0}, {Core: 1}, {Core: 2}, {Core: 3}}, threshold: [2]int64{100, 100}, rule: "fixed",
		},
		{
			name: "a slow machine, auto", log: func(l *log) { l.fill("a", 30, between(l.rng, 150, 250), between(l.rng, 4000, 9000), 100, 2) },
			opt: Options{AutoThreshold: true}, state: verdict.Fail, word: "LOCALITY ISSUE", remote: []Number{{Core: 2}}, threshold: [2]int64{251, 3999}, rule: "auto",
			warnings: 1, // the tags say otherwise
		},
		{
			name: "one population, auto", log: func(l *log) { l.fill("a", 30, between(l.rng, 3, 20), nil, 100) },
			opt: Options{AutoThreshold: true}, state: verdict.Pass, word: "OK", threshold: [2]int64{100, 100}, rule: "fixed", warnings: 1,
		},
		{
			name: "too few", log: func(l *log) { l.fill("a", 3, between(l.rng, 3, 20), nil, 100) },
			state: verdict.Incomplete, word: "INCOMPLETE", threshold: [2]int64{100, 100}, rule: "fixed",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLog(7)
			tc.log(l)
			r := report(t, l.String(), tc.opt)
			if len(r.Devices) != 1 {
				t.Fatalf("%d devices", len(r.Devices))
			}
			d := r.Devices[0]
			if d.Verdict.State != tc.state || d.Word != tc.word || r.Word != tc.word {
				t.Errorf("%v: %s", d.Verdict.State, d.Verdict.Line)
			}
			if !slices.Equal(d.Remote, tc.remote) || !slices.Equal(d.Missing, tc.missing) || !slices.Equal(r.Remote, tc.remote) {
				t.Errorf("remote %v, missing %v; on top: %v", d.Remote, d.Missing, r.Remote)
			}
			if c := d.ThresholdClicks; c < tc.threshold[0] || c > tc.threshold[1] || d.ThresholdRule != tc.rule {
				t.Errorf("threshold %d (%s), want %v (%s)", c, d.ThresholdRule, tc.threshold, tc.rule)
			}
			if len(d.Warnings) != tc.warnings {
				t.Errorf("warnings %q", d.Warnings)
			}
		})
	}
}

// The slowest samples are those at or above the threshold that is judged by.
func TestSlowest(t *testing.T) {
	l := newLog(3)
	l.fill("a", 30, between(l.rng, 150, 250), between(l.rng, 4000, 9000), 100, 2)
	for _, auto := range []bool{false, true} {
		d := report(t, l.String(), Options{Slow: 40, AutoThreshold: auto}).Devices[0]
		want := map[bool]int{false: 40, true: 30}[auto] // of 120, 30 of them remote
		if len(d.Slowest) != want {
			t.Errorf("auto %v: %d samples", auto, len(d.Slowest))
		}
		if !slices.IsSortedFunc(d.Slowest, func(a, b SlowSample) int { return int(b.Clicks - a.Clicks) }) {
			t.Errorf("auto %v: out of order", auto)
		}
		for _, s := range d.Slowest {
			if s.Clicks < d.ThresholdClicks || s.Subtable == "" || s.Key == "" || s.Time == "" {
				t.Errorf("auto %v: %+v below %d", auto, s, d.ThresholdClicks)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	l := newLog(5)
	l.fill("a", 30, between(l.rng, 3, 20), between(l.rng, 700, 3000), 100, 1)
	for kind, want := range map[string]int{"subtable": 4, "host": 1, "minute": 3} {
		d := report(t, l.String(), Options{GroupBy: kind}).Devices[0]
		total := int64(0)
		for _, g := range d.Groups {
			for _, c := range g.Cores {
				total += c.N
				if slow := c.Core.Core == 1; slow != (c.AtThreshold == c.N) || g.Name == "" {
					t.Errorf("%s: group %q: %+v", kind, g.Name, c)
				}
			}
		}
		if len(d.Groups) != want || total != 120 || d.GroupBy != kind {
			t.Errorf("%s: %d groups, %d samples", kind, len(d.Groups), total)
		}
	}
	if kinds := GroupKinds(); len(kinds) != 3 {
		t.Errorf("kinds %v", kinds)
	}
}

// Devices are judged apart, each by its own threshold, and named.
func TestSeveralDevices(t *testing.T) {
	l := newLog(9)
	for i := range 30 { // in turn, as a syslog server writes them
		for core := range 4 {
			fast, slow := between(l.rng, 3, 20)(), between(l.rng, 150, 250)()
			if core == 0 {
				fast = between(l.rng, 400, 900)()
			}
			if core == 3 {
				slow = between(l.rng, 4000, 9000)()
			}
			l.sample("fast", core, "s", i+1, fast, 100, 1000)
			l.sample("slow", core, "s", i+1, slow, 100, 1000)
		}
	}
	l.line("other", 0, "something else")
	r := report(t, l.String(), Options{AutoThreshold: true})
	if len(r.Devices) != 2 || r.Devices[0].Name != "fast" || r.Devices[1].Name != "slow" {
		t.Fatalf("%+v", r.Devices)
	}
	for i, want := range []Number{{Core: 0}, {Core: 3}} {
		d := r.Devices[i]
		if !slices.Equal(d.Remote, []Number{want}) || !strings.HasSuffix(r.Verdicts[i].Line, " (device "+d.Name+")") {
			t.Errorf("%s: remote %v: %s", d.Name, d.Remote, r.Verdicts[i].Line)
		}
	}
	if f, s := r.Devices[0].ThresholdClicks, r.Devices[1].ThresholdClicks; f >= 400 || s < 250 {
		t.Errorf("thresholds %d and %d", f, s)
	}
	if len(r.Cores) != 0 || r.Word != "LOCALITY ISSUE" {
		t.Errorf("on top: %v %s", r.Cores, r.Word)
	}
}

func TestProbes(t *testing.T) {
	owner := func(k int) *timingstats.CoreID { return &timingstats.CoreID{Core: k} }
	for _, tc := range []struct {
		name       string
		own, other [2]int64
		opt        Options
		outcome    verdict.Outcome
		state      verdict.State
		rule       string
		warnings   int
	}{
		{"fixed", [2]int64{3, 20}, [2]int64{700, 3000}, Options{}, verdict.OutcomeOwner, verdict.Pass, "fixed", 0},
		{"the expected owner", [2]int64{3, 20}, [2]int64{700, 3000}, Options{ExpectOwner: owner(1)}, verdict.OutcomeOwner, verdict.Pass, "fixed", 0},
		{"another owner than expected", [2]int64{3, 20}, [2]int64{700, 3000}, Options{ExpectOwner: owner(2)}, verdict.OutcomeOwner, verdict.Fail, "fixed", 0},
		{"a slow machine, fixed", [2]int64{150, 250}, [2]int64{4000, 9000}, Options{}, verdict.OutcomeNoOwner, verdict.Fail, "fixed", 0},
		{"a slow machine, auto", [2]int64{150, 250}, [2]int64{4000, 9000}, Options{AutoThreshold: true}, verdict.OutcomeOwner, verdict.Pass, "auto", 0},
		{"a fast machine, auto", [2]int64{1, 3}, [2]int64{20, 60}, Options{AutoThreshold: true}, verdict.OutcomeOwner, verdict.Pass, "auto", 0},
		{"one population, auto", [2]int64{400, 900}, [2]int64{400, 900}, Options{AutoThreshold: true}, verdict.OutcomeNoOwner, verdict.Fail, "fixed", 1},
		{"a core that is known to exist", [2]int64{3, 20}, [2]int64{700, 3000}, Options{Cores: 5}, verdict.OutcomeIncomplete, verdict.Incomplete, "fixed", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLog(11)
			own, other := between(l.rng, tc.own[0], tc.own[1]), between(l.rng, tc.other[0], tc.other[1])
			for range 20 {
				for core := range 4 {
					for _, name := range []string{"app_b", "app_a"} {
						clicks := other()
						if core == 1 {
							clicks = own()
						}
						l.probe("a", core, name, clicks, 100)
					}
				}
			}
			tc.opt.Probes = true
			r := report(t, l.String(), tc.opt)
			if len(r.Names) != 2 || r.Names[0].Subtable != "app_a" || len(r.Devices) != 0 {
				t.Fatalf("%+v", r.Names)
			}
			for _, n := range r.Names {
				if n.Outcome != tc.outcome || n.State != tc.state || n.ThresholdRule != tc.rule || n.Device != "a" {
					t.Errorf("%v %s: %s", n.State, n.ThresholdRule, n.Line)
				}
				if n.Outcome == verdict.OutcomeOwner && n.Owner.Core != 1 {
					t.Errorf("%s", n.Line)
				}
			}
			if len(r.Warnings) != tc.warnings {
				t.Errorf("warnings %q", r.Warnings)
			}
		})
	}
	if r := report(t, "nothing\n", Options{Probes: true}); len(r.Verdicts) != 1 || r.Verdicts[0].State != verdict.Incomplete {
		t.Errorf("%+v", r.Verdicts)
	}
}

// Cores that must be heard are counted on each blade that was seen, in probes or
// in samples.
func TestProbesOnAChassis(t *testing.T) {
	for _, tc := range []struct {
		cores   int
		sample  bool // of a third blade
		state   verdict.State
		missing string
	}{
		{cores: 0, state: verdict.Pass},
		{cores: 2, state: verdict.Pass},
		{cores: 3, state: verdict.Incomplete, missing: "TMMs 1/2, 2/2 not heard"},
		{cores: 2, sample: true, state: verdict.Incomplete, missing: "TMMs 3/0, 3/1 not heard"},
	} {
		l := newLog(17)
		for range 40 {
			for slot := 1; slot <= 2; slot++ {
				for core := range 2 {
					clicks := between(l.rng, 700, 3000)()
					if slot == 2 && core == 1 {
						clicks = 5
					}
					l.probe(fmt.Sprintf("slot%d/a", slot), core, "app", clicks, 100)
				}
			}
		}
		if tc.sample {
			l.sample("slot3/a", 0, "s", 1, 5, 100, 1000)
		}
		r := report(t, l.String(), Options{Probes: true, Cores: tc.cores})
		if len(r.Names) != 1 || r.Names[0].State != tc.state || !strings.Contains(r.Names[0].Line, tc.missing) {
			t.Errorf("--cores %d: %v", tc.cores, r.Verdicts)
		}
	}
}

// Runs that overlap are not one log, but where the choice is the user's.
func TestOverlap(t *testing.T) {
	start := time.Date(2026, 5, 6, 16, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		back    time.Duration // from the end of run 1 to the start of run 2
		run     logparse.RunSelect
		overlap bool
	}{
		{time.Second, logparse.RunLast, false}, // cores log apart
		{2 * time.Second, logparse.RunLast, false},
		{3 * time.Second, logparse.RunLast, true},
		{time.Hour, logparse.RunLast, true},
		{time.Hour, 2, false},
		{time.Hour, logparse.RunAll, false},
		{-time.Hour, logparse.RunLast, false},
	} {
		l := newLog(19)
		l.at = start
		l.fill("a", 30, between(l.rng, 3, 20), nil, 100)
		l.at = l.at.Add(-tc.back - time.Second)
		l.fill("a", 30, between(l.rng, 3, 20), nil, 100)
		// In one piece: from a pipe, a leap of time is taken for a rotated set.
		path := filepath.Join(t.TempDir(), "ltm")
		if err := os.WriteFile(path, []byte(l.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		opt := Options{Read: logparse.Options{Now: start.AddDate(0, 1, 0), Location: time.UTC, Run: tc.run}}
		r, err := Run(t.Context(), []input.Input{input.File(path)}, opt)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Devices[0]; d.Runs != 2 || strings.Contains(d.Verdict.Line, "began before") != tc.overlap || (d.Verdict.State == verdict.Incomplete) != tc.overlap || d.Word != r.Word {
			t.Errorf("run 2 begins %v before the end of run 1, run %d of %d is asked for: %s", tc.back, tc.run, d.Runs, d.Verdict.Line)
		}
	}
}

// A key in the place of a subtable does not fill the memory, and one sample
// without a group is told already.
func TestTooManyGroups(t *testing.T) {
	for _, extra := range []int{0, 1} {
		l := newLog(23)
		for i := range maxGroups + extra {
			l.sample("a", 0, fmt.Sprint("s", i), i+1, 5, 100, 1000)
		}
		d := report(t, l.String(), Options{GroupBy: "subtable"}).Devices[0]
		told := strings.Contains(strings.Join(d.Warnings, "\n"), "more than 10000 groups: 1 samples are in none")
		if len(d.Groups) != maxGroups || told != (extra > 0) || d.Samples != int64(maxGroups+extra) {
			t.Errorf("%d groups of %d, warnings %q", len(d.Groups), maxGroups+extra, d.Warnings)
		}
	}
}

// A file read in small pieces by several workers gives the same report as in
// one piece by one.
func TestPieces(t *testing.T) {
	l := newLog(13)
	for range 40 {
		l.fill("one", 10, between(l.rng, 3, 20), between(l.rng, 100, 5000), 100, 2)
		l.fill("two", 10, between(l.rng, 3, 20), between(l.rng, 100, 5000), 100, 0)
		for core := range 4 {
			l.probe("one", core, "app", int64(5+core*400), 100)
		}
	}
	path := filepath.Join(t.TempDir(), "ltm")
	if err := os.WriteFile(path, []byte(l.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{
		{Slow: 25}, {Slow: 25, AutoThreshold: true}, {GroupBy: "subtable"}, {GroupBy: "minute"}, {GroupBy: "host"}, {Probes: true}, {Probes: true, AutoThreshold: true},
	} {
		t.Run(fmt.Sprintf("%+v", opt), func(t *testing.T) {
			opt.Read.Now, opt.Read.Location = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), time.UTC
			var out [2]string
			for i := range out {
				opt.Read.Workers, opt.Read.ChunkBytes = 1, 1<<30
				if i == 1 {
					opt.Read.Workers, opt.Read.ChunkBytes = 3, 5000
				}
				r, err := Run(t.Context(), []input.Input{input.File(path)}, opt)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := json.MarshalIndent(r, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				out[i] = string(raw)
			}
			if d := cmp.Diff(out[0], out[1]); d != "" {
				t.Errorf("in pieces (+) it is another report:\n%s", d)
			}
			if len(out[0]) < 500 {
				t.Errorf("an empty report: %s", out[0])
			}
		})
	}
}

// What is said about the names follows from those in the samples.
func TestCausesFollowTheNames(t *testing.T) {
	for subtable, want := range map[string]string{"localdb_tmm_2_5948": "look found", "localdb_tmm_2": "built from the core's number says nothing", "app": "that all cores share"} {
		for _, auto := range []bool{false, true} {
			l := newLog(3)
			l.fill("a", 30, between(l.rng, 3, 20), nil, 100)
			for i := range 30 {
				l.sample("a", 4, subtable, i+1, 5000, 100, 1000)
			}
			v := report(t, l.String(), Options{AutoThreshold: auto}).Verdicts[0]
			if v.State != verdict.Fail || len(v.Causes) == 0 || !strings.Contains(v.Causes[0], want) {
				t.Errorf("%s, threshold auto %v: want %q in %q", subtable, auto, want, v.Causes)
			}
		}
	}
}

// Collectors that are merged hold what one collector holds.
func TestMerge(t *testing.T) {
	one, a, b := newSamples(Options{Slow: 3, Threshold: 100, GroupBy: "subtable"}), newSamples(Options{Slow: 3, Threshold: 100, GroupBy: "subtable"}), newSamples(Options{Slow: 3, Threshold: 100, GroupBy: "subtable"})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		l := logline.Line{Core: i % 3, Clicks: rng.Int64N(400), Rate: 10, Subtable: fmt.Append(nil, "s", i%5), Key: fmt.Append(nil, "k", i)}
		if i >= 190 {
			l.Subtable = fmt.Append(nil, "localdb_tmm_1_", i)
		}
		l.Fast = l.Clicks < 100
		one.Add(&l)
		if i < 90 {
			a.Add(&l)
		} else {
			b.Add(&l)
		}
	}
	a.Merge(b)
	if d := cmp.Diff(one.slowest, a.slowest); d != "" || len(a.slowest) != 3 {
		t.Errorf("slowest (-one +merged):\n%s", d)
	}
	if d := cmp.Diff(one.set.Summaries(100), a.set.Summaries(100)); d != "" {
		t.Errorf("summaries (-one +merged):\n%s", d)
	}
	for id, c := range one.cores {
		if got := a.cores[id]; got == nil || got.names != c.names || c.names != verdict.OtherName|verdict.FoundName {
			t.Errorf("core %s: the names of slow samples look like %v, merged like %+v", id, c.names, got)
		}
	}
	for name, g := range one.groups {
		if d := cmp.Diff(g.Summaries(100), a.groups[name].Summaries(100)); d != "" {
			t.Errorf("group %s (-one +merged):\n%s", name, d)
		}
	}
	a.Reset()
	if a.set.Total().N() != 0 || len(a.groups) != 0 || len(a.slowest) != 0 || a.slow != 3 || a.groupBy != "subtable" {
		t.Errorf("after a reset: %+v", a)
	}
}
