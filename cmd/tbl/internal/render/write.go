package render

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"tbl/timingstats"
	"tbl/timingstats/compare"
	"tbl/timingstats/verdict"
)

// Format is one way to write a Document.
type Format struct {
	Name   string // as --format takes it
	Ending string // as --export tells it from the file's name
	Stdout bool   // offered by --format
	Write  func(io.Writer, *Document) error
}

// Formats lists every format there is.
func Formats() []Format {
	return []Format{
		{"text", ".txt", true, writeText},
		{"json", ".json", true, writeJSON},
		{"csv", ".csv", true, writeCSV},
		{"markdown", ".md", true, writeMarkdown},
		{"junit", ".xml", false, writeJUnit},
		{"hlog", ".hlog", false, writeHistogramLog},
		{"bench", ".bench", false, writeBench},
		{"smaller", ".smaller", false, writeTrend(compare.Lower)},
		{"bigger", ".bigger", false, writeTrend(compare.Higher)},
	}
}

func writeText(w io.Writer, d *Document) error {
	d = d.visible()
	b := bufio.NewWriter(w)
	for _, bl := range d.Blocks {
		if bl.Table == nil {
			fmt.Fprintln(b, bl.Line)
			continue
		}
		if len(bl.Table.Rows) == 0 {
			continue
		}
		if err := textTable(b, bl.Table); err != nil {
			return fmt.Errorf("table %s: %w", bl.Table.Name, err)
		}
	}
	if len(d.Verdicts) > 1 {
		if err := verdictLines(b, d); err != nil {
			return err
		}
	}
	if o := d.Overall; o != nil {
		fmt.Fprintln(b, o.Line)
		if len(d.Verdicts) == 1 {
			causes(b, *o, "  ")
		}
	}
	for _, l := range d.Closing {
		fmt.Fprintln(b, l)
	}
	return b.Flush()
}

// verdictLines lists several verdicts, indented, so that the overall line is
// the only one that begins with its word.
func verdictLines(w io.Writer, d *Document) error {
	var width int
	for _, v := range d.Verdicts {
		width = max(width, len(v.Name))
	}
	for _, v := range d.Verdicts {
		if _, err := fmt.Fprintf(w, "  %-*s  %-10s  %s\n", width, v.Name, v.State, v.Line); err != nil {
			return err
		}
		causes(w, v, "      ")
	}
	return nil
}

func causes(w io.Writer, v verdict.Verdict, indent string) {
	for _, c := range v.Causes {
		fmt.Fprintln(w, indent+"- "+c)
	}
}

// textTable writes a borderless table with three spaces between the columns.
func textTable(w io.Writer, t *Table) error {
	align := tw.AlignRight
	if t.Left {
		align = tw.AlignLeft
	}
	var buf strings.Builder
	out := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off, ShowFooter: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off, ShowFooterLine: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAlignment(align),
		tablewriter.WithRowAlignment(align),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithPadding(tw.Padding{Right: "   ", Overwrite: true}),
	)
	out.Header(t.Header)
	for _, r := range t.Rows {
		if err := out.Append(cells(r, text)); err != nil {
			return err
		}
	}
	if err := out.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(buf.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func cells(row []any, form func(any) string) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = form(c)
	}
	return out
}

func writeJSON(w io.Writer, d *Document) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if !d.Compact {
		e.SetIndent("", " ")
	}
	return e.Encode(d.Data)
}

// writeCSV writes every table, each behind its header; a first column names
// the table, so that one file holds them all and stays rectangular per table.
func writeCSV(w io.Writer, d *Document) error {
	d = d.visible()
	c := csv.NewWriter(w)
	write := func(cells ...string) error {
		for i := range cells {
			cells[i] = inSheet(cells[i])
		}
		return c.Write(cells)
	}
	for _, b := range d.Blocks {
		if b.Table == nil {
			continue
		}
		if err := write(append([]string{"table"}, b.Table.units()...)...); err != nil {
			return err
		}
		for _, r := range b.Table.Rows {
			if err := write(append([]string{b.Table.Name}, cells(r, plain)...)...); err != nil {
				return err
			}
		}
	}
	if len(d.Verdicts) > 0 {
		if err := write("table", "name", "state", "line"); err != nil {
			return err
		}
		for _, v := range d.Verdicts {
			if err := write("verdicts", string(v.Name), v.State.String(), v.Line); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

// units is the header with the unit of columns of times, which programs get in
// nanoseconds.
func (t *Table) units() []string {
	out := slices.Clone(t.Header)
	for _, r := range t.Rows {
		for i, c := range r {
			if m, ok := c.(Marked); ok {
				c = m.Value
			}
			if _, ok := c.(time.Duration); ok && i < len(out) && !strings.HasSuffix(out[i], "_ns") {
				out[i] += "_ns"
			}
		}
	}
	return out
}

func writeMarkdown(w io.Writer, d *Document) error {
	d = d.visible()
	b := bufio.NewWriter(w)
	if d.VerdictFirst && d.Overall != nil {
		fmt.Fprintf(b, "**%s**\n\n", inMarkdown(d.Overall.Line))
		if len(d.Verdicts) > 1 || len(d.Verdicts) == 1 && len(d.Verdicts[0].Causes) > 0 {
			markdownVerdicts(b, d)
			fmt.Fprintln(b)
		}
	}
	for i, bl := range d.Blocks {
		switch {
		case i == 0 && d.VerdictFirst && d.Overall != nil && bl.Line == d.Overall.Line:
			continue // said above
		case bl.Heading:
			fmt.Fprintf(b, "## %s\n\n", inMarkdown(bl.Line))
			continue
		case bl.Code:
			fmt.Fprintf(b, "%[1]ssh\n%[2]s\n%[1]s\n\n", fence(bl.Line), bl.Line)
			continue
		case bl.Table == nil:
			fmt.Fprintf(b, "%s\n\n", markdownLine(bl.Line))
			continue
		}
		t := bl.Table
		row := func(cs []string) {
			for _, c := range cs {
				fmt.Fprintf(b, "| %s ", inMarkdown(c))
			}
			fmt.Fprintln(b, "|")
		}
		row(t.Header)
		rule := "---:"
		if t.Left {
			rule = ":---"
		}
		fmt.Fprintln(b, "|"+strings.Repeat(rule+"|", len(t.Header)))
		for _, r := range t.Rows {
			row(cells(r, text))
		}
		fmt.Fprintln(b)
	}
	if !d.VerdictFirst {
		markdownVerdicts(b, d)
		if d.Overall != nil {
			fmt.Fprintf(b, "\n**%s**\n", inMarkdown(d.Overall.Line))
		}
	}
	for _, l := range d.Closing {
		fmt.Fprintf(b, "\n%s\n", markdownLine(l))
	}
	return b.Flush()
}

// markdownLine keeps a line from becoming a list, a heading or a quotation, and
// what is in it as inMarkdown does.
func markdownLine(l string) string {
	l = inMarkdown(l)
	rest := strings.TrimLeft(l, " ")
	if rest != "" && strings.ContainsRune("*#->+", rune(rest[0])) {
		return l[:len(l)-len(rest)] + `\` + rest
	}
	return l
}

func markdownVerdicts(w io.Writer, d *Document) {
	for _, v := range d.Verdicts {
		fmt.Fprintf(w, "- **%s** (%s): %s\n", inMarkdown(string(v.Name)), v.State, inMarkdown(v.Line))
		for _, c := range v.Causes {
			fmt.Fprintf(w, "  - %s\n", inMarkdown(c))
		}
	}
}

// writeHistogramLog writes one interval per distribution, the whole run long.
// HdrHistogram's tools show times in milliseconds and clicks as they are. A run
// of which nothing was timed, as no request succeeded, leaves the head alone.
func writeHistogramLog(w io.Writer, d *Document) error {
	comments := []string{"tbl " + d.Command}
	if len(d.Distributions) == 0 {
		comments = append(comments, "the run timed nothing: there is no distribution")
	}
	var intervals []timingstats.Interval
	for _, x := range d.Distributions {
		perUnit := 1.0
		if x.Unit == "ns" {
			perUnit = 1e6
		}
		intervals = append(intervals, timingstats.Interval{Tag: x.Tag, Length: d.Length, Hist: x.Hist, PerUnit: perUnit})
	}
	return timingstats.WriteHistogramLog(w, d.Started, 1, comments, intervals)
}

// The JUnit form: one test case per core and verdict. A warning passes and says so in
// system-out, missing evidence is an error, a verdict not judged is skipped.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Error   *junitMessage `xml:"error,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(w io.Writer, d *Document) error {
	all := slices.Concat(d.Cases, d.Verdicts)
	s := junitSuite{Name: "tbl " + d.Command, Tests: len(all)}
	used := map[string]int{}
	for _, v := range all {
		c := junitCase{Class: "tbl." + d.Command, Name: v.Title()}
		// Of cases with the same name some readers show the first only.
		if used[c.Name]++; used[c.Name] > 1 {
			c.Name += fmt.Sprintf(" (%d)", used[c.Name])
		}
		body := strings.Join(append([]string{v.Line}, v.Causes...), "\n")
		switch v.State {
		case verdict.Fail:
			c.Failure = &junitMessage{v.Line, body}
			s.Failures++
		case verdict.Incomplete:
			c.Error = &junitMessage{v.Line, body}
			s.Errors++
		case verdict.NotJudged:
			c.Skipped = &junitMessage{Message: v.Line}
			s.Skipped++
		default:
			c.Out = body
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", " ")
	if err := e.Encode(junitSuites{Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
