package render

import (
	"strings"
	"testing"
	"time"

	"tbl/timingstats/verdict"
)

func sample() *Document {
	d := &Document{Command: "stats"}
	d.Linef("head")
	t := d.Append("cores", "TMM", "n", "avg", "max")
	t.Row("0", int64(25000), Fixed1(5.5), Marked{int64(1234), "*"})
	t.Row("1/10", int64(4), Fixed1(16009.94), int64(400000))
	d.Verdicts = []verdict.Verdict{{Name: verdict.Locality, State: verdict.Fail, Line: "LOCALITY ISSUE: a|b", Causes: []string{"why"}}}
	d.Data = map[string]any{"a<b": 1}
	return d
}

func TestForms(t *testing.T) {
	want := map[string]string{
		"text": " TMM        n        avg       max\n" +
			"   0   25,000        5.5    1,234*\n" +
			"1/10        4   16,009.9   400,000\n",
		"csv":      "table,TMM,n,avg,max\ncores,0,25000,5.5,1234\ncores,1/10,4,16009.94,400000\n",
		"markdown": "| 1/10 | 4 | 16,009.9 | 400,000 |\n",
		"junit":    `<failure message="LOCALITY ISSUE: a|b">`,
		"hlog":     "Tag=tmm_0,0.000,0.000,5.000,HIST",
		"bench":    "BenchmarkBulkPost ",
		"smaller":  "BulkPost response.p99",
		"bigger":   "BulkPost writes/s",
		"json":     "{\n \"a<b\": 1\n}\n",
	}
	for _, f := range Formats() {
		var b strings.Builder
		d := sample()
		d.Distributions = []Distribution{distribution(t, "tmm_0", "clicks", 3, 5)}
		d.Benchmarks = followed().Benchmarks
		if err := f.Write(&b, d); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want[f.Name]) {
			t.Errorf("%s: want %q in\n%s", f.Name, want[f.Name], b.String())
		}
	}
	var b strings.Builder
	if err := writeMarkdown(&b, sample()); err != nil || !strings.Contains(b.String(), `a\|b`) {
		t.Errorf("markdown does not escape the pipe: %v\n%s", err, b.String())
	}
}

// TestMarkdownLine keeps lines of text from becoming lists, headings and quotes.
func TestMarkdownLine(t *testing.T) {
	for l, want := range map[string]string{
		"* too few samples": `\* too few samples`, "# key": `\# key`, "  - a": `  \- a`, "> b": `\> b`, "-5 ns": `\-5 ns`,
		"20,000 writes": "20,000 writes", "": "", "a * b": "a * b",
	} {
		d := &Document{}
		d.Linef("%s", l)
		var b strings.Builder
		if err := writeMarkdown(&b, d); err != nil || b.String() != want+"\n\n" {
			t.Errorf("%q: %q, want %q: %v", l, b.String(), want, err)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 229 * time.Microsecond: "229 µs", 1250 * time.Microsecond: "1.25 ms",
		22900 * time.Millisecond: "22.9 s", 12345 * time.Nanosecond: "12.3 µs", 90 * time.Minute: "5400 s", -5: "-5 ns",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestInt(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Int(n); got != want {
			t.Errorf("Int(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 names", 1: "1 name", 2: "2 names", 1000: "1,000 names"} {
		if got := Count(n, "name"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
