package app

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page: tbl man | man -l -",
		Action: func(c *cli.Context) error {
			_, err := fmt.Fprint(a.stdout, manual(c.App))
			return err
		},
	}
}

// exitCodes is the table of the exit codes, for the manual.
var exitCodes = [...]struct {
	code int
	help string
}{
	{exitOK, "All is well, or only warnings."},
	{exitFail, "A verdict fails, or an --assert doesn't hold."},
	{exitUsage, "A flag, an argument or a file is wrong. One line on stderr says what; nothing was sent."},
	{exitIncomplete, "There is not enough evidence: the dataplane could not be reached, or cores were not heard."},
	{exitInterrupted, "Interrupted. What was measured until then is printed."},
}

// manual is the manual page in roff's man macros.
func manual(c *cli.App) string {
	r := new(roff)
	date := built
	if len(date) > len("2006-01-02") {
		date = date[:len("2006-01-02")]
	}
	r.line(`.TH TBL 1 "%s" %s %s`, date, r.quote("tbl "+release), r.quote("User Commands"))
	r.line(".SH NAME")
	r.line(`tbl \- %s`, r.text(strings.TrimSuffix(c.Usage, "?")))
	r.line(".SH SYNOPSIS")
	r.line(".B tbl")
	r.line(".I COMMAND")
	r.line("[flags] [arguments]")
	r.line(".SH DESCRIPTION")
	r.para(c.Description)
	r.line(".SH COMMANDS")
	shared := map[string][]cli.Flag{}
	var order []string
	for _, cmd := range c.VisibleCommands() {
		r.line(".SS %s", r.quote(strings.TrimSpace("tbl "+cmd.Name+" "+cmd.ArgsUsage)))
		usage := upperFirst(cmd.Usage) + "."
		if len(cmd.Aliases) > 0 {
			usage += " Alias: " + strings.Join(cmd.Aliases, ", ") + "."
		}
		r.para(usage)
		if cmd.Description != "" {
			r.line(".PP")
			r.para(cmd.Description)
		}
		var groups []string
		for _, f := range cmd.Flags {
			cat := category(f)
			if cat == "" {
				r.flag(f)
				continue
			}
			if len(groups) == 0 || groups[len(groups)-1] != cat {
				groups = append(groups, cat)
			}
			if shared[cat] == nil {
				order = append(order, cat)
			}
			if !hasName(shared[cat], f) {
				shared[cat] = append(shared[cat], f)
			}
		}
		if len(groups) > 0 {
			r.line(".PP")
			r.para("Also the flags of: " + strings.Join(groups, ", ") + ".")
		}
	}
	r.line(".SH SHARED FLAGS")
	for _, cat := range order {
		r.line(".SS %s", r.quote(cat))
		for _, f := range shared[cat] {
			r.flag(f)
		}
	}
	r.line(".SH EXIT STATUS")
	for _, e := range exitCodes {
		r.line(".TP")
		r.line(".B %d", e.code)
		r.para(e.help)
	}
	r.line(".SH ENVIRONMENT")
	r.para("Every flag reads a variable too: TBL_ and the flag's name in capitals, with _ for -. The command line wins.")
	r.line(".TP")
	r.line(".B GITHUB_ACTIONS")
	r.para("When it is true, a failing run also writes an error line and a job summary for GitHub.")
	r.line(".SH EXAMPLES")
	for i, x := range [][2]string{
		{"Prove the embedded dataplane, and see what a proof looks like:", "tbl validate"},
		{"Prove a real one, deleting what it holds:", "tbl validate --target http://10.0.0.5 --destroy"},
		{"Per-core timings of a log:", "tbl stats /var/log/ltm"},
	} {
		if i > 0 {
			r.line(".PP")
		}
		r.para(x[0])
		r.line(".PP")
		r.line(".nf")
		r.line(".RS")
		r.line("%s", r.text(x[1]))
		r.line(".RE")
		r.line(".fi")
	}
	return r.b.String()
}

// category is the group of a flag in the help, empty for a command's own.
func category(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

func hasName(flags []cli.Flag, f cli.Flag) bool {
	for _, g := range flags {
		if g.Names()[0] == f.Names()[0] {
			return true
		}
	}
	return false
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// roff writes a manual page.
type roff struct{ b strings.Builder }

func (r *roff) line(format string, args ...any) { fmt.Fprintf(&r.b, format+"\n", args...) }

// text escapes what roff would take for an order of its own. A hyphen that is
// to be typed is a minus there.
func (r *roff) text(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "", "^", `\(ha`, "~", `\(ti`, "…", "...", "–", `\(en`, "—", `\(em`, "·", `\(md`, "²", `\(S2`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// quote is text as one argument of a macro.
func (r *roff) quote(s string) string {
	return `"` + strings.ReplaceAll(r.text(s), `"`, `\(dq`) + `"`
}

// para is a paragraph's text, a line for each line.
func (r *roff) para(s string) {
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l == "" {
			r.line(".PP")
		} else {
			r.line("%s", r.text(l))
		}
	}
}

// flag is an entry of a list of flags.
func (r *roff) flag(f cli.Flag) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return
	}
	// The word in backquotes is the name of the value.
	usage := d.GetUsage()
	value := ""
	if d.TakesValue() {
		value = "VALUE"
		if _, rest, ok := strings.Cut(usage, "`"); ok {
			value, _, _ = strings.Cut(rest, "`")
		}
	}
	r.line(".TP")
	head := `\fB` + r.text(dashed(f.Names()[0])) + `\fR`
	if value != "" {
		head += ` \fI` + r.text(value) + `\fR`
	}
	r.line("%s", head)
	def := ""
	if d.TakesValue() {
		def = strings.Trim(d.GetDefaultText(), `"`)
	}
	if def != "" {
		usage += fmt.Sprintf(" (default: %s)", def)
	}
	r.para(usage)
}
