package commandref

import (
	"fmt"
	"slices"
	"strings"
)

// Manual is the manual page, in roff's man macros.
func Manual(p *Program) string {
	r := new(roff)
	r.line(`.TH TBL 1 "%s" %s %s`, p.Date, r.quote("tbl "+p.Version), r.quote("User Commands"))
	r.line(".SH NAME")
	r.line(`tbl \- %s`, r.text(strings.TrimSuffix(p.Usage, "?")))
	r.line(".SH SYNOPSIS")
	r.line(".B tbl")
	r.line(".I COMMAND")
	r.line("[flags] [arguments]")
	r.line(".SH DESCRIPTION")
	r.para(p.Description)
	r.line(".SH COMMANDS")
	shared := map[string][]*Flag{}
	var order []string
	for i := range p.Commands {
		cmd := &p.Commands[i]
		r.line(".SS %s", r.quote(strings.TrimSpace("tbl "+cmd.Names[0]+" "+cmd.Args)))
		usage := upperFirst(cmd.Usage) + "."
		if len(cmd.Names) > 1 {
			usage += " Alias: " + strings.Join(cmd.Names[1:], ", ") + "."
		}
		r.para(usage)
		if cmd.Description != "" {
			r.line(".PP")
			r.para(cmd.Description)
		}
		var groups []string
		for j := range cmd.Flags {
			f := &cmd.Flags[j]
			cat := f.Category
			if cat == "" {
				r.flag(f)
				continue
			}
			if !slices.Contains(groups, cat) {
				groups = append(groups, cat)
			}
			if shared[cat] == nil {
				order = append(order, cat)
			}
			if !slices.ContainsFunc(shared[cat], func(g *Flag) bool { return g.Names[0] == f.Names[0] }) {
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
	r.terms(p.ExitCodes)
	r.line(".SH ENVIRONMENT")
	r.para("Every flag reads a variable too: TBL_ and the flag's name in capitals, with _ for -. The command line wins.")
	r.terms(p.Variables)
	r.line(".SH EXAMPLES")
	for i, x := range p.Examples {
		if i > 0 {
			r.line(".PP")
		}
		r.para(x.Name)
		r.line(".PP")
		r.line(".nf")
		r.line(".RS")
		r.line("%s", r.text(x.Text))
		r.line(".RE")
		r.line(".fi")
	}
	return r.b.String()
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

// terms is a list of named explanations.
func (r *roff) terms(list []Term) {
	for _, t := range list {
		r.line(".TP")
		r.line(".B %s", r.text(t.Name))
		r.para(t.Text)
	}
}

// flag is an entry of a list of flags.
func (r *roff) flag(f *Flag) {
	r.line(".TP")
	head := `\fB` + r.text(dashed(f.Names[0])) + `\fR`
	if f.Value {
		head += ` \fI` + r.text(f.value()) + `\fR`
	}
	r.line("%s", head)
	usage := f.Usage
	if f.Default != "" {
		usage += fmt.Sprintf(" (default: %s)", f.Default)
	}
	r.para(usage)
}
