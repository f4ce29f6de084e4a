package report

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"

	"tbl/cmd/tbl/internal/render"
)

// curvePoints is how many points a curve is drawn with.
const curvePoints = 240

// percentileChart shows distributions over percentiles, the axis stretched so
// that each further nine takes as much room as the one before.
func percentileChart(lines []line) *Chart {
	u := lines[0].curves[0].unit
	c := &Chart{Title: "Percentiles of the response time"}
	axis := "response time, logarithmic"
	if u == clicks {
		c.Title, axis = "Percentiles of the clicks per write", "clicks, logarithmic"
	}
	c.Caption = "How long all but the slowest took: at 99 % one in a hundred took longer. Lower is better."
	t := &render.Table{Name: "percentiles", Header: []string{"run", "what", "n", "min", "p50", "p90", "p95", "p99", "p99.9", "max"}}
	if u == clicks {
		for i := 3; i < len(t.Header); i++ {
			t.Header[i] += "_clicks"
		}
	}
	p := newPlot("percentile")
	low, high, end := math.Inf(1), 0.0, 0.0
	var desc []string
	var all [][]point
	rough := false
	for _, l := range lines {
		for _, v := range l.curves {
			pts := v.draw()
			rough = rough || v.hist == nil
			for _, q := range pts {
				low, high, end = min(low, q.y), max(high, q.y), max(end, q.x)
			}
			all = append(all, pts)
			row := []any{l.name, v.what, v.n}
			var said []string
			for _, q := range v.points {
				var cell any = u.cell(q.v)
				if q.isMax {
					cell = render.Marked{Value: cell, Mark: "*"}
				}
				row = append(row, cell)
				if q.p == 50 || q.p == 99 || q.p == 100 {
					said = append(said, fmt.Sprintf("%s %s", map[float64]string{50: "median", 99: "99 % within", 100: "slowest"}[q.p], u.short(q.v)))
				}
			}
			t.Row(row...)
			desc = append(desc, join(l.name, v.what)+": "+strings.Join(said, ", ")+".")
			label := join(l.name, v.what)
			if len(lines) == 1 && v.what != "" {
				label = v.what
			}
			c.keys = append(c.keys, key{label: label, line: seriesLine(len(c.keys))})
		}
	}
	low, high = logRange(low, high, 1)
	logAxis(&p.Y, low, high, u)
	p.X.Min, p.X.Max = 0, max(end, 1)
	p.X.Tick.Marker = nines(p.X.Max)
	p.Add(grid{vertical: true, horizontal: true})
	for i, pts := range all {
		p.Add(marked{strokes{style: seriesLine(i), lines: [][]point{pts}}})
	}
	if rough {
		c.Notes = append(c.Notes, "A run without a histogram is drawn through the percentiles that it holds.")
	}
	c.panels = []panel{{p, panelHeight + 30, axis}}
	c.Table = t
	c.Desc = "Percentile curves. " + strings.Join(desc, " ")
	return c
}

// stretch is where a percentile stands on the axis: 0 % at 0, 90 % at 1, 99 %
// at 2.
func stretch(p float64) float64 { return -math.Log10(1 - p/100) }

// draw is the curve up to the last percentile that its samples can tell: the
// one of which a single sample is left.
func (v curve) draw() []point {
	end := max(math.Log10(float64(max(v.n, 2))), 0.31)
	var out []point
	if v.hist != nil {
		for i := range curvePoints + 1 {
			x := end * float64(i) / curvePoints
			out = append(out, point{x, max(float64(v.hist.Percentile(100*(1-math.Pow(10, -x)))), 1)})
		}
		return out
	}
	for _, q := range v.points {
		x := end
		if q.p < 100 {
			x = stretch(q.p)
		}
		if x <= end && !q.isMax {
			out = append(out, point{x, max(q.v, 1)})
		}
	}
	return out
}

// nines are the ticks of the percentile axis.
func nines(end float64) plot.ConstantTicks {
	out := plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: stretch(50), Label: "50 %"}}
	for e, label := range []string{"90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"} {
		if x := float64(e + 1); x <= end+1e-9 {
			out = append(out, plot.Tick{Value: x, Label: label})
		}
	}
	return out
}
