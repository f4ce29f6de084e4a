package page

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats/verdict"
)

// saved is the page of older runs, which hold charts, the first one with a
// verdict and a name that are not to be taken for HTML.
func saved(t *testing.T) (r *report.Report, html string) {
	t.Helper()
	paths, err := filepath.Glob("../../../../../testdata/runs/*-version1.json")
	if err != nil || len(paths) < 2 {
		t.Fatalf("runs %v: %v", paths, err)
	}
	var sources []report.Source
	for i, p := range paths {
		f, err := runfile.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			f.Path = "x/<b>one&.json"
			bad := verdict.Verdict{Name: verdict.Errors, State: verdict.Fail, Line: "ERRORS: <it> fails", Causes: []string{"something & more", "ask `tbl probe <name>`"}}
			f.Fields["verdicts"], _ = json.Marshal([]verdict.Verdict{bad})
			f.Fields["overall"], _ = json.Marshal(bad)
			f.Header.Args = append(f.Header.Args, "--key-prefix", "a b", "--token", "***")
		}
		sources = append(sources, report.Source{File: f})
	}
	r = report.Build(sources)
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// TestPage holds the page: the verdict first, whole in itself, words escaped.
func TestPage(t *testing.T) {
	r, page := saved(t)
	order := []string{`<p class="headline s-fail">`, "&lt;b&gt;one&amp; fails", "ERRORS: &lt;it&gt; fails", "something &amp; more", "<li>ask <code>tbl probe &lt;name&gt;</code></li>", "<svg", "--key-prefix &#39;a b&#39;", "stands for a secret"}
	for i, at := 0, 0; i < len(order); i++ {
		k := strings.Index(page[at:], order[i])
		if k < 0 {
			t.Fatalf("no %q behind %q", order[i], order[:i])
		}
		at += k
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<b>one") || strings.Contains(page, "<it>") {
		t.Error("a script, or words that are not escaped")
	}
	for _, m := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]*)`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("the page points to %q", m[1])
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %q twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:href="#|aria-labelledby="|aria-describedby=")([^"]*)`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("nothing has the id %q", m[1])
		}
	}
	if n := strings.Count(page, "<details"); len(r.Charts) < 3 || n < len(r.Charts) {
		t.Errorf("%d tables to open, want one for each of %d charts", n, len(r.Charts))
	}
	for _, ink := range report.Inks() {
		if !strings.Contains(page, "--"+ink.Name+":"+report.Hex(ink.Dark)) {
			t.Errorf("the page has no %s on dark", ink.Name)
		}
	}
}

// TestRegions: what a reader who only hears the page can jump to has a name of
// its own, and each row is headed by its first cell.
func TestRegions(t *testing.T) {
	_, page := saved(t)
	labels := map[string]bool{}
	for _, m := range regexp.MustCompile(`role="region" aria-label="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if labels[m[1]] {
			t.Errorf("two regions are called %q", m[1])
		}
		labels[m[1]] = true
	}
	if len(labels) < 8 {
		t.Errorf("regions %v", labels)
	}
	rows := 0
	for _, body := range regexp.MustCompile(`(?s)<tbody>.*?</tbody>`).FindAllString(page, -1) {
		for _, row := range strings.Split(body, "<tr>")[1:] {
			rows++
			if !strings.HasPrefix(row, `<th scope="row">`) || strings.Count(row, "<th") != 1 {
				t.Errorf("no head, or several: <tr>%s", row)
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
}

// TestHeadline says how several runs ended, the worst first.
func TestHeadline(t *testing.T) {
	of := func(name string, s verdict.State) *report.Run {
		return &report.Run{Name: name, Doc: &render.Document{Overall: &verdict.Verdict{State: s}}}
	}
	for want, runs := range map[string][]*report.Run{
		"b fails; a holds":                {of("a", verdict.Pass), of("b", verdict.Fail)},
		"a, b and c hold":                 {of("a", verdict.Pass), of("b", verdict.Pass), of("c", verdict.Pass)},
		"5 runs have too little evidence": {of("a", verdict.Incomplete), of("b", verdict.Incomplete), of("c", verdict.Incomplete), of("d", verdict.Incomplete), of("e", verdict.Incomplete)},
		"a warns; b is not judged":        {of("a", verdict.Warn), of("b", verdict.NotJudged)},
	} {
		if got := headline(runs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLongTables are printed only when the reader opened them.
func TestLongTables(t *testing.T) {
	for rows, want := range map[int]bool{printedRows: false, printedRows + 1: true} {
		table := &render.Table{Name: "t", Header: []string{"a"}}
		for i := range rows {
			table.Row(i)
		}
		if got := pageTableOf(table).Long; got != want {
			t.Errorf("%d rows: long %v, want %v", rows, got, want)
		}
	}
}

// TestWords holds what stands between backticks as code, and nothing else as
// HTML.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"ask with `tbl probe`.":  "ask with <code>tbl probe</code>.",
		"`a<b`&`c`":              "<code>a&lt;b</code>&amp;<code>c</code>",
		"one ` of <none>":        "one ` of &lt;none&gt;",
		"``":                     "``",
		"`<script>`<script>`<b>": "<code>&lt;script&gt;</code>&lt;script&gt;`&lt;b&gt;",
	} {
		if got := string(words(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
