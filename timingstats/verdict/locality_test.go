package verdict

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tbl/timingstats"
)

func core(n int) timingstats.CoreID { return timingstats.CoreID{Core: n} }

// samples makes a core's recorder of fast and slow ones.
func samples(fast, slow int) *timingstats.CoreRecorder {
	c := &timingstats.CoreRecorder{}
	for i := range fast {
		c.Add(int64(3+i%15), timingstats.Fast, 1000)
	}
	for i := range slow {
		c.Add(int64(2000+i), timingstats.Slow, 1000)
	}
	return c
}

func summaries(cores ...*timingstats.CoreRecorder) []timingstats.CoreSummary {
	var out []timingstats.CoreSummary
	for i, c := range cores {
		out = append(out, c.Summary(core(i), 0))
	}
	return out
}

func TestWilson(t *testing.T) {
	const z99 = 2.5758293035489
	for _, c := range []struct{ p, n, low, high float64 }{
		{0, 0, 0, 1},
		{0, 25, 0, 0.2097335},             // z²/(n+z²)
		{1, 8, 0.5466386, 1},              // n/(n+z²)
		{0.5, 100, 0.3752796, 0.6247204},  // 1/2 ± z/(2√(n+z²))
		{0.04, 25, 0.00469485, 0.2697178}, // checked by root finding of |p−π| = z√(π(1−π)/n)
	} {
		low, high := wilson(c.p, c.n, z99)
		if c.p == 0.04 {
			for _, pi := range []float64{low, high} {
				if d := math.Abs(c.p-pi) - z99*math.Sqrt(pi*(1-pi)/c.n); math.Abs(d) > 1e-9 {
					t.Errorf("%v of %v: %v is no root of the score equation", c.p, c.n, pi)
				}
			}
			continue
		}
		if math.Abs(low-c.low) > 1e-6 || math.Abs(high-c.high) > 1e-6 {
			t.Errorf("wilson(%v, %v) = %v, %v, want %v, %v", c.p, c.n, low, high, c.low, c.high)
		}
	}
}

func TestCoreStates(t *testing.T) {
	for _, c := range []struct {
		fast, slow, others int // others: further cores, all healthy
		want               CoreState
	}{
		{25, 0, 3, Local},
		{8, 0, 3, Local},
		{7, 0, 3, Unknown}, // fewer than 8
		{0, 8, 3, Remote},
		{0, 7, 3, Unknown},
		{24, 1, 3, Local}, // a stray sample
		{23, 2, 3, Local},
		{19, 6, 3, Mixed},
		{20, 5, 3, Mixed},   // lower bound 6.7 %
		{21, 4, 3, Local},   // lower bound 4.8 %
		{18, 6, 3, Unknown}, // fewer than 25, interval up to 51 %
		{10, 15, 3, Mixed},
		{1, 24, 3, Remote},
		{5, 20, 3, Remote},
		{50, 50, 3, Mixed},
		{980, 20, 3, Local}, // 2 % of noise
		{900, 100, 3, Mixed},
		// With 64 cores each is judged at 1 − 0.01/64.
		{14, 0, 63, Unknown},
		{15, 0, 63, Local},
		{0, 14, 63, Unknown},
		{0, 15, 63, Remote},
		{20, 5, 63, Unknown}, // [0.04, 0.57]
	} {
		cores := []*timingstats.CoreRecorder{samples(c.fast, c.slow)}
		for range c.others {
			cores = append(cores, samples(30, 0))
		}
		r := JudgeLocality(summaries(cores...), LocalityOptions{})
		if got := r.Cores[0].State; got != c.want {
			t.Errorf("%d fast, %d slow of %d cores: %v [%.3f, %.3f], want %v",
				c.fast, c.slow, c.others+1, got, r.Cores[0].SlowLow, r.Cores[0].SlowHigh, c.want)
		}
	}
}

// TestConfidence: up to eight cores each is judged at 99 %, more of them at
// 1 − 0.01/N. Cores that are missing are judged too.
func TestConfidence(t *testing.T) {
	for _, c := range []struct {
		seen, known int
		want        float64
	}{
		{1, 1, 0.99}, {8, 8, 0.99}, {9, 9, 1 - 0.01/9}, {64, 64, 1 - 0.01/64}, {3, 8, 0.99}, {3, 9, 1 - 0.01/9},
	} {
		var cores []*timingstats.CoreRecorder
		for range c.seen {
			cores = append(cores, samples(30, 0))
		}
		if got := JudgeLocality(summaries(cores...), LocalityOptions{Cores: c.known}).Confidence; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d cores: judged at %v, want %v", c.seen, c.known, got, c.want)
		}
	}
}

func TestLocalityVerdict(t *testing.T) {
	healthy := func() *timingstats.CoreRecorder { return samples(25, 0) }
	for name, c := range map[string]struct {
		cores   []timingstats.CoreSummary
		opt     LocalityOptions
		state   State
		word    string
		mention []string
	}{
		"healthy":        {summaries(healthy(), healthy()), LocalityOptions{}, Pass, "OK", []string{"all 2 cores"}},
		"remote":         {summaries(healthy(), samples(0, 25)), LocalityOptions{}, Fail, "LOCALITY ISSUE", []string{"TMM 1 REMOTE", "25 of 25 slow", "p50 2,012"}},
		"mixed":          {summaries(healthy(), samples(30, 30)), LocalityOptions{}, Fail, "LOCALITY ISSUE", []string{"TMM 1 MIXED"}},
		"count given":    {summaries(healthy(), healthy()), LocalityOptions{Cores: 4}, Incomplete, "INCOMPLETE", []string{"TMMs 2, 3"}},
		"known":          {summaries(healthy()), LocalityOptions{Known: []timingstats.CoreID{core(1)}}, Incomplete, "INCOMPLETE", []string{"TMM 1"}},
		"few":            {summaries(healthy(), samples(5, 0)), LocalityOptions{}, Incomplete, "INCOMPLETE", []string{"to judge TMM 1 (at least 8 a core are needed)"}},
		"nothing":        {nil, LocalityOptions{}, Incomplete, "INCOMPLETE", []string{"no samples"}},
		"nothing of 2":   {nil, LocalityOptions{Cores: 2}, Incomplete, "INCOMPLETE", []string{"TMMs 0, 1"}},
		"issue and gap":  {summaries(samples(0, 25), &timingstats.CoreRecorder{}), LocalityOptions{}, Fail, "LOCALITY ISSUE", []string{"no samples from TMM 1"}},
		"empty recorder": {summaries(healthy(), &timingstats.CoreRecorder{}), LocalityOptions{}, Incomplete, "INCOMPLETE", []string{"TMM 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := JudgeLocality(c.cores, c.opt)
			if r.State != c.state || r.Word() != c.word || r.Name != Locality {
				t.Errorf("%v %q", r.State, r.Line)
			}
			for _, m := range c.mention {
				if !strings.Contains(r.Line, m) {
					t.Errorf("%q lacks %q", r.Line, m)
				}
			}
			if r.State == Fail && len(r.Causes) == 0 {
				t.Error("no likely cause")
			}
		})
	}
}

func TestMixedRatesWidenTheInterval(t *testing.T) {
	// 24 samples at 1/1000 and 1,000 at 1/1: the share rests on about 25.
	c := samples(24, 0)
	for range 1000 {
		c.Add(5, timingstats.Fast, 1)
	}
	r := JudgeLocality(summaries(c), LocalityOptions{})
	if n := r.Cores[0].EffectiveN; n < 25 || n > 27 {
		t.Errorf("n_eff %v", n)
	}
	if r.Cores[0].SlowHigh < 0.19 {
		t.Errorf("interval up to %v from 26 effective samples", r.Cores[0].SlowHigh)
	}
}

// The figures of the log cases, from their samples fed by hand.
func TestLogCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/logs/*.expect.json")
	if err != nil || len(files) != 9 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".expect.json")
		t.Run(name, func(t *testing.T) {
			var want struct {
				Exit    int
				Verdict string
				Remote  []any
				Missing []int
				Cores   map[string]struct {
					N, Fast, Slow, Min, P50, P95, P99, Max int64
					Avg                                    float64
				}
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			set := readCase(t, strings.TrimSuffix(f, ".expect.json")+".log", name)
			r := JudgeLocality(set.Summaries(0), LocalityOptions{})
			if r.Word() != want.Verdict {
				t.Errorf("verdict %q, want %q", r.Line, want.Verdict)
			}
			exit := map[State]int{Pass: 0, Fail: 1, Incomplete: 3}[Overall([]Verdict{r.Verdict}, false)]
			if exit != want.Exit {
				t.Errorf("exit %d, want %d", exit, want.Exit)
			}
			if len(r.Cores) != len(want.Cores) {
				t.Errorf("%d cores, want %d", len(r.Cores), len(want.Cores))
			}
			var remote []string
			for _, c := range r.Cores {
				w := want.Cores[c.Core.String()]
				got := []int64{c.N, c.Fast, c.Slow, c.MinClicks, c.P50Clicks, c.P95Clicks, c.P99Clicks, c.MaxClicks}
				if d := cmp.Diff([]int64{w.N, w.Fast, w.Slow, w.Min, w.P50, w.P95, w.P99, w.Max}, got); d != "" {
					t.Errorf("TMM %v: n fast slow min p50 p95 p99 max (-want +got):\n%s", c.Core, d)
				}
				if a, _ := c.AvgClicks.MarshalJSON(); string(a) != strconv.FormatFloat(w.Avg, 'f', 1, 64) {
					t.Errorf("TMM %v: avg %s, want %.1f", c.Core, a, w.Avg)
				}
				if c.State == Remote {
					remote = append(remote, c.Core.String())
				}
			}
			var wantRemote []string
			for _, c := range want.Remote {
				if f, ok := c.(float64); ok {
					c = strconv.Itoa(int(f))
				}
				wantRemote = append(wantRemote, c.(string))
			}
			if !slices.Equal(remote, wantRemote) {
				t.Errorf("remote %v, want %v", remote, wantRemote)
			}
			var missing []int
			for _, c := range r.Missing {
				missing = append(missing, c.Core)
			}
			if !slices.Equal(missing, want.Missing) {
				t.Errorf("missing %v, want %v", missing, want.Missing)
			}
			if name == "one-outlier" {
				r := JudgeLocality(set.Summaries(0), LocalityOptions{Rule: RuleMean})
				if r.State != Fail || !strings.Contains(r.Line, "TMM 1 REMOTE") || strings.Contains(r.Line, "TMM 0") {
					t.Errorf("by the mean: %q", r.Line)
				}
			}
		})
	}
}

// readCase reads the plain samples of a case; it knows just enough of the
// format for these files.
func readCase(t *testing.T, file, name string) *timingstats.Set {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := regexp.MustCompile(`tmm=(\d+) subtable=\S+ writes=(\d+) key=.*clicks=(-?\d+) (FAST_LOCAL|SLOW) \((?:unique, )?sampled 1/(\d+)\)`)
	slot := regexp.MustCompile(`\bslot(\d+)/`)
	set := &timingstats.Set{}
	last := map[timingstats.CoreID]int64{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		m := line.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		num := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
		id := core(int(num(m[1])))
		if name == "chassis" {
			id.Slot = int(num(slot.FindStringSubmatch(sc.Text())[1]))
		}
		if num(m[2]) <= last[id] { // the next run
			set, last = &timingstats.Set{}, map[timingstats.CoreID]int64{}
		}
		last[id] = num(m[2])
		tag := timingstats.Fast
		if m[4] == "SLOW" {
			tag = timingstats.Slow
		}
		set.Core(id).Add(num(m[3]), tag, num(m[5]))
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

// With mixed rates the share is that of the writes that samples stand for, in
// the figures and in the line, which says so.
func TestMixedRatesWeightTheShare(t *testing.T) {
	dense := func(slow int) *timingstats.CoreRecorder { // 1,000 at 1/1, of which some slow, and 1,000 fast ones at 1/1000
		c := samples(1000, 0)
		for i := range 1000 {
			clicks := int64(5)
			if i < slow {
				clicks = 2000
			}
			c.Add(clicks, timingstats.Untagged, 1)
		}
		return c
	}
	r := JudgeLocality(summaries(dense(100), dense(0)), LocalityOptions{})
	if want := 100.0 / (2 * 1_001_000); math.Abs(r.Figures["slow_share"]-want) > 1e-12 || r.State != Pass {
		t.Errorf("%s: share %v, want %v", r.Line, r.Figures["slow_share"], want)
	}
	if !strings.Contains(r.Line, "100 of 4,000 samples slow, <0.1 % weighted by sampling rate") {
		t.Error(r.Line)
	}
	// Cores of different rates: 30 of 30 at 1/1000, 0 of 1,000 at 1/1.
	remote, local := samples(0, 30), &timingstats.CoreRecorder{}
	for range 1000 {
		local.Add(5, timingstats.Fast, 1)
	}
	r = JudgeLocality(summaries(remote, local), LocalityOptions{})
	if want := 30_000.0 / 31_000; math.Abs(r.Figures["slow_share"]-want) > 1e-12 || r.State != Fail {
		t.Errorf("%s: share %v, want %v", r.Line, r.Figures["slow_share"], want)
	}
	// Half of the samples at 1/1000 are slow, none of those at 1/1.
	half := samples(30, 30)
	for range 60 {
		half.Add(5, timingstats.Fast, 1)
	}
	r = JudgeLocality(summaries(half), LocalityOptions{})
	if r.State != Fail || !strings.Contains(r.Line, "30 of 120 slow, 50 % weighted by sampling rate") {
		t.Error(r.Line)
	}
	// One rate: nothing to say.
	r = JudgeLocality(summaries(samples(990, 10), samples(1000, 0)), LocalityOptions{})
	if strings.Contains(r.Line, "weighted") || math.Abs(r.Figures["slow_share"]-0.005) > 1e-12 {
		t.Error(r.Line, r.Figures)
	}
}

// The remark about a slow machine is about the slow samples, not about all.
func TestCauseNearTheThreshold(t *testing.T) {
	remote := func(fast, slow int, clicks int64) *timingstats.CoreRecorder {
		c := samples(fast, 0)
		for i := range slow {
			c.Add(clicks+int64(i%7), timingstats.Untagged, 1000)
		}
		return c
	}
	for _, tc := range []struct {
		name string
		core *timingstats.CoreRecorder
		want bool
	}{
		{"all near", remote(0, 60, 200), true},
		{"all far", remote(0, 60, 5000), false},
		{"some fast, far", remote(20, 80, 5000), false},
		{"some fast, near", remote(20, 80, 250), true},
		{"many fast, median of all below them", remote(45, 105, 390), true},
		{"median of all near, of the slow ones far", func() *timingstats.CoreRecorder {
			c := remote(20, 0, 0)
			for i := range 80 {
				clicks := int64(5000)
				if i < 32 {
					clicks = 200 // up to the 52nd of 100
				}
				c.Add(clicks, timingstats.Untagged, 1000)
			}
			return c
		}(), false},
	} {
		r := JudgeLocality(summaries(tc.core), LocalityOptions{})
		if r.State != Fail || r.Cores[0].State != Remote {
			t.Fatalf("%s: %s", tc.name, r.Line)
		}
		if got := strings.Contains(strings.Join(r.Causes, " "), "less than four times the threshold"); got != tc.want {
			t.Errorf("%s: %v, want %v: %q", tc.name, got, tc.want, r.Causes)
		}
	}
}

func TestNameShapes(t *testing.T) {
	for name, want := range map[string]NameShape{
		"localdb_tmm_2": BuiltName, "localdb_tmm_12": BuiltName, "tmm_0": BuiltName, "x_tmm_1_tmm_3": BuiltName,
		"localdb_tmm_2_5948": FoundName, "localdb_tmm_2x": FoundName,
		"": OtherName, "tmm_": OtherName, "localdb_tmm_": OtherName, "localdb_tmm_x": OtherName, "sessions": OtherName, "tmm2": OtherName, "localdb_tmm_99999999999999999999": OtherName,
	} {
		if s, b := ShapeOf(name), ShapeOf([]byte(name)); s != want || b != want {
			t.Errorf("%q: %v, %v as bytes, want %v", name, s, b, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { ShapeOf([]byte("localdb_tmm_2_5948")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLocalityCauses: what is said about the names follows from how they look,
// and of a core that only its mean calls remote nothing is said about names.
func TestLocalityCauses(t *testing.T) {
	outlier := samples(24, 0)
	outlier.Add(400_000, timingstats.Slow, 1000)
	const built, luck, found, other, mean = "a name built from the core's number says nothing", "is luck", "their names look found", "that all cores share", "1 of 25 on TMM 1"
	all := []string{built, luck, found, other, mean, "their names were built"}
	for _, c := range []struct {
		what string
		bad  *timingstats.CoreRecorder
		opt  LocalityOptions
		want []string
	}{
		{"built", samples(0, 25), LocalityOptions{Names: map[timingstats.CoreID]NameShape{core(1): BuiltName}}, []string{built, luck}},
		{"found", samples(0, 25), LocalityOptions{Names: map[timingstats.CoreID]NameShape{core(0): BuiltName, core(1): FoundName}}, []string{found}},
		{"fixed", samples(0, 25), LocalityOptions{Names: map[timingstats.CoreID]NameShape{core(1): OtherName}}, []string{other}},
		{"not known", samples(0, 25), LocalityOptions{}, []string{"their names were built"}},
		{"both", samples(0, 25), LocalityOptions{Names: map[timingstats.CoreID]NameShape{core(1): BuiltName | FoundName}}, []string{"their names were built"}},
		{"by the mean", outlier, LocalityOptions{Rule: RuleMean}, []string{mean}},
		{"remote, by the mean", samples(0, 25), LocalityOptions{Rule: RuleMean, Names: map[timingstats.CoreID]NameShape{core(1): FoundName}}, []string{found}},
	} {
		r := JudgeLocality(summaries(samples(25, 0), c.bad), c.opt)
		said := strings.Join(r.Causes, "\n")
		for _, words := range all {
			if got, want := strings.Contains(said, words), slices.Contains(c.want, words); got != want {
				t.Errorf("%s: %q said: %v, want %v:\n%s", c.what, words, got, want, said)
			}
		}
	}
}
