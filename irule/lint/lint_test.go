package lint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tbl/irule"
	"tbl/irule/lint"
)

const examples = "../../testdata/irule/lint"

var wantRE = regexp.MustCompile(`# want: (.+)$`)

// wanted reads the marks of an example: rule by line, as "line rule".
func wanted(src []byte) []string {
	var out []string
	for i, line := range strings.Split(string(src), "\n") {
		if m := wantRE.FindStringSubmatch(line); m != nil {
			for _, id := range strings.Fields(m[1]) {
				out = append(out, place(i+2, id))
			}
		}
	}
	slices.Sort(out)
	return out
}

func place(line int, rule string) string {
	return strings.Repeat(" ", 4-len(itoa(line))) + itoa(line) + " " + rule
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func found(findings []lint.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, place(f.Line, f.Rule))
	}
	slices.Sort(out)
	return out
}

// Each rule has an example of what it finds, all of it and nothing else, and
// one of what to write instead, in which nothing is found.
func TestExamples(t *testing.T) {
	rules := lint.Rules()
	if len(rules) < 20 {
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		if r.ID == "" || r.Summary == "" || r.Cost == "" || r.Instead == "" {
			t.Errorf("rule %+v says too little", r)
		}
		bad, err := os.ReadFile(filepath.Join(examples, r.ID+".bad.tcl"))
		if err != nil {
			t.Error(err)
			continue
		}
		want, got := wanted(bad), found(lint.Check("bad.tcl", bad))
		if len(want) == 0 {
			t.Errorf("%s: the bad example marks nothing", r.ID)
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: not found: %s", r.ID, w)
			}
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				t.Errorf("%s: found besides: %s", r.ID, g)
			}
		}
		good, err := os.ReadFile(filepath.Join(examples, r.ID+".good.tcl"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range lint.Check("good.tcl", good) {
			t.Errorf("%s: found in the good example: %+v", r.ID, f)
		}
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.tcl"))
	if err != nil || len(files) != 2*len(rules) {
		t.Errorf("%d examples of %d rules (%v)", len(files), len(rules), err)
	}
}

// Nothing is found in the rules that we ship.
func TestOwnRules(t *testing.T) {
	for name, render := range map[string]func(irule.Options) (string, error){"localdb": irule.Localdb, "harness": irule.Harness, "tmsh": irule.TMSH} {
		text, err := render(irule.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if name == "tmsh" { // only the rules in it are Tcl
			text = text[:strings.Index(text, "ltm virtual")]
		}
		for _, f := range lint.Check(name, []byte(text)) {
			t.Errorf("%s:%d: %s %s", f.File, f.Line, f.Rule, f.Message)
		}
	}
}

// A finding can be allowed where it is meant.
func TestAllow(t *testing.T) {
	src := "when HTTP_REQUEST {\n" +
		"    incr static::a ;# lint:allow static-write per TMM on purpose\n" +
		"    # lint:allow static-write, hot-key\n" +
		"    incr static::b\n" +
		"    incr static::c ;# lint:allow hot-key\n" +
		"    incr static::d\n}\n"
	if got := found(lint.Check("x", []byte(src))); !slices.Equal(got, []string{place(5, "static-write"), place(6, "static-write")}) {
		t.Errorf("found %q", got)
	}
}

func TestPlaces(t *testing.T) {
	src := "when HTTP_REQUEST {\r\n\tif {$a} {\r\n\t\tset ::x [exec ls]\r\n\t}\r\n}\r\n"
	got := lint.Check("dir/x.tcl", []byte(src))
	if len(got) != 2 || got[0].Line != 3 || got[0].Column != 7 || got[0].Rule != "global-variable" ||
		got[1].Line != 3 || got[1].Column != 12 || got[1].Rule != "denied-command" || got[1].Severity != lint.Error || got[1].File != "dir/x.tcl" {
		t.Errorf("%+v", got)
	}
}

// Whatever the text, reading it ends, and every finding lies in it.
func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(examples, "*.tcl"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	for _, s := range []string{"", "[", "{", "\"", "$", "${", "\\", "when", "when X {", "if", "if {", "switch x {a", "table", "table set -subtable", "expr ((((", "{*}", "{*}{", "a;b;c", "#\\", strings.Repeat("[", 5000), strings.Repeat("{a ", 3000), "proc a b {" + strings.Repeat("if {1} {", 400)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		lines := 1 + strings.Count(string(src), "\n")
		for _, x := range lint.Check("f", src) {
			if x.Line < 1 || x.Line > lines || x.Column < 1 || x.Rule == "" || x.Cost == "" {
				t.Errorf("finding out of place: %+v of %d lines", x, lines)
			}
		}
	})
}
