package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tbl/cmd/tbl/internal/logreport"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
	"tbl/loader/session"
	"tbl/prober"
	"tbl/prober/proof"
	"tbl/prober/stickiness"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// line is what one run, or one target or device of it, gives to draw. What is
// missing is empty.
type line struct {
	name    string // as the legends call it
	command string

	unit      unit         // of timings
	threshold float64      // in clicks, 0: none
	timings   []coreTiming // by core
	curves    []curve
	series    []seriesRun
	counts    []verdict.CoreCount
	what      string // that counts count
	// spreadFactor is how many times the variance of independent draws the
	// counts have; 1 unless few source ports were used.
	spreadFactor float64
	verdicts     []verdict.Verdict // of a load
	names        []ownedName
	sticky       *stickiness.Result
}

// coreTiming is one core's distribution. Figures that are not known are NaN.
type coreTiming struct {
	core                         timingstats.CoreID
	n                            int64
	min, p50, avg, p95, p99, max float64
	p99IsMax                     bool
	state                        string
	hist                         *timingstats.Recorder // nil: only the figures are known
}

// curve is a distribution as percentiles.
type curve struct {
	unit unit
	what string // "response", "service", "TMM 2"; empty: all there is
	n    int64
	hist *timingstats.Recorder // nil: only points are known
	// points are known percentiles, in ascending order.
	points []percentile
}

// percentile is one point of a curve.
type percentile struct {
	p     float64 // 0 to 100
	v     float64
	isMax bool // too few samples: the maximum stands for it
}

// seriesRun is one run second by second.
type seriesRun struct {
	what string // "run 2"; empty: the only one
	timingstats.SeriesSummary
}

// ownedName is what timed writes say about one name's owner.
type ownedName struct {
	name, outcome   string
	owner, expected *timingstats.CoreID
	cores           []nameCore
}

// nameCore is one core's writes into a name.
type nameCore struct {
	core       timingstats.CoreID
	hits, fast int64
	min, avg   float64
	max        float64
}

// reader reads one command's result from a saved run.
type reader struct {
	command string
	read    func(*runfile.File) (*render.Document, []line, error)
}

// readers are those of all commands whose runs hold more than verdicts.
func readers() []reader {
	return []reader{
		{"validate", readAs(render.Proof, proofLines)},
		{"load", readAs(render.Load, loadLines)},
		{"bulk-post", readAs(render.Bulk, bulkLines)},
		{"stats", readAs(render.Stats, statsLines)},
		{"probe", readAs(render.Probe, probeLines)},
		{"sticky", readAs(render.Sticky, func(r *stickiness.Result) []line { return []line{{sticky: r}} })},
		{"whoami", readAs(render.Whoami, func(r *prober.WhoamiResult) []line {
			var hits []prober.CoreHits
			for _, c := range r.Names {
				hits = append(hits, prober.CoreHits{Core: c.Core, Hits: c.Hits})
			}
			return []line{hitLine(hits, r.Missing)}
		})},
		{"info", readAs(render.Info, func(r *prober.InfoResult) []line { return []line{hitLine(r.Hits, r.Missing)} })},
		{"reset", readAs(render.Reset, nothing[prober.ResetResult])},
		{"dump", readAs(render.Dump, nothing[prober.DumpResult])},
		{"find-names", readAs(render.Found, nothing[prober.FindResult])},
		{"session", readAs(render.Session, nothing[session.Result])},
	}
}

func nothing[T any](*T) []line { return nil }

// readAs reads a result of type T.
func readAs[T any](doc func(*T) *render.Document, lines func(*T) []line) func(*runfile.File) (*render.Document, []line, error) {
	return func(f *runfile.File) (*render.Document, []line, error) {
		var r T
		if err := f.Decode(&r); err != nil {
			return nil, nil, err
		}
		d, ls := doc(&r), lines(&r)
		for i := range ls {
			if l := &ls[i]; f.Header.Version < 2 && l.spreadFactor == 1 {
				l.spreadFactor = judgedFactor(l.counts, l.verdicts)
			}
			ls[i].clean()
		}
		return d, ls, nil
	}
}

// read reads a saved run: its document and what it gives to draw. A run of
// several targets, each measured by itself, gives a document for all.
func read(f *runfile.File) (*render.Document, []line, error) {
	var read func(*runfile.File) (*render.Document, []line, error)
	for _, r := range readers() {
		if r.command == f.Header.Command {
			read = r.read
		}
	}
	if read == nil {
		return &render.Document{Command: f.Header.Command}, nil, nil
	}
	var targets []map[string]json.RawMessage
	if raw, ok := f.Fields["targets"]; !ok || json.Unmarshal(raw, &targets) != nil || len(targets) == 0 {
		doc, lines, err := read(f)
		if err == nil {
			addNodes(f, doc)
		}
		return doc, lines, err
	}
	var names []string
	var docs []*render.Document
	var all []line
	for i, fields := range targets {
		name := fmt.Sprintf("target %d", i+1)
		if json.Unmarshal(fields["target"], &name) != nil {
			name = fmt.Sprintf("target %d", i+1)
		}
		doc, lines, err := read(&runfile.File{Path: f.Path, Header: f.Header, Fields: fields})
		if err != nil {
			return nil, nil, err
		}
		for _, l := range lines {
			l.name = join(clean(name), l.name)
			all = append(all, l)
		}
		names, docs = append(names, name), append(docs, doc)
	}
	return render.Each(f.Header.Command, names, docs), all, nil
}

// clean makes a name fit for a picture: what XML can't hold, and what would steer
// a terminal, becomes U+FFFD (Extensible Markup Language 1.0, 2.2).
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			return utf8.RuneError
		}
		return r
	}, name)
}

// clean cleans all names that were read from a file.
func (l *line) clean() {
	l.name = clean(l.name)
	for i := range l.names {
		l.names[i].name, l.names[i].outcome = clean(l.names[i].name), clean(l.names[i].outcome)
	}
	if l.sticky != nil {
		for i := range l.sticky.Nodes {
			l.sticky.Nodes[i].Name = clean(l.sticky.Nodes[i].Name)
		}
	}
}

// join puts names together, the empty ones left out.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// addNodes adds the table of a load over several nodes.
func addNodes(f *runfile.File, doc *render.Document) {
	var nodes []render.Node
	var how string
	if json.Unmarshal(f.Fields["nodes"], &nodes) == nil && json.Unmarshal(f.Fields["balance"], &how) == nil && len(nodes) > 0 {
		render.Nodes(doc, how, nodes)
	}
}

// recorder reads a saved histogram; nil where there is none, or none that can
// be read.
func recorder(h timingstats.Histogram) *timingstats.Recorder {
	if h.N == 0 || h.V2 == "" {
		return nil
	}
	r, err := h.Recorder()
	if err != nil {
		return nil
	}
	return r
}

func loadLines(r *loader.LoadResult) []line {
	l := line{unit: nanoseconds, series: seriesOf(r.Runs), what: "writes"}
	for _, c := range r.Cores {
		s := c.Response
		if s.N > 0 {
			l.timings = append(l.timings, coreTiming{
				core: c.Core, n: s.N, min: float64(s.MinNS), p50: float64(s.P50NS), avg: float64(s.AvgNS), p95: float64(s.P95NS),
				p99: float64(s.P99NS), max: float64(s.MaxNS), p99IsMax: s.P99IsMax, hist: recorder(c.ResponseHist),
			})
		}
		l.counts = append(l.counts, verdict.CoreCount{Core: c.Core, Count: c.Writes})
	}
	if r.OpenLoop {
		l.addCurve("response", r.Response, r.ResponseHist)
		l.addCurve("service", r.Service, r.ServiceHist)
	} else {
		l.addCurve("", r.Response, r.ResponseHist)
	}
	l.counts = withMissing(l.counts, r.Missing)
	if r.Steering != nil {
		l.counts = nil // the client chose the cores: nothing was left to chance
	}
	l.spreadFactor, l.verdicts = spreadFactor(l.counts, r.SourcePorts), r.Verdicts
	return []line{l}
}

func bulkLines(r *loader.BulkResult) []line {
	l := line{unit: clicks, threshold: float64(r.Threshold), series: seriesOf(r.Runs), what: "posts"}
	for _, c := range r.Cores {
		if c.Posts > 0 {
			t := coreTiming{core: c.Core, n: c.Posts, min: c.MinClicks, p50: math.NaN(), avg: c.AvgClicks, p95: math.NaN(), p99: math.NaN(), max: c.MaxClicks}
			if b := c.Batches; b.N > 0 {
				t.p50, t.p95, t.p99, t.p99IsMax = float64(b.P50Clicks), float64(b.P95Clicks), float64(b.P99Clicks), b.P99IsMax
				t.hist = recorder(c.BatchesHist)
			}
			l.timings = append(l.timings, t)
		}
		l.counts = append(l.counts, verdict.CoreCount{Core: c.Core, Count: c.Posts})
	}
	l.counts = withMissing(l.counts, r.Missing)
	l.spreadFactor, l.verdicts = spreadFactor(l.counts, r.SourcePorts), r.Verdicts
	l.addCurve("", r.Response, r.ResponseHist)
	return []line{l}
}

// addCurve adds a distribution of times.
func (l *line) addCurve(what string, s loader.Latency, h timingstats.Histogram) {
	if s.N == 0 {
		return
	}
	l.curves = append(l.curves, curve{unit: nanoseconds, what: what, n: s.N, hist: recorder(h), points: []percentile{
		{0, float64(s.MinNS), false}, {50, float64(s.P50NS), false}, {90, float64(s.P90NS), false}, {95, float64(s.P95NS), false},
		{99, float64(s.P99NS), s.P99IsMax}, {99.9, float64(s.P999NS), s.P999IsMax}, {100, float64(s.MaxNS), false},
	}})
}

func seriesOf(runs []loader.RunSummary) []seriesRun {
	var out []seriesRun
	for _, r := range runs {
		if len(r.Series.StartS) == 0 && len(r.Series.Progress) == 0 {
			continue
		}
		s := seriesRun{SeriesSummary: r.Series}
		if len(runs) > 1 {
			s.what = fmt.Sprintf("run %d", r.Run)
		}
		out = append(out, s)
	}
	return out
}

func proofLines(r *proof.Result) []line {
	var l line
	if r.Load != nil {
		l = loadLines(r.Load)[0]
		// Of the proof's load only the writes' clicks are timings of cores.
		l.timings, l.unit = nil, clicks
	}
	if r.Locality != nil {
		for _, c := range r.Locality.Cores {
			if c.N > 0 {
				l.timings, l.threshold = append(l.timings, localityTiming(c)), float64(c.ThresholdClicks)
			}
		}
	}
	if r.Owners != nil {
		l.names = ownedNames(r.Owners.Names)
	}
	return []line{l}
}

func localityTiming(c verdict.CoreLocality) coreTiming {
	return coreTiming{
		core: c.Core, n: c.N, min: float64(c.MinClicks), p50: float64(c.P50Clicks), avg: float64(c.AvgClicks), p95: float64(c.P95Clicks),
		p99: float64(c.P99Clicks), max: float64(c.MaxClicks), p99IsMax: c.P99IsMax, state: c.State.String(),
	}
}

func statsLines(r *logreport.Report) []line {
	var out []line
	for _, d := range r.Devices {
		l := line{unit: clicks, threshold: float64(d.ThresholdClicks)}
		if len(r.Devices) > 1 {
			l.name = d.Name
		}
		hists := map[timingstats.CoreID]*timingstats.Recorder{}
		for _, h := range d.Histograms {
			hists[h.Core] = recorder(h.Hist)
		}
		all := timingstats.NewRecorder(timingstats.MaxClicks)
		for _, c := range d.Cores {
			if c.N == 0 {
				continue
			}
			t := localityTiming(c)
			if t.hist = hists[c.Core]; t.hist != nil {
				all.Merge(t.hist)
			}
			l.timings = append(l.timings, t)
		}
		if all.N() > 0 {
			l.curves = []curve{{n: all.N(), hist: all, points: percentilesOf(all)}}
		}
		out = append(out, l)
	}
	return append(out, nameLines(r.Names)...)
}

// nameLines are the probed names of a log, by device.
func nameLines(names []logreport.Name) []line {
	var out []line
	for _, n := range names {
		i := slices.IndexFunc(out, func(l line) bool { return l.name == n.Device })
		if i < 0 {
			i, out = len(out), append(out, line{name: n.Device, threshold: float64(n.ThresholdClicks)})
		}
		out[i].names = append(out[i].names, reportedName(n))
	}
	if len(out) == 1 {
		out[0].name = ""
	}
	return out
}

// percentilesOf are those that the tables show.
func percentilesOf(r *timingstats.Recorder) []percentile {
	var out []percentile
	for _, p := range []float64{0, 50, 90, 95, 99, 99.9, 100} {
		out = append(out, percentile{p, float64(r.Percentile(p)), p < 100 && float64(r.N())*(100-p) < 100 && p > 90})
	}
	return out
}

func reportedName(n logreport.Name) ownedName {
	out := ownedName{name: n.Subtable, outcome: string(n.Outcome), owner: n.Owner, expected: n.Wanted}
	for _, c := range n.Cores {
		if c.Hits > 0 {
			out.cores = append(out.cores, nameCore{c.Core, c.Hits, c.Fast, float64(c.MinClicks), float64(c.AvgClicks), float64(c.MaxClicks)})
		}
	}
	return out
}

func probeLines(r *prober.ProbeResult) []line {
	l := hitLine(r.Hits, r.Missing)
	l.threshold = float64(r.ThresholdClicks)
	l.names = ownedNames(r.Names)
	if len(r.Names) == 1 {
		for _, c := range r.Names[0].Cores {
			l.timings = append(l.timings, coreTiming{core: c.Core, n: c.Hits, min: float64(c.Min), p50: math.NaN(), avg: c.Avg, p95: math.NaN(), p99: math.NaN(), max: float64(c.Max)})
		}
	}
	return []line{l}
}

func ownedNames(names []prober.NameResult) []ownedName {
	var out []ownedName
	for _, n := range names {
		o := ownedName{name: n.Name, outcome: n.Outcome, owner: n.Owner, expected: n.Expected}
		for _, c := range n.Cores {
			o.cores = append(o.cores, nameCore{c.Core, c.Hits, c.Owner, float64(c.Min), c.Avg, float64(c.Max)})
		}
		out = append(out, o)
	}
	return out
}

func hitLine(hits []prober.CoreHits, missing []timingstats.CoreID) line {
	l := line{what: "requests", spreadFactor: 1}
	for _, h := range hits {
		l.counts = append(l.counts, verdict.CoreCount{Core: h.Core, Count: h.Hits})
	}
	l.counts = withMissing(l.counts, missing)
	return l
}

// withMissing adds the cores that did not answer, with no requests, in order:
// an even spread would have reached them too.
func withMissing(counts []verdict.CoreCount, missing []timingstats.CoreID) []verdict.CoreCount {
	for _, m := range missing {
		if !slices.ContainsFunc(counts, func(c verdict.CoreCount) bool { return c.Core == m }) {
			counts = append(counts, verdict.CoreCount{Core: m})
		}
	}
	slices.SortStableFunc(counts, func(a, b verdict.CoreCount) int { return a.Core.Compare(b.Core) })
	return counts
}

// spreadFactor is how much wider than that of independent requests the variance
// of the counts is where all came from so many source ports, again and again,
// as JudgeUniformityOverPorts has it; no ports: each had one of its own.
func spreadFactor(counts []verdict.CoreCount, ports int) float64 {
	if ports <= 0 {
		return 1
	}
	var n float64
	for _, c := range counts {
		n += float64(c.Count)
	}
	return max(1+n/float64(ports), 1)
}

// judgedFactor is spreadFactor for files of version 1, which do not name the
// ports: what the UNIFORMITY verdict divided the chi-square of the counts by. 1
// where it was not judged.
func judgedFactor(counts []verdict.CoreCount, vs []verdict.Verdict) float64 {
	var n, chi float64
	for _, c := range counts {
		n += float64(c.Count)
	}
	want := n / float64(max(len(counts), 1))
	for _, c := range counts {
		d := float64(c.Count) - want
		chi += d * d / want
	}
	for _, v := range vs {
		if judged := v.Figures["chi_square"]; v.Name == verdict.Uniformity && judged > 0 && int(v.Figures["df"]) == len(counts)-1 {
			return max(chi/judged, 1)
		}
	}
	return 1
}

// coresOf are the cores that any of the lines names, in order.
func coresOf(lines []line, cores func(line) []timingstats.CoreID) []timingstats.CoreID {
	seen := map[timingstats.CoreID]bool{}
	for _, l := range lines {
		for _, c := range cores(l) {
			seen[c] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), timingstats.CoreID.Compare)
}

// tmm names cores on an axis.
func tmm(cores []timingstats.CoreID) []string {
	out := make([]string, len(cores))
	for i, c := range cores {
		out[i] = c.String()
	}
	return out
}
