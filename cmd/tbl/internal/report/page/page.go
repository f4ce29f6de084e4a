// Package page writes a report as one HTML page: it needs no other file, no
// network and no script.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/timingstats/verdict"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// page is what the template shows.
type page struct {
	Title    string
	Style    template.CSS
	State    string // of the worst run
	Headline string
	Runs     []pageRun
	Several  bool
	Charts   []pageChart
	Absent   []string
}

type pageRun struct {
	ID, Name, State, Line string
	Verdicts              []pageVerdict
	Blocks                []pageBlock
	Facts                 []fact
	Repeat, Problem       string
	Redacted              bool
}

type pageVerdict struct {
	Name, State, Line string
	Causes            []string
}

type pageBlock struct {
	Lines []string
	Table *pageTable
}

type pageTable struct {
	Name   string // on the page, of this table alone
	Header []string
	Rows   [][]string
	Left   bool
	Long   bool // too long to be printed unasked
}

// printedRows is the length up to which a table is printed, open or not.
const printedRows = 200

type pageChart struct {
	ID, Title, Caption string
	Notes              []string
	SVG                template.HTML
	Table              *pageTable
}

type fact struct{ Name, Value string }

// Write writes the page of a report, which has a run.
func Write(w io.Writer, r *report.Report) error {
	p := page{Several: len(r.Runs) > 1, Absent: r.Absent, Style: template.CSS(styles())}
	commands := map[string]bool{}
	for _, c := range r.Charts {
		commands[c.Command] = true
	}
	for i, c := range r.Charts {
		id := fmt.Sprintf("chart-%d-%s", i+1, c.Name)
		svg, err := c.Inline(id)
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.Name, err)
		}
		title := c.Title
		if len(commands) > 1 {
			title += " (" + c.Command + ")"
		}
		table := pageTableOf(c.Table)
		if table != nil && len(commands) > 1 {
			table.Name += " of " + c.Command
		}
		// The SVG is built by us, its words escaped.
		p.Charts = append(p.Charts, pageChart{ID: id, Title: title, Caption: c.Caption, Notes: c.Notes, SVG: template.HTML(svg), Table: table})
	}
	worst := r.Runs[0].State()
	for i, run := range r.Runs {
		worst = max(worst, run.State())
		p.Runs = append(p.Runs, pageRunOf(fmt.Sprintf("run-%d", i+1), run))
	}
	p.State = stateWord(worst)
	p.Title = "tbl " + r.Runs[0].Header.Command
	p.Headline = r.Runs[0].Line()
	if p.Several {
		p.Title = "tbl report of " + fmt.Sprintf("%d runs", len(r.Runs))
		p.Headline = headline(r.Runs)
	}
	t, err := template.New("page").Funcs(template.FuncMap{"words": words}).Parse(pageHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// words is a text for people, what stands between backticks as code. A backtick
// without another one stays as it is.
func words(s string) template.HTML {
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(s, "`")
		code, after, closed := strings.Cut(rest, "`")
		if !open || !closed || code == "" {
			b.WriteString(template.HTMLEscapeString(s))
			return template.HTML(b.String())
		}
		b.WriteString(template.HTMLEscapeString(before) + "<code>" + template.HTMLEscapeString(code) + "</code>")
		s = after
	}
}

// headline says how the runs ended, the worst first.
func headline(runs []*report.Run) string {
	said := map[verdict.State][2]string{
		verdict.Fail: {"fails", "fail"}, verdict.Incomplete: {"has too little evidence", "have too little evidence"},
		verdict.Warn: {"warns", "warn"}, verdict.Pass: {"holds", "hold"}, verdict.NotJudged: {"is not judged", "are not judged"},
	}
	var parts []string
	for s := verdict.Fail; ; s-- {
		var names []string
		for _, r := range runs {
			if r.State() == s {
				names = append(names, r.Name)
			}
		}
		switch n := len(names); {
		case n == 1:
			parts = append(parts, names[0]+" "+said[s][0])
		case n > 1 && n <= 4:
			parts = append(parts, strings.Join(names[:n-1], ", ")+" and "+names[n-1]+" "+said[s][1])
		case n > 4:
			parts = append(parts, fmt.Sprintf("%d runs %s", n, said[s][1]))
		}
		if s == verdict.NotJudged {
			return strings.Join(parts, "; ")
		}
	}
}

// stateWord is the outcome as the page writes and colours it.
func stateWord(s verdict.State) string { return s.String() }

func pageTableOf(t *render.Table) *pageTable {
	if t == nil || len(t.Rows) == 0 {
		return nil
	}
	return &pageTable{Name: t.Name, Header: t.Header, Rows: t.Texts(), Left: t.Left, Long: len(t.Rows) > printedRows}
}

func pageRunOf(id string, r *report.Run) pageRun {
	p := pageRun{ID: id, Name: r.Name, State: stateWord(r.State()), Line: r.Line(), Repeat: r.Repeat, Problem: r.Problem, Facts: facts(r), Redacted: strings.Contains(r.Repeat, "***")}
	for _, v := range r.Doc.Verdicts {
		p.Verdicts = append(p.Verdicts, pageVerdict{string(v.Name), stateWord(v.State), v.Line, v.Causes})
	}
	for _, b := range r.Doc.Blocks {
		switch {
		case b.Table != nil:
			if t := pageTableOf(b.Table); t != nil {
				t.Name += " of " + r.Name
				p.Blocks = append(p.Blocks, pageBlock{Table: t})
			}
		case len(p.Blocks) > 0 && p.Blocks[len(p.Blocks)-1].Table == nil:
			last := &p.Blocks[len(p.Blocks)-1]
			last.Lines = append(last.Lines, b.Line)
		default:
			p.Blocks = append(p.Blocks, pageBlock{Lines: []string{b.Line}})
		}
	}
	for _, l := range r.Doc.Closing {
		p.Blocks = append(p.Blocks, pageBlock{Lines: []string{l}})
	}
	return p
}

// facts say what ran where and when.
func facts(r *report.Run) []fact {
	h := r.Header
	var out []fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, fact{name, value})
		}
	}
	add("command", "tbl "+h.Command)
	add("target", r.Target)
	add("seed", r.Seed)
	add("file", r.Path)
	if r.Simulated() {
		add("clock", "simulated: the figures are the same on every machine")
		add("simulated time", render.Duration(r.Length()))
	} else {
		add("started", h.Started.UTC().Format(time.RFC3339))
		add("took", render.Duration(r.Length()))
	}
	if e := h.Environment; e != nil {
		add("client", e.Host)
		add("processor", e.CPU)
		add("cores of the client", fmt.Sprint(e.Cores))
		add("system", strings.TrimSpace(e.OS+"/"+e.Arch+" "+e.Kernel))
		add("tbl", e.Version+", "+e.Go)
	}
	add("run file", fmt.Sprintf("%s, version %d", h.Schema, h.Version))
	return out
}

// styles is the style sheet with the inks as variables.
func styles() string {
	var light, dark strings.Builder
	for _, k := range report.Inks() {
		fmt.Fprintf(&light, "--%s:%s;", k.Name, report.Hex(k.Light))
		fmt.Fprintf(&dark, "--%s:%s;", k.Name, report.Hex(k.Dark))
	}
	return strings.NewReplacer("/*light inks*/", light.String(), "/*dark inks*/", dark.String()).Replace(pageCSS)
}
