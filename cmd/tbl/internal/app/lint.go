package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/irule/lint"
)

// maxRule bounds a rule's file in bytes; a BIG-IP takes 65,535.
const maxRule = 4 << 20

// lintFormats are the output forms of `tbl lint`.
var lintFormats = []struct {
	name  string
	write func(io.Writer, []lint.Finding) error
}{
	{"text", lint.WriteText},
	{"json", lint.WriteJSON},
	{"sarif", func(w io.Writer, f []lint.Finding) error { return lint.WriteSARIF(w, f, release) }},
}

func lintFormatNames() (names []string) {
	for _, f := range lintFormats {
		names = append(names, f.name)
	}
	return names
}

func (a *app) lintCommand() *cli.Command {
	return &cli.Command{
		Usage:     "check iRules for known locality and throughput mistakes",
		ArgsUsage: "RULE.tcl|-…",
		Description: "Each finding names its line, what it costs, and what to write instead; errors end in exit 1.\n" +
			"A comment `# lint:allow RULE-ID why` on the line, or alone on the one before, allows what is meant.",
		Flags: []cli.Flag{
			among(ownEnv("lint", stringFlag("", "format", "text", "what goes to stdout: "+strings.Join(lintFormatNames(), ", "))), lintFormatNames()...),
			boolFlag("", "strict", "let warnings fail"),
			boolFlag("", "rules", "list what is looked for"),
		},
		Action: a.lint,
	}
}

func (a *app) lint(c *cli.Context) error {
	if err := oneOf("format", c.String("format"), lintFormatNames()...); err != nil {
		return err
	}
	if c.Bool("rules") {
		if c.Args().Present() {
			return usagef("--rules takes no files")
		}
		return a.lintRules()
	}
	if !c.Args().Present() {
		return usagef("lint: want the file of a rule, or - for standard input")
	}
	var findings []lint.Finding
	stdin := false
	for _, path := range c.Args().Slice() {
		if path == "-" {
			if stdin {
				return usagef("standard input can be read once only")
			}
			stdin = true
		}
		src, err := a.readRule(path)
		if err != nil {
			return usagef("%w", err)
		}
		findings = append(findings, lint.Check(path, src)...)
	}
	for _, f := range lintFormats {
		if f.name == c.String("format") {
			if err := f.write(a.stdout, findings); err != nil {
				return err
			}
		}
	}
	if lint.Errors(findings) > 0 || c.Bool("strict") && len(findings) > 0 {
		a.code = exitFail
	}
	return nil
}

// readRule reads a rule's file whole.
func (a *app) readRule(path string) ([]byte, error) {
	in := a.env.Stdin
	if path != "-" {
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	src, err := io.ReadAll(io.LimitReader(in, maxRule+1))
	switch {
	case err != nil:
		return nil, err
	case len(src) > maxRule:
		return nil, fmt.Errorf("%s: over %d bytes is no rule", path, maxRule)
	}
	return src, nil
}

// lintRules prints the table of rules as Markdown, which USAGE.md shows too.
func (a *app) lintRules() error {
	_, err := io.WriteString(a.stdout, lintTable())
	return err
}

func lintTable() string {
	var b strings.Builder
	b.WriteString("| rule | level | finds | costs | instead |\n|:---|:---|:---|:---|:---|\n")
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.ID, r.Severity, r.Summary, r.Cost, strings.ReplaceAll(r.Instead, "|", `\|`))
	}
	return b.String()
}
