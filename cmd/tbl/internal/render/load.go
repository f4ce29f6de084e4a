package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tbl/loader"
	"tbl/loader/steer"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Load is the document of a load.
func Load(r *loader.LoadResult) *Document {
	d := &Document{Command: "load", Data: r, Verdicts: r.Verdicts, Figures: loadFigures(r.WritesPerS, &r.Accounting)}
	total := Int(r.Accounting.OK)
	if r.Requested > 0 {
		total += fmt.Sprintf("/%s (%.1f%%)", Int(r.Requested), 100*float64(r.OK)/float64(r.Requested))
	}
	d.Linef("completed=%s rate=%s coverage=%s missing=[%s] errors=%s",
		total, Rate(r.WritesPerS), coverage(r.KnownCores, len(r.Missing), len(r.Cores), r.Verdicts), coreList(r.Missing), Int(r.Failed))
	for _, c := range r.Cores {
		d.Linef("  tmm %s: %10s writes (%s)", c.Core, Int(c.Writes), text(Percent(c.Share)))
	}
	d.Linef("%s", wall(r.OK, "write", r.Elapsed(), r.WritesPerS, r.WallPerWriteNS))
	if r.Partial {
		d.Linef("partial run: %s", r.Stop)
	}
	if r.ServerClosed+r.ClientClosed > 0 {
		opened := ""
		if r.Connections > 0 {
			opened = fmt.Sprintf("%s for %s requests; ", Int(r.Connections), Int(r.Sent))
		}
		d.Linef("connections: %sclosed first by the server %s, by us %s (TIME_WAIT is on that side; with --linger-reset on neither)", opened, Int(r.ServerClosed), Int(r.ClientClosed))
	}
	if r.OpenLoop {
		d.Linef("open loop: offered %s, sent %s, latest start %s behind its moment",
			Rate(r.OfferedPerS), Rate(r.AchievedPerS), Duration(time.Duration(r.LateMaxNS)))
	}
	t := d.Append("latency", "latency", "n", "min", "p50", "avg", "p90", "p95", "p99", "p99.9", "max")
	latencyRow(t, "service", r.Service)
	if r.OpenLoop {
		latencyRow(t, "response", r.Response)
	}
	latencyRow(t, "connect", r.Connect)
	latencyRow(t, "first byte", r.FirstByte)
	of := ""
	if r.OpenLoop {
		of = "response_"
	}
	t = d.Append("cores", "TMM", "writes", "share", of+"p50", of+"p95", of+"p99", of+"max")
	for _, c := range r.Cores {
		l := c.Response
		t.Row(c.Core.String(), c.Writes, Percent(c.Share), time.Duration(l.P50NS), time.Duration(l.P95NS), p99(l), time.Duration(l.MaxNS))
	}
	for _, c := range r.Cores {
		if c.Response.P99IsMax && c.Response.N > 0 {
			d.Linef(tooFew)
			break
		}
	}
	runs(d, r.Runs)
	d.distribution("response", r.ResponseHist)
	if r.OpenLoop {
		d.distribution("service", r.ServiceHist)
	}
	for _, c := range r.Cores {
		d.distribution("tmm_"+c.Core.String(), c.ResponseHist)
	}
	d.Verdicts = append(slices.Clone(r.Verdicts), verdict.Verdict{Name: verdict.Locality, Line: "not judged: a load does not time single writes; `tbl validate` does, or `tbl stats` on the dataplane's log"})
	steering(d, r.Steering)
	accounting(d, &r.Accounting)
	warnings(d, r.Warnings)
	return d
}

// tooFew explains the mark behind a percentile.
const tooFew = "* too few samples: no such percentile, the maximum stands for it"

// Bulk is the document of a bulk-post.
func Bulk(r *loader.BulkResult) *Document {
	d := &Document{Command: "bulk-post", Data: r, Verdicts: r.Verdicts, Figures: loadFigures(r.WritesPerS, &r.Accounting)}
	posts := Int(r.OK)
	if r.Requested > 0 {
		posts += "/" + Int(r.Requested)
	}
	d.Linef("posts=%s written=%s rate=%s coverage=%s missing=[%s] errors=%s",
		posts, Int(r.Written), Rate(r.WritesPerS), coverage(r.KnownCores, len(r.Missing), len(r.Cores), r.Verdicts), coreList(r.Missing), Int(r.Failed))
	t := d.Append("cores", "TMM", "posts", "writes", "share", "min_clicks/write", "avg_clicks/write", "max_clicks/write", "post_p50", "post_p99")
	for _, c := range r.Cores {
		t.Row(c.Core.String(), c.Posts, c.Writes, Percent(c.Share), Fixed1(c.MinClicks), Fixed1(c.AvgClicks), Fixed1(c.MaxClicks),
			time.Duration(c.Response.P50NS), p99(c.Response))
		switch {
		case c.BatchesHist.N > 0:
			d.Distributions = append(d.Distributions, Distribution{Tag: "tmm_" + c.Core.String(), Unit: "clicks", Hist: c.BatchesHist})
		case c.Posts > 0:
			d.Ranges = append(d.Ranges, Range{"tmm " + c.Core.String(), c.MinClicks, c.AvgClicks, c.MaxClicks})
		}
	}
	for _, c := range r.Cores {
		if c.Response.P99IsMax && c.Response.N > 0 {
			d.Linef(tooFew)
			break
		}
	}
	d.Linef("%s", wall(r.Written, "write", r.Elapsed(), r.WritesPerS, r.WallPerWriteNS))
	d.Linef("bodies: %s bytes, %.1f MiB/s", Int(r.BytesSent), r.BytesPerS/(1<<20))
	if r.Partial {
		d.Linef("partial run: %s", r.Stop)
	}
	if r.Mismatches > 0 {
		d.Linef("%s posts whose written= differs from the keys that were sent", Int(r.Mismatches))
	}
	runs(d, r.Runs)
	d.distribution("response", r.ResponseHist)
	for _, c := range r.Cores {
		d.distribution("post_tmm_"+c.Core.String(), c.ResponseHist)
	}
	accounting(d, &r.Accounting)
	warnings(d, r.Warnings)
	return d
}

// distribution adds one of times, unless it is empty.
func (d *Document) distribution(tag string, h timingstats.Histogram) {
	if h.N > 0 {
		d.Distributions = append(d.Distributions, Distribution{Tag: tag, Unit: "ns", Hist: h})
	}
}

// loadFigures are the figures that users name in thresholds.
func loadFigures(rate float64, a *loader.Accounting) map[string]float64 {
	share := 0.0
	if a.Sent > 0 {
		share = float64(a.Failed) / float64(a.Sent)
	}
	return map[string]float64{"rate_per_s": rate, "errors_share": share}
}

// wall says what a rate means: the time that passed per write with all
// workers together, not what one write takes.
func wall(n int64, what string, elapsed time.Duration, perS, perNS float64) string {
	if n == 0 || elapsed <= 0 {
		return "no " + what + "s"
	}
	return fmt.Sprintf("%s in %s: %s, %s of wall time per write", Count(int(n), what), Duration(elapsed), Rate(perS), Duration(time.Duration(perNS)))
}

// coverage is the cores heard, by COVERAGE where that was judged: they may be
// others than those that wrote.
func coverage(known, missing, heard int, vs []verdict.Verdict) string {
	for _, v := range vs {
		if n, ok := v.Figures["cores_heard"]; ok && v.Name == verdict.Coverage {
			heard = int(n)
		}
	}
	if known == 0 {
		return fmt.Sprintf("%d/?", heard)
	}
	return fmt.Sprintf("%d/%d", heard, max(known, heard+missing))
}

func coreList(cores []timingstats.CoreID) string {
	const most = 32
	var out []string
	for _, c := range cores[:min(len(cores), most)] {
		out = append(out, c.String())
	}
	if len(cores) > most {
		out = append(out, fmt.Sprintf("… %d in all", len(cores)))
	}
	return strings.Join(out, " ")
}

func p99(l loader.Latency) any { return marked(l.P99NS, l.P99IsMax) }

// marked is a percentile, marked where too few samples make it the maximum.
func marked(ns int64, isMax bool) any {
	if isMax {
		return Marked{time.Duration(ns), "*"}
	}
	return time.Duration(ns)
}

func latencyRow(t *Table, name string, l loader.Latency) {
	if l.N == 0 {
		return
	}
	t.Row(name, l.N, time.Duration(l.MinNS), time.Duration(l.P50NS), time.Duration(l.AvgNS), time.Duration(l.P90NS),
		time.Duration(l.P95NS), p99(l), marked(l.P999NS, l.P999IsMax), time.Duration(l.MaxNS))
}

// runs lists several runs, and draws each one's rate second by second.
func runs(d *Document, rs []loader.RunSummary) {
	if len(rs) > 1 {
		t := d.Append("runs", "run", "sent", "ok", "failed", "writes", "elapsed", "writes/s", "deleted_before")
		for _, r := range rs {
			t.Row(r.Run, r.Sent, r.OK, r.Failed, r.Writes, time.Duration(r.ElapsedNS), Fixed1(r.WritesPerS), r.Deleted)
		}
	}
	for _, r := range rs {
		if vs := perSecond(r.Series); len(vs) >= 3 {
			d.Linef("writes per second, run %d: %s  first %s, last %s", r.Run, Sparkline(vs, 60), Rate(vs[0]), Rate(vs[len(vs)-1]))
		}
	}
}

// perSecond is the rate in each whole interval of the series; the last,
// which the run's end cut, is left out.
func perSecond(s timingstats.SeriesSummary) []float64 {
	var out []float64
	for i := 0; i+1 < len(s.StartS) && i < len(s.All.Completions); i++ {
		out = append(out, float64(s.All.Completions[i])/float64(s.StartS[i+1]-s.StartS[i]))
	}
	return out
}

func steering(d *Document, s *steer.Result) {
	if s == nil {
		return
	}
	d.Linef("steering: %s ports learnt, %s requests reached the core their port promised, %s another, %s ports were busy",
		Int(int64(s.PortsLearnt)), Int(s.Hits), Int(s.Misses), Int(s.Skipped))
}

// Sparkline draws values as one line of at most width characters; more
// values are averaged in groups.
func Sparkline(vs []float64, width int) string {
	if len(vs) == 0 {
		return ""
	}
	n := min(len(vs), width)
	groups := make([]float64, n)
	top := 0.0
	for i := range groups {
		from, to := i*len(vs)/n, (i+1)*len(vs)/n
		for _, v := range vs[from:to] {
			groups[i] += v / float64(to-from)
		}
		top = max(top, groups[i])
	}
	marks := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, n)
	for i, v := range groups {
		k := 0
		if top > 0 {
			k = min(int(v/top*float64(len(marks))), len(marks)-1)
		}
		out[i] = marks[max(k, 0)]
	}
	return string(out)
}

func accounting(d *Document, a *loader.Accounting) {
	if a.Failed == 0 && a.Retries == 0 {
		return
	}
	d.Linef("sent=%s ok=%s failed=%s retries=%s", Int(a.Sent), Int(a.OK), Int(a.Failed), Int(a.Retries))
	t := d.Append("errors", "error", "count", "first")
	t.Left = true
	for _, e := range a.Errors {
		t.Row(e.Class.String(), e.Count, e.Example)
	}
}

func warnings(d *Document, ws []string) {
	for _, w := range ws {
		d.Linef("warning: %s", w)
	}
}
