package prober

import (
	"fmt"
	"strings"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// result is what every result says of its run, with COVERAGE and ERRORS.
func (p *pool) result(maxErrors float64) Run {
	r := Run{
		Target: p.tgt.Name(), Cores: p.known(), Missing: p.missing(),
		Accounting: p.accounting(), Elapsed: p.clock.Now().Sub(p.start),
		Partial: p.err() != nil,
	}
	n := len(r.Cores)
	if p.cores == 0 {
		n++ // one more than was heard, for all that is known
	}
	r.MissChance = missChance(n, p.ok)
	r.Verdicts = []verdict.Verdict{p.coverage(&r), p.errorsVerdict(&r, maxErrors)}
	return r
}

// coverage says whether every core answered.
func (p *pool) coverage(r *Run) verdict.Verdict {
	heard := make([]timingstats.CoreID, 0, len(p.hits))
	for c := range p.hits {
		heard = append(heard, c)
	}
	v := verdict.JudgeCoverage(heard, verdict.CoverageOptions{Expected: r.Cores, Requests: p.ok}).Verdict
	v.Figures["miss_chance"] = r.MissChance
	if len(heard) > 0 && (len(r.Missing) > 0 || p.cores == 0) {
		v.Line += fmt.Sprintf("; a core with an equal share is missed with a chance of %.2g", r.MissChance)
	}
	if f := p.connectionFailures(); f > 0 && len(r.Missing) > 0 && p.ok > 0 {
		v.Causes = append([]string{fmt.Sprintf("%s connections failed: they may have been for %s, which would be down.", verdict.Thousands(f), Cores(r.Missing))}, v.Causes...)
	}
	return v
}

// connectionFailures are the requests that reached no core.
func (p *pool) connectionFailures() int64 {
	return p.errs[target.ClassRefused].Count + p.errs[target.ClassReset].Count + p.errs[target.ClassTimeout].Count
}

// errorsVerdict judges the share of failed requests.
func (p *pool) errorsVerdict(r *Run, maxErrors float64) verdict.Verdict {
	in := verdict.ErrorsInput{Sent: p.sent, MaxShare: maxErrors, Unproven: p.ok == 0, Unreached: r.Missing}
	for _, e := range r.Accounting.Errors {
		in.Add(e.Class.String(), e.Count, e.Example)
	}
	return verdict.JudgeErrors(in)
}

// uniformity judges the connections' spread over the cores.
func (p *pool) uniformity() verdict.Verdict {
	var counts []verdict.CoreCount
	for _, h := range p.coreHits() {
		counts = append(counts, verdict.CoreCount{Core: h.Core, Count: h.Hits})
	}
	return verdict.JudgeUniformity(counts, p.missing()).Verdict
}

// Cores is "core 2", "cores 1 and 3", or "cores 0, 1, 2 and 5 more".
func Cores(list []timingstats.CoreID) string {
	const most = 8
	names := make([]string, 0, most)
	for i, c := range list {
		if i == most && len(list) > most+1 {
			return fmt.Sprintf("cores %s and %d more", strings.Join(names, ", "), len(list)-most)
		}
		names = append(names, c.String())
	}
	switch n := len(names); n {
	case 0:
		return "no core"
	case 1:
		return "core " + names[0]
	default:
		return "cores " + strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
