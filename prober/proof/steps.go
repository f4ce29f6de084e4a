package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"tbl/loader"
	"tbl/logparse/logline"
	"tbl/prober"
	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// run is the state of one Run.
type run struct {
	tgt   target.Target
	cfg   Config
	clock target.Clock
	res   *Result
	// gone is why the target can't be asked any more, nil while it can.
	gone    error
	samples *timingstats.Set // from the log
	cleared bool             // the reset step ran
	leaked  bool             // the last reset did not account for what was written
	written int64            // entries written by load and timed writes
	counts  *prober.Progress // of the step that runs
}

// steps runs the steps in order. The error is the first that ends the run,
// other than a target that dies when something has been shown already.
func (r *run) steps(ctx context.Context) error {
	todo := []func(context.Context) (StepResult, error){r.names, r.reset, r.load, r.locality, r.owners}
	for i, info := range Steps() {
		wanted := r.cfg.runs(info.Step)
		if r.gone != nil && (info.Step != StepLocality || r.samples == nil) { // the log's samples are there
			r.add(StepResult{StepInfo: info, State: verdict.Incomplete, Skipped: true, Line: "not run: the target is gone"})
			continue
		}
		if !wanted && info.Step != StepNames {
			r.add(StepResult{StepInfo: info, Skipped: true, Line: "not run: left out"})
			continue
		}
		if wanted {
			r.begin(info)
		}
		start := r.clock.Now()
		s, err := todo[i](ctx)
		s.StepInfo, s.Elapsed = info, r.clock.Now().Sub(start)
		if err == nil && ctx.Err() == nil {
			err = r.stillThere(ctx, s.Verdicts)
		}
		if err != nil {
			for k := range s.Verdicts {
				s.Verdicts[k] = verdict.CutShort(s.Verdicts[k])
			}
			if d := decisive(s.Verdicts); d.State == verdict.Incomplete {
				s.Line = d.Line
			}
		}
		s.State = worst(s.Verdicts)
		if !wanted { // the names are needed all the same
			s = StepResult{StepInfo: info, Skipped: true, Line: "not run: left out"}
		}
		if err != nil && s.State < verdict.Incomplete && !s.Skipped {
			s.State = verdict.Incomplete
			s.Line = "INCOMPLETE: cut short: " + err.Error()
		}
		r.add(s)
		var held *NotEmptyError
		var log *logError
		switch {
		case err == nil:
		case errors.As(err, &log) && ctx.Err() == nil: // the target is there
			r.res.Warnings = append(r.res.Warnings, err.Error())
		case ctx.Err() != nil || errors.As(err, &held):
			return err
		case info.Step == StepNames && (r.res.Whoami == nil || len(r.res.Whoami.Names) == 0):
			return err
		case errors.Is(err, prober.ErrConfig) || errors.Is(err, loader.ErrConfig):
			return err
		default:
			r.gone = err
			r.res.Warnings = append(r.res.Warnings, fmt.Sprintf("step %d was cut short: %v", info.Step, err))
		}
	}
	r.cleanUp(ctx)
	return ctx.Err()
}

// stillThere asks, after a step in which too many requests failed, whether the
// target answers at all. The error says that it doesn't.
func (r *run) stillThere(ctx context.Context, vs []verdict.Verdict) error {
	for _, v := range vs {
		if v.Name == verdict.Errors && v.State == verdict.Fail {
			_, err := prober.Info(ctx, r.tgt, prober.AskConfig{Requests: 16, Limit: 16})
			return err
		}
	}
	return nil
}

// begin gives a step counters of its own, so that nobody sees them under the
// name of the one before. What cores there are stays known.
func (r *run) begin(info StepInfo) {
	counts := new(prober.Progress)
	counts.Cores.Store(r.counts.Cores.Load())
	counts.Heard.Store(r.counts.Heard.Load())
	r.counts = counts
	r.cfg.Progress.now.Store(&stepProgress{info, counts})
	if r.cfg.Progress.OnStep != nil {
		r.cfg.Progress.OnStep(info)
	}
}

func (r *run) add(s StepResult) { r.res.Steps = append(r.res.Steps, s) }

// worst is the state of a step with these verdicts.
func worst(vs []verdict.Verdict) verdict.State {
	s := verdict.NotJudged
	for _, v := range vs {
		s = max(s, v.State)
	}
	return s
}

// decisive is the verdict that a step's line is made of: the worst, and among
// equals the one that the step is about (the last).
func decisive(vs []verdict.Verdict) verdict.Verdict {
	var out verdict.Verdict
	for _, v := range vs {
		if v.State >= out.State {
			out = v
		}
	}
	return out
}

// names is step 1, and the check that nothing gets lost.
func (r *run) names(ctx context.Context) (StepResult, error) {
	who, err := prober.Whoami(ctx, r.tgt, prober.AskConfig{Workers: min(r.cfg.Workers, 32), MaxErrors: r.cfg.MaxErrors, Progress: r.counts})
	s := StepResult{}
	if who == nil {
		return s, err
	}
	r.res.Whoami, r.res.Cores = who, who.Cores
	r.res.Warnings = append(r.res.Warnings, who.Warnings...)
	s.Verdicts = withoutUniformity(who.Verdicts)
	d := decisive(s.Verdicts)
	s.Line = d.Line
	if len(who.Names) == 1 && len(who.Cores) > 1 && len(who.Missing) > 0 {
		s.Line += "; one client address reaches one core only"
	}
	s.More = append(s.More, d.Causes...)
	if err != nil {
		return s, err
	}
	if r.cfg.runs(StepReset) && !r.cfg.Destroy {
		held := &NotEmptyError{}
		for _, c := range who.Names {
			if c.Entries > 0 {
				held.Entries = append(held.Entries, CoreEntries{Core: c.Core, Subtable: c.Subtable, Entries: c.Entries})
			}
		}
		if len(held.Entries) > 0 {
			return s, held
		}
	}
	return s, nil
}

// withoutUniformity leaves the spread of the few requests of a step to the
// load, which has many.
func withoutUniformity(vs []verdict.Verdict) []verdict.Verdict {
	var out []verdict.Verdict
	for _, v := range vs {
		if v.Name != verdict.Uniformity {
			out = append(out, v)
		}
	}
	return out
}

// reset is step 2.
func (r *run) reset(ctx context.Context) (StepResult, error) {
	res, err := prober.Reset(ctx, r.tgt, prober.ResetConfig{UntilClean: true, Workers: r.cfg.Workers, MaxErrors: r.cfg.MaxErrors, Progress: r.counts})
	if res == nil {
		return StepResult{}, err
	}
	r.res.Reset, r.cleared = res, true
	r.res.Warnings = append(r.res.Warnings, res.Warnings...)
	s := StepResult{Verdicts: res.Verdicts}
	s.Line = decisive(s.Verdicts).Line
	if err == nil {
		s.More = r.renamed(ctx)
		r.res.Warnings = append(r.res.Warnings, s.More...)
	}
	return s, err
}

// count is the number of writes of the load.
func (r *run) count() int {
	if r.cfg.Count > 0 {
		return r.cfg.Count
	}
	n := max(1, len(r.res.Cores))
	if r.cfg.Log == nil {
		return 25_000 * min(n, 4)
	}
	return 25 * n * r.cfg.LogSample
}

// load is step 3. With a log, its window is read here, so that nothing of what
// follows is in it.
func (r *run) load(ctx context.Context) (StepResult, error) {
	n := r.count()
	r.counts.Planned.Store(int64(n))
	if r.cfg.Log != nil {
		if err := r.cfg.Log.Begin(ctx); err != nil {
			return StepResult{}, fmt.Errorf("log: %w", err)
		}
	}
	loadCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := &counting{Target: r.tgt, p: r.counts, cancel: cancel}
	res, err := loader.Load(loadCtx, watched, loader.LoadConfig{Count: int64(n), Workers: r.cfg.Workers, Steer: r.cfg.Steer, MaxErrors: r.cfg.MaxErrors})
	if gone := watched.gone.Load(); gone != nil {
		err = fmt.Errorf("%w: %w", prober.ErrUnreachable, *gone)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if r.cfg.Log != nil {
		// What was logged until the target went is evidence, too.
		if logErr := r.readLog(context.WithoutCancel(ctx)); logErr != nil && err == nil {
			err = &logError{logErr}
		}
	}
	if res == nil {
		return StepResult{}, err
	}
	r.res.Load = res
	r.written += res.OK
	r.res.Warnings = append(r.res.Warnings, res.Warnings...)
	s := StepResult{}
	for _, v := range r.coverageFirst(res) {
		switch v.Name {
		case verdict.Coverage, verdict.Errors, verdict.Uniformity:
			s.Verdicts = append(s.Verdicts, v)
		default:
			// How fast the writes were is no part of the proof, and depends on
			// what else the machine does.
			if v.State > verdict.Pass {
				s.More = append(s.More, "noted, not judged here: "+v.Line)
			}
		}
	}
	d := decisive(s.Verdicts)
	s.Line = fmt.Sprintf("OK: %s of %s writes in %.3g s, %s errors", verdict.Thousands(res.OK), verdict.Thousands(res.Sent), res.Elapsed().Seconds(), verdict.Thousands(res.Failed))
	if d.State > verdict.Pass {
		s.Line = d.Line
	}
	return s, err
}

// coverageFirst are the load's verdicts, but that while a core is unreached
// failed connections are the sign of that, and judged by COVERAGE.
func (r *run) coverageFirst(res *loader.LoadResult) []verdict.Verdict {
	vs := slices.Clone(res.Verdicts)
	for i := range vs {
		if vs[i].Name == verdict.Errors {
			in := res.Accounting.ErrorsInput(r.cfg.MaxErrors)
			in.Unreached = res.Missing
			vs[i] = verdict.JudgeErrors(in)
		}
	}
	return vs
}

// logError is a log that broke, wholly or from some line on.
type logError struct{ err error }

func (e *logError) Error() string { return "log: " + e.err.Error() }
func (e *logError) Unwrap() error { return e.err }

// readLog takes the samples of the log's window.
func (r *run) readLog(ctx context.Context) error {
	samples, foreign := new(timingstats.Set), int64(0)
	names := make(map[string]bool)
	for _, c := range r.res.Whoami.Names {
		names[c.Subtable] = true
	}
	counts, err := r.cfg.Log.End(ctx, func(l *logline.Line) {
		if !names[string(l.Subtable)] {
			foreign++
		}
		tag := timingstats.Slow
		if l.Fast {
			tag = timingstats.Fast
		}
		samples.Core(timingstats.CoreID{Slot: l.Slot, Core: l.Core}).Add(l.Clicks, tag, l.Rate)
	})
	r.samples, r.res.LogCounts = samples, &counts
	if foreign > 0 {
		r.res.Warnings = append(r.res.Warnings, fmt.Sprintf("%d of %d samples are of subtables that no core called its own beforehand: a restart, or somebody else's log lines", foreign, counts.Samples))
	}
	if counts.Held > 0 || counts.Throttled > 0 {
		r.res.Warnings = append(r.res.Warnings, fmt.Sprintf("the log left out %d lines or more: its counts are lower bounds", max(counts.Held, counts.Throttled)))
	}
	return err
}

// locality is step 4: judges the log's samples, or makes some of its own.
func (r *run) locality(ctx context.Context) (StepResult, error) {
	var s StepResult
	var err error
	samples := r.samples
	if samples == nil {
		var timed *prober.TimedResult
		timed, err = prober.TimedWrites(ctx, r.tgt, prober.TimedConfig{PerCore: r.cfg.TimedPerCore, Workers: min(r.cfg.Workers, 8), MaxErrors: r.cfg.MaxErrors, Progress: r.counts})
		if timed == nil {
			return s, err
		}
		samples, r.res.Timed = timed.Samples, timed
		r.written += timed.Written
		s.Verdicts = append(s.Verdicts, timed.Verdicts...)
	}
	names := make(map[timingstats.CoreID]verdict.NameShape)
	for _, c := range r.res.Whoami.Names {
		names[c.Core] = verdict.ShapeOf(c.Subtable)
	}
	rep := verdict.JudgeLocality(samples.Summaries(r.cfg.Threshold), verdict.LocalityOptions{Known: r.res.Cores, Names: names})
	r.res.Locality = &rep
	s.Verdicts = append(s.Verdicts, rep.Verdict)
	s.Line, s.More = rep.Line, append(r.ratio(&rep), rep.Causes...)
	if d := decisive(s.Verdicts); d.State > rep.State {
		s.Line = d.Line
	}
	r.res.Warnings = append(r.res.Warnings, rep.Warnings...)
	for _, c := range rep.Cores {
		if c.State == verdict.Local && 2*c.P50Clicks >= c.ThresholdClicks {
			r.res.Warnings = append(r.res.Warnings, fmt.Sprintf("core %s's own writes take %d clicks in the median, near the threshold of %d: the two populations are hard to tell apart (a longer --click, or another --threshold)", c.Core, c.P50Clicks, c.ThresholdClicks))
		}
	}
	return s, err
}

// ratio says how far remote writes are from local ones.
func (r *run) ratio(rep *verdict.LocalityReport) []string {
	var local, remote, nl, nr float64
	for _, c := range rep.Cores {
		switch c.State {
		case verdict.Local:
			local, nl = local+float64(c.P50Clicks), nl+1
		case verdict.Remote:
			remote, nr = remote+float64(c.P50Clicks), nr+1
		}
	}
	if nl == 0 || nr == 0 || local == 0 {
		return nil
	}
	return []string{fmt.Sprintf("a remote write takes %s clicks, a local one %s (medians): %s times as long",
		verdict.Thousands(int64(remote/nr)), verdict.Thousands(int64(local/nl)), verdict.Thousands(int64((remote/nr)/(local/nl))))}
}

// owners is step 5.
func (r *run) owners(ctx context.Context) (StepResult, error) {
	cfg := prober.ProbeConfig{
		Workers: r.cfg.Workers, Threshold: r.cfg.Threshold, Steer: r.cfg.Steer, MaxErrors: r.cfg.MaxErrors,
		Requests: r.cfg.ProbeRequests, Expect: make(map[string]timingstats.CoreID), Progress: r.counts,
	}
	seen := make(map[string]bool)
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			cfg.Names = append(cfg.Names, name)
		}
	}
	for _, c := range r.res.Whoami.Names {
		add(c.Subtable)
		cfg.Expect[c.Subtable] = c.Core
	}
	for _, name := range r.cfg.Names {
		add(name)
	}
	if len(cfg.Names) == 0 {
		return StepResult{Line: "INCOMPLETE: no core gave a name", Verdicts: []verdict.Verdict{{Name: verdict.Ownership, State: verdict.Incomplete, Line: "INCOMPLETE: no core gave a name"}}}, nil
	}
	if cfg.Requests == 0 {
		cfg.Requests = max(200, prober.EnoughRequests(len(r.res.Cores)))
	}
	res, err := prober.Probe(ctx, r.tgt, cfg)
	if res == nil {
		return StepResult{}, err
	}
	r.res.Owners = res
	r.res.Warnings = append(r.res.Warnings, res.Warnings...)
	s := StepResult{Verdicts: withoutUniformity(res.Verdicts)}
	d := decisive(s.Verdicts)
	s.Line = d.Line
	mine := make(map[string]string)
	built := false
	for _, c := range r.res.Whoami.Names {
		mine[c.Subtable] += " " + c.Core.String()
		built = built || c.Built
	}
	if d.State > verdict.Pass || built || len(r.cfg.Names) > 0 {
		s.More = append(s.More, ownRatio(res.Names)...)
		for _, n := range res.Names {
			s.More = append(s.More, ownerLine(n, strings.TrimSpace(mine[n.Name])))
		}
	}
	return s, err
}

// ownRatio says how far the writes of others are from those of the owner.
func ownRatio(names []prober.NameResult) []string {
	var own, other []float64
	for _, n := range names {
		for _, c := range n.Cores {
			switch {
			case n.Owner == nil:
			case c.Core == *n.Owner:
				own = append(own, c.Avg)
			default:
				other = append(other, c.Avg)
			}
		}
	}
	if len(own) == 0 || len(other) == 0 {
		return nil
	}
	slices.Sort(own)
	slices.Sort(other)
	a, b := own[len(own)/2], other[len(other)/2]
	if a <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("a write by the owner takes %.1f clicks, by another core %s (medians of the averages): %s times as long", a, verdict.Thousands(int64(b)), verdict.Thousands(int64(b/a)))}
}

// ownerLine says who owns a name, and who uses it.
func ownerLine(n prober.NameResult, user string) string {
	line := fmt.Sprintf("subtable '%s'", n.Name)
	if user != "" {
		line += ", used by TMM " + strings.ReplaceAll(user, " ", ", ")
	}
	switch {
	case n.Owner != nil:
		line += fmt.Sprintf(": owned by TMM %s", n.Owner)
	case n.Likely != nil:
		line += fmt.Sprintf(": %s, likeliest owner TMM %s", n.Outcome, n.Likely)
	default:
		line += ": " + n.Outcome
	}
	return line
}

// counting passes requests on and counts the writes for the progress: what the
// load asks beforehand is no part of what is planned. After so many failures in
// a row that the target must be gone it ends the load.
type counting struct {
	target.Target
	p      *prober.Progress
	cancel context.CancelFunc
	inRow  atomic.Int64
	gone   atomic.Pointer[error]
}

const goneAfter = 128

func (c *counting) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := c.Target.Do(ctx, req, ans)
	write := req.Op == target.OpLoad
	if write {
		c.p.Sent.Add(1)
	}
	if err == nil {
		c.inRow.Store(0)
		return nil
	}
	if write {
		c.p.Errors.Add(1)
	}
	if target.ClassOf(err) != target.ClassCanceled && c.inRow.Add(1) == goneAfter {
		why := err
		c.gone.CompareAndSwap(nil, &why)
		c.cancel()
	}
	return err
}
