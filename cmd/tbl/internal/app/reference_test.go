package app

import (
	"fmt"
	"os"
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
		{"reference", reference()}, {"verdicts", verdicts()}, {"faults", faults()}, {"accuracy", accuracy(t)}, {"lint", lintTable()}, {"charts", chartTable()},
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

// accuracy is the first table of what was measured.
func accuracy(t *testing.T) string {
	raw, err := os.ReadFile("../../../../timingstats/verdict/testdata/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "\n| ")
	table, _, ok2 := strings.Cut(rest, "\n\n")
	if !ok || !ok2 {
		t.Fatal("accuracy.md holds no table")
	}
	return "| " + table + "\n"
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

// reference lists the commands with their flags; those that several commands
// share are listed once, by group.
func reference() string {
	a := &app{}
	c := a.cli()
	var b strings.Builder
	groups := map[string]map[string]cli.Flag{}
	var order []string
	for _, cmd := range c.Commands {
		fmt.Fprintf(&b, "### tbl %s\n\n", strings.TrimSpace(cmd.Name+" "+cmd.ArgsUsage))
		usage := cmd.Usage
		if len(cmd.Aliases) > 0 {
			usage += fmt.Sprintf(" (alias: `%s`)", strings.Join(cmd.Aliases, "`, `"))
		}
		fmt.Fprintf(&b, "%s\n\n", upper(usage))
		rows(&b, cmd.Flags, "")
		var shared []string
		for _, f := range cmd.Flags {
			cat := f.(cli.CategorizableFlag).GetCategory()
			if cat == "" {
				continue
			}
			if groups[cat] == nil {
				groups[cat] = map[string]cli.Flag{}
				order = append(order, cat)
			}
			groups[cat][f.Names()[0]] = f
			if len(shared) == 0 || shared[len(shared)-1] != cat {
				shared = append(shared, cat)
			}
		}
		if len(shared) > 0 {
			seen := map[string]bool{}
			var uniq []string
			for _, s := range shared {
				if !seen[s] {
					seen[s] = true
					uniq = append(uniq, s)
				}
			}
			fmt.Fprintf(&b, "And the flags of: %s.\n\n", strings.Join(uniq, ", "))
		}
		for _, sub := range cmd.Subcommands {
			fmt.Fprintf(&b, "`tbl %s %s`: %s\n\n", cmd.Name, sub.Name, sub.Usage)
			rows(&b, sub.Flags, "")
		}
	}
	for _, cat := range order {
		fmt.Fprintf(&b, "### Flags: %s\n\n", cat)
		var fs []cli.Flag
		for _, cmd := range c.Commands {
			for _, f := range cmd.Flags {
				if n := f.Names()[0]; groups[cat][n] != nil {
					fs = append(fs, groups[cat][n])
					delete(groups[cat], n)
				}
			}
		}
		rows(&b, fs, cat)
	}
	return b.String()
}

func rows(b *strings.Builder, fs []cli.Flag, cat string) {
	n := 0
	esc := strings.NewReplacer("|", `\|`)
	for _, f := range fs {
		d := f.(cli.DocGenerationFlag)
		if f.(cli.CategorizableFlag).GetCategory() != cat {
			continue
		}
		if n++; n == 1 {
			b.WriteString("| flag | meaning | default |\n|:---|:---|:---|\n")
		}
		def := ""
		if d.TakesValue() {
			def = strings.Trim(d.GetDefaultText(), `"`)
		}
		dash := "--"
		if len(f.Names()[0]) == 1 {
			dash = "-"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", dash, f.Names()[0], esc.Replace(strings.ReplaceAll(d.GetUsage(), "`", "")), esc.Replace(def))
	}
	if n > 0 {
		b.WriteString("\n")
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }
