// Package compare tells whether runs differ from other runs, by how much, and
// whether that is real. A sample is one run's figure, never one request: on the
// million latencies of a single run any test finds any difference.
package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"tbl/timingstats"
)

// Direction says which way of a figure is the good one.
type Direction int8

// The directions. The zero value judges nothing: a change is only a change.
const (
	Neutral Direction = iota
	Higher            // higher is better
	Lower             // lower is better
)

var directionNames = [...]string{"", "higher is better", "lower is better"}

// String says it in words; empty for Neutral.
func (d Direction) String() string { return directionNames[d] }

// MarshalText spells the direction for JSON.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Direction) UnmarshalText(b []byte) error {
	i := slices.Index(directionNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown direction %q", b)
	}
	*d = Direction(i)
	return nil
}

// Figure is one number of the runs on both sides.
type Figure struct {
	// Name as in the JSON, with its unit.
	Name   string
	Better Direction
	// Group names the family of comparisons that the figure is corrected
	// within, such as "cores"; empty for the figures of the whole. The permitted
	// error is split: half for the whole, the rest evenly among the groups, so
	// that hundreds of per-core figures don't drown the few that matter most.
	Group string
	// Base and New hold the figure of each run. NaN is left out.
	Base, New []float64
	// BaseDist and NewDist are distributions of single runs, which the figure
	// is the Quantile-th percentile of (50, 99). They are looked at only where
	// a side has a single run; nil: not known.
	BaseDist, NewDist *timingstats.Recorder
	Quantile          float64
}

// Config says how sure to be. The zero value is usable.
type Config struct {
	// Alpha is the probability that any of the figures of runs that don't
	// differ is called different; 0 means 0.01.
	Alpha float64
	// Confidence of the intervals; 0 means 0.95.
	Confidence float64
	// MaxRegress is the change for the worse, as a share, from which a real
	// one fails the comparison (0.1: 10 %); 0 means that none does.
	MaxRegress float64
	// Seed of the bootstrap for single runs. The same seed and runs give the
	// same intervals.
	Seed uint64
}

// Outcome is what is known about one figure.
type Outcome string

// The outcomes.
const (
	NoDifference Outcome = "no difference" // none that these runs could show
	Better       Outcome = "better"
	Worse        Outcome = "worse"
	Different    Outcome = "different"    // of a Neutral figure
	TooFew       Outcome = "too few runs" // the test can't reach significance
	SingleRun    Outcome = "single run"   // only what varies within the runs is known
	Absent       Outcome = "absent"       // on one side or both
)

// Side is the runs of one side.
type Side struct {
	Runs   int     `json:"runs"`
	Median float64 `json:"median"`
	// Low and High are an interval of the median; equal to the lowest and
	// highest run where there are too few for one.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Row is the comparison of one figure.
type Row struct {
	Name    string    `json:"name"`
	Group   string    `json:"group,omitempty"`
	Better  Direction `json:"better,omitempty"`
	Base    Side      `json:"base"`
	New     Side      `json:"new"`
	Outcome Outcome   `json:"outcome"`
	// Change is the typical ratio of a new to a base run, less 1 (0.05: 5 %
	// more): Hodges and Lehmann's estimate. Low and High are its interval;
	// Known says that there is one. Where a base figure isn't positive the
	// change is absolute.
	Change      float64 `json:"change"`
	ChangeLow   float64 `json:"change_low"`
	ChangeHigh  float64 `json:"change_high"`
	ChangeKnown bool    `json:"change_known"`
	Absolute    bool    `json:"absolute,omitempty"`
	// Tested: the runs were enough for the test to find a difference. Figures
	// that are the same in all runs are not tested.
	Tested bool `json:"tested"`
	// P is the Mann–Whitney test's, AdjustedP corrected for the number of
	// comparisons (Holm); both 1 where nothing was tested.
	P         float64 `json:"p"`
	AdjustedP float64 `json:"p_adjusted"`
	// Effect is Cliff's delta: the share of pairs of runs in which the new one
	// is higher less that in which it is lower, from −1 to 1.
	Effect float64 `json:"effect"`
	// MoreRuns is how many more runs each side needs (the larger of the two
	// needs) for the test to be able to find anything; 0: none.
	MoreRuns int `json:"more_runs,omitempty"`
	// Regressed: worse, really, and by more than MaxRegress.
	Regressed bool `json:"regressed"`
	// Note says in words what the figures can't; may be empty.
	Note string `json:"note,omitempty"`
}

// State is the outcome of a whole comparison.
type State string

// The states.
const (
	Holds     State = "pass"       // nothing got worse by more than MaxRegress
	Regressed State = "fail"       //
	Unsure    State = "incomplete" // something looks worse by that much, from too few runs to tell, or nothing could be tested
)

// Report is the comparison of all figures.
type Report struct {
	State      State   `json:"state"`
	Line       string  `json:"line"`
	Alpha      float64 `json:"alpha"`
	Confidence float64 `json:"confidence"`
	MaxRegress float64 `json:"max_regress"`
	Rows       []Row   `json:"rows"`
	// Warnings are doubts about the comparison as a whole.
	Warnings []string `json:"warnings,omitempty"`
}

// Runs compares figure by figure.
func Runs(figures []Figure, cfg Config) Report {
	if cfg.Alpha <= 0 {
		cfg.Alpha = 0.01
	}
	if cfg.Confidence <= 0 {
		cfg.Confidence = 0.95
	}
	r := Report{Alpha: cfg.Alpha, Confidence: cfg.Confidence, MaxRegress: cfg.MaxRegress, Rows: make([]Row, len(figures))}
	// What would be tested if there were runs enough, and what can be.
	wanted, groups := map[string][]int{}, map[string][]int{}
	for i, f := range figures {
		r.Rows[i] = measure(f, cfg, uint64(i))
		switch r.Rows[i].Outcome {
		case "":
			groups[f.Group] = append(groups[f.Group], i)
			fallthrough
		case SingleRun:
			wanted[f.Group] = append(wanted[f.Group], i)
		}
	}
	for name, members := range groups {
		r.decide(members, cfg, share(cfg.Alpha, groups, name))
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Outcome == SingleRun {
			row.MoreRuns = minRuns(share(cfg.Alpha, wanted, row.Group), len(wanted[row.Group])) - min(row.Base.Runs, row.New.Runs)
			row.Note += fmt.Sprintf("how much runs differ by themselves is not known from one: %d more a side are needed", row.MoreRuns)
		}
	}
	r.sum(cfg)
	return r
}

// share is a group's part of alpha: the figures of the whole, which have no
// group, get half.
func share(alpha float64, groups map[string][]int, name string) float64 {
	switch _, whole := groups[""]; {
	case whole && name != "":
		return alpha / (2 * float64(len(groups)-1))
	case whole && len(groups) > 1:
		return alpha / 2
	}
	return alpha / float64(len(groups))
}

// measure fills in all but the corrected test; an Outcome that is set is final.
func measure(f Figure, cfg Config, index uint64) Row {
	base, now := finite(f.Base), finite(f.New)
	row := Row{Name: f.Name, Group: f.Group, Better: f.Better, P: 1, AdjustedP: 1}
	row.Base, row.New = side(base, cfg.Confidence), side(now, cfg.Confidence)
	switch {
	case len(base) == 0 || len(now) == 0:
		row.Outcome = Absent
		row.Note = "the figure is absent on " + map[bool]string{true: "both sides", false: "one side"}[len(base)+len(now) == 0]
		return row
	case len(base) == 1 || len(now) == 1:
		row.Outcome = SingleRun
		single(&row, f, cfg, rand.New(rand.NewPCG(cfg.Seed, index)))
		return row
	}
	row.change(base, now, cfg.Confidence)
	row.Effect = cliff(base, now)
	if slices.Min(base) == slices.Max(base) && slices.Min(now) == slices.Max(now) && base[0] == now[0] {
		// All runs are equal: no test could find anything, and what can't is no
		// part of the family that the others are corrected for.
		row.Outcome = NoDifference
		return row
	}
	t := benchmath.Thresholds{CompareAlpha: cfg.Alpha}
	c := benchmath.AssumeNothing.Compare(benchmath.NewSample(base, &t), benchmath.NewSample(now, &t))
	row.P = min(c.P, 1)
	return row
}

func finite(x []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

func side(x []float64, confidence float64) Side {
	s := Side{Runs: len(x)}
	if len(x) == 0 {
		return s
	}
	sum := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(x), &benchmath.DefaultThresholds), confidence)
	s.Median = sum.Center
	s.Low, s.High = max(sum.Lo, slices.Min(x)), min(sum.Hi, slices.Max(x))
	return s
}

// decide corrects the tests of one group (S. Holm, Scand. J. Stat. 6, 1979) and
// says what they found.
func (r *Report) decide(members []int, cfg Config, alpha float64) {
	slices.SortStableFunc(members, func(a, b int) int {
		switch pa, pb := r.Rows[a].P, r.Rows[b].P; {
		case pa < pb:
			return -1
		case pa > pb:
			return 1
		}
		return 0
	})
	m := len(members)
	worst := 0.0
	for k, i := range members {
		row := &r.Rows[i]
		worst = max(worst, min(1, row.P*float64(m-k)*cfg.Alpha/alpha))
		row.AdjustedP = worst
		n1, n2 := row.Base.Runs, row.New.Runs
		row.Tested = true
		switch {
		case row.AdjustedP < cfg.Alpha:
			row.Outcome = Different
			if up := row.Effect > 0; row.Better != Neutral {
				row.Outcome = Worse
				if up == (row.Better == Higher) {
					row.Outcome = Better
				}
			}
			row.Regressed = row.Outcome == Worse && cfg.MaxRegress > 0 && row.worseBy() > cfg.MaxRegress
		case smallestP(n1, n2) >= alpha/float64(m):
			// Not even runs that don't overlap at all would be significant.
			row.Outcome, row.Tested = TooFew, false
			row.MoreRuns = minRuns(alpha, m) - min(n1, n2)
			row.Note = fmt.Sprintf("%d and %d runs can't show a difference at this certainty: %d a side can", n1, n2, minRuns(alpha, m))
		default:
			row.Outcome = NoDifference
		}
	}
}

// worseBy is the change for the worse as a share, negative when it is one for
// the better.
func (row *Row) worseBy() float64 {
	switch {
	case row.Better == Lower && row.Absolute:
		if row.Change > 0 {
			return math.Inf(1) // from nothing to something
		}
		return 0
	case row.Better == Lower:
		return row.Change
	case row.Better == Higher:
		return -row.Change
	}
	return 0
}

// sum judges the rows together.
func (r *Report) sum(cfg Config) {
	var better, differ, unsure, few, tested, absent, more int
	var worse, regressed []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Tested {
			tested++
		}
		switch row.Outcome {
		case Worse:
			worse = append(worse, row.changed())
		case Better:
			better++
		case Different:
			differ++
		case Absent:
			absent++
		case TooFew, SingleRun:
			few++
			more = max(more, row.MoreRuns)
			if cfg.MaxRegress > 0 && row.worseBy() > cfg.MaxRegress {
				unsure++
			}
		}
		if row.Regressed {
			regressed = append(regressed, row.changed())
		}
	}
	found := fmt.Sprintf("%s: %d worse, %d better, %d otherwise different", count(len(r.Rows), "figure"), len(worse), better, differ)
	if few > 0 {
		found += fmt.Sprintf(", %d with too few runs to tell", few)
	}
	if absent > 0 {
		found += fmt.Sprintf(", %d absent on a side", absent)
	}
	// As many tell everything; fewer may tell some of it.
	needed := count(more, "more run") + " a side"
	limit := fmt.Sprintf("%.3g %%", cfg.MaxRegress*100)
	switch {
	case len(regressed) > 0:
		r.State = Regressed
		r.Line = fmt.Sprintf("REGRESSION: %s (more than %s); %s", first(regressed), limit, found)
	case few > 0 && tested == 0:
		r.State = Unsure
		r.Line = fmt.Sprintf("INCOMPLETE: too few runs to judge anything, %s can tell; %s", needed, found)
		if unsure > 0 {
			r.Line += fmt.Sprintf(", %d of them by the look of it worse by more than %s", unsure, limit)
		}
	case unsure > 0:
		r.State = Unsure
		r.Line = fmt.Sprintf("INCOMPLETE: %s by the look of it worse by more than %s, from too few runs to tell, %s can; %s", count(unsure, "figure"), limit, needed, found)
	case tested == 0 && absent > 0:
		r.State, r.Line = Unsure, "INCOMPLETE: nothing that varies is on both sides; "+found
	case len(worse) > 0 && cfg.MaxRegress <= 0:
		r.State = Holds
		r.Line = fmt.Sprintf("OK, but for want of a limit (--max-regress): worse is %s; %s", first(worse), found)
	case len(worse) > 0:
		r.State = Holds
		r.Line = fmt.Sprintf("OK: worse by no more than %s is %s; %s", limit, first(worse), found)
	case better+differ == 0 && few == 0:
		r.State, r.Line = Holds, "OK: no difference; "+found
	default:
		r.State, r.Line = Holds, "OK: "+found
	}
	if few > 0 && r.State != Unsure {
		r.Line += fmt.Sprintf(" (%s can)", needed)
	}
	if few > 0 && few == len(r.Rows) {
		r.Warnings = append(r.Warnings, "with these few runs nothing is known about how much runs differ from each other by themselves")
	}
}

// named is how many figures a line names.
const named = 8

// first joins the first of them.
func first(figures []string) string {
	if more := len(figures) - named; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(figures[:named], ", "), more)
	}
	return strings.Join(figures, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// changed names the figure with its change.
func (row *Row) changed() string {
	if row.Absolute {
		return fmt.Sprintf("%s %+.3g", row.Name, row.Change)
	}
	return fmt.Sprintf("%s %+.1f %%", row.Name, row.Change*100)
}
