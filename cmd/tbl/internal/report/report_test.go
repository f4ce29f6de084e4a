package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tbl/cmd/tbl/internal/logreport"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
	"tbl/prober"
	"tbl/prober/stickiness"
	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// saved is a run file of a result.
func saved(t *testing.T, path, command string, result any, fields map[string]any) *runfile.File {
	t.Helper()
	f := &runfile.File{Path: path, Header: runfile.Header{Schema: runfile.Schema, Version: runfile.Version, Command: command, Args: []string{command, "--key-prefix", "a b"}, VirtualClock: true}}
	raw, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(raw, &f.Fields)
	}
	for k, v := range fields {
		if err == nil {
			f.Fields[k], err = json.Marshal(v)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func core(i int) timingstats.CoreID { return timingstats.CoreID{Core: i} }

// loadRun is a load of 4 cores with everything that a load can hold.
func loadRun(t *testing.T, seed uint64) *loader.LoadResult {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	r := &loader.LoadResult{Target: "embedded", Seed: seed, KnownCores: 4, OpenLoop: true, Virtual: true}
	all := timingstats.NewRecorder(0)
	var series timingstats.Series
	for i := range 4 {
		rec := timingstats.NewRecorder(0)
		for range 500 {
			rec.Record(int64(1e5 * math.Exp(rng.NormFloat64())))
		}
		all.Merge(rec)
		hist, err := rec.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		r.Cores = append(r.Cores, loader.LoadCore{Core: core(i), Writes: 500, Share: 0.25, Response: rec.Latency(), ResponseHist: hist})
	}
	for i := range 2000 {
		at := timeOf(float64(i) / 200)
		series.Done(core(i%4), at, 1e5, 1)
		if i%100 == 0 {
			series.Failed(at)
		}
	}
	r.Response, r.Service = all.Latency(), all.Latency()
	r.ResponseHist, _ = all.Histogram()
	r.ServiceHist = r.ResponseHist
	r.OK, r.Sent, r.Failed = 2000, 2020, 20
	r.Errors = []loader.ErrorCount{{Class: target.ClassReset, Count: 20, Example: "reset <by> peer"}}
	r.Runs = []loader.RunSummary{{Run: 1, Sent: 2020, OK: 2000, Series: series.Summary(timeOf(10.1))}}
	r.Verdicts = []verdict.Verdict{{Name: verdict.Errors, State: verdict.Fail, Line: "ERRORS: 1 % of <2,020>", Causes: []string{"something & more"}}}
	return r
}

func probeRun() *prober.ProbeResult {
	one, two := core(1), core(0)
	r := &prober.ProbeResult{ThresholdClicks: 100}
	for i, n := range []string{"a", "b"} {
		res := prober.NameResult{Name: n, Outcome: "OWNER", Owner: &one}
		if i == 1 {
			res.Expected = &two
		}
		for k := range 4 {
			c := prober.CoreProbe{Core: core(k), Hits: 8, NonOwner: 8, Min: 4000, Avg: 5000, Max: 9000}
			if k == 1 {
				c = prober.CoreProbe{Core: core(k), Hits: 8, Owner: 8, TaggedOwner: 8, Min: 3, Avg: 5, Max: 9}
			}
			res.Cores = append(res.Cores, c)
		}
		r.Names = append(r.Names, res)
	}
	for k := range 4 {
		r.Hits = append(r.Hits, prober.CoreHits{Core: core(k), Hits: int64(90 + 5*k)})
	}
	return r
}

func stickyRun() *stickiness.Result {
	return &stickiness.Result{
		Transactions: 10, Whole: 7, Split: 2, Refused: 1, PerTx: 5, Judged: 9,
		Nodes: []stickiness.Node{{Name: "A", Invocations: 30, Transactions: 6, Share: 0.6}, {Name: "B", Invocations: 20, Transactions: 6, Share: 0.4}},
	}
}

// full is a report with every kind of chart, of several runs.
func full(t *testing.T) *Report {
	t.Helper()
	failed := verdict.Verdict{Name: "OVERALL", State: verdict.Fail, Line: "ERRORS: it fails"}
	held := verdict.Verdict{Name: "OVERALL", State: verdict.Pass, Line: "OK: all is well"}
	return Build([]Source{
		{File: saved(t, "x/<b>one&.json", "load", loadRun(t, 1), map[string]any{"overall": failed})},
		{File: saved(t, "x/two.json", "load", loadRun(t, 2), map[string]any{"overall": held})},
		{File: saved(t, "x/probe.json.gz", "probe", probeRun(), nil)},
		{File: saved(t, "y/probe.json", "sticky", stickyRun(), nil)},
	})
}

// TestEveryKind holds each kind of chart: it is drawn, and well-formed, with
// marks, a description and the figures behind it.
func TestEveryKind(t *testing.T) {
	r := full(t)
	drawn := map[string]bool{}
	for i, c := range r.Charts {
		drawn[c.Name] = true
		id := fmt.Sprintf("c%d", i)
		svg, err := c.Inline(id)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		if c.Title == "" || c.Caption == "" || c.Desc == "" || len(c.Table.Rows) == 0 {
			t.Errorf("%s: title %q, caption %q, description %q, %d rows", c.Name, c.Title, c.Caption, c.Desc, len(c.Table.Rows))
		}
		if n := marksIn(t, svg); n == 0 {
			t.Errorf("%s has no marks", c.Name)
		}
		for _, bad := range []string{"NaN", "Inf", ":#", "http://www.w3.org/1999/xlink"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%s: %q in the SVG, at %.80q", c.Name, bad, svg[max(strings.Index(svg, bad)-20, 0):])
			}
		}
		for _, want := range []string{`role="img"`, `aria-labelledby="` + id + `-title"`, `<title id="` + id + `-title">`, `<desc id="` + id + `-desc">`, "var(--s1)"} {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %q", c.Name, want)
			}
		}
		for _, row := range c.Table.Rows {
			if len(row) != len(c.Table.Header) {
				t.Errorf("%s: a row of %d cells under %d names", c.Name, len(row), len(c.Table.Header))
			}
		}
	}
	for _, k := range Kinds() {
		if !drawn[k.Name] {
			t.Errorf("no %s chart", k.Name)
		}
	}
}

// marksIn parses an SVG and counts the paths in its groups of marks.
func marksIn(t *testing.T, svg string) int {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	depth, marks, n := 0, 0, 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			depth++
			if e.Name.Local == "g" && len(e.Attr) == 1 && e.Attr[0].Value == "marks" {
				marks = depth
			}
			if e.Name.Local == "path" && marks > 0 {
				n++
			}
		case xml.EndElement:
			if depth == marks {
				marks = 0
			}
			depth--
		}
	}
}

// TestDocument holds the forms without pictures.
func TestDocument(t *testing.T) {
	d := full(t).Document()
	if d.Overall == nil || d.Overall.State != verdict.Fail {
		t.Errorf("overall %+v, want a failure", d.Overall)
	}
	if d.Blocks[0].Line != "<b>one&: ERRORS: it fails" {
		t.Errorf("the first line is %q", d.Blocks[0].Line)
	}
	if len(d.Verdicts) != 2 || d.Verdicts[1].Name != "two ERRORS" {
		t.Errorf("verdicts %+v", d.Verdicts)
	}
	for _, f := range render.Formats() {
		if f.Name == "markdown" || f.Name == "junit" || f.Name == "text" || f.Name == "csv" {
			var b bytes.Buffer
			if err := f.Write(&b, d); err != nil || b.Len() == 0 {
				t.Errorf("%s: %v, %d bytes", f.Name, err, b.Len())
			}
		}
	}
}

// TestMarkdown holds the form for pull requests: verdicts first, a heading for
// each table of a chart and each run, no word on charts that it has not, and
// lines that stay lines.
func TestMarkdown(t *testing.T) {
	few := loadRun(t, 3)
	few.Cores[0].Response.P99IsMax = true
	r := Build([]Source{{File: saved(t, "few.json", "load", few, nil)}})
	d := r.Document()
	var b strings.Builder
	for _, f := range render.Formats() {
		if f.Name == "markdown" {
			if err := f.Write(&b, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	md, at := b.String(), 0
	for _, want := range []string{"**ERRORS: 1 % of <2,020>**\n", "- **ERRORS** (fail)", "  - something & more\n", "\n## Response time per core\n\n| run |", "\n## Run few\n", "\n\\* too few samples", "\n```sh\ntbl load --key-prefix 'a b' --seed 3\n```\n"} {
		k := strings.Index(md[at:], want)
		if k < 0 {
			t.Fatalf("no %q in its place:\n%s", want, md)
		}
		at += k
	}
	for _, c := range r.Charts {
		if strings.Contains(md, c.Caption) {
			t.Errorf("the caption of a chart that is not there: %q", c.Caption)
		}
	}
	if strings.Count(md, "- **ERRORS**") != 1 {
		t.Errorf("verdicts more than once:\n%s", md)
	}
}

// TestCaption holds that a picture by itself says how to read it, within its
// width.
func TestCaption(t *testing.T) {
	r := full(t)
	for _, c := range r.Charts {
		c.Notes = append(c.Notes, "Something was left out.")
		var svg bytes.Buffer
		if err := WriteSVG(&svg, []*Chart{c}); err != nil {
			t.Fatal(err)
		}
		lines := c.captionLines()
		if got := strings.Join(lines, " "); got != strings.Join(append([]string{c.Caption}, c.Notes...), " ") {
			t.Errorf("%s: caption %q", c.Name, got)
		}
		for _, l := range lines {
			var esc bytes.Buffer
			if err := xml.EscapeText(&esc, []byte(l)); err != nil || !strings.Contains(svg.String(), esc.String()) {
				t.Errorf("%s: no line %q in the SVG", c.Name, l)
			}
			if w := sans(textSize, inkMuted).Width(l); w > chartWidth {
				t.Errorf("%s: a line is %v wide", c.Name, w)
			}
		}
		inline, err := c.Inline("c")
		if err != nil || strings.Contains(inline, lines[len(lines)-1]+"</text>") {
			t.Errorf("%s: the page has the caption beside the chart: %v", c.Name, err)
		}
	}
}

// TestPictures holds SVG and PNG files: all charts in one, on white.
func TestPictures(t *testing.T) {
	r := full(t)
	var svg, img bytes.Buffer
	if err := WriteSVG(&svg, r.Charts); err != nil {
		t.Fatal(err)
	}
	if n := marksIn(t, strings.TrimPrefix(svg.String(), `<?xml version="1.0" encoding="UTF-8"?>`)); n < len(r.Charts) {
		t.Errorf("%d marks in %d charts", n, len(r.Charts))
	}
	if strings.Contains(svg.String(), "var(") {
		t.Error("a file by itself has no style sheet to take colours from")
	}
	if err := WritePNG(&img, r.Charts[:1]); err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(&img)
	if err != nil {
		t.Fatal(err)
	}
	blue := 0
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			if r, _, b, _ := m.At(x, y).RGBA(); b > r+0x3000 {
				blue++
			}
		}
	}
	if blue < 1000 {
		t.Errorf("%d points of the first series' colour", blue)
	}
}

// TestHostileNames draws names that XML can't hold, and that would steer a
// terminal.
func TestHostileNames(t *testing.T) {
	const bad = "b\x01\x7f\x1b[31m\ufffe\uffff\n"
	probe, sticky := probeRun(), stickyRun()
	probe.Names[0].Name, sticky.Nodes[0].Name = bad+"1", bad+"2"
	owner := core(0)
	logged := &logreport.Report{}
	for _, d := range []string{"x", "y"} {
		logged.Names = append(logged.Names, logreport.Name{Device: bad + d, OwnershipReport: verdict.OwnershipReport{Subtable: bad + "3", Owner: &owner, Cores: []verdict.OwnershipCore{{Core: owner, Hits: 9, Fast: 9, MinClicks: 3}}}})
	}
	r := Build([]Source{
		{File: saved(t, "x"+bad+"/"+bad+"\xff.json", "load", loadRun(t, 1), nil)},
		{File: saved(t, "y/"+bad+"\xff.json", "load", loadRun(t, 2), nil)},
		{File: saved(t, bad+"p.json", "probe", probe, nil)},
		{File: saved(t, bad+"s.json", "sticky", sticky, nil)},
		{File: saved(t, bad+"l.json", "stats", logged, nil)},
		{File: saved(t, bad+"t.json", "load", struct{}{}, map[string]any{"targets": []any{map[string]any{"target": bad, "runs": loadRun(t, 1).Runs}}})},
	})
	var svg bytes.Buffer
	if err := WriteSVG(&svg, r.Charts); err != nil {
		t.Fatal(err)
	}
	if n := marksIn(t, strings.TrimPrefix(svg.String(), `<?xml version="1.0" encoding="UTF-8"?>`)); n < len(r.Charts) {
		t.Errorf("%d marks in %d charts", n, len(r.Charts))
	}
	if !strings.Contains(svg.String(), "b\ufffd\ufffd\ufffd[31m\ufffd\ufffd\ufffd") || clean("a é\xff") != "a é\ufffd" {
		t.Error("the names are not there, cleaned")
	}
	for _, c := range r.Charts {
		if said := fmt.Sprint(c.Title, c.Desc, c.Caption, c.Notes, c.Table.Rows); strings.ContainsAny(said, "\x01\x1b\x7f\n") {
			t.Errorf("%s: %q", c.Name, said)
		}
	}
}

// TestOlder reads run files of former versions: what they lack is said, and
// what they hold is drawn.
func TestOlder(t *testing.T) {
	paths, err := filepath.Glob("../../../../testdata/runs/*-version1.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no older runs: %v", err)
	}
	for _, p := range paths {
		f, err := runfile.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		r := Build([]Source{{File: f}})
		if r.Runs[0].Problem != "" || len(r.Charts) < 3 {
			t.Errorf("%s: problem %q, %d charts, absent %q", p, r.Runs[0].Problem, len(r.Charts), r.Absent)
		}
	}
	bare := loadRun(t, 1)
	bare.Cores, bare.Runs, bare.Response, bare.Service = nil, nil, loader.Latency{}, loader.Latency{}
	r := Build([]Source{{File: saved(t, "old.json", "load", bare, nil)}, {File: saved(t, "new.json", "load", loadRun(t, 1), nil)}})
	if len(r.Charts) != 4 || !strings.Contains(strings.Join(r.Charts[0].Notes, " "), "Not drawn: old") {
		t.Errorf("%d charts, notes %q", len(r.Charts), r.Charts[0].Notes)
	}
	r = Build([]Source{{File: saved(t, "old.json", "load", bare, nil)}})
	if len(r.Charts) != 0 || len(r.Absent) != 4 || !strings.Contains(strings.Join(r.Absent, " "), "no throughput chart") {
		t.Errorf("%d charts, absent %q", len(r.Charts), r.Absent)
	}
	// Fields of another shape cost the figures, not the report.
	r = Build([]Source{{File: saved(t, "odd.json", "load", struct{}{}, map[string]any{"cores": "four", "overall": verdict.Verdict{State: verdict.Fail, Line: "BAD"}})}})
	if r.Runs[0].Problem == "" || r.Runs[0].Line() != "BAD" {
		t.Errorf("problem %q, line %q", r.Runs[0].Problem, r.Runs[0].Line())
	}
	if b := r.Document().Blocks; !strings.Contains(b[1].Line, "can't be read") {
		t.Errorf("the document does not say so: %q", b[1].Line)
	}
}

// TestManyRuns draws the first few and says so.
func TestManyRuns(t *testing.T) {
	var s []Source
	for i := range maxLines + 3 {
		s = append(s, Source{File: saved(t, fmt.Sprintf("r%d.json", i), "load", loadRun(t, uint64(i)), nil)})
	}
	r := Build(s)
	for _, c := range r.Charts {
		if !strings.Contains(strings.Join(c.Notes, " "), "first 8 of 11 runs") {
			t.Errorf("%s: notes %q", c.Name, c.Notes)
		}
	}
}

// TestDamaged draws runs of which any figures were overwritten with any others:
// whatever comes out, it comes out.
func TestDamaged(t *testing.T) {
	small := loadRun(t, 1)
	small.Cores, small.Runs[0].Series.StartS = small.Cores[:2], small.Runs[0].Series.StartS[:3]
	results := map[string]any{"load": small, "probe": probeRun(), "sticky": stickyRun(), "bulk-post": bulkRun(), "stats": statsRun()}
	numbers := regexp.MustCompile(`[:\[,]-?[0-9][0-9.e+-]*`)
	drawn := 0
	rapid.Check(t, func(rt *rapid.T) {
		command := rapid.SampledFrom(slices.Sorted(maps.Keys(results))).Draw(rt, "command")
		f := saved(t, "run.json", command, results[command], nil)
		values := []string{"0", "-1", "1", "7", "9223372036854775807", "-9223372036854775808", "4294967296"}
		if rapid.IntRange(0, 9).Draw(rt, "no whole numbers") == 0 {
			values = append(values, "0.5", "1e308") // such a file may not be read at all
		}
		rarity := rapid.IntRange(1, 60).Draw(rt, "rarity")
		for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
			f.Fields[name] = numbers.ReplaceAllFunc(f.Fields[name], func(b []byte) []byte {
				if rapid.IntRange(0, rarity).Draw(rt, "which") > 0 {
					return b
				}
				return []byte(string(b[:1]) + rapid.SampledFrom(values).Draw(rt, "value"))
			})
		}
		r := Build([]Source{{File: f}})
		for _, c := range r.Charts {
			svg, err := c.Inline("x")
			if err != nil {
				rt.Fatal(err)
			}
			if strings.Contains(svg, "NaN,") || strings.Contains(svg, "Inf,") {
				rt.Fatal("a mark at no place")
			}
		}
		r.Document().Conclude(false)
		drawn += len(r.Charts)
	})
	if drawn < 20 {
		t.Errorf("%d charts drawn: the files are damaged beyond reading", drawn)
	}
}

func bulkRun() *loader.BulkResult {
	r := &loader.BulkResult{Target: "embedded", Threshold: 100, Response: timingstats.LatencySummary{N: 200, MinNS: 1e5, P50NS: 2e5, P90NS: 3e5, P95NS: 4e5, P99NS: 5e5, P999NS: 6e5, MaxNS: 6e5}}
	for i := range 2 {
		r.Cores = append(r.Cores, loader.BulkCore{Core: core(i), Posts: 100, Writes: 1000, MinClicks: 10, AvgClicks: 12.5, MaxClicks: 30})
	}
	return r
}

// TestBulkHistograms draws what a bulk load saved: bodies by core, and a curve
// through every percentile. A run of before the histograms keeps its lines.
func TestBulkHistograms(t *testing.T) {
	full := bulkRun()
	all := timingstats.NewRecorder(0)
	for i := range full.Cores {
		set := new(timingstats.Set)
		for k := range int64(100) {
			set.Core(core(i)).Add(10+k%20, timingstats.Untagged, 1)
			all.Record(1e5 + k*5000)
		}
		full.Cores[i].Batches = set.Summaries(100)[0]
		h, err := set.Core(core(i)).Distribution().Histogram()
		if err != nil {
			t.Fatal(err)
		}
		full.Cores[i].BatchesHist = h
	}
	full.Response = all.Latency()
	full.ResponseHist, _ = all.Histogram()
	file := saved(t, "new.json", "bulk-post", full, nil)
	r := Build([]Source{{File: file}})
	timing, curve := r.Charts[0], r.Charts[1]
	if !strings.Contains(timing.Caption, "The wider a body") || strings.Contains(timing.Caption, "keeps no more") || fmt.Sprint(timing.Table.Rows[0][4]) != "19" {
		t.Errorf("timing: %q, row %v", timing.Caption, timing.Table.Rows[0])
	}
	if len(curve.Notes) != 0 {
		t.Errorf("percentiles: notes %q", curve.Notes)
	}
	r = Build([]Source{{File: file}, {File: saved(t, "old.json", "bulk-post", bulkRun(), nil)}})
	if c := r.Charts[0].Caption; !strings.Contains(c, "The wider a body") || !strings.Contains(c, "A line with a point") {
		t.Errorf("two forms: %q", c)
	}
}

func statsRun() *logreport.Report {
	set := new(timingstats.Set)
	for i := range int64(50) {
		set.Core(core(int(i%2))).Add(5+i%7, timingstats.Fast, 1000)
	}
	loc := verdict.JudgeLocality(set.Summaries(0), verdict.LocalityOptions{})
	return &logreport.Report{Devices: []logreport.Device{{Name: "a", ThresholdClicks: 100, Cores: loc.Cores}}}
}

// TestProbedInLog draws what the PROBE lines of a log say.
func TestProbedInLog(t *testing.T) {
	owner := core(1)
	own := verdict.OwnershipReport{Subtable: "a", Owner: &owner, Cores: []verdict.OwnershipCore{{Core: core(0), Hits: 9, Slow: 9, MinClicks: 900}, {Core: core(1), Hits: 9, Fast: 9, MinClicks: 3}}}
	r := Build([]Source{{File: saved(t, "p.json", "stats", &logreport.Report{Names: []logreport.Name{{Device: "box", OwnershipReport: own}, {Device: "other", OwnershipReport: own}}}, nil)}})
	if len(r.Charts) != 1 || r.Charts[0].Name != "ownership" || len(r.Charts[0].panels) != 2 || len(r.Charts[0].Table.Rows) != 4 {
		t.Fatalf("charts %+v", r.Charts)
	}
}

// TestRepeatLeavesOut drops what only says where a result goes, and a start that
// is past; a seed that was given is not given twice.
func TestRepeatLeavesOut(t *testing.T) {
	for want, h := range map[string]runfile.Header{
		"tbl load --count 5 --seed 9": {Seed: 9, Args: strings.Fields("load --export a.json --count 5 --quiet --start-at 99 --export=b.html")},
		"tbl load --seed=3":           {Seed: 3, Args: strings.Fields("load --start-at=99 --seed=3"), Variables: map[string]string{"TBL_START_AT": "99"}},
		"TBL_SEED=4 tbl load":         {Seed: 4, Args: []string{"load"}, Variables: map[string]string{"TBL_SEED": "4"}},
		"tbl stats log":               {Args: []string{"stats", "log"}},
	} {
		if got := Repeat(&runfile.File{Header: h}); got != want {
			t.Errorf("%q: %q, want %q", h.Args, got, want)
		}
	}
}

func TestRunNames(t *testing.T) {
	var s []Source
	for _, p := range []string{"a/run.json", "b/run.json.gz", "c/other.json", "", "x/a/twin.json", "y/a/twin.json"} {
		s = append(s, Source{File: &runfile.File{Path: p, Header: runfile.Header{Command: "load"}}})
	}
	if got := strings.Join(runNames(s), ", "); got != "a/run, b/run, other, load, a/twin (5), a/twin (6)" {
		t.Error(got)
	}
}

// TestInks holds every series against its ground: 3:1, and text 4.5:1.
func TestInks(t *testing.T) {
	white, dark := color.NRGBA{0xFF, 0xFF, 0xFF, 0xFF}, color.NRGBA{0x16, 0x16, 0x16, 0xFF}
	for i, k := range Inks() {
		want := 3.0
		switch {
		case k.Name == "grid":
			continue // decoration
		case i >= seriesInks:
			want = 4.5
		}
		if c := contrast(k.Light, white); c < want {
			t.Errorf("%s on white: %.2f, want %v", k.Name, c, want)
		}
		if c := contrast(k.Dark, dark); c < want {
			t.Errorf("%s on dark: %.2f, want %v", k.Name, c, want)
		}
	}
}

// contrast is WCAG 2.2's ratio.
func contrast(a, b color.NRGBA) float64 {
	lum := func(c color.NRGBA) float64 {
		lin := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.04045 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*lin(c.R) + 0.7152*lin(c.G) + 0.0722*lin(c.B)
	}
	x, y := lum(a)+0.05, lum(b)+0.05
	return max(x, y) / min(x, y)
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"load": "load", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "p99<50": "'p99<50'", "--x=1": "--x=1", "$(rm)": "'$(rm)'"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
