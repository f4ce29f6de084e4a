package session

import (
	"fmt"
	"math"
	"strconv"
)

const (
	// maxFailed is the share of failed operations up to which a design's
	// figures are evidence.
	maxFailed = 0.01
	// tie is the difference in cost below which memory and spread decide.
	tie = 0.10
)

// recommend says which design to take and why, each sentence from one table.
func recommend(r *Result) {
	var best *DesignResult
	by := map[Design]*DesignResult{}
	for i := range r.Designs {
		d := &r.Designs[i]
		if d.OK == 0 || float64(d.Failed) > maxFailed*float64(d.Operations) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %d of %d operations failed: not compared", d.Design, d.Failed, d.Operations))
			continue
		}
		by[d.Design] = d
		if best == nil || better(d, best) {
			best = d
		}
	}
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
		say(TableOps, "Too few visits to tell which design costs least: chance may make more than the differences between them. Play more --sessions or --visits.")
		best = nil
	default:
		r.Best = best.Design
		say(TableOps, "Take %s: %s (without the slowest 2 %% of the samples), with %s of its operations on another core than the one that accepted them.",
			best.Title, cost(best), percent(best.RemoteShare))
	}
	for _, x := range designs {
		d := by[x.name]
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
			say(TableOps, "%s makes TMM %v hot: it executes %.1f times the mean, and no further core relieves it.", capital(d.Title), *d.HotCore, d.ExecutedRatio)
		}
	}
	listing(by, say)
	memory(by, say)
	if best != nil && best.Design == Local && r.Cores != 1 {
		say(TableOps, "It needs affinity: a session's requests must reach the core that holds its keys (persistence by source port or address ahead of the cores, or the owner's name in a cookie); each request that doesn't is remote.")
	}
}

// clear says that the best design costs less than each other one, or as much,
// by more than chance makes of it.
func clear(best *DesignResult, by map[Design]*DesignResult) bool {
	for _, d := range by {
		if d == best {
			continue
		}
		off := math.Hypot(best.ClicksPerVisitError, d.ClicksPerVisitError)
		low := d.ClicksPerVisit - best.ClicksPerVisit - off
		if tied := off <= tie*best.ClicksPerVisit; low <= 0 && !tied {
			return false
		}
	}
	return true
}

// cost is a design's, as the text has it.
func cost(d *DesignResult) string {
	return fmt.Sprintf("%s ± %s clicks per visit", clicks(d.ClicksPerVisit), clicks(d.ClicksPerVisitError))
}

// better compares by cost; a tie goes to the design that spreads better.
func better(a, b *DesignResult) bool {
	if d := math.Abs(a.ClicksPerVisit - b.ClicksPerVisit); d <= tie*min(a.ClicksPerVisit, b.ClicksPerVisit) && a.ExecutedRatio > 0 && b.ExecutedRatio > 0 {
		return a.ExecutedRatio < b.ExecutedRatio
	}
	return a.ClicksPerVisit < b.ClicksPerVisit
}

// listing compares the ways to find out which keys a session has.
func listing(by map[Design]*DesignResult, say func(string, string, ...any)) {
	if d := by[PerSession]; d != nil {
		if c := d.op("enumerate"); c.N > 0 {
			say(TableCost, "Listing a session's unknown keys takes %s clicks at p50 and %s at p99 with a subtable of its own, since nothing else is in it.",
				whole(c.P50Clicks), whole(c.P99Clicks))
		}
	}
	for _, name := range []Design{Shared, Local} {
		d := by[name]
		if d == nil || d.Scan.N == 0 {
			continue
		}
		c := d.op("enumerate")
		if c.N == 0 {
			continue
		}
		advice := "here an index doesn't pay"
		if c.P50Clicks < d.Scan.P50Clicks {
			advice = "keep the index"
		}
		say(TableCost, "In %s, listing the whole subtable takes %s clicks at p50 (%d times), through an index entry per session %s: %s.",
			map[Design]string{Shared: "the shared subtable", Local: "a local subtable"}[name], whole(d.Scan.P50Clicks), d.Scan.N, whole(c.P50Clicks), advice)
	}
}

// memory compares entries and bytes, and says what grows.
func memory(by map[Design]*DesignResult, say func(string, string, ...any)) {
	grows := false
	for _, x := range designs {
		if d := by[x.name]; d != nil && d.EntriesRatio > 0 {
			say(TableMemory, "%s holds %s entries in %s bytes (%.0f bytes per entry); the fullest core has %.2f times the mean.",
				capital(d.Title), whole(d.Entries), whole(d.Bytes), d.BytesPerEntry, d.EntriesRatio)
		}
	}
	for _, x := range designs {
		if d := by[x.name]; d != nil && d.Indefinite > 0 {
			bytes := ""
			if d.GrowthBytesPH > 0 {
				bytes = fmt.Sprintf(" (%s bytes)", clicks(d.GrowthBytesPH))
			}
			say(TableMemory, "Keys without a timer of sessions that never leave stay for good in %s: %s entries%s more per hour at this rate of arrivals.",
				d.Title, clicks(d.GrowthEntriesPH), bytes)
			grows = true
		}
	}
	if grows {
		say(TableMemory, "Give every key a timeout or a lifetime.")
	}
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
