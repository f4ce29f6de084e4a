package proof

import (
	"context"
	"fmt"
	"strings"

	"tbl/prober"
	"tbl/target"
	"tbl/timingstats/verdict"
)

// cleanUp removes what the load wrote, when the run was allowed to delete: the
// subtables were empty before it. What the cores don't account for then has
// leaked.
func (r *run) cleanUp(ctx context.Context) {
	if !r.cleared || r.written == 0 || r.gone != nil || ctx.Err() != nil {
		return
	}
	res, err := prober.Reset(ctx, r.tgt, prober.ResetConfig{Workers: r.cfg.Workers})
	if err != nil || res == nil {
		return
	}
	if res.TotalDeleted > 0 {
		r.res.PutBack = append(r.res.PutBack, fmt.Sprintf("%s entries in the cores' subtables removed again", verdict.Thousands(res.TotalDeleted)))
	}
	written := r.written
	r.written = max(0, written-res.TotalDeleted)
	if r.written == 0 || len(res.Missing) > 0 {
		return
	}
	leak := r.survived(ctx, written, res.TotalDeleted)
	r.leaked = leak.State == verdict.Fail
	for i := range r.res.Steps {
		if s := &r.res.Steps[i]; s.Step == StepReset && !s.Skipped {
			s.Verdicts = append(s.Verdicts, leak)
			if leak.State > s.State {
				s.State, s.Line = leak.State, leak.Line
			}
			s.More = append(s.More, leak.Causes...)
		}
	}
}

// survived judges entries that a reset did not account for. Only what the
// dataplane says that it still holds has survived, under names that no core
// calls its own, and only while nobody else writes: what another client
// deleted is gone, and what it wrote is no leak.
func (r *run) survived(ctx context.Context, written, deleted int64) verdict.Verdict {
	first, ok := r.holds(ctx)
	who, err := prober.Whoami(ctx, r.tgt, prober.AskConfig{Workers: min(r.cfg.Workers, 32)})
	if err != nil || who == nil {
		ok = false
	} else {
		for _, c := range who.Names {
			if c.Entries > 0 {
				first = -1
			}
		}
	}
	second, again := r.holds(ctx)
	if ok && again && first == second && first > 0 {
		return verdict.JudgeLeak(verdict.LeakInput{Known: true, EntriesBefore: written, EntriesAfter: first, Deleted: deleted})
	}
	if !ok || !again {
		return verdict.Verdict{Name: verdict.Leak, State: verdict.Warn, Line: fmt.Sprintf(
			"LEAK?: %s of %s written entries were not there to be deleted: left under another name, or deleted by somebody else; this dataplane can't tell",
			verdict.Thousands(r.written), verdict.Thousands(written))}
	}
	return verdict.Verdict{Name: verdict.Leak, State: verdict.Incomplete,
		Line: "INCOMPLETE: not clean, somebody else writes or deletes at the same time"}
}

// holds is the number of entries that all cores hold under any name, as far as
// the dataplane tells.
func (r *run) holds(ctx context.Context) (int64, bool) {
	var ans target.Answer
	if err := target.Ask(ctx, r.tgt, target.OpStats, &ans); err != nil || len(ans.Stats) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range ans.Stats {
		n += c.Entries
	}
	return n, true
}

// renamed asks for the names again after the reset. Where they changed, the
// new ones are those that the load writes to and that are asked about.
func (r *run) renamed(ctx context.Context) []string {
	after, err := prober.Whoami(ctx, r.tgt, prober.AskConfig{Workers: min(r.cfg.Workers, 32)})
	if err != nil || after == nil {
		return nil
	}
	changed := prober.Renamed(r.res.Whoami, after)
	if len(changed) > 0 {
		r.res.Whoami = after
	}
	return changed
}

// account says what changed on the target, what was put back and what can't be.
func (r *run) account() {
	res := r.res
	if res.Reset != nil && res.Reset.TotalDeleted > 0 {
		deleted := fmt.Sprintf("%s entries that were there before, deleted by the reset", verdict.Thousands(res.Reset.TotalDeleted))
		res.Changed = append(res.Changed, deleted)
		res.Lost = append(res.Lost, deleted)
	}
	if res.Load != nil && res.Load.OK > 0 {
		res.Changed = append(res.Changed, fmt.Sprintf("%s writes by the load, into the cores' subtables", verdict.Thousands(res.Load.OK)))
	}
	if res.Timed != nil && res.Timed.Written > 0 {
		res.Changed = append(res.Changed, fmt.Sprintf("%s timed writes, into the cores' subtables", verdict.Thousands(res.Timed.Written)))
	}
	if r.written > 0 { // of a run that was cut short, or may not delete
		deletes := "tbl reset"
		if r.leaked {
			deletes += " --all-names"
		}
		res.Lost = append(res.Lost, fmt.Sprintf("%s written keys are left: they expire when unused for an hour, and `%s` deletes them", verdict.Thousands(r.written), deletes))
	}
	if o := res.Owners; o != nil && o.Accounting.OK > 0 {
		res.Changed = append(res.Changed, fmt.Sprintf("one small entry per core in each of %d probed subtables", len(o.Names)))
		if o.Removed > 0 {
			res.PutBack = append(res.PutBack, fmt.Sprintf("%d of the probes' entries removed again", o.Removed))
		} else {
			res.PutBack = append(res.PutBack, "the probes' entries expire within a minute")
		}
	}
}

// overall judges the whole.
func (r *run) overall() {
	v := verdict.Verdict{Name: verdict.Proof, State: verdict.Pass}
	weakest, notRun := StepResult{}, []string{}
	for _, s := range r.res.Steps {
		if s.Skipped {
			notRun = append(notRun, s.Word)
		}
		if s.State > weakest.State {
			weakest = s
		}
	}
	for step := len(r.res.Steps); step < len(Steps()); step++ {
		notRun = append(notRun, Steps()[step].Word)
	}
	switch {
	case weakest.State == verdict.Fail:
		// LOCALITY tells more than its causes: where it fails, it is the line.
		for _, s := range r.res.Steps {
			if s.Step == StepLocality && s.State == verdict.Fail {
				weakest = s
			}
		}
		v.State, v.Line = verdict.Fail, weakest.Line
	case weakest.State == verdict.Incomplete, r.res.Partial:
		v.State, v.Line = verdict.Incomplete, weakest.Line
		if !strings.HasPrefix(v.Line, "INCOMPLETE:") {
			v.Line = "INCOMPLETE: the proof was cut short"
			if weakest.Line != "" && weakest.State == verdict.Incomplete {
				v.Line = "INCOMPLETE: " + weakest.Line
			}
		}
		if r.gone != nil {
			v.Causes = append(v.Causes, "the target is gone: "+r.gone.Error())
		}
	default:
		cores := len(r.res.Cores)
		v.Line = fmt.Sprintf("OK: every one of %d cores writes into storage it owns", cores)
		if cores == 1 {
			v.Line = "OK: the only core writes into storage it owns"
		}
		if len(notRun) > 0 {
			v.Line = "OK: what was run holds on " + verdict.Count(cores, "core")
		}
		if weakest.State == verdict.Warn {
			v.State = verdict.Warn
		}
	}
	if weakest.Step != 0 && v.State > verdict.Pass {
		v.Line += fmt.Sprintf(" (weakest link: step %d, %s)", weakest.Step, weakest.Title)
	}
	if len(notRun) > 0 {
		v.Line += "; not run: " + strings.Join(notRun, ", ")
	}
	r.res.Overall = v
}
