package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats"
)

// The bounds of a map: more names or cores stay in the table, or without words.
const (
	maxNames     = 64
	wordsInCells = 12
	nameChars    = 28
)

// ownershipChart shows a map for each run: names down, cores across, fast or
// slow.
func ownershipChart(lines []line) *Chart {
	c := &Chart{Title: "Ownership of names"}
	c.Caption = "A name is fast on the core that owns it and slow on all others. The numbers are the clicks of the fastest write; the frame is the owner."
	t := &render.Table{Name: "ownership", Header: []string{"run", "name", "outcome", "owner", "expected", "TMM", "hits", "fast", "min_clicks", "avg_clicks", "max_clicks"}, Left: true}
	var desc []string
	fast, slow := faint(seriesInk(0), 0.55), faint(seriesInk(1), 0.28)
	frame := draw.LineStyle{Color: inkText, Width: 1.8}
	cross := draw.GlyphStyle{Color: inkText, Radius: 4, Shape: draw.CrossGlyph{}}
	c.keys = []key{{label: "mostly fast", fill: fast}, {label: "mostly slow", fill: slow}, {label: "owner", line: frame}}
	crossed := false
	for _, l := range lines {
		names := l.names[:min(len(l.names), maxNames)]
		if len(names) < len(l.names) {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: the first %d of %d names are drawn; the table has all.", l.name, len(names), len(l.names)))
		}
		cores := coresOf([]line{l}, func(l line) []timingstats.CoreID {
			var out []timingstats.CoreID
			for _, n := range l.names {
				for _, k := range n.cores {
					out = append(out, k.core)
				}
			}
			return out
		})
		p := newPlot("TMM")
		if len(lines) > 1 {
			p.X.Label.Text = "TMM, " + l.name
		}
		nameAxis(&p.X, tmm(cores))
		p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
		p.Y.Tick.Length, p.Y.Tick.LineStyle.Width = 0, 0
		var ticks plot.ConstantTicks
		for i, n := range names {
			ticks = append(ticks, plot.Tick{Value: float64(len(names) - 1 - i), Label: shorten(n.name, nameChars)})
		}
		p.Y.Tick.Marker = ticks
		m := drawMap(names, cores, fast, slow, frame, cross)
		crossed = crossed || len(m.crosses.at) > 0
		p.Add(marked{m.fast}, marked{m.slow}, marked{m.frames}, m.words, marked{m.crosses})
		row := vg.Length(24)
		if len(names) > 24 {
			row = 13
		}
		c.panels = append(c.panels, panel{p, vg.Length(len(names))*row + 52, ""})
		rowsOf(t, l)
		desc = append(desc, l.name+": "+owners(l.names)+".")
	}
	if crossed {
		c.keys = append(c.keys, key{label: "expected, but not the owner", glyph: cross})
	}
	c.Table = t
	c.Desc = "Map of names and cores. " + strings.Join(desc, " ")
	return c
}

// shorten keeps the ends of a long name.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		half := (most - 1) / 2
		return string(r[:half]) + "…" + string(r[len(r)-half:])
	}
	return s
}

// nameMap are the marks of one map.
type nameMap struct {
	fast, slow shapes
	frames     strokes
	crosses    dots
	words      labels
}

func drawMap(names []ownedName, cores []timingstats.CoreID, fast, slow interface {
	RGBA() (r, g, b, a uint32)
}, frame draw.LineStyle, cross draw.GlyphStyle) nameMap {
	m := nameMap{fast: shapes{fill: fast}, slow: shapes{fill: slow}, frames: strokes{style: frame}, crosses: dots{style: cross}}
	m.words.style = sans(textSize-1, inkText)
	m.words.style.XAlign, m.words.style.YAlign = draw.XCenter, draw.YCenter
	for i, n := range names {
		y := float64(len(names) - 1 - i)
		for _, k := range n.cores {
			x := float64(slices.Index(cores, k.core))
			cell := box(x-0.46, x+0.46, y-0.42, y+0.42)
			if 2*k.fast > k.hits {
				m.fast.polygons = append(m.fast.polygons, cell)
			} else {
				m.slow.polygons = append(m.slow.polygons, cell)
			}
			if len(cores) <= wordsInCells {
				m.words.at, m.words.words = append(m.words.at, point{x, y}), append(m.words.words, number(math.Round(k.min)))
			}
			if n.owner != nil && *n.owner == k.core {
				m.frames.lines = append(m.frames.lines, append(cell, cell[0]))
			}
			if n.expected != nil && *n.expected == k.core && (n.owner == nil || *n.owner != k.core) {
				m.crosses.at = append(m.crosses.at, point{x - 0.36, y})
			}
		}
	}
	return m
}

func rowsOf(t *render.Table, l line) {
	for _, n := range l.names {
		owner, expected := "-", "-"
		if n.owner != nil {
			owner = n.owner.String()
		}
		if n.expected != nil {
			expected = n.expected.String()
		}
		for _, k := range n.cores {
			t.Row(l.name, n.name, n.outcome, owner, expected, k.core.String(), k.hits, k.fast, int64(k.min), render.Fixed1(k.avg), int64(k.max))
		}
	}
}

// owners says in words who owns what.
func owners(names []ownedName) string {
	var out []string
	for i, n := range names {
		if i == 8 {
			out = append(out, fmt.Sprintf("and %s", plural(len(names)-i, "more name")))
			break
		}
		said := n.outcome
		if n.owner != nil {
			said = "owned by TMM " + n.owner.String()
			if n.expected != nil && *n.expected != *n.owner {
				said += ", not " + n.expected.String() + " as expected"
			}
		}
		out = append(out, n.name+" "+said)
	}
	return strings.Join(out, "; ")
}
