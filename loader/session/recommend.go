package session

import (
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
	var best *DesignResult
	for _, x := range designs {
		if d := by[x.name]; d != nil && (best == nil || better(d, best)) {
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
		index, off := 0.0, student99(d.Scan.N-1)*math.Sqrt(d.Scan.variance)
		for _, part := range []struct {
			c OpCost
			n int64
		}{{look, look.N}, {d.op("set"), d.IndexSets}, {d.op("delete"), d.IndexDeletes}} {
			if part.n > 0 {
				times := float64(part.n) / float64(look.N)
				index += times * part.c.TrimmedClicks
				off = math.Hypot(off, times*student99(part.c.N)*math.Sqrt(part.c.variance))
			}
		}
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

// student99 is z99 for a mean of n samples whose variance is known from them
// alone: Student's quantile, by the expansion of Abramowitz and Stegun 26.7.5.
func student99(n int64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	z, df := z99, float64(n-1)
	return z + (math.Pow(z, 3)+z)/(4*df) + (5*math.Pow(z, 5)+16*math.Pow(z, 3)+3*z)/(96*df*df)
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
		n, b, per := d.GrowthEntriesP1k, d.GrowthBytesP1k, "for each 1,000 sessions"
		if r.Arrivals > 0 {
			n, b, per = d.GrowthEntriesPH, d.GrowthBytesPH, "per hour at this rate of arrivals"
		}
		bytes := ""
		if b > 0 {
			bytes = fmt.Sprintf(" (%s bytes)", clicks(b))
		}
		say(TableMemory, "Keys without a timer of sessions that never leave stay for good in %s: %s entries%s more %s.", d.Title, clicks(n), bytes, per)
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
