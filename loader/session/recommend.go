package session

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// tie is the difference in cost below which memory and spread decide.
const tie = 0.10

// recommend says which of the designs compared to take and why, each sentence
// from one table.
func recommend(r *Result, asked []Design, by map[Design]*DesignResult) {
	best, why := cheapest(r, by)
	if best == nil {
		return
	}
	say := func(table, format string, args ...any) {
		r.Recommendation = append(r.Recommendation, Advice{Text: fmt.Sprintf(format, args...), Table: table})
	}
	switch {
	case len(by) == 1:
		say(TableOps, "%s costs %s with %s of its operations remote; there is no other design to compare it with.",
			capital(best.Title), cost(best), percent(best.RemoteShare))
		best = nil
	case !clear(best, by):
		more := "Play more --sessions or --visits."
		if n := enough(best, by, r.Sessions); n > 0 {
			more = fmt.Sprintf("About %s --sessions are enough.", whole(n))
		}
		say(TableOps, "Too few visits to tell which design costs least: chance may make more than the differences between them. %s", more)
		best = nil
	default:
		r.Best = best.Design
		say(TableOps, "Take %s: %s (without the slowest 2 %% of the samples), %s, with %s of its operations on another core than the one that accepted them.",
			best.Title, cost(best), why, percent(best.RemoteShare))
	}
	for _, x := range designs {
		d := by[x.name]
		if d == nil && slices.Contains(asked, x.name) {
			r.Recommendation[0].Text += fmt.Sprintf(" Of the designs asked for, %s was not compared.", x.name)
		}
		if d == nil || d == best || len(by) == 1 {
			continue
		}
		than := ""
		if best != nil {
			than = ", " + times(d.ClicksPerVisit, best.ClicksPerVisit)
		}
		say(TableOps, "%s costs %s%s: %s of its operations are remote%s.",
			capital(d.Title), cost(d), than, percent(d.RemoteShare), theory(d, r.Cores))
	}
	for _, x := range designs {
		if d := by[x.name]; d != nil && d.HotCore != nil {
			why := fmt.Sprintf("more than chance makes of %s sessions", whole(r.Sessions))
			if d.Design == Shared {
				why = "and no further core relieves it"
			}
			say(TableOps, "%s makes TMM %v hot: it executes %.1f times the mean, %s.", capital(d.Title), *d.HotCore, d.ExecutedRatio, why)
		}
	}
	listing(by, say)
	memory(r, by, say)
	if best != nil && best.Design == Local && r.Cores != 1 {
		say(TableOps, "It needs affinity: a session's requests must reach the core that holds its keys (persistence by source port or address ahead of the cores, or the owner's name in a cookie); each request that doesn't is remote.")
	}
}

// cheapest is the design to take, and why: the one that costs least, or, of
// those that cost as much but for a tie, the one whose work is spread best.
// Spreads that chance may make of so many sessions are the same.
func cheapest(r *Result, by map[Design]*DesignResult) (best *DesignResult, why string) {
	var all []*DesignResult
	for _, x := range designs {
		if d := by[x.name]; d != nil {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, ""
	}
	slices.SortStableFunc(all, func(a, b *DesignResult) int { return cmp.Compare(a.ClicksPerVisit, b.ClicksPerVisit) })
	least := all[0]
	tied := 0
	for tied < len(all) && all[tied].ClicksPerVisit <= (1+tie)*least.ClicksPerVisit {
		tied++
	}
	if tied == 1 {
		return least, "which is the least"
	}
	even := slices.MinFunc(all[:tied], func(a, b *DesignResult) int { return cmp.Compare(a.ExecutedRatio, b.ExecutedRatio) }).ExecutedRatio
	for _, d := range all[:tied] {
		if even > 0 && beyondChance(d.ExecutedRatio/even, float64(r.Sessions), len(d.Load)) {
			continue
		}
		if d == least {
			than := ", and spreads no better"
			if even == 0 {
				than = ""
			}
			return d, fmt.Sprintf("which is the least (up to %.0f %% more counts as the same%s)", tie*100, than)
		}
		return d, fmt.Sprintf("which is as good as the %s of %s (up to %.0f %% more counts as the same), and better spread: its busiest core executes %.2f times the mean instead of %.2f",
			clicks(least.ClicksPerVisit), least.Design, tie*100, d.ExecutedRatio, least.ExecutedRatio)
	}
	return least, "which is the least" // not reached: the most even one is not beyond itself
}

// clear says that the best design costs less than each other one, or as much,
// by more than chance makes of it.
func clear(best *DesignResult, by map[Design]*DesignResult) bool {
	for _, d := range by {
		if d != best && off(best, d) > margin(best, d) {
			return false
		}
	}
	return true
}

// off is how far the difference between two designs' costs may be off.
func off(a, b *DesignResult) float64 { return math.Hypot(a.ClicksPerVisitError, b.ClicksPerVisitError) }

// margin is how far off the difference may be to say that best costs less than
// d, or as much but for a tie.
func margin(best, d *DesignResult) float64 {
	return max(d.ClicksPerVisit-best.ClicksPerVisit, tie*best.ClicksPerVisit)
}

// mostSessions is up to how many it is told that they are enough.
const mostSessions = 10_000_000

// enough is how many sessions make it clear, as chance takes four times as many
// for each half of it; 0: more than can be told. A half more is for the figures
// of now that are themselves off.
func enough(best *DesignResult, by map[Design]*DesignResult, sessions int64) int64 {
	n := float64(sessions)
	for _, d := range by {
		if d != best {
			n = max(n, 1.5*float64(sessions)*math.Pow(off(best, d)/margin(best, d), 2))
		}
	}
	if !(n <= mostSessions) {
		return 0
	}
	step := math.Pow(10, math.Floor(math.Log10(n))-1) // two digits
	return int64(math.Round(n/step) * step)
}

// cost is a design's, as the text has it.
func cost(d *DesignResult) string {
	return fmt.Sprintf("%s ± %s clicks per visit", clicks(d.ClicksPerVisit), clicks(d.ClicksPerVisitError))
}

// listing compares the ways to find out which keys a session has.
func listing(by map[Design]*DesignResult, say func(string, string, ...any)) {
	if d := by[PerSession]; d != nil {
		if c := d.op("enumerate"); c.N > 0 {
			rare := whole(c.P99Clicks) + " at p99"
			if c.Latency.P99IsMax {
				rare = whole(c.MaxClicks) + " at most"
			}
			say(TableCost, "Listing a session's unknown keys takes %s clicks at p50 and %s with a subtable of its own, since nothing else is in it.",
				whole(c.P50Clicks), rare)
		}
	}
	for _, name := range []Design{Shared, Local} {
		d := by[name]
		if d == nil || d.Scan.N == 0 {
			continue
		}
		look := d.op("enumerate")
		if look.N == 0 {
			continue
		}
		// Each listing bears its part of what the entries cost that make it
		// short: one is written for each session, and deleted by those that leave,
		// at the cost of any other write and deletion.
		index, off := 0.0, d.Scan.off
		for _, part := range []struct {
			c OpCost
			n int64
		}{{look, look.N}, {d.op("set"), d.IndexSets}, {d.op("delete"), d.IndexDeletes}} {
			if part.n > 0 {
				times := float64(part.n) / float64(look.N)
				index += times * part.c.TrimmedClicks
				off = math.Hypot(off, times*part.c.off)
			}
		}
		// So is how often a session's keys are asked for.
		off = math.Hypot(off, (index-look.TrimmedClicks)*z99/math.Sqrt(float64(look.N)))
		diff := d.Scan.TrimmedClicks - index
		advice := "keep the index"
		switch {
		case d.Scan.N < minScans || math.Abs(diff) <= off:
			advice = "no difference that so few can show"
		case math.Abs(diff) <= tie*index:
			advice = "as good as the same"
		case diff < 0:
			advice = "here an index doesn't pay"
		}
		say(TableCost, "In %s, listing the whole subtable takes %s clicks in the mean (%d times in the course of the visits), through an index entry per session %s for each of %s listings, the %s sets and %s deletes of these entries included: %s.",
			map[Design]string{Shared: "the shared subtable", Local: "a local subtable"}[name], clicks(d.Scan.TrimmedClicks), d.Scan.N, clicks(index), whole(look.N), whole(d.IndexSets), whole(d.IndexDeletes), advice)
	}
}

// memory compares entries and bytes, and says what grows.
func memory(r *Result, by map[Design]*DesignResult, say func(string, string, ...any)) {
	for _, x := range designs {
		if d := by[x.name]; d != nil && d.EntriesRatio > 0 {
			// Entries fall on cores by the session.
			sessions := float64(d.Entries) / float64(r.Keys)
			spread := fmt.Sprintf("the fullest core has %.2f times the mean", d.EntriesRatio)
			switch {
			case d.Design == Shared && len(d.Load) > 1:
				spread = "all on one core"
			case d.EntriesRatio > hotRatio && !beyondChance(d.EntriesRatio, sessions, len(d.Load)):
				spread = "too few to say how they spread"
			}
			say(TableMemory, "%s holds %s in %s bytes (%.0f bytes per entry) after the visits; %s.",
				capital(d.Title), entries(d.Entries), whole(d.Bytes), d.BytesPerEntry, spread)
		}
	}
	grows := false
	for _, x := range designs {
		d := by[x.name]
		if d == nil || d.Indefinite == 0 {
			continue
		}
		n, b, per := d.GrowthEntriesP1k, d.GrowthBytesP1k, " more for each 1,000 sessions"
		switch {
		case n == 0:
			n, b, per = float64(d.Indefinite), float64(d.Indefinite)*d.BytesPerEntry, ""
		case r.Arrivals > 0:
			n, b, per = d.GrowthEntriesPH, d.GrowthBytesPH, " more per hour at this rate of arrivals"
		}
		bytes := ""
		if b > 0 {
			bytes = fmt.Sprintf(" (%s bytes)", clicks(b))
		}
		say(TableMemory, "Keys without a timer of sessions that never leave stay for good in %s: %s entries%s%s.", d.Title, clicks(n), bytes, per)
		grows = true
	}
	if grows {
		say(TableMemory, "Give every key a timeout or a lifetime.")
	}
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return whole(n) + " entries"
}

// op is the cost of one kind of operation; zero if there was none.
func (d *DesignResult) op(name string) OpCost {
	for _, c := range d.Ops {
		if c.Op == name {
			return c
		}
	}
	return OpCost{}
}

func theory(d *DesignResult, cores int) string {
	if d.TheoryShare == 0 {
		return ""
	}
	return fmt.Sprintf(" (theory says (N−1)/N = %s for %d cores)", percent(d.TheoryShare), cores)
}

// times says how a compares with b in words.
func times(a, b float64) string {
	switch {
	case b <= 0 || a < b*1.01:
		return "no more"
	case a < 2*b:
		return fmt.Sprintf("%.0f %% more", (a/b-1)*100)
	}
	return fmt.Sprintf("%s times as much", clicks(a/b))
}

func percent(s float64) string { return fmt.Sprintf("%.2f %%", s*100) }

// clicks prints three significant digits, thousands separated.
func clicks(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return whole(int64(math.Round(v)))
}

// whole separates thousands.
func whole(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]&^0x20) + s[1:]
}
