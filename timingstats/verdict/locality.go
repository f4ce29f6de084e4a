package verdict

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"tbl/timingstats"
)

// Rule is how LOCALITY decides about a core.
type Rule string

// The rules. The zero value means RuleShare.
const (
	RuleShare Rule = "share" // by the share of slow samples and its interval
	RuleMean  Rule = "mean"  // plain: the mean against the threshold
)

// CoreState is where one core's writes go.
type CoreState uint8

// The states. The zero value is UNKNOWN.
const (
	Unknown CoreState = iota // too few samples to say, or none
	Local                    // writes land in its own storage
	Mixed                    // some do, some don't
	Remote                   // most don't
)

var coreStateNames = [...]string{"UNKNOWN", "LOCAL", "MIXED", "REMOTE"}

// String is the state as tables and JSON spell it.
func (s CoreState) String() string { return coreStateNames[s] }

// MarshalText spells the state for JSON.
func (s CoreState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *CoreState) UnmarshalText(b []byte) error {
	for i, n := range coreStateNames {
		if n == string(b) {
			*s = CoreState(i)
			return nil
		}
	}
	return fmt.Errorf("unknown core state %q", b)
}

// The numbers of the LOCALITY rule.
const (
	localityAlpha = 0.01 // error probability of the interval, divided by the cores beyond judgedAlone
	judgedAlone   = 8    // up to so many cores each is judged at localityAlpha
	localityMinN  = 8    // samples for LOCAL and REMOTE
	mixedMinN     = 25   // samples for MIXED
	mixedNoise    = 0.05 // stray slow samples of a healthy core
)

// LocalityOptions says what a core's samples are held against. The zero value
// is right when nothing is known beforehand.
type LocalityOptions struct {
	// Rule decides about a core; empty means RuleShare.
	Rule Rule
	// Cores is the number of cores that must exist, on each blade; 0: not
	// known, then the gaps in the numbers seen are what is missing.
	Cores int
	// Known are cores known to exist from elsewhere (other runs, whoami).
	Known []timingstats.CoreID
	// Names are the shapes of the names that the cores wrote to, for the causes;
	// nil: not known.
	Names map[timingstats.CoreID]NameShape
}

// CoreLocality is one core with its state.
type CoreLocality struct {
	timingstats.CoreSummary
	State CoreState `json:"state"`
	// SlowLow and SlowHigh are the Wilson interval of SlowShare.
	SlowLow  float64 `json:"slow_share_low"`
	SlowHigh float64 `json:"slow_share_high"`
}

// LocalityReport is the LOCALITY verdict with what it rests on.
type LocalityReport struct {
	Verdict
	Rule Rule `json:"rule"`
	// Confidence of the intervals: 0.99, and 1 − 0.01/N beyond 8 cores.
	Confidence float64              `json:"confidence"`
	Cores      []CoreLocality       `json:"cores"`
	Missing    []timingstats.CoreID `json:"missing"`
	// Warnings are doubts about the samples, one sentence each.
	Warnings []string `json:"warnings,omitempty"`
}

// JudgeLocality judges where the cores' writes go. cores are the summaries of
// one device and run, with the threshold they were made with.
func JudgeLocality(cores []timingstats.CoreSummary, opt LocalityOptions) LocalityReport {
	r := LocalityReport{Rule: opt.Rule, Verdict: Verdict{Name: Locality}, Cores: []CoreLocality{}}
	if r.Rule == "" {
		r.Rule = RuleShare
	}
	var seen []timingstats.CoreID
	for _, c := range cores {
		if c.N > 0 {
			seen = append(seen, c.Core)
		}
	}
	known := append([]timingstats.CoreID(nil), opt.Known...)
	for _, c := range cores {
		known = append(known, c.Core)
	}
	r.Missing = []timingstats.CoreID{}
	if len(seen) > 0 || opt.Cores > 0 || len(known) > 0 {
		r.Missing = append(r.Missing, timingstats.Missing(seen, known, opt.Cores)...)
	}

	judged := len(seen) + len(r.Missing)
	alpha := localityAlpha
	if judged > judgedAlone {
		alpha /= float64(judged)
	}
	r.Confidence = 1 - alpha
	z := distuv.UnitNormal.Quantile(1 - alpha/2)

	var n, slow, disagree int64
	var writes, slowWrites float64 // that the samples stand for
	rate, mixed := 0.0, false      // writes per sample of the first core, whether another's differ
	var unknown []timingstats.CoreID
	var bad []CoreLocality
	for _, c := range cores {
		if c.N == 0 {
			continue
		}
		l := CoreLocality{CoreSummary: c}
		l.SlowLow, l.SlowHigh = wilson(c.SlowShare, c.EffectiveN, z)
		l.State = coreState(l, r.Rule)
		r.Cores = append(r.Cores, l)
		n, slow, disagree = n+c.N, slow+c.AtThreshold, disagree+c.Disagreements
		writes, slowWrites = writes+c.EstimatedWrites, slowWrites+c.SlowShare*c.EstimatedWrites
		perSample := c.EstimatedWrites / float64(c.N)
		mixed = mixed || c.MixedRates || rate > 0 && perSample != rate
		rate = perSample
		switch l.State {
		case Unknown:
			unknown = append(unknown, c.Core)
		case Mixed, Remote:
			bad = append(bad, l)
		}
	}
	if disagree > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%s of %s: the tag given at the source says otherwise than the threshold of %s clicks (FAST and SLOW count the tags, the verdict goes by the threshold)",
			plural(disagree, "sample"), Thousands(n), Thousands(cores[0].ThresholdClicks)))
	}

	switch {
	case len(bad) > 0:
		r.State = Fail
		r.Line = "LOCALITY ISSUE: " + describeBad(bad)
		r.Causes = localityCauses(bad, r.Cores, opt.Names)
		if len(r.Missing) > 0 {
			r.Line += "; no samples from " + coreList(r.Missing)
		}
	case n == 0:
		r.State, r.Line = Incomplete, "INCOMPLETE: no samples"
		if len(r.Missing) > 0 {
			r.Line += " from " + coreList(r.Missing)
		}
	case len(unknown) > 0 || len(r.Missing) > 0:
		r.State = Incomplete
		var parts []string
		if len(r.Missing) > 0 {
			parts = append(parts, "no samples from "+coreList(r.Missing))
		}
		if len(unknown) > 0 {
			// A core without a slow sample has the upper bound z²/(n+z²).
			need := max(localityMinN, int(z*z)+1)
			parts = append(parts, fmt.Sprintf("too few samples, or too mixed ones, to judge %s (at least %d a core are needed)", coreList(unknown), need))
		}
		r.Line = "INCOMPLETE: " + strings.Join(parts, "; ")
		if len(r.Missing) > 0 {
			r.Causes = append(r.Causes, "A core that is never heard may be broken: send more requests from more source ports, or log more often.")
		}
		if len(unknown) > 0 {
			r.Causes = append(r.Causes, "Too few writes were timed: write more (--count), or let more of them be logged (--log-sample).")
		}
	default:
		r.State = Pass
		how := fmt.Sprintf("%s of %s slow", Thousands(slow), plural(n, "sample"))
		if slow == 0 {
			how = fmt.Sprintf("%s, none slow", plural(n, "sample"))
		} else if mixed {
			how += ", " + byRate(slowWrites/writes, n)
		}
		r.Line = fmt.Sprintf("OK: writes are local on all %s (%s)", plural(int64(len(r.Cores)), "core"), how)
		if len(r.Cores) == 1 {
			r.Line = fmt.Sprintf("OK: writes are local on the only core seen (%s)", how)
		}
	}
	r.Figures = map[string]float64{
		"n": float64(n), "slow": float64(slow), "cores": float64(len(r.Cores)),
		"cores_bad": float64(len(bad)), "cores_unknown": float64(len(unknown)), "cores_missing": float64(len(r.Missing)),
	}
	if writes > 0 {
		r.Figures["slow_share"] = slowWrites / writes
	}
	return r
}

// coreState is the rule for one core, whose interval is filled in.
func coreState(l CoreLocality, rule Rule) CoreState {
	if rule == RuleMean {
		if float64(l.AvgClicks) < float64(l.ThresholdClicks) {
			return Local
		}
		return Remote
	}
	n := l.EffectiveN
	switch {
	case l.SlowLow > 0.5 && n >= localityMinN:
		return Remote
	case l.SlowLow > mixedNoise && n >= mixedMinN:
		return Mixed
	case l.SlowHigh < 0.5 && n >= localityMinN:
		return Local
	}
	return Unknown
}

// wilson is the score interval of a share p of n observations at z standard
// deviations (E. B. Wilson, JASA 22, 1927). n = 0: the whole [0, 1].
func wilson(p, n, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	zz := z * z
	center := p + zz/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+zz/(4*n*n))
	return max(0, (center-half)/(1+zz/n)), min(1, (center+half)/(1+zz/n))
}

func describeBad(bad []CoreLocality) string {
	parts := make([]string, len(bad))
	for i, c := range bad {
		share := ""
		if c.MixedRates {
			share = ", " + byRate(c.SlowShare, int64(c.EffectiveN))
		}
		parts[i] = fmt.Sprintf("TMM %s %s (%s of %s slow%s, p50 %s, avg %s clicks)",
			c.Core, c.State, Thousands(c.AtThreshold), Thousands(c.N), share, Thousands(c.P50Clicks), significant(float64(c.AvgClicks)))
	}
	return strings.Join(parts, ", ")
}

// byRate says a share of writes where samples were taken at different rates,
// so that it isn't the share of samples.
func byRate(share float64, n int64) string {
	return percent(share, n) + " weighted by sampling rate"
}

// localityCauses are the causes of cores that are not local. Which ones are
// likely follows from the share of slow samples, whatever rule called them bad.
func localityCauses(bad, all []CoreLocality, names map[timingstats.CoreID]NameShape) []string {
	var out, held []string
	var remote, mixed, near int
	var shapes NameShape
	unknown := false // the names of some core
	for _, c := range bad {
		switch coreState(c, RuleShare) {
		case Remote:
			remote++
			shapes |= names[c.Core]
			unknown = unknown || names[c.Core] == 0
			if c.SlowP50Clicks > 0 && c.SlowP50Clicks < 4*c.ThresholdClicks {
				near++
			}
			continue
		case Mixed:
			mixed++
		}
		if c.State == Remote { // by its mean
			held = append(held, fmt.Sprintf("%s of %s on TMM %s", Thousands(c.AtThreshold), Thousands(c.N), c.Core))
		}
	}
	if len(held) > 0 {
		out = append(out, fmt.Sprintf("The mean is over the threshold, but few samples are slow: %s. One that was held up among many is enough for that (--rule share judges by how many are slow).", strings.Join(held, ", ")))
	}
	if remote > 0 {
		if unknown {
			shapes = 0
		}
		out = append(out, "The subtables that these cores write to are owned by other cores"+foreignNames(shapes))
		if shapes == BuiltName && remote < len(all) {
			out = append(out, "That some cores are fast is luck: a built name is its own core's in one case of N.")
		}
	}
	if mixed > 0 {
		out = append(out, "Some writes of a mixed core land and some don't: two names in use at once (a reload in mid-run, or samples of two runs together), or a rule that takes its name from the request.")
	}
	if near > 0 {
		out = append(out, "The slow samples are less than four times the threshold: if the whole machine is slow, the threshold is too low for it (`--threshold auto`).")
	}
	return out
}

// foreignNames says how names of these shapes come to be owned by others, and
// what to do.
func foreignNames(shapes NameShape) string {
	switch shapes {
	case BuiltName:
		return ": a name built from the core's number says nothing about its owner. Find names by timing probes, or ask which core owns a name with `tbl probe`."
	case FoundName:
		return ", though their names look found: discovery took a wrong name, or owners moved since (a reload, a restart). Have the names searched anew, or ask which core owns a name with `tbl probe`."
	case OtherName:
		return ": a name that all cores share, or that a request brings, has one owner, whoever writes. Find a name for each core by timing probes, or ask which core owns a name with `tbl probe`."
	}
	return ": their names were built, from the core's number or otherwise, which says nothing about the owner; or they were found, and discovery took a wrong one or owners moved since (a reload). Find names by timing probes, or ask which core owns a name with `tbl probe`."
}
