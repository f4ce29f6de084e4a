package verdict

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tbl/timingstats"
)

func counts(n ...int64) []CoreCount {
	var out []CoreCount
	for i, c := range n {
		out = append(out, CoreCount{Core: core(i), Count: c})
	}
	return out
}

func TestUniformity(t *testing.T) {
	for name, c := range map[string]struct {
		counts  []CoreCount
		missing []timingstats.CoreID
		p       float64 // 0: not looked at
		state   State
		word    string
		mention string
	}{
		"published even":   {counts(50, 47, 55, 48), nil, 0.859, Pass, "even", "p = 0.86"},
		"published skewed": {counts(55, 70, 8, 67), nil, 1e-10, Warn, "SKEWED", "p = 1e-10"},
		"equal":            {counts(100, 100, 100), nil, 1, Pass, "even", "p = 1"},
		"uneven":           {counts(100, 100, 160), nil, 0, Warn, "uneven", "TMM 2 got 160"},
		"small but sure":   {counts(1_000_000, 1_020_000), nil, 0, Warn, "uneven", "49.50 % instead of 50.00 %"},
		"unreached":        {counts(50, 50), []timingstats.CoreID{core(2)}, 0, NotJudged, "not judged", "TMM 2 unreached"},
		"zero":             {counts(50, 0, 50), nil, 0, NotJudged, "not judged", "TMM 1 unreached"},
		"too few":          {counts(3, 4, 5), nil, 0, NotJudged, "not judged", "too few"},
		"one core":         {counts(3000), nil, 0, NotJudged, "not judged", "one core"},
		"none":             {nil, nil, 0, NotJudged, "not judged", "no requests"},
	} {
		t.Run(name, func(t *testing.T) {
			r := JudgeUniformity(c.counts, c.missing)
			if r.State != c.state || r.Word() != c.word || !strings.Contains(r.Line, c.mention) {
				t.Errorf("%v: %s", r.State, r.Line)
			}
			if c.p > 0 && math.Abs(math.Log10(r.P/c.p)) > 0.1 {
				t.Errorf("p %v, want %v", r.P, c.p)
			}
		})
	}
	if r := JudgeUniformity(counts(55, 70, 8, 67), nil); r.DF != 3 || math.Abs(r.ChiSquare-49.56) > 1e-9 {
		t.Errorf("chi-square %v of %d degrees", r.ChiSquare, r.DF)
	}
}

func TestCoverage(t *testing.T) {
	for name, c := range map[string]struct {
		heard []timingstats.CoreID
		opt   CoverageOptions
		state State
		line  string
		cause string
	}{
		"all":       {coreRange(4), CoverageOptions{Expected: coreRange(4), Requests: 40}, Pass, "OK: all 4 cores heard after 40 requests", ""},
		"dead":      {[]timingstats.CoreID{core(0), core(1), core(3)}, CoverageOptions{Expected: coreRange(4)}, Incomplete, "3 of 4 cores heard, not TMM 2", "dead"},
		"gap":       {[]timingstats.CoreID{core(0), core(2)}, CoverageOptions{}, Incomplete, "not TMM 1", "dead"},
		"one only":  {[]timingstats.CoreID{core(2), core(2)}, CoverageOptions{Expected: coreRange(4)}, Incomplete, "not TMMs 0, 1, 3", "One client address reaches one core only"},
		"by chance": {coreRange(3), CoverageOptions{Expected: coreRange(4), Requests: 36, MissChance: 1e-4}, NotJudged, "3 of 4 cores heard after 36 requests, not TMM 3; so few", ""},
		"no chance": {coreRange(3), CoverageOptions{Expected: coreRange(4), Requests: 37, MissChance: 1e-4}, Incomplete, "3 of 4 cores heard after 37 requests, not TMM 3", "dead"},
		"none":      {nil, CoverageOptions{}, Incomplete, "no core was heard", ""},
		"none of 2": {nil, CoverageOptions{Expected: coreRange(2)}, Incomplete, "no core was heard", ""},
	} {
		r := JudgeCoverage(c.heard, c.opt)
		if r.State != c.state || !strings.Contains(r.Line, c.line) {
			t.Errorf("%s: %v %s", name, r.State, r.Line)
		}
		if c.cause != "" && !strings.Contains(strings.Join(r.Causes, " "), c.cause) {
			t.Errorf("%s: causes %v", name, r.Causes)
		}
	}
	if r := JudgeCoverage(nil, CoverageOptions{Expected: coreRange(2)}); len(r.Missing) != 2 {
		t.Errorf("missing %v", r.Missing)
	}
}

func loads(entries ...int64) []CoreLoad {
	var out []CoreLoad
	for i, n := range entries {
		out = append(out, CoreLoad{Core: core(i), Entries: n, Bytes: n * 100})
	}
	return out
}

func TestBalance(t *testing.T) {
	for name, c := range map[string]struct {
		cores   []CoreLoad
		limit   float64
		missing []timingstats.CoreID
		state   State
	}{
		"balanced":      {loads(1000, 1010, 990), 0, nil, Pass},
		"imbalanced":    {loads(3000, 1000, 1000), 0, nil, Warn},
		"at the limit":  {loads(12500, 7500), 0, nil, Pass},
		"just over":     {loads(12510, 7490), 0, nil, Warn},
		"other limit":   {loads(3000, 1000, 1000), 2, nil, Pass},
		"by chance":     {loads(9, 5, 4), 0, nil, NotJudged},
		"few, all on 1": {loads(40, 0, 0, 0), 0, nil, Warn},
		"unreached":     {loads(3000, 1000), 0, []timingstats.CoreID{core(2)}, NotJudged},
		"empty":         {loads(0, 0), 0, nil, NotJudged},
		"one core":      {loads(100), 0, nil, NotJudged},
		"only bytes":    {[]CoreLoad{{core(0), 5000, 9_000_000}, {core(1), 5000, 1_000_000}}, 0, nil, Warn},
	} {
		if r := JudgeBalance(c.cores, c.limit, c.missing); r.State != c.state {
			t.Errorf("%s: %v %s", name, r.State, r.Line)
		}
	}
	if r := JudgeBalance(loads(3000, 1000, 1000), 0, nil); math.Abs(r.EntriesRatio-1.8) > 1e-12 || !strings.Contains(r.Line, "1.80 (TMM 0, 3,000 of 5,000)") {
		t.Errorf("%v %s", r.EntriesRatio, r.Line)
	}
}

func TestErrorsVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		in    ErrorsInput
		state State
		line  string
	}{
		"none":                          {ErrorsInput{Sent: 100}, Pass, "OK: none of 100 requests failed"},
		"at 1 %":                        {ErrorsInput{Sent: 1000, Classes: map[string]int64{"reset": 10}}, Pass, "10 of 1,000 requests failed, 1 % (reset 10)"},
		"over":                          {ErrorsInput{Sent: 1000, Classes: map[string]int64{"reset": 4, "timeout": 7}}, Fail, "ERRORS: 11 of 1,000 requests failed, 1 % (timeout 7, reset 4)"},
		"none may":                      {ErrorsInput{Sent: 1_000_000, Classes: map[string]int64{"http-5xx": 1}, MaxShare: -1}, Fail, "<0.01 %"},
		"more may":                      {ErrorsInput{Sent: 10, Classes: map[string]int64{"reset": 4}, MaxShare: 0.5}, Pass, "40 %"},
		"refused":                       {ErrorsInput{Sent: 10, Classes: map[string]int64{"refused": 10}}, Incomplete, "none of 10 requests succeeded (refused 10)"},
		"not sent":                      {ErrorsInput{}, Incomplete, "no request was sent"},
		"cut off":                       {ErrorsInput{Sent: 100, Classes: map[string]int64{"canceled": 60}}, Pass, "none of 100 requests failed"},
		"all 4xx":                       {ErrorsInput{Sent: 10, Classes: map[string]int64{"http-4xx": 10}}, Fail, "ERRORS: 10 of 10 requests failed, 100 % (http-4xx 10)"},
		"all 5xx":                       {ErrorsInput{Sent: 10, Classes: map[string]int64{"http-5xx": 10}}, Fail, "ERRORS: 10 of 10 requests failed, 100 %"},
		"malformed":                     {ErrorsInput{Sent: 10, Classes: map[string]int64{"malformed": 10}}, Fail, "ERRORS: 10 of 10"},
		"some answered":                 {ErrorsInput{Sent: 10, Classes: map[string]int64{"refused": 9, "http-5xx": 1}}, Fail, "ERRORS: 10 of 10"},
		"all 4xx and cut off":           {ErrorsInput{Sent: 10, Classes: map[string]int64{"http-4xx": 6, "canceled": 4}}, Fail, "ERRORS: 6 of 10"},
		"all cut off":                   {ErrorsInput{Sent: 10, Classes: map[string]int64{"canceled": 10}}, Incomplete, "none of 10"},
		"all may fail":                  {ErrorsInput{Sent: 10, Classes: map[string]int64{"http-4xx": 10}, MaxShare: 1}, Incomplete, "none of 10"},
		"no dataplane":                  {ErrorsInput{Sent: 10, Classes: map[string]int64{"http-4xx": 10}, Unproven: true}, Incomplete, "none of 10"},
		"none reached":                  {ErrorsInput{Sent: 8, Classes: map[string]int64{"refused": 1, "reset": 1, "timeout": 1, "address exhausted": 1, "truncated": 1, "tls": 1, "client": 1, "closed": 1}}, Incomplete, "none of 8"},
		"a core down":                   {ErrorsInput{Sent: 100, Classes: map[string]int64{"refused": 20, "timeout": 5}, Unreached: []timingstats.CoreID{{Core: 2}}}, NotJudged, "not judged: coverage comes first; 25 of 100 requests failed, 25 % (refused 20, timeout 5)"},
		"a core down, and errors":       {ErrorsInput{Sent: 100, Classes: map[string]int64{"refused": 20, "http-5xx": 5}, Unreached: []timingstats.CoreID{{Core: 2}}}, Fail, "ERRORS: 25 of 100"},
		"a core down, few errors":       {ErrorsInput{Sent: 1000, Classes: map[string]int64{"refused": 2}, Unreached: []timingstats.CoreID{{Core: 2}}}, Pass, "OK: 2 of"},
		"a core down, nothing answered": {ErrorsInput{Sent: 10, Classes: map[string]int64{"refused": 10}, Unreached: []timingstats.CoreID{{Core: 2}}}, Incomplete, "none of 10"},
		"one of one":                    {ErrorsInput{Sent: 1, Classes: map[string]int64{"timeout": 1}, First: map[string]string{"timeout": "no answer in 5s"}}, Incomplete, "none of 1 request succeeded"},
	} {
		v := JudgeErrors(c.in)
		if v.State != c.state || !strings.Contains(v.Line, c.line) {
			t.Errorf("%s: %v %s", name, v.State, v.Line)
		}
	}
	v := JudgeErrors(ErrorsInput{Sent: 10, Classes: map[string]int64{"timeout": 5}, First: map[string]string{"timeout": "no answer in 5s."}})
	if len(v.Causes) != 1 || v.Causes[0] != "First timeout: no answer in 5s." || v.Figures["errors_share"] != 0.5 || v.Figures["ok"] != 5 {
		t.Errorf("%+v", v)
	}
}

func TestErrorsInputAdd(t *testing.T) {
	in := ErrorsInput{Sent: 10}
	in.Add("timeout", 1, "")
	in.Add("timeout", 2, "no answer in 5s")
	in.Add("timeout", 2, "another")
	if v := JudgeErrors(in); v.Figures["errors"] != 5 || len(v.Causes) != 1 || v.Causes[0] != "First timeout: no answer in 5s." {
		t.Errorf("%+v", v)
	}
}

func TestCutShort(t *testing.T) {
	v := CutShort(Verdict{Name: Errors, State: Fail, Line: "ERRORS: 5 of 10"})
	if v.State != Incomplete || v.Line != "INCOMPLETE: cut short: ERRORS: 5 of 10" {
		t.Errorf("%+v", v)
	}
	for _, keep := range []Verdict{{Name: Errors, State: Pass, Line: "OK"}, {Name: Decay, State: Fail, Line: "DECAY"}} {
		if v := CutShort(keep); v.State != keep.State || v.Line != keep.Line {
			t.Errorf("%+v became %+v", keep, v)
		}
	}
}

func TestLeak(t *testing.T) {
	// What passes says what it passes for, and gives no figure that isn't known.
	for _, c := range []struct {
		in         LeakInput
		state      State
		line       string
		after      bool // entries_after is given
		cause, not string
	}{
		{in: LeakInput{Known: true, Deleted: 1200, Cleared: 4}, after: true,
			line: "OK: all 4 cores cleared, 1,200 entries removed, nothing left under any name"},
		{in: LeakInput{Deleted: 1, Cleared: 4},
			line: "OK: all 4 cores cleared, 1 entry removed, nothing left under their names; what is under others, the dataplane doesn't tell"},
		{in: LeakInput{Cleared: 1, Listed: true},
			line: "OK: all 1 core cleared, 0 entries removed, nothing left under their names and an earlier discovery's; what is under others, the dataplane doesn't tell"},
		{in: LeakInput{Cleared: 4, Listed: true, AllNames: true},
			line: "OK: all 4 cores cleared, 0 entries removed, nothing left under their names and the others that the dataplane lists; how many entries it holds, it doesn't tell"},
		{in: LeakInput{Cleared: 4, AllNames: true},
			line: "OK: all 4 cores cleared, 0 entries removed, nothing left under their names; what is under others, the dataplane doesn't tell"},
		{in: LeakInput{Cleared: 4, Orphans: []string{"localdb_tmm_1_5"}, Foreign: true}, state: Fail,
			line:  "LEAK: entries left under other names than the cores' own, those of an earlier discovery among them: localdb_tmm_1_5; the reset deleted 0",
			cause: "`tbl reset --all-names` finds and clears them"},
		{in: LeakInput{Known: true, EntriesAfter: 7, Cleared: 4, Foreign: true}, state: Warn, after: true,
			line:  "LEAK: 7 entries left under other names than the cores' own; the reset deleted 0",
			cause: "`tbl reset --all-names` finds and clears them"},
		{in: LeakInput{Known: true, EntriesAfter: 7, Deleted: 2, Cleared: 4, Listed: true, AllNames: true}, state: Fail, after: true,
			line:  "LEAK: 7 entries survived the reset, which says it deleted 2",
			cause: "`--all-names` cleared every name that the dataplane lists", not: "finds and clears them"},
	} {
		v := JudgeLeak(c.in)
		causes := strings.Join(v.Causes, " ")
		if _, after := v.Figures["entries_after"]; v.State != max(c.state, Pass) || v.Line != c.line || after != c.after ||
			!strings.Contains(causes, c.cause) || c.not != "" && strings.Contains(causes, c.not) {
			t.Errorf("%+v: %v %q %v %q", c.in, v.State, v.Line, v.Figures, v.Causes)
		}
	}
	if v := JudgeLeak(LeakInput{Known: true, Refilled: true, Deleted: 12}); v.State != Incomplete || !strings.HasPrefix(v.Line, "INCOMPLETE: not clean") {
		t.Errorf("%v %s", v.State, v.Line)
	}
	if v := JudgeLeak(LeakInput{Known: true, EntriesAfter: 5, Unreached: []timingstats.CoreID{{Core: 2}}}); v.State != NotJudged || !strings.Contains(v.Line, "TMM 2 unreached") {
		t.Errorf("%v %s", v.State, v.Line)
	}

	if v := JudgeLeak(LeakInput{}); v.State != NotJudged {
		t.Errorf("unknown: %v", v.State)
	}
	if v := JudgeLeak(LeakInput{Known: true, EntriesBefore: 500, Deleted: 500}); v.State != Pass || !strings.Contains(v.Line, "deleted 500 entries") {
		t.Errorf("%v %s", v.State, v.Line)
	}
	v := JudgeLeak(LeakInput{Known: true, EntriesBefore: 500, EntriesAfter: 400, BytesAfter: 44_000, Deleted: 100, Cores: loads(0, 300, 100)})
	if v.State != Fail || !strings.Contains(v.Line, "400 entries survived the reset, 44,000 bytes, which says it deleted 100 (on TMMs 1, 2)") {
		t.Errorf("%v %s", v.State, v.Line)
	}
}

func TestLogBudget(t *testing.T) {
	for _, c := range []struct {
		lines, writes int64
		state         State
	}{{10, 1000, Pass}, {11, 1000, Warn}, {1, 1000, Pass}, {1000, 1000, Warn}, {0, 5, Pass}, {5, 0, NotJudged}} {
		if v := JudgeLogBudget(c.lines, c.writes); v.State != c.state {
			t.Errorf("%d lines for %d writes: %v %s", c.lines, c.writes, v.State, v.Line)
		}
	}
}

func TestOverall(t *testing.T) {
	v := func(states ...State) (out []Verdict) {
		for _, s := range states {
			out = append(out, Verdict{State: s})
		}
		return
	}
	for _, c := range []struct {
		vs     []Verdict
		strict bool
		want   State
	}{
		{nil, false, Pass}, {v(NotJudged, NotJudged), true, Pass}, {v(Pass, Warn), false, Pass}, {v(Pass, Warn), true, Fail},
		{v(Incomplete, Pass), false, Incomplete}, {v(Incomplete, Fail, Pass), false, Fail}, {v(Incomplete, Warn), true, Fail},
	} {
		if got := Overall(c.vs, c.strict); got != c.want {
			t.Errorf("%+v strict %v: %v, want %v", c.vs, c.strict, got, c.want)
		}
	}
	if w, ok := Worst(v(Pass, Incomplete, Warn), false); !ok || w.State != Incomplete {
		t.Errorf("worst %v", w.State)
	}
	if w, ok := Worst(v(Pass, Incomplete, Warn), true); !ok || w.State != Warn {
		t.Errorf("worst under strict %v", w.State)
	}
	if _, ok := Worst(nil, false); ok {
		t.Error("a worst of none")
	}
}

// Every rule is in the table once, in the order of judgement, and what a report
// embeds comes out flat in JSON.
func TestTable(t *testing.T) {
	seen := map[Name]bool{}
	for _, i := range Table() {
		if i.Help == "" || seen[i.Name] {
			t.Errorf("%+v", i)
		}
		seen[i.Name] = true
	}
	for _, n := range []Name{Coverage, Errors, Locality, Ownership, Uniformity, Tail, Decay, Drift, Leak, Balance, Sticky, LogBudget, Assert, Proof} {
		if !seen[n] {
			t.Errorf("%s is not in the table", n)
		}
	}
	b, err := json.Marshal(JudgeLocality(summaries(samples(25, 0)), LocalityOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name":"LOCALITY"`, `"state":"pass"`, `"state":"LOCAL"`, `"p99_is_max":true`, `"missing":`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
}

func TestNumbersInText(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 25000: "25,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("Thousands(%d) = %s", n, got)
		}
	}
	for _, c := range []struct {
		share float64
		n     int64
		want  string
	}{
		{0.5, 10, "50 %"}, {0.123456, 5000, "12.3 %"}, {0.123456, 1_000_000, "12.35 %"},
		{0.0001, 1000, "<1 %"}, {0.9999, 1000, ">99 %"}, {0, 1000, "0 %"}, {1, 1000, "100 %"}, {0.00001, 1_000_000, "<0.01 %"},
	} {
		if got := percent(c.share, c.n); got != c.want {
			t.Errorf("percent(%v, %d) = %q, want %q", c.share, c.n, got, c.want)
		}
	}
	for ns, want := range map[float64]string{5: "5 ns", 1500: "1.50 µs", 22_900: "22.9 µs", 229_000: "229 µs", 1.5e6: "1.50 ms", 12e9: "12.0 s", 4.3e11: "430 s"} {
		if got := duration(ns); got != want {
			t.Errorf("duration(%v) = %q, want %q", ns, got, want)
		}
	}
}

// Ports that are used again and again lead to the same cores again: what
// looks skewed at so many independent requests is chance at so few ports.
func TestUniformityOverPorts(t *testing.T) {
	const ports, requests, cores, runs = 14_000, 200_000, 4, 300
	alarms, naive := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var home [ports]int
		for i := range home {
			home[i] = rng.IntN(cores)
		}
		got := make([]CoreCount, cores)
		for i := range got {
			got[i].Core.Core = i
		}
		for range requests {
			got[home[rng.IntN(ports)]].Count++
		}
		if JudgeUniformityOverPorts(got, nil, ports).State != Pass {
			alarms++
		}
		if JudgeUniformity(got, nil).State != Pass {
			naive++
		}
	}
	if alarms > 3 || naive < runs/4 {
		t.Errorf("%d of %d runs warned, %d without the ports", alarms, runs, naive)
	}
	skewed := counts(80_000, 40_000, 40_000, 40_000)
	if v := JudgeUniformityOverPorts(skewed, nil, ports); v.State != Warn || !strings.HasPrefix(v.Line, "SKEWED") {
		t.Errorf("a real skew: %s", v.Line)
	}
}
