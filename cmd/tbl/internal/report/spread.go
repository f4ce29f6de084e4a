package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats"
)

// bandAlpha is how seldom an even spread leaves the band on any core: that of
// the UNIFORMITY verdict.
const bandAlpha = 1e-3

// band is the interval in which every core's share of n requests falls, with
// probability 1 − bandAlpha, when the cores are drawn evenly: the binomial's
// normal approximation (Šidák's correction for the number of cores), factor
// being how much its variance is widened.
func band(n int64, cores int, factor float64) (low, high float64) {
	even := 1 / float64(cores)
	each := 1 - math.Pow(1-bandAlpha, even)
	z := distuv.UnitNormal.Quantile(1 - each/2)
	half := z * math.Sqrt(even*(1-even)/float64(n)*factor)
	return max(even-half, 0), min(even+half, 1)
}

// spreadChart shows each core's share against the band of an even spread.
func spreadChart(lines []line) *Chart {
	what := lines[0].what
	c := &Chart{Title: "Spread of " + what + " over the cores"}
	cores := coresOf(lines, func(l line) []timingstats.CoreID {
		out := make([]timingstats.CoreID, len(l.counts))
		for i, x := range l.counts {
			out[i] = x.Core
		}
		return out
	})
	t := &render.Table{Name: "spread", Header: []string{"run", "TMM", what, "share", "even_low", "even_high", "within"}}
	p := newPlot("TMM")
	low, high := 1.0, 0.0
	var desc []string
	slot := 0.8 / float64(len(lines))
	// Many cores leave no room for gaps between the bands, and for large points.
	px := slot * plotWidth / float64(len(cores))
	gap, radius := 0.02, min(4, max(0.45*px, 1.4))
	if px < 8 {
		slot, gap = 1/float64(len(lines)), 0
	}
	even := strokes{style: draw.LineStyle{Color: inkMuted, Width: 1, Dashes: []vg.Length{5, 4}}}
	var marks []dots
	var bands []shapes
	var edges []strokes
	for i, l := range lines {
		var n int64
		for _, x := range l.counts {
			n += x.Count
		}
		if n == 0 {
			continue
		}
		from, to := band(n, len(l.counts), l.spreadFactor)
		low, high = min(low, from), max(high, to)
		b := shapes{fill: faint(seriesInk(i), 0.25)}
		edge := strokes{style: draw.LineStyle{Color: seriesInk(i), Width: 0.8}}
		d := dots{style: seriesGlyph(i)}
		d.style.Radius = vg.Length(radius)
		var out []string
		for _, x := range l.counts {
			share := float64(x.Count) / float64(n)
			low, high = min(low, share), max(high, share)
			left := float64(slices.Index(cores, x.Core)) - slot*float64(len(lines))/2 + slot*float64(i)
			d.at = append(d.at, point{left + slot/2, share})
			b.polygons = append(b.polygons, box(left+gap, left+slot-gap, from, to))
			edge.lines = append(edge.lines, []point{{left + gap, from}, {left + slot - gap, from}}, []point{{left + gap, to}, {left + slot - gap, to}})
			within := "yes"
			if share < from || share > to {
				within = "no"
				out = append(out, fmt.Sprintf("TMM %s with %.2f %%", x.Core, 100*share))
			}
			t.Row(l.name, x.Core.String(), x.Count, render.Percent(share), render.Percent(from), render.Percent(to), within)
		}
		marks, bands, edges = append(marks, d), append(bands, b), append(edges, edge)
		mid := 1 / float64(len(l.counts))
		even.lines = append(even.lines, []point{{-0.5, mid}, {float64(len(cores)) - 0.5, mid}})
		said := "all cores within the band"
		if len(out) > 8 {
			out = append(out[:8], fmt.Sprintf("and %d more", len(out)-8))
		}
		if len(out) > 0 {
			said = "outside the band: " + strings.Join(out, ", ")
		}
		desc = append(desc, fmt.Sprintf("%s: %s %s, even is %.2f %%, band %.2f to %.2f %%; %s.", l.name, render.Int(n), what, 100*mid, 100*from, 100*to, said))
		c.keys = append(c.keys, key{label: l.name, glyph: d.style, fill: b.fill})
	}
	c.keys = append(c.keys, key{label: "even", line: even.style})
	pad := max((high-low)*0.08, 1e-4)
	linearAxis(&p.Y, max(low-pad, 0), min(high+pad, 1), mostTicks, func(v float64) string {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", 100*v), "0"), ".") + " %"
	})
	nameAxis(&p.X, tmm(cores))
	p.Add(grid{horizontal: true})
	for i, b := range bands {
		p.Add(b, edges[i])
	}
	p.Add(even)
	for _, m := range marks {
		p.Add(marked{m})
	}
	c.panels = []panel{{p, panelHeight, "share of " + what}}
	c.Table = t
	c.Caption = "Each point is a core's share; the band is where all cores of 999 in 1,000 even spreads fall. The axis does not begin at zero."
	if low-pad <= 0 {
		c.Caption = strings.TrimSuffix(c.Caption, " The axis does not begin at zero.")
	}
	c.Desc = "Share of each core. " + strings.Join(desc, " ")
	return c
}
