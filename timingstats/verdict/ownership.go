package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tbl/timingstats"
)

// The model of one timed write to a name: how often a core that owns it is
// slow all the same, and one that doesn't is fast.
const (
	pFastOther = 0.06
	pSlowOwner = 0.05
)

// The weight of one sample for "this core is the owner", as a log odds ratio:
// ln((1−pSlowOwner)/pFastOther) and ln(pSlowOwner/(1−pFastOther)). They are for
// whoever plans how many samples to take; Odds decides.
const (
	FastWeight = 2.762117422372486
	SlowWeight = -2.9338568698359033
)

// FastIfOther is the model's share of fast writes on a core that doesn't own
// the name.
const FastIfOther = pFastOther

// DefaultOddsError is the model odds of naming a wrong owner at which a
// decision is taken.
const DefaultOddsError = 1e-6

// OwnershipConfig says what is known before the first sample. The zero value
// is usable: the cores are then those heard of and the gaps below them.
type OwnershipConfig struct {
	// Subtable is the name in question, for the verdict's text.
	Subtable string
	// Expected are the cores that must be heard before anything is decided.
	Expected []timingstats.CoreID
	// Threshold in clicks; 0 means timingstats.DefaultThreshold.
	Threshold int64
	// Error is the model odds of a wrong answer at which to stop; 0 means
	// DefaultOddsError.
	Error float64
	// Want is the owner that the user expects; nil: none.
	Want *timingstats.CoreID
}

// Outcome is what the evidence says about a name's owner.
type Outcome string

// The outcomes.
const (
	OutcomeOwner      Outcome = "OWNER"
	OutcomeNoOwner    Outcome = "NO OWNER"
	OutcomeAmbiguous  Outcome = "AMBIGUOUS"
	OutcomeIncomplete Outcome = "INCOMPLETE"
)

// OwnershipCore is what one core's samples say about a name.
type OwnershipCore struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Owner and NonOwner count the server's own tags.
	Owner    int64 `json:"owner"`
	NonOwner int64 `json:"non_owner"`
	// Fast and Slow count by the threshold; they decide.
	Fast int64 `json:"fast"`
	Slow int64 `json:"slow"`

	MinClicks int64               `json:"min_clicks"`
	AvgClicks timingstats.Average `json:"avg_clicks"`
	MaxClicks int64               `json:"max_clicks"`

	// Posterior is the model's probability that this core is the owner.
	Posterior float64 `json:"posterior"`

	sum float64
}

// Odds is the evidence about one name's owner, taken in sample by sample: the
// posterior over "core k owns it" for each core and "none does", all equally
// likely beforehand. Not safe for concurrent use. What it says depends on the
// samples, not on their order.
type Odds struct {
	cfg   OwnershipConfig
	cores []OwnershipCore // sorted
}

// NewOdds starts without evidence.
func NewOdds(cfg OwnershipConfig) *Odds {
	if cfg.Threshold <= 0 {
		cfg.Threshold = timingstats.DefaultThreshold
	}
	if cfg.Error <= 0 {
		cfg.Error = DefaultOddsError
	}
	o := &Odds{cfg: cfg, cores: make([]OwnershipCore, 0, len(cfg.Expected))}
	for _, id := range cfg.Expected {
		o.core(id)
	}
	return o
}

func (o *Odds) core(id timingstats.CoreID) *OwnershipCore {
	i, ok := slices.BinarySearchFunc(o.cores, id, func(c OwnershipCore, id timingstats.CoreID) int {
		return c.Core.Compare(id)
	})
	if !ok {
		o.cores = slices.Insert(o.cores, i, OwnershipCore{Core: id})
	}
	return &o.cores[i]
}

// Add takes in one timed write that core made: its clicks, and the tag that
// the server gave it (Untagged when it gave none). Negative clicks are
// ignored.
func (o *Odds) Add(core timingstats.CoreID, clicks int64, tag timingstats.Tag) {
	if clicks < 0 {
		return
	}
	c := o.core(core)
	if c.Hits == 0 {
		c.MinClicks, c.MaxClicks = clicks, clicks
	}
	c.Hits++
	c.MinClicks, c.MaxClicks = min(c.MinClicks, clicks), max(c.MaxClicks, clicks)
	c.sum += float64(clicks)
	switch tag {
	case timingstats.Fast:
		c.Owner++
	case timingstats.Slow:
		c.NonOwner++
	}
	if clicks < o.cfg.Threshold {
		c.Fast++
	} else {
		c.Slow++
	}
}

// Missing are the cores that have to be heard and were not: those expected, and
// the gaps in the numbers heard.
func (o *Odds) Missing() []timingstats.CoreID {
	seen := make([]timingstats.CoreID, 0, len(o.cores))
	for i := range o.cores {
		if o.cores[i].Hits > 0 {
			seen = append(seen, o.cores[i].Core)
		}
	}
	if len(seen) == len(o.cores) && len(o.cfg.Expected) > 0 {
		return nil
	}
	return timingstats.Missing(seen, o.cfg.Expected, 0)
}

// weight is the log odds of c being the owner against being none.
func (c *OwnershipCore) weight() float64 {
	return float64(c.Fast)*FastWeight + float64(c.Slow)*SlowWeight
}

// assessment is the posterior boiled down.
type assessment struct {
	best    int     // index of the likeliest core, -1 for none
	err     float64 // model odds that best is wrong
	unheard bool
	fasts   int     // cores that are mostly fast
	second  float64 // weight of the second of those
}

func (o *Odds) assess() assessment {
	a := assessment{best: -1}
	top, second := math.Inf(-1), math.Inf(-1)
	for i := range o.cores {
		c := &o.cores[i]
		if c.Hits == 0 {
			a.unheard = true
		}
		w := c.weight()
		if w > 0 {
			a.fasts++
		}
		if w > top {
			top, second, a.best = w, top, i
		} else if w > second {
			second = w
		}
	}
	a.second = second
	if top <= 0 {
		a.best, top = -1, 0
	}
	// Everything relative to the best hypothesis, "none" having weight 0.
	var others float64
	if a.best >= 0 {
		others = math.Exp(-top)
	}
	for i := range o.cores {
		if i != a.best {
			others += math.Exp(o.cores[i].weight() - top)
		}
	}
	a.err = others
	if len(o.cores) == 0 {
		a.err = math.Inf(1)
	}
	return a
}

// Decided says that more samples are not needed: every core was heard, and the
// model odds of a wrong answer are below the configured error. It is meant to
// be asked after each sample.
func (o *Odds) Decided() bool {
	out, _ := o.outcome()
	return out != OutcomeIncomplete
}

// outcome is what is certain now; OutcomeIncomplete when nothing is.
func (o *Odds) outcome() (Outcome, assessment) {
	a := o.assess()
	if a.unheard || len(o.cores) == 0 || len(o.cfg.Expected) == 0 && len(o.Missing()) > 0 {
		return OutcomeIncomplete, a
	}
	switch {
	case a.fasts > 1:
		// Two owners can't be: the model doesn't hold. Certain when the second
		// one, too, looks like an owner beyond doubt.
		if a.second > -math.Log(o.cfg.Error) {
			return OutcomeAmbiguous, a
		}
	case a.err < o.cfg.Error && a.best >= 0:
		return OutcomeOwner, a
	case a.err < o.cfg.Error:
		return OutcomeNoOwner, a
	}
	return OutcomeIncomplete, a
}

// ErrorOdds is the model odds that the likeliest answer is wrong.
func (o *Odds) ErrorOdds() float64 { return o.assess().err }

// Requests is the number of samples taken in.
func (o *Odds) Requests() int64 {
	var n int64
	for i := range o.cores {
		n += o.cores[i].Hits
	}
	return n
}

// OwnershipReport is the OWNERSHIP verdict with what it rests on.
type OwnershipReport struct {
	Verdict
	Subtable string  `json:"subtable,omitempty"`
	Outcome  Outcome `json:"outcome"`
	// Owner is the owning core when Outcome is OWNER.
	Owner *timingstats.CoreID `json:"owner,omitempty"`
	// ErrorOdds is the model odds that the answer is wrong.
	ErrorOdds       float64              `json:"error_odds"`
	ThresholdClicks int64                `json:"threshold_clicks"`
	Requests        int64                `json:"requests"`
	Cores           []OwnershipCore      `json:"cores"`
	Missing         []timingstats.CoreID `json:"missing"`
	Wanted          *timingstats.CoreID  `json:"expected,omitempty"`
}

// Report judges the evidence as it is. When several cores are mostly fast but
// not beyond doubt the outcome is AMBIGUOUS: there will be no more samples.
func (o *Odds) Report() OwnershipReport {
	out, a := o.outcome()
	missing := o.Missing()
	if out == OutcomeIncomplete && len(missing) == 0 && a.fasts > 1 {
		out = OutcomeAmbiguous
	}
	r := OwnershipReport{
		Verdict: Verdict{Name: Ownership}, Subtable: o.cfg.Subtable, Outcome: out,
		ErrorOdds: a.err, ThresholdClicks: o.cfg.Threshold, Requests: o.Requests(),
		Cores: slices.Clone(o.cores), Missing: missing, Wanted: o.cfg.Want,
	}
	if math.IsInf(r.ErrorOdds, 0) {
		r.ErrorOdds = 1
	}
	o.posteriors(r.Cores)
	of := ""
	if o.cfg.Subtable != "" {
		of = fmt.Sprintf(" of %q", o.cfg.Subtable)
	}
	switch out {
	case OutcomeOwner:
		c := r.Cores[a.best]
		r.Owner = &c.Core
		r.State = Pass
		r.Line = fmt.Sprintf("OWNER TMM %s%s: %s of %s fast, avg %s clicks; model odds of error %s",
			c.Core, of, Thousands(c.Fast), plural(c.Hits, "write"), significant(float64(c.AvgClicks)), odds(a.err))
		if w := o.cfg.Want; w != nil && *w != c.Core {
			r.State = Fail
			r.Line += fmt.Sprintf("; expected TMM %s", *w)
			r.Causes = []string{"Owners move when the number of cores, the license or the hash's seed changes: ask again after every reboot, and don't keep names across one."}
		}
	case OutcomeNoOwner:
		r.State = Fail
		r.Line = fmt.Sprintf("NO OWNER%s: mostly slow on all %s (%s); model odds of error %s",
			of, plural(int64(len(r.Cores)), "core"), plural(r.Requests, "write"), odds(a.err))
		r.Causes = []string{"Either the threshold is too low for this machine (`--threshold auto`), or the owning core is so busy that its own writes are slow."}
	case OutcomeAmbiguous:
		r.State = Incomplete
		var names []string
		for i := range r.Cores {
			if c := &r.Cores[i]; c.weight() > 0 {
				names = append(names, fmt.Sprintf("TMM %s (%s of %s)", c.Core, Thousands(c.Fast), Thousands(c.Hits)))
			}
		}
		r.Line = fmt.Sprintf("AMBIGUOUS%s: mostly fast on %s", of, strings.Join(names, ", "))
		r.Causes = []string{"A name has one owner: the threshold is too high to part the two populations (`--threshold auto`), or ownership moved in mid-probe."}
	default:
		r.State = Incomplete
		switch {
		case r.Requests == 0:
			r.Line = "INCOMPLETE: no samples" + of
		case len(missing) > 0:
			r.Line = fmt.Sprintf("INCOMPLETE: %s not heard in %s%s", coreList(missing), plural(r.Requests, "write"), of)
		default:
			r.Line = fmt.Sprintf("INCOMPLETE: undecided after %s%s, model odds of error %s", plural(r.Requests, "write"), of, odds(min(a.err, 1)))
		}
	}
	r.Figures = map[string]float64{"requests": float64(r.Requests), "error_odds": r.ErrorOdds}
	return r
}

// posteriors fills in each core's average and probability.
func (o *Odds) posteriors(cores []OwnershipCore) {
	top := 0.0
	for i := range cores {
		top = max(top, cores[i].weight())
	}
	sum := math.Exp(-top)
	for i := range cores {
		sum += math.Exp(cores[i].weight() - top)
	}
	for i := range cores {
		c := &cores[i]
		c.Posterior = math.Exp(c.weight()-top) / sum
		if c.Hits > 0 {
			c.AvgClicks = timingstats.Average(c.sum / float64(c.Hits))
		}
	}
}

// OwnershipSample is one timed write to the name in question.
type OwnershipSample struct {
	Core   timingstats.CoreID
	Clicks int64
	Tag    timingstats.Tag
}

// JudgeOwnership judges all samples of one name at once, as from a log.
func JudgeOwnership(samples []OwnershipSample, cfg OwnershipConfig) OwnershipReport {
	o := NewOdds(cfg)
	for _, s := range samples {
		o.Add(s.Core, s.Clicks, s.Tag)
	}
	return o.Report()
}

// NotJudgedOwnership is the verdict while a core is unreached.
func NotJudgedOwnership(missing []timingstats.CoreID) Verdict {
	return notJudged(Ownership, "%s unreached; coverage comes first", coreList(missing))
}
