package prober

import (
	"fmt"
	"slices"

	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// The outcomes of a name.
const (
	OutcomeOwner      = "owner"      // one core owns it
	OutcomeNone       = "no owner"   // every core's writes are slow
	OutcomeAmbiguous  = "ambiguous"  // several cores' writes are mostly fast
	OutcomeIncomplete = "incomplete" // a core unheard, or too few requests
)

// result writes everything out and judges it.
func (r *probing) result() *ProbeResult {
	res := &ProbeResult{
		Run:              r.pool.result(r.cfg.MaxErrors),
		ThresholdClicks:  r.threshold,
		ThresholdRule:    r.rule,
		ExpectedRequests: NeededRequests(len(r.ids), 1e-3),
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
	if !r.cfg.Steer {
		res.Verdicts = append(res.Verdicts, r.uniformity())
	}
	res.Verdicts = append(res.Verdicts, res.ownership())
	return res
}

// nameResult writes one name out.
func (r *probing) nameResult(i int) NameResult {
	s := &r.names[i]
	b := believe(s.cores)
	n := NameResult{Name: r.cfg.Names[i], Requests: s.sent, Entries: s.entries, Odds: b.odds, Outcome: OutcomeIncomplete}
	if want, ok := r.cfg.Expect[n.Name]; ok {
		n.Expected = &want
	}
	order := make([]int, len(s.cores))
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int { return r.ids[a].Compare(r.ids[b]) })
	for _, k := range order {
		t := &s.cores[k]
		if t.n == 0 {
			continue
		}
		n.Cores = append(n.Cores, CoreProbe{
			Core: r.ids[k], Hits: t.n, Owner: t.fast, NonOwner: t.n - t.fast, TaggedOwner: t.tagged,
			Min: t.min, Avg: timingstats.Average(float64(t.sum) / float64(t.n)), Max: t.max,
		})
	}
	unheard := []timingstats.CoreID{}
	for k, c := range r.ids {
		if k >= len(s.cores) || s.cores[k].n == 0 {
			unheard = append(unheard, c)
		}
	}
	slices.SortFunc(unheard, timingstats.CoreID.Compare)
	likely := ""
	if b.best >= 0 && len(s.cores) > 0 {
		t := &s.cores[b.best]
		likely = fmt.Sprintf("TMM %s (avg %.1f clicks, tagged OWNER %d times)", r.ids[b.best], float64(t.sum)/float64(t.n), t.tagged)
	}
	switch {
	case len(unheard) > 0:
		n.Line = fmt.Sprintf("INCOMPLETE: %s not heard about subtable '%s'", Cores(unheard), n.Name)
		if likely != "" && b.odds < r.cfg.MaxError && !b.unsure {
			n.Line += "; likely owner of those heard: " + likely
		}
	case b.rivals != nil:
		var rivals []timingstats.CoreID
		for _, k := range b.rivals {
			rivals = append(rivals, r.ids[k])
		}
		slices.SortFunc(rivals, timingstats.CoreID.Compare)
		n.Outcome = OutcomeAmbiguous
		n.Line = fmt.Sprintf("AMBIGUOUS: subtable '%s' is mostly fast on %s", n.Name, Cores(rivals))
	case b.odds >= r.cfg.MaxError || b.unsure:
		n.Line = fmt.Sprintf("INCOMPLETE: subtable '%s' is undecided after %d requests (model odds %.2g)", n.Name, s.sent, b.odds)
		if likely != "" {
			n.Line += "; likeliest is " + likely
		}
	case b.best < 0:
		n.Outcome = OutcomeNone
		n.Line = fmt.Sprintf("NO OWNER: subtable '%s' is slow on every core", n.Name)
	default:
		owner := r.ids[b.best]
		n.Outcome, n.Owner = OutcomeOwner, &owner
		n.Line = fmt.Sprintf("Likely owner of subtable '%s': %s", n.Name, likely)
	}
	return n
}

// ownership judges all names together.
func (res *ProbeResult) ownership() verdict.Verdict {
	count := make(map[string]int)
	var missed, none []NameResult
	expected := 0
	for _, n := range res.Names {
		count[n.Outcome]++
		if n.Outcome == OutcomeNone {
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
		"names": float64(len(res.Names)), "owned": float64(count[OutcomeOwner]), "no_owner": float64(count[OutcomeNone]),
		"ambiguous": float64(count[OutcomeAmbiguous]), "incomplete": float64(count[OutcomeIncomplete]),
		"expected": float64(expected), "expected_missed": float64(len(missed))}}
	switch {
	case len(res.Names) == 0:
		v.State, v.Line = verdict.NotJudged, "not judged: nothing was asked"
	case len(res.Missing) > 0:
		v.State, v.Line = verdict.NotJudged, "not judged: "+Cores(res.Missing)+" unreached"
	case len(missed) > 0:
		v.State = verdict.Fail
		v.Line = fmt.Sprintf("WRONG OWNER: %s", examples(missed, func(n NameResult) string {
			return fmt.Sprintf("'%s' is owned by TMM %s, not %s as expected", n.Name, n.Owner, n.Expected)
		}))
	case len(none) > 0:
		v.State = verdict.Fail
		v.Line = fmt.Sprintf("NO OWNER: %d of %d names are slow on every core (%s)", len(none), len(res.Names),
			examples(none, func(n NameResult) string { return "'" + n.Name + "'" }))
	case count[OutcomeAmbiguous] > 0:
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("AMBIGUOUS: %d of %d names are mostly fast on several cores", count[OutcomeAmbiguous], len(res.Names))
	case count[OutcomeIncomplete] > 0:
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: %d of %d names are undecided", count[OutcomeIncomplete], len(res.Names))
	case len(res.Names) == 1:
		n := &res.Names[0]
		v.Line = fmt.Sprintf("OWNER TMM %s: subtable '%s' (model odds of error %.2g, %d requests)", n.Owner, n.Name, n.Odds, n.Requests)
	default:
		v.Line = fmt.Sprintf("OK: %d names, each owned by one core", len(res.Names))
		if expected > 0 {
			v.Line += fmt.Sprintf("; %d as expected", expected)
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
