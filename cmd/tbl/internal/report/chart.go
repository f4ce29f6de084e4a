package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"tbl/cmd/tbl/internal/render"
)

// Chart is one picture with the figures that it is drawn from. It is built by
// Build and then only read.
type Chart struct {
	// Name is the chart's kind: one of Kinds.
	Name string
	// Command is the command whose runs it shows.
	Command string
	Title   string
	// Caption says how to read it, Desc what it shows, for those who can't see
	// it.
	Caption, Desc string
	// Notes say what was left out, one sentence each; TableNotes are those of
	// them that hold for the table too.
	Notes, TableNotes []string
	// Table holds every figure that is drawn.
	Table *render.Table

	keys   []key
	panels []panel
}

// panel is one plot of a chart; all panels of a chart share their width.
type panel struct {
	plot   *plot.Plot
	height vg.Length
	what   string // that the y axis counts, written above it
}

// key is an entry of the legend.
type key struct {
	label string
	line  draw.LineStyle  // drawn where its width isn't 0
	glyph draw.GlyphStyle // drawn where its radius isn't 0
	fill  color.Color     // drawn where not nil
}

// The measures of a chart, in points.
const (
	chartWidth   = vg.Length(720)
	panelHeight  = vg.Length(250)
	titleHeight  = vg.Length(26)
	legendRow    = vg.Length(17)
	captionRow   = vg.Length(15)
	chartGap     = vg.Length(24)
	textSize     = vg.Length(11)
	titleSize    = vg.Length(14)
	keyMarkWidth = vg.Length(26)
	plotWidth    = 650 // of the part inside the axes, about
)

// pngDPI doubles the pixels of a PNG against points, for dense screens.
const pngDPI = 144

// sans is the font whose widths the layout counts with; a browser takes one
// with the same widths.
func sans(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		XAlign: draw.XLeft, YAlign: draw.YBottom, Handler: plot.DefaultTextHandler,
	}
}

// newPlot is an empty plot in the charts' style, on no ground of its own. What
// its y axis counts stands above it, where it can be read without turning the
// head.
func newPlot(x string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	axes := [...]*plot.Axis{&p.X, &p.Y}
	p.X.Label.Text = x
	for _, a := range axes {
		a.Label.TextStyle.Font, a.Label.TextStyle.Color = sans(textSize, nil).Font, inkText
		a.Label.Padding = 4
		a.Tick.Label.Font, a.Tick.Label.Color = sans(textSize, nil).Font, inkMuted
		a.LineStyle.Color, a.Tick.LineStyle.Color = inkMuted, inkMuted
		a.Tick.Length, a.Padding = 4, 4
	}
	return p
}

// layout is the height of the legend, and of the whole chart.
func (c *Chart) layout(titled bool) (legend, all vg.Length) {
	if len(c.keys) > 0 {
		legend = vg.Length(c.legend(nil)) * legendRow
	}
	all = legend
	if titled {
		all += titleHeight + vg.Length(len(c.captionLines()))*captionRow
	}
	for _, p := range c.panels {
		all += p.height
	}
	return legend, all
}

// captionLines are the caption and the notes, cut to the chart's width.
func (c *Chart) captionLines() []string {
	sty := sans(textSize, inkMuted)
	var out []string
	for _, w := range strings.Fields(strings.Join(append([]string{c.Caption}, c.Notes...), " ")) {
		if last := len(out) - 1; last >= 0 && sty.Width(out[last]+" "+w) <= chartWidth-16 {
			out[last] += " " + w
		} else {
			out = append(out, w)
		}
	}
	return out
}

// legend draws the legend's rows from the top of dc, and returns how many
// there are. With nil it only counts.
func (c *Chart) legend(dc *draw.Canvas) int {
	rows, x := 1, vg.Length(8)
	sty := sans(textSize, inkText)
	for _, k := range c.keys {
		w := keyMarkWidth + 6 + sty.Width(k.label) + 16
		if x+w > chartWidth && x > 8 {
			rows, x = rows+1, 8
		}
		if dc != nil {
			left, mid := dc.Min.X+x, dc.Max.Y-vg.Length(rows-1)*legendRow-legendRow/2
			k.draw(dc, left, mid)
			dc.FillText(sty, vg.Point{X: left + keyMarkWidth + 6, Y: mid - sty.Height(k.label)/2}, k.label)
		}
		x += w
	}
	return rows
}

func (k key) draw(dc *draw.Canvas, left, mid vg.Length) {
	if k.fill != nil {
		r := vg.Rectangle{Min: vg.Point{X: left, Y: mid - 5}, Max: vg.Point{X: left + keyMarkWidth, Y: mid + 5}}
		dc.SetColor(k.fill)
		dc.Fill(r.Path())
	}
	if k.line.Width > 0 {
		dc.StrokeLine2(k.line, left, mid, left+keyMarkWidth, mid)
	}
	if k.glyph.Radius > 0 {
		dc.DrawGlyphNoClip(k.glyph, vg.Point{X: left + keyMarkWidth/2, Y: mid})
	}
}

// draw draws the chart from the top of dc; with its title, which a chart that
// stands by itself needs, go its caption and notes below.
func (c *Chart) draw(dc draw.Canvas, titled bool) {
	top := dc.Max.Y
	if titled {
		sty := sans(titleSize, inkText)
		dc.FillText(sty, vg.Point{X: dc.Min.X + 8, Y: top - titleHeight + 7}, c.Title)
		top -= titleHeight
	}
	if legend, _ := c.layout(titled); legend > 0 {
		area := dc
		area.Max.Y = top
		c.legend(&area)
		top -= legend
	}
	// Panels below one another share their x axis: their left and right edges
	// are those of the narrowest.
	areas := make([]draw.Canvas, len(c.panels))
	var left, right vg.Length
	for i, p := range c.panels {
		areas[i] = dc
		areas[i].Max.Y = top
		areas[i].Min.Y = top - p.height
		areas[i] = draw.Crop(areas[i], 4, -12, 2, -6)
		if p.what != "" {
			areas[i].Max.Y -= legendRow
		}
		data := p.plot.DataCanvas(areas[i])
		left = max(left, data.Min.X-areas[i].Min.X)
		right = max(right, areas[i].Max.X-data.Max.X)
		top -= p.height
	}
	if titled {
		for i, l := range c.captionLines() {
			dc.FillText(sans(textSize, inkMuted), vg.Point{X: dc.Min.X + 8, Y: top - vg.Length(i+1)*captionRow + 3}, l)
		}
	}
	for i, p := range c.panels {
		data := p.plot.DataCanvas(areas[i])
		dc.FillText(sans(textSize, inkMuted), vg.Point{X: dc.Min.X + 8, Y: areas[i].Max.Y + 3}, p.what)
		p.plot.Draw(draw.Crop(areas[i], left-(data.Min.X-areas[i].Min.X), (areas[i].Max.X-data.Max.X)-right, 0, 0))
	}
}

// sheet draws charts below one another, with their titles, on white.
func sheet(charts []*Chart, canvas func(w, h vg.Length) vg.CanvasSizer) {
	h := -chartGap
	for _, c := range charts {
		_, all := c.layout(true)
		h += all + chartGap
	}
	dc := draw.New(canvas(chartWidth, h))
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	top := dc.Max.Y
	for _, c := range charts {
		_, all := c.layout(true)
		area := dc
		area.Max.Y, area.Min.Y = top, top-all
		c.draw(area, true)
		top -= all + chartGap
	}
}

// WriteSVG writes charts, one below the other, as one SVG file on white.
func WriteSVG(w io.Writer, charts []*Chart) error {
	var v *vgsvg.Canvas
	sheet(charts, func(w, h vg.Length) vg.CanvasSizer {
		v = vgsvg.New(w, h)
		return v
	})
	s, err := finishSVG(v, charts, "", false)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+s+"\n")
	return err
}

// WritePNG writes charts, one below the other, as one PNG file on white.
func WritePNG(w io.Writer, charts []*Chart) error {
	var v *vgimg.Canvas
	sheet(charts, func(w, h vg.Length) vg.CanvasSizer {
		v = vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(pngDPI))
		return v
	})
	_, err := vgimg.PngCanvas{Canvas: v}.WriteTo(w)
	return err
}

// Inline is the chart as an SVG element for a page: no title of its own, on no
// ground, in the page's colours, which are variables named as Inks says. id
// must be unique in the page.
func (c *Chart) Inline(id string) (string, error) {
	_, h := c.layout(false)
	v := vgsvg.New(chartWidth, h)
	c.draw(draw.New(v), false)
	return finishSVG(v, []*Chart{c}, id, true)
}

// marked draws a plotter's marks into a group of their own, so that they can
// be told from axes and labels.
type marked struct{ plot.Plotter }

// Plot draws it.
func (m marked) Plot(c draw.Canvas, p *plot.Plot) {
	c.SetColor(markBegin)
	c.Fill(vg.Path{})
	m.Plotter.Plot(c, p)
	c.SetColor(markEnd)
	c.Fill(vg.Path{})
}

// shapes fills polygons, all in one colour and as one path.
type shapes struct {
	fill     color.Color
	polygons [][]point
}

type point struct{ x, y float64 }

// Plot draws them, within the axes' range.
func (s shapes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var path vg.Path
	for _, poly := range s.polygons {
		pts := make([]vg.Point, len(poly))
		for i, q := range poly {
			pts[i] = vg.Point{X: x(q.x), Y: y(q.y)}
		}
		for i, q := range c.ClipPolygonXY(pts) {
			if i == 0 {
				path.Move(q)
			} else {
				path.Line(q)
			}
		}
		if len(pts) > 0 {
			path.Close()
		}
	}
	if len(path) > 0 {
		c.SetColor(s.fill)
		c.Fill(path)
	}
}

// box is a rectangle as a polygon.
func box(x0, x1, y0, y1 float64) []point {
	return []point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

// strokes draws lines of one style.
type strokes struct {
	style draw.LineStyle
	lines [][]point
}

// Plot draws them, within the axes' range.
func (s strokes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, l := range s.lines {
		pts := make([]vg.Point, len(l))
		for i, q := range l {
			pts[i] = vg.Point{X: x(q.x), Y: y(q.y)}
		}
		c.StrokeLines(s.style, c.ClipLinesXY(pts)...)
	}
}

// dots draws one glyph at each point.
type dots struct {
	style draw.GlyphStyle
	at    []point
}

// Plot draws them.
func (d dots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, q := range d.at {
		c.DrawGlyph(d.style, vg.Point{X: x(q.x), Y: y(q.y)})
	}
}

// labels writes words at points, centred or beginning there.
type labels struct {
	style text.Style
	at    []point
	words []string
}

// Plot writes them.
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, q := range l.at {
		c.FillText(l.style, vg.Point{X: x(q.x), Y: y(q.y)}, l.words[i])
	}
}

// grid draws a faint line across the plot at each labelled tick.
type grid struct{ vertical, horizontal bool }

// Plot draws it.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	sty := draw.LineStyle{Color: inkGrid, Width: 0.6}
	x, y := p.Transforms(&c)
	if g.horizontal {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if at := y(t.Value); !t.IsMinor() && c.ContainsY(at) {
				c.StrokeLine2(sty, c.Min.X, at, c.Max.X, at)
			}
		}
	}
	if g.vertical {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if at := x(t.Value); !t.IsMinor() && c.ContainsX(at) {
				c.StrokeLine2(sty, at, c.Min.Y, at, c.Max.Y)
			}
		}
	}
}

// finite says that a number can be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// plural is "1 run", "2 runs".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", render.Int(int64(n)), what)
}
