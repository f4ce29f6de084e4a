package render

import (
	"fmt"
	"strings"

	"tbl/cmd/tbl/internal/logreport"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Stats is the document of stats.
func Stats(r *logreport.Report) *Document {
	d := &Document{Command: "stats", Data: r, Verdicts: r.Verdicts}
	statsHead(d, r)
	for _, dev := range r.Devices {
		statsDevice(d, dev, len(r.Devices) > 1)
		for _, h := range dev.Histograms {
			tag := "tmm_" + h.Core.String()
			if len(r.Devices) > 1 {
				tag = dev.Name + "_" + tag
			}
			d.Distributions = append(d.Distributions, Distribution{Tag: tag, Unit: "clicks", Hist: h.Hist})
		}
	}
	for _, n := range r.Names {
		where := ""
		if n.Device != "" {
			where = " on " + n.Device
		}
		d.Linef("subtable '%s'%s", n.Subtable, where)
		t := d.Append("probes", "TMM", "hits", "OWNER", "NON_OWNER", "min_clicks", "avg_clicks", "max_clicks")
		for _, c := range n.Cores {
			if c.Hits > 0 {
				t.Row(c.Core.String(), c.Hits, c.Owner, c.NonOwner, c.MinClicks, Fixed1(c.AvgClicks), c.MaxClicks)
			}
		}
		if n.ThresholdRule == "auto" {
			d.Linef("threshold %s clicks, from the valley between two populations", Int(n.ThresholdClicks))
		}
	}
	warnings(d, r.Warnings)
	return d
}

// statsHead says what was read and what was left out.
func statsHead(d *Document, r *logreport.Report) {
	var names []string
	for _, in := range r.Inputs {
		n := in.Name
		if in.Compression != "" {
			n += " (" + in.Compression + ")"
		}
		names = append(names, n)
	}
	d.Linef("read %s: %s lines, %s samples, %s other", strings.Join(names, ", "), Int(r.Lines), Int(r.Samples), Int(r.Other))
	var left []string
	add := func(n int64, format string) {
		if n > 0 {
			left = append(left, fmt.Sprintf(format, Int(n)))
		}
	}
	add(r.Probes, "%s probes")
	add(r.Truncated, "%s truncated")
	add(r.Malformed, "%s malformed")
	add(r.Wrapped, "%s with a wrapped counter")
	add(r.Disagreements, "%s whose process name says another core")
	add(r.Outside, "%s outside the time asked for")
	add(r.Undated, "%s without a time")
	add(r.OtherHosts, "%s of other hosts")
	add(r.Shortened, "%s too long to keep whole")
	if len(left) > 0 {
		d.Linef("besides: %s", strings.Join(left, ", "))
	}
	if r.Held > 0 || r.Throttled > 0 {
		d.Linef("the log was throttled, %s messages held or suppressed: all counts are lower bounds", Int(r.Held))
	}
	for _, x := range r.MalformedExamples {
		d.Linef("malformed: %q", x)
	}
}

// coreCase is one core's locality as a judgement of its own, with its figures.
func coreCase(dev logreport.Device, c verdict.CoreLocality, several bool) verdict.Verdict {
	state := map[verdict.CoreState]verdict.State{
		verdict.Local: verdict.Pass, verdict.Mixed: verdict.Fail, verdict.Remote: verdict.Fail, verdict.Unknown: verdict.Incomplete,
	}[c.State]
	return verdict.Verdict{
		Name: verdict.Locality, Of: caseOf(dev, c.Core, several), State: state,
		Line: fmt.Sprintf("%s: %s of %s samples slow; clicks: min %s, p50 %s, avg %s, p95 %s, p99 %s, max %s", c.State, Int(c.AtThreshold), Int(c.N),
			Int(c.MinClicks), Int(c.P50Clicks), text(Fixed1(c.AvgClicks)), Int(c.P95Clicks), Int(c.P99Clicks), Int(c.MaxClicks)),
	}
}

func caseOf(dev logreport.Device, core timingstats.CoreID, several bool) string {
	of := "TMM " + core.String()
	if several {
		of += ", device " + dev.Name
	}
	return of
}

func statsDevice(d *Document, dev logreport.Device, several bool) {
	if several {
		name := dev.Name
		if name == "" {
			name = "lines without a host"
		}
		d.Linef("device %s", name)
	}
	for _, n := range dev.Found {
		if !n.Warning {
			d.Linef("TMM %d found %s after %s probes", n.Core, n.Subtable, Int(n.Tries))
		}
	}
	name := "cores"
	if several {
		name += ":" + dev.Name
	}
	t := d.Append(name, "TMM", "n", "FAST", "SLOW", "min", "p50", "avg", "p95", "p99", "max", "state")
	star := false
	for _, c := range dev.Cores {
		var p99 any = c.P99Clicks
		if c.P99IsMax {
			p99, star = Marked{c.P99Clicks, "*"}, true
		}
		t.Row(c.Core.String(), c.N, c.Fast, c.Slow, c.MinClicks, c.P50Clicks, Fixed1(c.AvgClicks), c.P95Clicks, p99, c.MaxClicks, c.State.String())
		d.Cases = append(d.Cases, coreCase(dev, c, several))
	}
	for _, m := range dev.Missing {
		d.Cases = append(d.Cases, verdict.Verdict{
			Name: verdict.Locality, Of: caseOf(dev, timingstats.CoreID(m), several), State: verdict.Incomplete, Line: "UNKNOWN: no samples",
		})
	}
	if star {
		d.Linef("* fewer than 100 samples: no p99, the maximum stands for it")
	}
	rate := ""
	if dev.SampleRate != "" {
		rate = "   sampled " + dev.SampleRate
	}
	d.Linef("Total: %s samples across %d TMMs   FAST_LOCAL=%s  SLOW=%s%s", Int(dev.Samples), len(dev.Cores), Int(dev.Fast), Int(dev.Slow), rate)
	if dev.ThresholdRule == "auto" {
		d.Linef("threshold %s clicks, from the valley between two populations", Int(dev.ThresholdClicks))
	}
	if len(dev.Groups) > 0 {
		t := d.Append("groups", dev.GroupBy, "TMM", "n", "FAST", "SLOW", "min", "p50", "avg", "p95", "p99", "max")
		for _, g := range dev.Groups {
			for _, c := range g.Cores {
				var p99 any = c.P99Clicks
				if c.P99IsMax {
					p99 = Marked{c.P99Clicks, "*"}
				}
				t.Row(g.Name, c.Core.String(), c.N, c.Fast, c.Slow, c.MinClicks, c.P50Clicks, Fixed1(c.AvgClicks), c.P95Clicks, p99, c.MaxClicks)
			}
		}
	}
	if len(dev.Slowest) > 0 {
		t := d.Append("slowest", "TMM", "clicks", "writes", "subtable", "key", "time")
		t.Left = true
		for _, s := range dev.Slowest {
			t.Row(s.Core.String(), s.Clicks, s.Writes, s.Subtable, fmt.Sprintf("%+q", s.Key), s.Time)
		}
	}
	warnings(d, dev.Warnings)
}
