package render

import (
	"fmt"
	"strings"

	"tbl/prober"
)

// Info is the document of info.
func Info(r *prober.InfoResult) *Document {
	d := &Document{Command: "info", Data: r, Verdicts: r.Verdicts}
	d.Linef("target %s: %s", r.Target, Count(len(r.Cores), "core"))
	hits(d, r.Hits)
	closeRun(d, &r.Run)
	return d
}

// Whoami is the document of whoami.
func Whoami(r *prober.WhoamiResult) *Document {
	d := &Document{Command: "whoami", Data: r, Verdicts: r.Verdicts}
	t := d.Append("cores", "TMM", "hits", "subtable", "writes", "entries")
	for _, c := range r.Names {
		t.Row(c.Core.String(), c.Hits, c.Subtable, c.Writes, c.Entries)
	}
	for _, c := range r.Names {
		for _, doubt := range c.Doubts {
			d.Linef("TMM %s: %s", c.Core, doubt)
		}
		if len(c.Before) > 0 {
			d.Linef("TMM %s was called %s before: a restart lay between", c.Core, strings.Join(c.Before, ", "))
		}
	}
	closeRun(d, &r.Run)
	return d
}

// Dump is the document of dump.
func Dump(r *prober.DumpResult) *Document {
	d := &Document{Command: "dump", Data: r, Verdicts: r.Verdicts}
	t := d.Append("keys", "TMM", "key")
	t.Left = true
	for _, c := range r.Dumps {
		for _, k := range c.Keys {
			t.Row(c.Core.String(), fmt.Sprintf("%+q", k))
		}
	}
	for _, c := range r.Dumps {
		d.Linef("TMM %s: %s keys", c.Core, Int(c.Count))
	}
	closeRun(d, &r.Run)
	return d
}

// mostOrphans is how many cleared names a text lists.
const mostOrphans = 20

// Reset is the document of reset.
func Reset(r *prober.ResetResult) *Document {
	d := &Document{Command: "reset", Data: r, Verdicts: r.Verdicts}
	t := d.Append("cores", "TMM", "hits", "first_deleted", "total_deleted")
	for _, c := range r.Resets {
		t.Row(c.Core.String(), c.Hits, c.FirstDeleted, c.TotalDeleted)
	}
	for _, o := range r.Orphans[:min(len(r.Orphans), mostOrphans)] {
		d.Linef("%q, which no core calls its own: entries deleted: %s", o.Subtable, Int(o.Deleted))
	}
	if more := len(r.Orphans) - mostOrphans; more > 0 {
		d.Linef("… and under %s more, which --format json lists", Int(int64(more)))
	}
	others := ""
	if len(r.Orphans) > 0 {
		others = ", and under other names: " + Int(r.OrphansDeleted)
	}
	if len(r.Missing) == 0 && !r.Partial {
		d.Linef("All %d TMMs cleared. Total entries removed (first-hit): %s%s", len(r.Cores), Int(r.FirstDeleted), others)
	} else {
		d.Linef("%d of %d TMMs cleared, missing=[%s]. Total entries removed (first-hit): %s%s",
			len(r.Resets), len(r.Cores), coreList(r.Missing), Int(r.FirstDeleted), others)
	}
	closeRun(d, &r.Run)
	return d
}

// Probe is the document of probe.
func Probe(r *prober.ProbeResult) *Document {
	d := &Document{Command: "probe", Data: r, Verdicts: r.Verdicts}
	if len(r.Names) == 1 {
		n := r.Names[0]
		t := d.Append("cores", "TMM", "hits", "OWNER", "NON_OWNER", "min_clicks", "avg_clicks", "max_clicks")
		for _, c := range n.Cores {
			t.Row(c.Core.String(), c.Hits, c.Owner, c.NonOwner, c.Min, Fixed1(c.Avg), c.Max)
		}
		for _, c := range n.Cores {
			d.Ranges = append(d.Ranges, Range{"tmm " + c.Core.String(), float64(c.Min), c.Avg, float64(c.Max)})
		}
		d.Linef("%s", likely(n))
	} else {
		owners(d, r.Names)
		t := d.Append("owned", "TMM", "hits", "names")
		hits := map[string]int64{}
		for _, h := range r.Hits {
			hits[h.Core.String()] = h.Hits
		}
		for _, c := range r.Owned {
			t.Row(c.Core.String(), hits[c.Core.String()], c.Names)
		}
		if r.Spread != nil {
			d.Linef("names over cores: %s", r.Spread.Line)
		}
	}
	closeRun(d, &r.Run)
	return d
}

// likely is the line that names the owner, with what it rests on.
func likely(n prober.NameResult) string {
	if n.Owner == nil {
		return fmt.Sprintf("Owner of subtable '%s': %s after %d requests", n.Name, n.Outcome, n.Requests)
	}
	for _, c := range n.Cores {
		if c.Core == *n.Owner {
			return fmt.Sprintf("Likely owner of subtable '%s': TMM %s (avg %s clicks, tagged OWNER %s times)",
				n.Name, n.Owner, text(Fixed1(c.Avg)), Int(c.TaggedOwner))
		}
	}
	return fmt.Sprintf("Likely owner of subtable '%s': TMM %s", n.Name, n.Owner)
}

// owners lists names with their owners: how many of the owner's writes, and of
// the others', were fast. Means are left to the JSON: one pre-empted write of
// 400,000 clicks makes an owner look slow.
func owners(d *Document, names []prober.NameResult) {
	t := d.Append("names", "subtable", "owner", "outcome", "requests", "owner_fast", "others_fast", "owner_min_clicks", "others_min_clicks", "error_odds")
	t.Left = true
	for _, n := range names {
		if n.Owner == nil {
			t.Row(n.Name, "-", n.Outcome, n.Requests, "-", "-", "-", "-", "-")
			continue
		}
		var own, others prober.CoreProbe
		for _, c := range n.Cores {
			if c.Hits == 0 {
				continue
			}
			sum := &others
			if c.Core == *n.Owner {
				sum = &own
			}
			if sum.Hits == 0 || c.Min < sum.Min {
				sum.Min = c.Min
			}
			sum.Hits, sum.Owner = sum.Hits+c.Hits, sum.Owner+c.Owner
		}
		t.Row(n.Name, n.Owner.String(), n.Outcome, n.Requests, fmt.Sprintf("%d/%d", own.Owner, own.Hits), fmt.Sprintf("%d/%d", others.Owner, others.Hits),
			own.Min, others.Min, fmt.Sprintf("%.1g", n.Odds))
	}
}

// Found is the document of find-names.
func Found(r *prober.FindResult) *Document {
	d := &Document{Command: "find-names", Data: r, Verdicts: r.Verdicts}
	t := d.Append("names", "TMM", "subtable")
	t.Left = true
	for _, c := range r.Found {
		for _, n := range c.Names {
			t.Row(c.Core.String(), n)
		}
	}
	d.Linef("%s names tried", Int(int64(r.Tried)))
	closeRun(d, &r.Run)
	return d
}

func hits(d *Document, hs []prober.CoreHits) {
	t := d.Append("cores", "TMM", "hits")
	for _, h := range hs {
		t.Row(h.Core.String(), h.Hits)
	}
}

// closeRun adds what every run of the prober has: missing cores, errors,
// warnings.
func closeRun(d *Document, r *prober.Run) {
	if len(r.Missing) > 0 {
		d.Linef("missing=[%s]", coreList(r.Missing))
	}
	if a := r.Accounting; a.Failed() > 0 {
		d.Linef("sent=%s ok=%s failed=%s", Int(a.Sent), Int(a.OK), Int(a.Failed()))
		t := d.Append("errors", "error", "count", "first")
		t.Left = true
		for _, e := range a.Errors {
			t.Row(e.Class.String(), e.Count, e.Example)
		}
	}
	warnings(d, r.Warnings)
}
