package render

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tbl/timingstats/verdict"
)

// Visible writes control characters (C0, DEL, C1) and bytes that are no UTF-8
// out, as \n, \t, \r or \x1b: names and log lines are others' text, and must
// neither steer a terminal nor end a line. Text without any stays as it is.
func Visible(s string) string {
	// A byte that is no UTF-8 reads as RuneError, as does the character itself,
	// which costs it no more than the slow way.
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i, width := 0, 0; i < len(s); i += width {
		r, w := utf8.DecodeRuneInString(s[i:])
		width = w
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteString(s[i : i+w])
		}
	}
	return b.String()
}

// visible is d as the forms for people show it. Nothing of d is changed.
func (d *Document) visible() *Document {
	out := *d
	out.Blocks = slices.Clone(d.Blocks)
	for i := range out.Blocks {
		b := &out.Blocks[i]
		if b.Code { // of several lines
			b.Line = strings.Join(visibleTexts(strings.Split(b.Line, "\n")), "\n")
		} else {
			b.Line = Visible(b.Line)
		}
		if b.Table != nil {
			b.Table = b.Table.visible()
		}
	}
	out.Verdicts = slices.Clone(d.Verdicts)
	for i := range out.Verdicts {
		out.Verdicts[i] = visibleVerdict(out.Verdicts[i])
	}
	if d.Overall != nil {
		v := visibleVerdict(*d.Overall)
		out.Overall = &v
	}
	out.Closing = visibleTexts(d.Closing)
	return &out
}

func visibleTexts(texts []string) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = Visible(out[i])
	}
	return out
}

func visibleVerdict(v verdict.Verdict) verdict.Verdict {
	v.Name, v.Line, v.Causes = verdict.Name(Visible(string(v.Name))), Visible(v.Line), visibleTexts(v.Causes)
	return v
}

func (t *Table) visible() *Table {
	out := *t
	out.Name, out.Header, out.Rows = Visible(t.Name), visibleTexts(t.Header), make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		out.Rows[i] = slices.Clone(row)
		for k, c := range row {
			out.Rows[i][k] = visibleCell(c)
		}
	}
	return &out
}

// visibleCell keeps the type of a cell that isn't text.
func visibleCell(c any) any {
	switch v := c.(type) {
	case nil, int, int64, uint64, float64, Fixed1, Percent, time.Duration, bool:
		return c
	case string:
		return Visible(v)
	case Marked:
		return Marked{visibleCell(v.Value), Visible(v.Mark)}
	}
	if s := fmt.Sprint(c); Visible(s) != s {
		return Visible(s)
	}
	return c
}

// Shortened leaves out the middle of what is longer than limit characters: the
// end of an error often says what to do.
func Shortened(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	r := []rune(s)
	tail := (limit - 1) / 3
	return string(r[:limit-1-tail]) + "…" + string(r[len(r)-tail:])
}
