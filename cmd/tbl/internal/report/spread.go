package report

import (
	"fmt"
	"math"
	"slices"
	"sort"
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

// fewest is how many requests per core a band needs: what UNIFORMITY asks for.
const fewest = 5

// band is the interval in which every core's share of n requests falls, with
// probability 1 − bandAlpha or more, when the cores are drawn evenly: the exact
// bounds of the binomial, both tails alike, with Šidák's correction for the
// number of cores. A factor above 1 widens its variance, as if requests were so
// many times fewer. ok is false where fewer than 5 are expected per core, which
// says nothing.
func band(n int64, cores int, factor float64) (low, high float64, ok bool) {
	even := 1 / float64(cores)
	draws := float64(n) / factor
	if !(draws*even >= fewest) {
		return 0, 1, false
	}
	tail := (1 - math.Pow(1-bandAlpha, even)) / 2
	if draws*even > 1e6 {
		// The normal approximation is as good, and the beta function behind the
		// exact one does not converge for such counts.
		half := distuv.UnitNormal.Quantile(1-tail) * math.Sqrt(even*(1-even)/draws)
		return max(even-half, 0), min(even+half, 1), true
	}
	dist := distuv.Binomial{N: draws, P: even}
	first := func(p float64) float64 {
		return float64(sort.Search(int(draws), func(k int) bool { return dist.CDF(float64(k)) >= p }))
	}
	// low is the first count with tail < P(X ≤ low), so that P(X < low) ≤ tail.
	return first(tail) / draws, min(first(1-tail)/draws, 1), true
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
		from, to, banded := band(n, len(l.counts), l.spreadFactor)
		if banded {
			low, high = min(low, from), max(high, to)
		}
		b := shapes{fill: faint(seriesInk(i), 0.25)}
		edge := strokes{style: draw.LineStyle{Color: seriesInk(i), Width: 0.8}}
		d := dots{style: seriesGlyph(i)}
		d.style.Radius = vg.Length(radius)
		var out, unheard []string
		for _, x := range l.counts {
			share := float64(x.Count) / float64(n)
			low, high = min(low, share), max(high, share)
			left := float64(slices.Index(cores, x.Core)) - slot*float64(len(lines))/2 + slot*float64(i)
			d.at = append(d.at, point{left + slot/2, share})
			if x.Count == 0 {
				unheard = append(unheard, x.Core.String())
			}
			if !banded {
				t.Row(l.name, x.Core.String(), x.Count, render.Percent(share), "-", "-", "too few")
				continue
			}
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
		said := fmt.Sprintf("band %.2f to %.2f %%; all cores within the band", 100*from, 100*to)
		if len(out) > 0 {
			said = fmt.Sprintf("band %.2f to %.2f %%; outside the band: %s", 100*from, 100*to, firstFew(out))
		}
		k := key{label: l.name, glyph: d.style, fill: b.fill}
		if !banded {
			said = fmt.Sprintf("too few for a band, which takes %d per core", fewest)
			k.fill = nil
			c.Notes = append(c.Notes, fmt.Sprintf("No band for %s: %s %s over %d cores are too few; it takes %d per core, more where source ports are used again.",
				l.name, render.Int(n), what, len(l.counts), fewest))
		}
		if len(unheard) > 0 {
			said += "; none on TMM " + firstFew(unheard)
		}
		desc = append(desc, fmt.Sprintf("%s: %s %s, even is %.2f %%, %s.", l.name, render.Int(n), what, 100*mid, said))
		c.keys = append(c.keys, k)
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
	if len(c.Notes) == len(lines) {
		c.Caption = "Each point is a core's share. The axis does not begin at zero."
	}
	if low-pad <= 0 {
		c.Caption = strings.TrimSuffix(c.Caption, " The axis does not begin at zero.")
	}
	c.Desc = "Share of each core. " + strings.Join(desc, " ")
	return c
}

// firstFew lists the first 8.
func firstFew(list []string) string {
	if len(list) > 8 {
		list = append(slices.Clone(list[:8]), fmt.Sprintf("and %d more", len(list)-8))
	}
	return strings.Join(list, ", ")
}
