package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats"
)

// binsPerDecade is how fine a distribution of many samples is drawn.
const binsPerDecade = 30

// timingChart shows each core's distribution on a logarithmic scale, the runs
// side by side.
func timingChart(lines []line) *Chart {
	u := lines[0].unit
	cores := coresOf(lines, func(l line) []timingstats.CoreID {
		out := make([]timingstats.CoreID, len(l.timings))
		for i, t := range l.timings {
			out[i] = t.core
		}
		return out
	})
	low, high, threshold := math.Inf(1), 0.0, 0.0
	for _, l := range lines {
		threshold = max(threshold, l.threshold)
		for _, t := range l.timings {
			low, high = min(low, t.min), max(high, t.max)
		}
	}
	if threshold > 0 {
		low, high = min(low, threshold), max(high, threshold)
	}
	c := &Chart{Title: "Timing per core"}
	label := "clicks"
	if u == nanoseconds {
		c.Title, label = "Response time per core", "response time"
	}
	p := newPlot("TMM")
	low, high = logRange(low, high, 1)
	logAxis(&p.Y, low, high, u)
	nameAxis(&p.X, tmm(cores))
	p.Add(grid{horizontal: true})

	slot := 0.86 / float64(len(lines))
	for i, l := range lines {
		var bodies shapes
		var whiskers, medians strokes
		var means dots
		bodies.fill = faint(seriesInk(i), 0.75)
		whiskers.style = draw.LineStyle{Color: seriesInk(i), Width: 2}
		medians.style = draw.LineStyle{Color: inkText, Width: 1.6}
		means.style = seriesGlyph(i)
		for _, t := range l.timings {
			mid := float64(slices.Index(cores, t.core)) - 0.43 + slot*(float64(i)+0.5)
			if t.hist != nil {
				bodies.polygons = append(bodies.polygons, violin(t.hist, mid, 0.46*slot, 0.6*float64(len(cores))/plotWidth, low, high)...)
			} else {
				from := t.min
				if finite(t.p95) {
					bodies.polygons = append(bodies.polygons, box(mid-0.2*slot, mid+0.2*slot, max(t.min, low), max(t.p95, t.min*1.05, low)))
					from = t.p95
				} else {
					means.at = append(means.at, point{mid, max(t.avg, low)})
					whiskers.lines = append(whiskers.lines, []point{{mid - 0.12*slot, max(t.min, low)}, {mid + 0.12*slot, max(t.min, low)}})
				}
				whiskers.lines = append(whiskers.lines, []point{{mid, max(from, low)}, {mid, max(t.max, low)}},
					[]point{{mid - 0.12*slot, max(t.max, low)}, {mid + 0.12*slot, max(t.max, low)}})
			}
			if finite(t.p50) {
				medians.lines = append(medians.lines, []point{{mid - 0.34*slot, max(t.p50, low)}, {mid + 0.34*slot, max(t.p50, low)}})
			}
		}
		p.Add(marked{bodies}, marked{whiskers}, marked{means}, marked{medians})
		c.keys = append(c.keys, key{label: l.name, fill: faint(seriesInk(i), 0.75)})
	}
	if threshold > 0 {
		line := draw.LineStyle{Color: inkMuted, Width: 1.2, Dashes: []vg.Length{5, 4}}
		p.Add(strokes{style: line, lines: [][]point{{{p.X.Min, threshold}, {p.X.Max, threshold}}}})
		c.keys = append(c.keys, key{label: "threshold, " + u.short(threshold) + " clicks", line: line})
	}
	c.panels = []panel{{p, 300, label + ", logarithmic"}}
	c.Table = timingTable(lines, u)
	c.Caption, c.Desc = timingWords(lines, u, threshold)
	if len(lines) > seriesInks {
		c.Caption += " On each TMM the runs stand in the legend's order."
	}
	return c
}

func timingWords(lines []line, u unit, threshold float64) (caption, desc string) {
	var bodies, bars, points bool
	for _, l := range lines {
		for _, t := range l.timings {
			switch {
			case t.hist != nil:
				bodies = true
			case finite(t.p95):
				bars = true
			default:
				points = true
			}
		}
	}
	// Runs of several versions may each have a form of their own.
	var said []string
	middle := "; the stroke across is the median"
	if bodies {
		said = append(said, "The wider a body, the more samples took that long"+middle+".")
		middle = ""
	}
	if bars {
		said = append(said, "A plain bar reaches from the fastest to the 95th percentile, the line from there to the slowest"+middle+": such a run holds no histogram.")
	}
	if points {
		said = append(said, "A line with a point reaches from the fastest to the slowest, the point is the average: such a run keeps no more.")
	}
	caption = strings.Join(said, " ")
	if threshold > 0 {
		caption += " Writes below the threshold are local: the core owns what it writes to."
	}
	var parts []string
	for _, l := range lines {
		var cores []string
		for k, t := range l.timings {
			if k == 8 {
				cores = append(cores, fmt.Sprintf("and %d more", len(l.timings)-k))
				break
			}
			mid, word := t.p50, "median"
			if !finite(mid) {
				mid, word = t.avg, "average"
			}
			of := u.short(mid)
			if u == clicks {
				of += " clicks"
			}
			state := ""
			if t.state != "" {
				state = ", " + t.state
			}
			cores = append(cores, fmt.Sprintf("TMM %s %s %s, slowest %s%s", t.core, word, of, u.short(t.max), state))
		}
		parts = append(parts, fmt.Sprintf("%s: %s.", l.name, strings.Join(cores, "; ")))
	}
	return caption, "Distribution of each core's timings on a logarithmic scale. " + strings.Join(parts, " ")
}

// violin is a distribution as bodies around x = mid, from least to half wide on
// either side, between low and high. Each bucket is spread over the values
// that it may stand for, so that whole numbers leave no gaps.
func violin(r *timingstats.Recorder, mid, half, least, low, high float64) [][]point {
	// Fewer samples, coarser bins: else each sample is a spike of its own.
	n := int(math.Ceil(math.Log10(high/low) * min(4+2*math.Log2(float64(r.N()+1)), binsPerDecade)))
	width := math.Log10(high/low) / float64(n)
	at := func(v float64) float64 { return min(max(math.Log10(v/low)/width, 0), float64(n)) }
	counts := make([]float64, n)
	r.Each(func(from, to, k int64) {
		a, b := at(max(float64(from), low)), at(max(float64(to+1), low*1.0001))
		if b-a < 1e-9 {
			a, b = min(a, float64(n)-1e-6), a+1e-6
		}
		for i := int(a); i < n && float64(i) < b; i++ {
			part := (min(b, float64(i+1)) - max(a, float64(i))) / (b - a)
			counts[i] += float64(k) * part
		}
	})
	top := slices.Max(counts)
	var out [][]point
	for i := 0; i < n; {
		if counts[i] == 0 {
			i++
			continue
		}
		var left, right []point
		for ; i < n && counts[i] > 0; i++ {
			// A single sample among thousands must still show.
			w := min(half, max(half*counts[i]/top, half*0.06, least))
			y0, y1 := low*math.Pow(10, float64(i)*width), low*math.Pow(10, float64(i+1)*width)
			left = append(left, point{mid - w, y0}, point{mid - w, y1})
			right = append(right, point{mid + w, y0}, point{mid + w, y1})
		}
		slices.Reverse(right)
		out = append(out, append(left, right...))
	}
	return out
}

func timingTable(lines []line, u unit) *render.Table {
	t := &render.Table{Name: "timing", Header: []string{"run", "TMM", "n", "min", "p50", "avg", "p95", "p99", "max", "state"}}
	if u == clicks {
		for i := 3; i < 9; i++ {
			t.Header[i] += "_clicks"
		}
	}
	known := func(v float64) any {
		if !finite(v) {
			return "-"
		}
		return u.cell(v)
	}
	for _, l := range lines {
		for _, x := range l.timings {
			p99 := known(x.p99)
			if x.p99IsMax && finite(x.p99) {
				p99 = render.Marked{Value: p99, Mark: "*"}
			}
			t.Row(l.name, x.core.String(), x.n, known(x.min), known(x.p50), known(x.avg), known(x.p95), p99, known(x.max), x.state)
		}
	}
	return t
}
