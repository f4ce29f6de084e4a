package render

import (
	"strings"
	"testing"
	"unicode"

	"tbl/timingstats/verdict"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain µs · ✓":     "plain µs · ✓",
		"a\x1b[31mb":       `a\x1b[31mb`,
		"\x00\a\x7f":       `\x00\x07\x7f`,
		"c1 \u009b2J":      `c1 \x9b2J`,
		"raw \x9b2J \xff":  `raw \x9b2J \xff`,
		"two\r\nlines\tx":  `two\r\nlines\tx`,
		"\uFFFD of itself": "\uFFFD of itself",
		"":                 "",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestShortened: a value that fits stays; of a longer one the end is kept, too.
func TestShortened(t *testing.T) {
	if got := Shortened(strings.Repeat("µ", 80), 80); got != strings.Repeat("µ", 80) {
		t.Errorf("a value that fits: %s", got)
	}
	if got := Shortened(strings.Repeat("µ", 100)+": want less", 31); got != strings.Repeat("µ", 20)+"… want less" {
		t.Errorf("shortened: %s", got)
	}
}

// TestFormsSteerNoTerminal: whatever is others' text comes out without control
// characters in the forms that people read, in lines of their own.
func TestFormsSteerNoTerminal(t *testing.T) {
	const evil = "x\x1b[2J\u009b\x7f\nOK: forged"
	v := verdict.Verdict{Name: evil, State: verdict.Fail, Line: evil, Causes: []string{evil}}
	d := &Document{Command: "stats", Verdicts: []verdict.Verdict{v, v}, Overall: &v, Closing: []string{evil}}
	d.Linef("%s", evil)
	table := d.Append("names", evil)
	table.Row(evil)
	table.Row(Marked{evil, evil})
	table.Row(verdict.Name(evil))
	for _, f := range Formats() {
		if f.Name != "text" && f.Name != "csv" && f.Name != "markdown" {
			continue
		}
		for _, first := range []bool{false, true} {
			d.VerdictFirst = first
			var b strings.Builder
			if err := f.Write(&b, d); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) || strings.HasPrefix(line, "OK: forged") {
					t.Errorf("%s: %q", f.Name, line)
				}
			}
			if !strings.Contains(strings.ReplaceAll(b.String(), `\[`, "["), `x\x1b[2J\x9b\x7f\nOK: forged`) {
				t.Errorf("%s: %s", f.Name, b.String())
			}
		}
	}
	if table.Rows[0][0] != evil || d.Overall.Line != evil {
		t.Error("the document was changed")
	}
}
