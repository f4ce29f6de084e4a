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

// TestInMarkdown: others' text makes no element, link, code or emphasis; ours
// stays readable as it is.
func TestInMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"<script>alert(1)</script>":  `\<script>alert(1)\</script>`,
		"<!-- x <?y <http://e>":      `\<!-- x \<?y \<http://e>`,
		"p99<50, p < 1e-12, a<=b":    "p99<50, p < 1e-12, a<=b",
		"[x](http://e) ![i](//e)":    `\[x](http://e) !\[i](//e)`,
		"a&lt;b &#60; R & D, 5 && 6": `a\&lt;b \&#60; R & D, 5 && 6`,
		`a|b \| \<b> \x1b end\`:      `a\|b \\\| \\\<b> \x1b end\\`,
		"*a* **b** 3 * 4 1,234*":     `\*a\* \*\*b\*\* 3 * 4 1,234\*`,
		"localdb_tmm_2_5948, _x_ a_": `localdb_tmm_2_5948, \_x\_ a\_`,
		"~~gone~~ ~ 5":               `\~\~gone\~\~ ~ 5`,
		"`tbl stats --rule mean` or": "`tbl stats --rule mean` or",
		"`<b>`, `` `a|b`; `é`":       "\\`\\<b>\\`, \\`\\` \\`a\\|b\\`; \\`é\\`",
		"open ` only":                "open \\` only",
		"":                           "",
	} {
		if got := inMarkdown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestMarkdownIsNoPage: whatever is others' text, in every place of the form.
func TestMarkdownIsNoPage(t *testing.T) {
	const evil = "<script>alert(1)</script>[x](http://e)"
	v := verdict.Verdict{Name: evil, State: verdict.Fail, Line: evil, Causes: []string{evil}}
	d := &Document{Command: "stats", Verdicts: []verdict.Verdict{v, v}, Overall: &v, Closing: []string{evil}}
	d.Linef("%s", evil)
	d.Append("names", evil).Row(evil, Marked{evil, evil}, verdict.Name(evil))
	d.Blocks = append(d.Blocks, Block{Line: evil, Heading: true})
	for _, first := range []bool{false, true} {
		d.VerdictFirst = first
		text := written(t, d, "markdown")
		if n := strings.Count(text, `\<script>`); n < 10 || n != strings.Count(text, "<script>") || n != strings.Count(text, `\[x]`) || n != strings.Count(text, "[x]") {
			t.Errorf("%d escaped of\n%s", n, text)
		}
	}
	d = &Document{Blocks: []Block{{Code: true, Line: "tbl load --key-prefix '\n```\n" + evil}}}
	if text := written(t, d, "markdown"); !strings.HasPrefix(text, "````sh\n") || !strings.HasSuffix(text, "\n````\n\n") {
		t.Errorf("the code ends early:\n%s", text)
	}
}

// TestInSheet: a spreadsheet runs no name as a formula, and numbers stay numbers.
func TestInSheet(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "+x": "'+x", "-cmd|' /C calc'!A0": "'-cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0": "'-2+3+cmd|' /C calc'!A0", "-.x": "'-.x",
		"-5": "-5", "+1.5e+06": "+1.5e+06", "-22.14%": "-22.14%", "-1.2% … +3.0%": "-1.2% … +3.0%", "-": "-", "a=b": "a=b", "5": "5", "": "",
	} {
		if got := inSheet(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	d := &Document{Verdicts: []verdict.Verdict{{Name: verdict.Assert, Line: "=v"}}}
	d.Append("names", "=h", "n").Row("=c", int64(-3))
	if text := written(t, d, "csv"); text != "table,'=h,n\nnames,'=c,-3\ntable,name,state,line\nverdicts,ASSERT,not judged,'=v\n" {
		t.Errorf("csv:\n%s", text)
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
