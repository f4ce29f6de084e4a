// Package render turns results into what a reader sees: text, JSON, CSV,
// Markdown or JUnit. Every result becomes a Document first, so that all
// forms show the same figures.
package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tbl/timingstats/verdict"
)

// Document is a result ready to be written in any format. It is a value: it
// is built once, then only read.
type Document struct {
	// Command names the command that made it; it becomes the JUnit suite.
	Command string
	// Started and Length are the run's time; filled in by whoever writes it.
	Started time.Time
	Length  time.Duration
	// Blocks are shown in order by the text and Markdown forms.
	Blocks []Block
	// Verdicts are shown after the blocks, one line each, then Overall: the one
	// line to grep. Nil: it follows from the verdicts, see Conclude.
	Verdicts []verdict.Verdict
	Overall  *verdict.Verdict
	// VerdictFirst puts them before the blocks in the Markdown form, whose
	// readers see its first lines only.
	VerdictFirst bool
	// Cases are judgements of single cores; only JUnit lists them, before the
	// verdicts that they are part of.
	Cases []verdict.Verdict
	// Closing lines follow the verdicts.
	Closing []string
	// Data is the JSON form, Figures are further ones that it gets and that
	// assertions can name.
	Data    any
	Compact bool // JSON without indentation: long runs with many cores are large
	Figures map[string]float64
	// Distributions and Ranges are what Plot draws and .hlog saves.
	Distributions []Distribution
	Ranges        []Range
	// Benchmarks are the figures that are followed from run to run, BenchConfig
	// what they were measured under.
	Benchmarks  []Benchmark
	BenchConfig []BenchSetting
	// Extra are further fields of the JSON form.
	Extra map[string]any
}

// Block is a line of text or a table.
type Block struct {
	Line  string
	Table *Table
	// Heading says that the line begins a part, Code that it is for a shell, and
	// may be several lines.
	Heading, Code bool
}

// Table is a table whose cells keep their type until they are written: text
// forms round and separate thousands, the others don't.
type Table struct {
	Name   string // of the figure, for CSV and Markdown; no spaces
	Header []string
	Rows   [][]any
	Left   bool // align columns to the left (names rather than numbers)
}

// Cell types beyond string, ints and time.Duration.
type (
	// Fixed1 is a float shown with one decimal.
	Fixed1 float64
	// Digits3 is a float shown with three significant digits.
	Digits3 float64
	// Percent is a share in 0…1, shown as 25.20%.
	Percent float64
	// Marked is a cell whose text form carries a mark behind the number.
	Marked struct {
		Value any
		Mark  string
	}
)

// Linef appends a line of text.
func (d *Document) Linef(format string, args ...any) {
	d.Blocks = append(d.Blocks, Block{Line: fmt.Sprintf(format, args...)})
}

// Append appends a table and returns it.
func (d *Document) Append(name string, header ...string) *Table {
	t := &Table{Name: name, Header: header}
	d.Blocks = append(d.Blocks, Block{Table: t})
	return t
}

// Row appends a row.
func (t *Table) Row(cells ...any) { t.Rows = append(t.Rows, cells) }

// Texts are the table's rows as people read them.
func (t *Table) Texts() [][]string {
	out := make([][]string, len(t.Rows))
	for i, r := range t.Rows {
		out[i] = cells(r, text)
	}
	return out
}

// Conclude fills Overall, unless the result brought its own and nothing has
// made it worse: the only verdict, or the worst one, or that all hold.
func (d *Document) Conclude(strict bool) {
	worst, ok := verdict.Worst(d.Verdicts, strict)
	if !ok {
		return
	}
	state := verdict.Overall(d.Verdicts, strict)
	switch {
	case d.Overall != nil && (state <= verdict.Warn || d.Overall.State == state):
	case len(d.Verdicts) == 1, state > verdict.Warn:
		d.Overall = &worst
	default:
		d.Overall = &verdict.Verdict{Name: "OVERALL", State: state, Line: holds(d.Verdicts)}
	}
}

// Interrupt marks the document of a run that was cut short. What failed until
// then has failed; that all is well was not shown.
func (d *Document) Interrupt() {
	d.Closing = append(d.Closing, "interrupted: the figures are those of a partial run")
	if d.Overall != nil && d.Overall.State <= verdict.Warn {
		d.Overall = &verdict.Verdict{Name: "OVERALL", State: verdict.Incomplete, Line: "INCOMPLETE: interrupted; until then, " + strings.TrimPrefix(d.Overall.Line, "OK: ")}
	}
}

// Lost marks the document of a run whose log could not be written whole: what a
// log without the lines says is not what was done.
func (d *Document) Lost(why string) {
	d.Verdicts = slices.DeleteFunc(d.Verdicts, func(v verdict.Verdict) bool { return v.Name == verdict.LogBudget })
	d.Verdicts = append(d.Verdicts, verdict.Verdict{Name: verdict.LogBudget, State: verdict.Incomplete, Line: "INCOMPLETE: " + why})
}

// holds is the overall line when nothing fails and nothing is missing.
func holds(vs []verdict.Verdict) string {
	judged := 0
	var warn []string
	for _, v := range vs {
		if v.State != verdict.NotJudged {
			judged++
		}
		if v.State == verdict.Warn {
			warn = append(warn, string(v.Name))
		}
	}
	line := fmt.Sprintf("OK: no verdict of %d fails", judged)
	if len(warn) > 0 {
		return line + ", warned by " + strings.Join(warn, ", ")
	}
	return line
}

// text is a cell for people.
func text(c any) string {
	switch v := c.(type) {
	case nil:
		return ""
	case Marked:
		return text(v.Value) + v.Mark
	case Fixed1:
		if math.IsNaN(float64(v)) {
			return "-"
		}
		whole, frac, _ := strings.Cut(strconv.FormatFloat(float64(v), 'f', 1, 64), ".")
		return thousands(whole) + "." + frac
	case Digits3:
		f := float64(v)
		if math.Abs(f) >= 100 {
			return text(int64(math.Round(f)))
		}
		return strconv.FormatFloat(f, 'g', 3, 64)
	case Percent:
		if math.IsNaN(float64(v)) {
			return "-"
		}
		return strconv.FormatFloat(100*float64(v), 'f', 2, 64) + "%"
	case time.Duration:
		return Duration(v)
	case int:
		return Int(int64(v))
	case int64:
		return Int(v)
	case uint64:
		return thousands(strconv.FormatUint(v, 10))
	case float64:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return fmt.Sprint(c)
}

// plain is a cell for programs: no separators, no rounding, durations in ns.
func plain(c any) string {
	switch v := c.(type) {
	case nil:
		return ""
	case Marked:
		return plain(v.Value)
	case Fixed1:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	case Digits3:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	case Percent:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	case time.Duration:
		return strconv.FormatInt(int64(v), 10)
	}
	return fmt.Sprint(c)
}

// Int writes n with thousands separated.
func Int(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

// Rate writes a rate per second, rounded, with thousands separated.
func Rate(perSecond float64) string {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 0) {
		return "-"
	}
	return Int(int64(math.Round(perSecond))) + "/s"
}

func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Duration writes d with three significant digits and a unit: 229 µs, 1.25 ms,
// 22.9 s.
func Duration(d time.Duration) string {
	unit, per := "ns", time.Nanosecond
	switch abs := d.Abs(); {
	case abs >= time.Second:
		unit, per = "s", time.Second
	case abs >= time.Millisecond:
		unit, per = "ms", time.Millisecond
	case abs >= time.Microsecond:
		unit, per = "µs", time.Microsecond
	}
	v := float64(d) / float64(per)
	digits := 0
	for limit := 100.0; digits < 2 && math.Abs(v) < limit && per > 1; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + unit
}
