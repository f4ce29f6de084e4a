package prober

import (
	"fmt"
	"strings"

	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// result writes everything out and judges it.
func (r *probing) result() *ProbeResult {
	res := &ProbeResult{
		Run:              r.pool.result(r.cfg.MaxErrors),
		ThresholdClicks:  r.threshold,
		ThresholdRule:    r.rule,
		ExpectedRequests: r.expected(),
		Ceiling:          r.ceiling(),
		Hits:             r.coreHits(),
		Removed:          r.removed,
	}
	res.Warnings = append(res.Warnings, r.warnings...)
	owned := make(map[timingstats.CoreID]int)
	for i := range r.names {
		n := r.nameResult(i)
		if n.Owner != nil {
			owned[*n.Owner]++
		}
		res.Names = append(res.Names, n)
	}
	for _, c := range res.Cores {
		res.Owned = append(res.Owned, CoreOwned{Core: c, Names: owned[c]})
	}
	if r.steering != nil {
		if w := r.steering.warning(); w != "" {
			res.Warnings = append(res.Warnings, w)
		}
	}
	if len(owned) > 0 && len(res.Missing) == 0 {
		var counts []verdict.CoreCount
		for _, c := range res.Owned {
			counts = append(counts, verdict.CoreCount{Core: c.Core, Count: int64(c.Names)})
		}
		if spread := verdict.JudgeUniformity(counts, nil); spread.State != verdict.NotJudged {
			spread.Line, spread.Causes = strings.ReplaceAll(spread.Line, "requests", "names"), nil
			res.Spread = &spread
		}
	}
	if r.steering == nil {
		res.Verdicts = append(res.Verdicts, r.uniformity())
	}
	res.Verdicts = append(res.Verdicts, res.ownership())
	return res
}

// nameResult writes one name out.
func (r *probing) nameResult(i int) NameResult {
	s := &r.names[i]
	rep := s.odds.Report()
	n := NameResult{
		Name: rep.Subtable, Outcome: string(rep.Outcome), State: rep.State, Owner: rep.Owner, Odds: rep.ErrorOdds,
		Expected: rep.Wanted, Requests: s.sent, Entries: s.entries, Line: rep.Line,
	}
	for k := range rep.Cores {
		c := &rep.Cores[k]
		if c.Hits == 0 {
			continue
		}
		n.Cores = append(n.Cores, CoreProbe{Core: c.Core, Hits: c.Hits, Owner: c.Fast, NonOwner: c.Slow, TaggedOwner: c.Owner,
			Min: c.MinClicks, Avg: float64(c.AvgClicks), Max: c.MaxClicks})
		if c.Posterior > 0.5 {
			n.Likely = &c.Core
		}
	}
	incomplete := func() { n.Outcome, n.State, n.Owner = string(verdict.OutcomeIncomplete), verdict.Incomplete, nil }
	if k := r.suspect(s); k >= 0 && rep.Outcome == verdict.OutcomeNoOwner {
		incomplete()
		n.Line = fmt.Sprintf("INCOMPLETE: subtable %q is undecided: TMM %s is fast in %d of %d writes, too often for a core that does not own it, too seldom for one that does",
			n.Name, r.ids[k], s.cores[k].fast, s.cores[k].n)
	}
	if r.pool.cores == 0 && rep.Outcome == verdict.OutcomeOwner && r.unheard(s) > 0 {
		incomplete()
		n.Line = fmt.Sprintf("INCOMPLETE: the dataplane does not say how many cores it has, and %d requests are too few to be sure of all", r.ok)
	}
	if n.Owner == nil && n.Likely != nil && rep.Outcome == verdict.OutcomeIncomplete {
		n.Line += fmt.Sprintf("; likeliest owner TMM %s", n.Likely)
	}
	return n
}

// ownership judges all names together.
func (res *ProbeResult) ownership() verdict.Verdict {
	count := make(map[verdict.Outcome]int)
	var missed, none []NameResult
	expected := 0
	for _, n := range res.Names {
		count[verdict.Outcome(n.Outcome)]++
		if n.Outcome == string(verdict.OutcomeNoOwner) {
			none = append(none, n)
		}
		if n.Expected != nil {
			expected++
			if n.Owner != nil && *n.Owner != *n.Expected {
				missed = append(missed, n)
			}
		}
	}
	v := verdict.Verdict{Name: verdict.Ownership, State: verdict.Pass, Figures: map[string]float64{
		"names": float64(len(res.Names)), "owned": float64(count[verdict.OutcomeOwner]), "no_owner": float64(count[verdict.OutcomeNoOwner]),
		"ambiguous": float64(count[verdict.OutcomeAmbiguous]), "incomplete": float64(count[verdict.OutcomeIncomplete]),
		"expected": float64(expected), "expected_missed": float64(len(missed))}}
	switch {
	case len(res.Names) == 0:
		v.State, v.Line = verdict.NotJudged, "not judged: nothing was asked"
	case len(res.Missing) > 0:
		return verdict.NotJudgedOwnership(res.Missing)
	case len(missed) > 0:
		v.State = verdict.Fail
		v.Line = fmt.Sprintf("WRONG OWNER: %s", examples(missed, func(n NameResult) string {
			return fmt.Sprintf("'%s' is owned by TMM %s, not %s as expected", n.Name, n.Owner, n.Expected)
		}))
	case len(none) > 0:
		v.State = verdict.Fail
		v.Line = fmt.Sprintf("NO OWNER: %d of %d names are slow on every core (%s)", len(none), len(res.Names),
			examples(none, func(n NameResult) string { return "'" + n.Name + "'" }))
	case count[verdict.OutcomeAmbiguous] > 0:
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("AMBIGUOUS: %d of %d names are mostly fast on several cores", count[verdict.OutcomeAmbiguous], len(res.Names))
	case count[verdict.OutcomeIncomplete] > 0:
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: %d of %d names are undecided", count[verdict.OutcomeIncomplete], len(res.Names))
	case len(res.Names) == 1:
		n := &res.Names[0]
		v.Line = fmt.Sprintf("OWNER TMM %s: subtable '%s' (model odds of error %.2g, %d requests)", n.Owner, n.Name, n.Odds, n.Requests)
	default:
		v.Line = fmt.Sprintf("OK: %s names, each owned by one core", verdict.Thousands(len(res.Names)))
		if expected > 0 {
			v.Line += fmt.Sprintf("; %s as expected", verdict.Thousands(expected))
		}
	}
	return v
}

// examples joins what say says of the first few.
func examples[T any](list []T, say func(T) string) string {
	const most = 5
	out := ""
	for i, x := range list {
		if i == most {
			return out + fmt.Sprintf(" and %d more", len(list)-most)
		}
		if i > 0 {
			out += ", "
		}
		out += say(x)
	}
	return out
}
