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
	v := verdict.Verdict{Name: verdict.Coverage, State: verdict.Pass, Figures: map[string]float64{
		"cores": float64(len(r.Cores)), "missing": float64(len(r.Missing)), "miss_chance": r.MissChance}}
	switch {
	case p.ok == 0:
		v.State, v.Line = verdict.Incomplete, "INCOMPLETE: no core answered"
	case len(r.Missing) > 0:
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: %s of %d did not answer in %d requests (a core with an equal share is missed with a chance of %.2g)",
			Cores(r.Missing), len(r.Cores), p.ok, r.MissChance)
		if len(p.hits) == 1 && p.ok >= 20 {
			v.Causes = append(v.Causes, "all connections reached one core: where the disaggregator hashes the source address only, one client address reaches one core only; ask from more addresses (--bind)")
		}
		if f := p.connectionFailures(); f > 0 {
			v.Causes = append(v.Causes, fmt.Sprintf("%d connections failed: they may have been for %s, which would be down", f, Cores(r.Missing)))
		}
	case p.cores == 0:
		v.Line = fmt.Sprintf("OK: %d cores answered; the dataplane does not say how many there are, one more would be missed with a chance of %.2g", len(p.hits), r.MissChance)
	default:
		v.Line = fmt.Sprintf("OK: all %d cores answered", len(r.Cores))
	}
	return v
}

// connectionFailures are the requests that reached no core.
func (p *pool) connectionFailures() int64 {
	return p.errs[target.ClassRefused].Count + p.errs[target.ClassReset].Count + p.errs[target.ClassTimeout].Count
}

// errorsVerdict judges the share of failed requests. While a core is
// unreached, failed connections are the sign of that and judged there.
func (p *pool) errorsVerdict(r *Run, maxErrors float64) verdict.Verdict {
	most := or(maxErrors, 0.01)
	most = max(most, 0)
	sent := p.sent - p.errs[target.ClassCanceled].Count
	failed := sent - p.ok
	share := 0.0
	if sent > 0 {
		share = float64(failed) / float64(sent)
	}
	v := verdict.Verdict{Name: verdict.Errors, State: verdict.Pass,
		Line:    fmt.Sprintf("OK: %d of %d requests failed", failed, sent),
		Figures: map[string]float64{"sent": float64(sent), "failed": float64(failed), "share": share}}
	if share <= most {
		return v
	}
	var classes []string
	for _, e := range r.Accounting.Errors {
		classes = append(classes, fmt.Sprintf("%d %s", e.Count, e.Class))
	}
	v.State = verdict.Fail
	v.Line = fmt.Sprintf("ERRORS: %d of %d requests failed (%s)", failed, sent, strings.Join(classes, ", "))
	if p.ok == 0 || len(r.Missing) > 0 && failed == p.connectionFailures() {
		v.State, v.Line = verdict.NotJudged, "not judged: "+v.Line[len("ERRORS: "):]+"; coverage comes first"
	}
	return v
}

// uniformity judges the connections' spread over the cores.
func (p *pool) uniformity() verdict.Verdict {
	return verdict.Verdict{Name: verdict.Uniformity}
}

// namesVerdict judges the names by their doubts.
func (r *WhoamiResult) namesVerdict() verdict.Verdict {
	v := verdict.Verdict{Name: verdict.Ownership, State: verdict.Pass}
	bad, odd := 0, 0
	same := make(map[string]bool)
	for _, c := range r.Names {
		switch {
		case c.Subtable == "" || same[c.Subtable] || c.Owner != nil && *c.Owner != c.Core:
			bad++
		case len(c.Doubts) > 0:
			odd++
		}
		same[c.Subtable] = true
	}
	v.Figures = map[string]float64{"names": float64(len(r.Names)), "wrong": float64(bad), "doubtful": float64(odd)}
	switch {
	case bad > 0:
		v.State, v.Line = verdict.Fail, fmt.Sprintf("WRONG NAMES: %d of %d cores have no name that they own by themselves", bad, len(r.Names))
	case len(r.Missing) > 0 || len(r.Names) == 0:
		v.State, v.Line = verdict.NotJudged, "not judged: a core is unreached"
	case odd > 0:
		v.State, v.Line = verdict.Warn, fmt.Sprintf("DOUBTFUL NAMES: %d of %d cores", odd, len(r.Names))
	default:
		v.Line = fmt.Sprintf("OK: %d cores, %d names, all different", len(r.Names), len(same))
	}
	return v
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
