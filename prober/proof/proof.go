// Package proof runs the five steps that show, or refute, that every core
// writes into storage it owns: every core found its own name, a clean reset,
// a load, every sampled write local, each found name owned by its core.
package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tbl/loader"
	"tbl/logparse"
	"tbl/logparse/logline"
	"tbl/prober"
	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Step is one of the five steps.
type Step uint8

// The steps, in the order in which they run.
const (
	StepNames    Step = iota + 1 // every core found its own name
	StepReset                    // clean reset
	StepLoad                     // load
	StepLocality                 // every sampled write local
	StepOwners                   // each found name owned by its core
)

// Steps is the table of the steps: the number is the index plus one.
func Steps() []StepInfo {
	return []StepInfo{
		{StepNames, "names", "every core found its own name"},
		{StepReset, "reset", "clean reset"},
		{StepLoad, "load", "load, one write per fresh connection"},
		{StepLocality, "locality", "every sampled write local"},
		{StepOwners, "owners", "each found name owned by its core"},
	}
}

// StepInfo describes a step.
type StepInfo struct {
	Step  Step   `json:"step"`
	Word  string `json:"word"`  // as in --step and --skip
	Title string `json:"title"` // as in the report
}

// Log gives the sampled log lines that the dataplane wrote during the load.
type Log interface {
	// Begin marks the start of the window, before the first write.
	Begin(ctx context.Context) error
	// End marks its end, waits for what is still on its way, and gives every
	// sample of the window to add; a line is valid until add returns.
	End(ctx context.Context, add func(*logline.Line)) (logparse.Counts, error)
}

// Config configures Run.
type Config struct {
	// Count is the number of writes of the load. 0: with a Log as many as give
	// 25 sampled lines for each core, 25·cores·LogSample (100,000 for 4 cores);
	// without, 25,000 for each core and 100,000 at most.
	Count int
	// ProbeRequests is the most that is sent for one name in the last step.
	// 0: as many as the cores need, at least 200.
	ProbeRequests int
	// Workers is the number of concurrent requests. 0: 64.
	Workers int
	// Destroy allows to delete entries that were there before.
	Destroy bool
	// Log is where the timed writes of step 4 come from. Nil: one-key bulk
	// loads, which every dataplane times, until each core has TimedPerCore.
	Log Log
	// LogSample is the log's sampling rate, 1 in LogSample writes. 0: 1000.
	LogSample int
	// TimedPerCore is the number of timed writes per core without a Log. 0: 25.
	TimedPerCore int
	// Threshold in clicks: a write below it is local. 0: 100.
	Threshold int64
	// Only are the steps to run and Skip those to leave out. Nil: all, none.
	Only, Skip []Step
	// Names are further names whose owners the last step finds.
	Names []string
	// Steer reaches cores on purpose where the target allows it.
	Steer bool
	// MaxErrors is the share of failed requests above which a step fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	// Progress is of the step that runs. Nil: nobody looks.
	Progress *Progress
}

// Progress is filled while Run runs, and may be read meanwhile.
type Progress struct {
	// OnStep is called when a step starts, by Run's goroutine. May be nil.
	OnStep func(StepInfo)
	now    atomic.Pointer[stepProgress]
}

// stepProgress is a step with its own counters.
type stepProgress struct {
	info   StepInfo
	counts *prober.Progress
}

// Now is the step that runs, or ran last, and what it counts: the two belong
// together. Before the first step the counts are nil.
func (p *Progress) Now() (StepInfo, *prober.Progress) {
	if s := p.now.Load(); s != nil {
		return s.info, s.counts
	}
	return StepInfo{}, nil
}

// Result is the proof.
type Result struct {
	Target  string               `json:"target"`
	Cores   []timingstats.CoreID `json:"known_cores"`
	Steps   []StepResult         `json:"steps"`
	Overall verdict.Verdict      `json:"overall"`
	// Evidence, nil for steps that did not run.
	Whoami *prober.WhoamiResult `json:"whoami,omitempty"`
	Reset  *prober.ResetResult  `json:"reset,omitempty"`
	Load   *loader.LoadResult   `json:"load,omitempty"`
	// Locality judges the samples; LogCounts is what the log held, nil where
	// the samples are timed writes of our own, which Timed accounts for.
	Locality  *verdict.LocalityReport `json:"locality,omitempty"`
	LogCounts *logparse.Counts        `json:"log,omitempty"`
	Timed     *prober.TimedResult     `json:"timed,omitempty"`
	Owners    *prober.ProbeResult     `json:"owners,omitempty"`
	// Changed is what the run changed on the target; PutBack which of it was
	// undone; Lost which can't be.
	Changed []string      `json:"changed,omitempty"`
	PutBack []string      `json:"put_back,omitempty"`
	Lost    []string      `json:"lost,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// Partial says that the run was cut short.
	Partial  bool     `json:"partial,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// StepResult is one step's outcome.
type StepResult struct {
	StepInfo
	State verdict.State `json:"state"`
	// Line is the step's verdict in one line, More what else it has to say.
	Line     string            `json:"line"`
	More     []string          `json:"more,omitempty"`
	Verdicts []verdict.Verdict `json:"verdicts,omitempty"`
	Elapsed  time.Duration     `json:"elapsed_ns"`
	// Skipped says that the step did not run.
	Skipped bool `json:"skipped,omitempty"`
}

// NotEmptyError refuses to run on a target whose cores hold entries.
type NotEmptyError struct {
	Entries []CoreEntries // the cores that hold any, in order
}

// CoreEntries is a core's number of entries.
type CoreEntries struct {
	Core     timingstats.CoreID `json:"core"`
	Subtable string             `json:"subtable"`
	Entries  int64              `json:"entries"`
}

// Error names the counts.
func (e *NotEmptyError) Error() string {
	var b strings.Builder
	b.WriteString("the target holds entries:")
	for i, c := range e.Entries {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d on core %s", c.Entries, c.Core)
	}
	return b.String()
}

// Run runs the proof. A target that dies in mid-proof is no error but an
// incomplete Overall. Errors are prober.ErrConfig (no result, nothing was
// sent), *NotEmptyError (nothing was changed), the context's, and, from a
// target of which nothing could be learnt at all, prober.ErrUnreachable or
// prober.ErrNoDataplane; all but the first come with the result so far.
func Run(ctx context.Context, tgt target.Target, cfg Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := &run{tgt: tgt, cfg: cfg, clock: tgt.Clock(), res: &Result{Target: tgt.Name()}, counts: new(prober.Progress)}
	if r.cfg.Progress == nil {
		r.cfg.Progress = new(Progress)
	}
	r.cfg.Workers = cmp.Or(cfg.Workers, 64)
	r.cfg.Threshold = cmp.Or(cfg.Threshold, timingstats.DefaultThreshold)
	r.cfg.LogSample = cmp.Or(cfg.LogSample, 1000)
	r.cfg.TimedPerCore = cmp.Or(cfg.TimedPerCore, 25)
	start := r.clock.Now()
	err := r.steps(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	r.res.Partial = err != nil || r.gone != nil
	r.res.Elapsed = r.clock.Now().Sub(start)
	r.account()
	r.overall()
	return r.res, err
}

func (c *Config) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", prober.ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Count < 0:
		return bad("count %d: want 1 or more", c.Count)
	case c.ProbeRequests < 0:
		return bad("probe requests %d: want 1 or more", c.ProbeRequests)
	case c.Workers < 0 || c.Workers > 1<<16:
		return bad("workers %d: want 1 to %d", c.Workers, 1<<16)
	case c.LogSample < 0:
		return bad("log sample %d: want 1 or more", c.LogSample)
	case c.TimedPerCore < 0:
		return bad("timed writes per core %d: want 1 or more", c.TimedPerCore)
	case c.Threshold < 0:
		return bad("threshold %d: want 1 or more clicks", c.Threshold)
	case c.MaxErrors != c.MaxErrors || c.MaxErrors > 1:
		return bad("maximum share of errors %v: want up to 1", c.MaxErrors)
	}
	for _, list := range [][]Step{c.Only, c.Skip} {
		for _, s := range list {
			if s < StepNames || s > StepOwners {
				return bad("step %d: want 1 to %d", s, StepOwners)
			}
		}
	}
	for i, name := range c.Names {
		if name == "" {
			return bad("name %d is empty", i+1)
		}
	}
	return nil
}

// runs says whether a step is to run.
func (c *Config) runs(s Step) bool {
	return (len(c.Only) == 0 || slices.Contains(c.Only, s)) && !slices.Contains(c.Skip, s)
}
