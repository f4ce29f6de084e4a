package prober

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// askOwners asks, where the dataplane has table commands, who owns each name:
// look-ups of a key that isn't there, which change nothing. A dataplane that
// knows owners tells them; of another one the cores' own look-ups are timed.
// These requests are no part of the account, since a dataplane without that
// endpoint is as good as any.
func (p *pool) askOwners(ctx context.Context, res *WhoamiResult) {
	q := newPool(p.tgt, p.workers, nil)
	ask := func(j *job, req *target.Request) {
		req.Op, req.Table, req.Flags = target.OpTable, target.TableLookup, target.FlagNoTouch
		req.Key = []byte("tbl_absent_key")
		req.Subtable = append(req.Subtable, res.Names[j.name].Subtable...)
	}
	take := func(j *job, ans *target.Answer) {
		j.clicks = ans.Clicks
		if ans.OwnerKnown {
			j.owner = ans.Owner
		}
	}
	blades := make(map[int]bool)
	for _, c := range res.Names {
		blades[c.Core.Slot] = true
	}
	told := false
	for i := range res.Names {
		if res.Names[i].Subtable == "" {
			continue
		}
		more := q.round(ctx, []job{{name: i}}, ask, take, func(j *job) {
			// On a chassis an owner's number alone doesn't identify a core.
			if j.owner >= 0 && len(blades) == 1 {
				res.Names[j.name].Owner = &timingstats.CoreID{Slot: j.core.Slot, Core: j.owner}
				told = true
			}
		})
		if !more || q.ok == 0 && i >= 2 {
			return
		}
	}
	if !told {
		q.timeLookups(ctx, res, ask, take)
	}
}

// The most cores whose look-ups are timed: each has to be met with its own
// name, which with random ports takes the square of their number of requests.
const timedLookupCores = 16

// timeLookups has every core look something up under its own name until it
// did so ownLookups times or enough was sent.
func (p *pool) timeLookups(ctx context.Context, res *WhoamiResult, ask func(*job, *target.Request), take func(*job, *target.Answer)) {
	const ownLookups = 5
	n := len(res.Names)
	if n > timedLookupCores {
		return
	}
	own := make([]int, n)
	for range 6 { // rounds, each expected to meet every core as often as it lacks
		var jobs []job
		for i := range res.Names {
			if own[i] < ownLookups && res.Names[i].Subtable != "" {
				for range n * (ownLookups - own[i]) {
					jobs = append(jobs, job{name: i})
				}
			}
		}
		if len(jobs) == 0 {
			return
		}
		more := p.round(ctx, jobs, ask, take, func(j *job) {
			if c := &res.Names[j.name]; j.core == c.Core {
				own[j.name]++
				c.lookups++
				if j.clicks >= timingstats.DefaultThreshold {
					c.slowLookups++
				}
			}
		})
		if !more {
			return
		}
	}
}

// checkNames fills in the doubts.
func (r *WhoamiResult) checkNames() {
	same := make(map[string][]string)
	for _, c := range r.Names {
		if c.Subtable != "" {
			same[c.Subtable] = append(same[c.Subtable], c.Core.String())
		}
	}
	for i := range r.Names {
		c := &r.Names[i]
		doubt := func(format string, args ...any) { c.Doubts = append(c.Doubts, fmt.Sprintf(format, args...)) }
		if c.Subtable == "" {
			doubt("core %s gave no name: its discovery failed", c.Core)
			continue
		}
		if cores := same[c.Subtable]; len(cores) > 1 {
			doubt("cores %s use one name, %q: at most one of them can own it", strings.Join(cores, " and "), c.Subtable)
		}
		if n, more, ok := verdict.NumberedName(c.Subtable); ok {
			if n != c.Core.Core {
				doubt("the name %q carries the number %d, but is core %s's", c.Subtable, n, c.Core)
			}
			if c.Built = !more; c.Built {
				doubt("the name %q was built, not found: nothing has shown that core %s owns it", c.Subtable, c.Core)
			}
		}
		if c.Owner != nil && *c.Owner != c.Core {
			doubt("core %s writes into %q, which core %s owns: its discovery failed or never was", c.Core, c.Subtable, c.Owner)
		}
		if c.lookups >= 3 && c.slowLookups == c.lookups {
			doubt("core %s takes long on its own name %q, in %d of %d look-ups: its discovery failed or never was", c.Core, c.Subtable, c.slowLookups, c.lookups)
		}
		if len(c.Before) > 0 {
			doubt("core %s changed its name from %q to %q meanwhile: a restart or a reload", c.Core, c.Before[len(c.Before)-1], c.Subtable)
		}
	}
	for _, c := range r.Names {
		r.Warnings = append(r.Warnings, c.Doubts...)
	}
	slices.Sort(r.Warnings)
	r.Warnings = slices.Compact(r.Warnings)
}

// Renamed lists, one sentence each, the cores whose names differ between two
// calls: a restart or a reload lay between, and the entries under the earlier
// names are out of reach.
func Renamed(before, after *WhoamiResult) []string {
	var out []string
	old := make(map[timingstats.CoreID]string)
	for _, c := range before.Names {
		old[c.Core] = c.Subtable
	}
	for _, c := range after.Names {
		if o, ok := old[c.Core]; ok && o != c.Subtable {
			out = append(out, fmt.Sprintf("core %s had the name %q and now has %q: a restart or a reload lay between", c.Core, o, c.Subtable))
		}
	}
	return out
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
		v.Line = fmt.Sprintf("OK: %s, %s, all different", verdict.Count(len(r.Names), "core"), verdict.Count(len(same), "name"))
	}
	return v
}
