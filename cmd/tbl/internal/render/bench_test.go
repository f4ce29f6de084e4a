package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"tbl/timingstats/compare"
)

func followed() *Document {
	return &Document{
		Command:     "bulk-post",
		BenchConfig: []BenchSetting{{"goos", "linux"}, {"cpu", "Some  CPU\n@ 2 GHz"}, {"target", "http://a, http://b"}},
		Benchmarks: []Benchmark{
			{Name: "BulkPost", N: 64, Figures: []BenchFigure{
				{"writes_per_s", 1234567.25, compare.Higher}, {"errors_share", 0, compare.Lower}, {"response.p99_ns", 2_500_000, compare.Lower},
			}},
			{Name: "BulkPost/tmm=1.0", N: 1, Figures: []BenchFigure{{"avg_clicks_per_write", 5.5, compare.Lower}, {"split", 3, compare.Neutral}}},
		},
	}
}

// TestBench reads what is written with the reader of Go's own tools.
func TestBench(t *testing.T) {
	var b bytes.Buffer
	if err := writeBench(&b, followed()); err != nil {
		t.Fatal(err)
	}
	r := benchfmt.NewReader(&b, "run.bench")
	var results []*benchfmt.Result
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			results = append(results, rec.Clone())
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 {
		t.Fatalf("%d results", len(results))
	}
	whole := results[0]
	if string(whole.Name.Full()) != "BulkPost" || whole.Iters != 64 || whole.GetConfig("cpu") != "Some CPU @ 2 GHz" || whole.GetConfig("target") != "http://a, http://b" {
		t.Errorf("%s of %d, cpu %q", whole.Name, whole.Iters, whole.GetConfig("cpu"))
	}
	for unit, want := range map[string]float64{"writes/s": 1234567.25, "errors-share": 0, "response-p99-sec": 0.0025} {
		if v, ok := whole.Value(unit); !ok || v != want {
			t.Errorf("%s: %v, %t, want %v", unit, v, ok, want)
		}
	}
	if _, parts := results[1].Name.Parts(); len(parts) != 1 || string(parts[0]) != "/tmm=1.0" {
		t.Errorf("core's name: %q", parts)
	}
	if v, ok := results[1].Value("avg-clicks"); !ok || v != 5.5 {
		t.Errorf("clicks per write: %v, %t", v, ok)
	}
	for unit, want := range map[string]string{"writes/s": "higher", "response-p99-sec": "lower", "split-count": ""} {
		got := ""
		if m := r.Units().Get(unit, "better"); m != nil {
			got = m.Value
		}
		if got != want {
			t.Errorf("%s: better is %q, want %q", unit, got, want)
		}
	}
}

// TestTrend: each file holds one direction, in the form that
// github-action-benchmark documents.
func TestTrend(t *testing.T) {
	for direction, want := range map[compare.Direction][]string{
		compare.Higher: {"BulkPost writes/s|writes/s"},
		compare.Lower:  {"BulkPost errors|share", "BulkPost response.p99|ns", "BulkPost/tmm=1.0 avg|clicks"},
	} {
		var b bytes.Buffer
		if err := writeTrend(direction)(&b, followed()); err != nil {
			t.Fatal(err)
		}
		var got []struct {
			Name, Unit, Extra string
			Value             *float64
		}
		dec := json.NewDecoder(&b)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range got {
			if e.Value == nil || !strings.Contains(e.Extra, "goos: linux") {
				t.Errorf("%s: %+v", e.Name, e)
			}
			names = append(names, e.Name+"|"+e.Unit)
		}
		if strings.Join(names, ", ") != strings.Join(want, ", ") {
			t.Errorf("%v: got %q, want %q", direction, names, want)
		}
	}
	if err := writeTrend(compare.Higher)(&bytes.Buffer{}, &Document{Command: "stats"}); err == nil {
		t.Error("nothing was written and nothing said")
	}
}
