package render

import (
	"fmt"
	"time"

	"tbl/loader/session"
)

// Session is the document of session: three tables, one row per design, and
// the recommendation that follows from them.
func Session(r *session.Result) *Document {
	d := &Document{Command: "session", Data: r, Verdicts: r.Verdicts}
	var failed, sent int64
	for _, x := range r.Designs {
		failed, sent = failed+x.Failed, sent+x.Operations
	}
	if sent > 0 {
		d.Figures = map[string]float64{"errors_share": float64(failed) / float64(sent)}
	}
	pace := "all as fast as answered, without pauses (those of --think need --arrivals)"
	if r.Arrivals > 0 {
		pace = fmt.Sprintf("%s between them, sessions %s beginning", Duration(time.Duration(r.ThinkNS)), Rate(r.Arrivals))
	}
	d.Linef("%s sessions of %d keys on %d cores, visits after the first: %d, %s", Int(r.Sessions), r.Keys, r.Cores, max(r.Visits, 0), pace)
	for i, x := range r.Designs {
		d.Linef("design %d, %s: %s", i+1, x.Design, x.Title)
	}
	d.Linef("")
	d.Linef("Table %s: what a visit costs, and how much of it is on other cores", session.TableOps)
	t := d.Append(session.TableOps, "design", "visits", "operations", "failed", "ops/s", "remote", "theory", "clicks/visit", "±99%", "misses", "hot_core", "busiest/mean", "affinity_misses")
	for _, x := range r.Designs {
		hot := "-"
		if x.HotCore != nil {
			hot = x.HotCore.String()
		}
		t.Row(string(x.Design), x.Visits, x.Operations, x.Failed, Fixed1(x.OpsPerS), Percent(x.RemoteShare), Percent(x.TheoryShare),
			Fixed1(x.ClicksPerVisit), Digits3(x.ClicksPerVisitError), x.Misses, hot, ratio(x.ExecutedRatio), x.AffinityMisses)
	}
	d.Linef("")
	d.Linef("Table %s: clicks per operation", session.TableCost)
	t = d.Append(session.TableCost, "design", "operation", "n", "min", "p50", "avg", "p95", "p99", "max", "time_p50", "time_p99")
	row := func(x session.DesignResult, o session.OpCost) {
		if o.N == 0 {
			return
		}
		t.Row(string(x.Design), o.Op, o.N, o.MinClicks, o.P50Clicks, Fixed1(o.AvgClicks), o.P95Clicks, p99Clicks(o), o.MaxClicks,
			time.Duration(o.Latency.P50NS), time.Duration(o.Latency.P99NS))
	}
	for _, x := range r.Designs {
		for _, o := range x.Ops {
			row(x, o)
		}
		row(x, x.Scan)
	}
	d.Linef("")
	d.Linef("Table %s: what the cores hold after the visits", session.TableMemory)
	t = d.Append(session.TableMemory, "design", "entries", "bytes", "bytes/entry", "entries_max/mean", "bytes_max/mean", "indefinite", "growth_entries/1000_sessions", "growth_entries/h", "growth_bytes/h", "left_after_expiry")
	perHour := func(v float64) any {
		if r.Arrivals == 0 || r.Sessions < 2 {
			return "-"
		}
		return Fixed1(v)
	}
	perThousand := func(v float64) any {
		if r.Sessions < 2 {
			return "-"
		}
		return Fixed1(v)
	}
	for _, x := range r.Designs {
		var left any = x.LeftAfterExpiry
		if x.LeftAfterExpiry < 0 {
			left = "-"
		}
		t.Row(string(x.Design), x.Entries, x.Bytes, Fixed1(x.BytesPerEntry), ratio(x.EntriesRatio), ratio(x.BytesRatio),
			x.Indefinite, perThousand(x.GrowthEntriesP1k), perHour(x.GrowthEntriesPH), perHour(x.GrowthBytesPH), left)
	}
	d.Linef("")
	t = d.Append("cores", "design", "TMM", "accepted", "executed", "entries", "bytes")
	for _, x := range r.Designs {
		for _, c := range x.Load {
			t.Row(string(x.Design), c.Core.String(), c.Accepted, known(c.Executed), known(c.Entries), known(c.Bytes))
		}
	}
	warnings(d, r.Warnings)
	if len(r.Recommendation) > 0 {
		d.Linef("")
		best := string(r.Best)
		if best == "" {
			best = "none"
		}
		d.Linef("Recommendation: %s", best)
		for _, a := range r.Recommendation {
			d.Linef("- %s (table %s)", a.Text, a.Table)
		}
	}
	return d
}

func p99Clicks(o session.OpCost) any {
	if o.Latency.P99IsMax {
		return Marked{o.P99Clicks, "*"}
	}
	return o.P99Clicks
}

func ratio(x float64) any {
	if x == 0 {
		return "-"
	}
	return Fixed1(x)
}

func known(n int64) any {
	if n < 0 {
		return "-"
	}
	return n
}
