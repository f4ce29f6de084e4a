package app

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

const usageFile = "../../../../USAGE.md"

// TestReference holds what USAGE.md lists against the tables that the program
// itself works from. UPDATE=1 writes the lists anew.
func TestReference(t *testing.T) {
	raw, err := os.ReadFile(usageFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, part := range []struct{ name, want string }{
		{"reference", reference()}, {"variables", variables()}, {"verdicts", verdicts()}, {"faults", faults()}, {"accuracy", accuracy(t, "locality")}, {"every verdict", accuracy(t, "verdicts")}, {"lint", lintTable()}, {"charts", chartTable()},
		{"saved runs", runFileFields(t)},
	} {
		begin, end := "<!-- "+part.name+": begin -->\n", "<!-- "+part.name+": end -->"
		before, rest, ok1 := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("USAGE.md has no place for the %s: %q … %q", part.name, begin, end)
		}
		text = before + begin + part.want + end + after
	}
	if text == string(raw) {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatal("the lists in USAGE.md are not those of the program: UPDATE=1 go test ./cmd/tbl/... writes them anew")
	}
	if err := os.WriteFile(usageFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	referenceFlag = regexp.MustCompile("(?m)^\\| `(--?[a-z][a-z-]*)` \\|")
	helpFlag      = regexp.MustCompile(`(?m)^   (--?[a-z][a-z-]*)`)
	without       = regexp.MustCompile(`^(.*) \(without (.*)\)$`)
)

// TestReferenceIsHelp reads the reference as a reader does, and the help of
// each command: both name the same flags.
func TestReferenceIsHelp(t *testing.T) {
	raw, err := os.ReadFile(usageFile)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "<!-- reference: begin -->\n")
	text, _, ok := strings.Cut(text, "<!-- reference: end -->")
	if !ok {
		t.Fatal("USAGE.md has no reference")
	}
	sections, groups := map[string]string{}, map[string][]string{}
	for _, s := range strings.Split("\n"+text, "\n### ")[1:] {
		title, body, _ := strings.Cut(s, "\n")
		if group, ok := strings.CutPrefix(title, "Flags: "); ok {
			groups[group] = named(referenceFlag, body)
		} else {
			sections[strings.Fields(title)[1]] = body
		}
	}
	commands := (&app{}).cli().Commands
	if len(sections) != len(commands) {
		t.Errorf("%d commands in the reference, %d in the program", len(sections), len(commands))
	}
	for _, cmd := range commands {
		body := sections[cmd.Name]
		listed := named(referenceFlag, body)
		if _, more, ok := strings.Cut(body, "And the flags of: "); ok {
			more, _, _ = strings.Cut(more, ".\n")
			for _, group := range strings.Split(more, "; ") {
				var not []string
				if m := without.FindStringSubmatch(group); m != nil {
					group, not = m[1], strings.Split(strings.ReplaceAll(m[2], "`", ""), ", ")
				}
				if len(groups[group]) == 0 {
					t.Errorf("%s: no group %q", cmd.Name, group)
				}
				for _, n := range not {
					if !slices.Contains(groups[group], n) {
						t.Errorf("%s: without %s, which %s has not", cmd.Name, n, group)
					}
				}
				listed = append(listed, slices.DeleteFunc(slices.Clone(groups[group]), func(n string) bool { return slices.Contains(not, n) })...)
			}
		}
		var out strings.Builder
		e := Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }}
		if code := Run(t.Context(), e, []string{cmd.Name, "--help"}); code != exitOK {
			t.Errorf("%s --help: exit %d", cmd.Name, code)
		}
		help := slices.DeleteFunc(named(helpFlag, out.String()), func(n string) bool { return n == "--help" })
		slices.Sort(listed)
		slices.Sort(help)
		if !slices.Equal(listed, help) {
			t.Errorf("%s: the reference lists\n%v\nthe help\n%v", cmd.Name, listed, help)
		}
	}
}

func named(re *regexp.Regexp, text string) (out []string) {
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// Flags of one variable take the same values: what is set for one command
// must not be an error in another. A threshold is the exception, a number of
// clicks everywhere, which two commands can find by themselves.
func TestVariables(t *testing.T) {
	type kind struct{ of, takes string }
	seen := map[string]kind{}
	for _, cmd := range (&app{}).cli().Commands {
		for _, f := range cmd.Flags {
			takes := fmt.Sprintf("%T", f)
			if c, ok := f.(choice); ok {
				takes += fmt.Sprint(c.choices())
			}
			for _, v := range f.(cli.DocGenerationFlag).GetEnvVars() {
				if k, ok := seen[v]; ok && k.takes != takes && v != "TBL_THRESHOLD" {
					t.Errorf("%s: %s of %s takes %s, that of %s %s", v, dashed(f), cmd.Name, takes, k.of, k.takes)
				}
				seen[v] = kind{cmd.Name, takes}
			}
		}
	}
}

// A form that only others know is no matter to lint.
func TestLintFormatVariable(t *testing.T) {
	t.Setenv("TBL_FORMAT", "csv")
	run := func() (code int, stdout, stderr string) {
		var out, says strings.Builder
		e := Env{Stdin: strings.NewReader("when RULE_INIT { }\n"), Stdout: &out, Stderr: &says, Getenv: os.Getenv}
		code = Run(t.Context(), e, []string{"lint", "-"})
		return code, out.String(), says.String()
	}
	if code, out, says := run(); code != exitOK || !strings.HasPrefix(out, "0 errors") {
		t.Errorf("exit %d: %s%s", code, out, says)
	}
	t.Setenv("TBL_LINT_FORMAT", "json")
	if code, out, says := run(); code != exitOK || strings.HasPrefix(out, "0 errors") {
		t.Errorf("exit %d: %s%s", code, out, says)
	}
}

// accuracy is what the page of what was measured has for USAGE.md, in the part
// of that name.
func accuracy(t *testing.T, part string) string {
	raw, err := os.ReadFile("../../../../timingstats/verdict/testdata/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, mark := range []string{part, "for USAGE"} {
		_, rest, ok := strings.Cut(text, "<!-- "+mark+": begin -->\n")
		within, _, ok2 := strings.Cut(rest, "<!-- "+mark+": end -->\n")
		if !ok || !ok2 {
			t.Fatalf("accuracy.md has no part %q for USAGE.md", part)
		}
		text = within
	}
	return text
}

func verdicts() string {
	var b strings.Builder
	b.WriteString("| verdict | holds when | else |\n|:---|:---|:---|\n")
	for _, v := range verdict.Table() {
		bad := "warns"
		if v.Fails {
			bad = "fails"
		}
		if v.Name == verdict.Coverage {
			bad = "incomplete"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", v.Name, v.Help, bad)
	}
	return b.String()
}

func faults() string {
	var b strings.Builder
	b.WriteString("| `--fault` | default | does | must be named by | may trip |\n|:---|:---|:---|:---|:---|\n")
	for _, f := range refplane.FaultKinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Syntax, f.Default, f.Help, strings.Join(f.MustName, ", "), strings.Join(f.MayTrip, ", "))
	}
	return b.String()
}

// reference lists the commands with their flags; those that most commands of
// a group have are listed once, by group.
func reference() string {
	c := (&app{}).cli()
	var b strings.Builder
	cats, shared := sharedFlags(c.Commands)
	for _, cmd := range c.Commands {
		fmt.Fprintf(&b, "### tbl %s\n\n", strings.TrimSpace(cmd.Name+" "+cmd.ArgsUsage))
		usage := cmd.Usage
		if len(cmd.Aliases) > 0 {
			usage += fmt.Sprintf(" (alias: `%s`)", strings.Join(cmd.Aliases, "`, `"))
		}
		fmt.Fprintf(&b, "%s\n\n", upper(usage))
		has := map[flagKey]bool{}
		var own []cli.Flag
		for _, f := range cmd.Flags {
			k := keyOf(f)
			has[k] = true
			if !slices.ContainsFunc(shared[k.cat], func(s cli.Flag) bool { return keyOf(s) == k }) {
				own = append(own, f)
			}
		}
		rows(&b, own)
		var groups []string
		for _, cat := range cats {
			var without []string
			for _, f := range shared[cat] {
				if !has[keyOf(f)] {
					without = append(without, "`"+dashed(f)+"`")
				}
			}
			switch {
			case len(without) == len(shared[cat]):
			case len(without) > 0:
				groups = append(groups, cat+" (without "+strings.Join(without, ", ")+")")
			default:
				groups = append(groups, cat)
			}
		}
		if len(groups) > 0 {
			fmt.Fprintf(&b, "And the flags of: %s.\n\n", strings.Join(groups, "; "))
		}
	}
	for _, cat := range cats {
		fmt.Fprintf(&b, "### Flags: %s\n\n", cat)
		rows(&b, shared[cat])
	}
	return b.String()
}

// flagKey tells flags apart: those of one name can mean different things.
type flagKey struct{ cat, name, usage, def string }

func keyOf(f cli.Flag) flagKey {
	d := f.(cli.DocGenerationFlag)
	return flagKey{f.(cli.CategorizableFlag).GetCategory(), f.Names()[0], d.GetUsage(), d.GetDefaultText()}
}

// sharedFlags are the categories, and of each the flags that at least half of
// its commands have, with one meaning.
func sharedFlags(commands []*cli.Command) (cats []string, shared map[string][]cli.Flag) {
	shared = map[string][]cli.Flag{}
	members, holders := map[string]int{}, map[flagKey]int{}
	for _, cmd := range commands {
		seen := map[string]bool{}
		for _, f := range cmd.Flags {
			k := keyOf(f)
			if k.cat == "" {
				continue
			}
			holders[k]++
			if !seen[k.cat] {
				seen[k.cat] = true
				members[k.cat]++
			}
			if !slices.Contains(cats, k.cat) {
				cats = append(cats, k.cat)
			}
		}
	}
	listed := map[flagKey]bool{}
	for _, cmd := range commands {
		for _, f := range cmd.Flags {
			if k := keyOf(f); k.cat != "" && !listed[k] && 2*holders[k] >= members[k.cat] {
				listed[k] = true
				shared[k.cat] = append(shared[k.cat], f)
			}
		}
	}
	return cats, shared
}

// variables lists the flags that have another variable than their name's.
func variables() string {
	var b strings.Builder
	b.WriteString("| flag | variable |\n|:---|:---|\n")
	for _, cmd := range (&app{}).cli().Commands {
		for _, f := range cmd.Flags {
			if vars := f.(cli.DocGenerationFlag).GetEnvVars(); !slices.Equal(vars, env(f.Names()[0])) {
				fmt.Fprintf(&b, "| `%s` of `%s` | `%s` |\n", dashed(f), cmd.Name, strings.Join(vars, "`, `"))
			}
		}
	}
	return b.String()
}

// dashed is a flag as one writes it.
func dashed(f cli.Flag) string {
	name := f.Names()[0]
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func rows(b *strings.Builder, fs []cli.Flag) {
	if len(fs) == 0 {
		return
	}
	b.WriteString("| flag | meaning | default |\n|:---|:---|:---|\n")
	esc := strings.NewReplacer("|", `\|`)
	for _, f := range fs {
		d := f.(cli.DocGenerationFlag)
		def := ""
		if d.TakesValue() {
			def = strings.Trim(d.GetDefaultText(), `"`)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", dashed(f), esc.Replace(strings.ReplaceAll(d.GetUsage(), "`", "")), esc.Replace(def))
	}
	b.WriteString("\n")
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }
