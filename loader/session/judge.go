package session

import (
	"fmt"
	"slices"

	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// missChance is the chance up to which a core is missed by chance that was not
// heard: with more, so few requests say nothing about it.
const missChance = 1e-4

// judge says what a comparison is worth: which cores were heard, which designs
// were played, and what failed.
type judge struct {
	cfg *Config
	r   *Result
	// asked are the cores that answered when affinity was learnt, answered how
	// often.
	asked    []timingstats.CoreID
	answered int64
	leftOut  []string // why, design by design
}

// learnt takes in whom the search for ports reached.
func (j *judge) learnt(a *affinity) {
	j.answered += a.answered
	for _, h := range a.homes {
		j.asked = append(j.asked, h.id)
	}
}

// leaveOut notes a design that could not be played.
func (j *judge) leaveOut(d Design, why string) {
	why = fmt.Sprintf("%s left out: %s", d, why)
	j.leftOut = append(j.leftOut, why)
	j.r.Warnings = append(j.r.Warnings, why)
}

// heard are the cores that accepted something.
func (j *judge) heard() []timingstats.CoreID {
	heard := slices.Clone(j.asked)
	for _, d := range j.r.Designs {
		for _, c := range d.Load {
			if c.Accepted > 0 {
				heard = append(heard, c.Core)
			}
		}
	}
	slices.SortFunc(heard, timingstats.CoreID.Compare)
	return slices.Compact(heard)
}

// coverage judges the cores by the requests of all designs together.
func (j *judge) coverage() verdict.CoverageReport {
	heard, answered := j.heard(), j.answered
	for _, d := range j.r.Designs {
		answered += d.OK
	}
	return verdict.JudgeCoverage(heard, verdict.CoverageOptions{
		Expected: append(slices.Clone(heard), timingstats.Missing(heard, nil, j.r.Cores)...), Requests: answered, MissChance: missChance,
	})
}

// lost are the cores that accept nothing; none where chance may be the reason.
func (j *judge) lost() []timingstats.CoreID {
	if v := j.coverage(); v.State == verdict.Incomplete {
		return v.Missing
	}
	return nil
}

// errors judges one design's requests, or those of all.
func (j *judge) errors(designs ...DesignResult) verdict.Verdict {
	in := verdict.ErrorsInput{MaxShare: j.cfg.MaxErrors, Unreached: j.lost()}
	var ok int64
	for _, d := range designs {
		in.Sent += d.Operations
		ok += d.OK
		for _, e := range d.Errors {
			in.Add(e.Class.String(), e.Count, e.Example)
		}
	}
	in.Unproven = ok == 0
	return verdict.JudgeErrors(in)
}

// compared are the designs whose figures are evidence.
func (j *judge) compared() map[Design]*DesignResult {
	by := map[Design]*DesignResult{}
	for i := range j.r.Designs {
		d := &j.r.Designs[i]
		if j.errors(*d).State != verdict.Pass {
			j.r.Warnings = append(j.r.Warnings, fmt.Sprintf("%s: %s of %s operations failed: not compared", d.Design, whole(d.Failed), whole(d.Operations)))
			continue
		}
		by[d.Design] = d
	}
	return by
}

// verdicts judges the result. Failures that are many in one design alone count
// as well.
func (j *judge) verdicts() {
	coverage := j.coverage().Verdict
	if len(j.leftOut) > 0 && coverage.State != verdict.Incomplete {
		coverage.State = verdict.Incomplete
		coverage.Line = fmt.Sprintf("INCOMPLETE: %d of %d designs played: %s", len(j.cfg.Designs)-len(j.leftOut), len(j.cfg.Designs), j.leftOut[0])
		coverage.Causes = append(coverage.Causes, "Who can do without that design names the others with `--design`.")
	}
	errs := j.errors(j.r.Designs...)
	for _, d := range j.r.Designs {
		if v := j.errors(d); errs.State != verdict.Fail && v.State > errs.State {
			errs = v
			errs.Line += fmt.Sprintf(" (%s)", d.Design)
		}
	}
	j.r.Verdicts = []verdict.Verdict{coverage, errs}
}
