package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tbl/cmd/tbl/internal/render"
	"tbl/timingstats"
)

// span is a stretch of a run, in seconds from its start.
type span struct {
	from, to float64
	done     int64
	errors   int64
	cut      bool // by the run's end, to less than half: its rate says little
}

func (s span) rate() float64   { return float64(s.done) / (s.to - s.from) }
func (s span) failed() float64 { return float64(s.errors) / (s.to - s.from) }

// shortRun is the length below which seconds are too coarse: the run is then
// drawn by its parts of equal completions.
const shortRun = 5.0

// Of a short run, no part is drawn that is shorter than a shortPart-th of it, or
// that has fewer completions: the rate of an instant, or of a handful, is chance.
const (
	shortPart   = 50
	fewestDrawn = 25
)

// coarse joins neighbouring parts until each is long and full enough for its
// rate to mean something. What is left over at the end joins the last.
func coarse(parts []span, end float64) []span {
	var out []span
	for i, p := range parts {
		last := len(out) - 1
		if i == 0 || out[last].to-out[last].from >= end/shortPart && out[last].done >= fewestDrawn {
			out = append(out, p)
			continue
		}
		out[last].to = max(out[last].to, p.to)
		out[last].done += p.done
	}
	if last := len(out) - 1; last > 0 && (out[last].to-out[last].from < end/shortPart || out[last].done < fewestDrawn) {
		out[last-1].to = max(out[last-1].to, out[last].to)
		out[last-1].done += out[last].done
		out = out[:last]
	}
	return out
}

// spans cuts a run into what is drawn: its seconds (tens of seconds beyond ten
// minutes), or, when it is short and nothing failed, its parts of equal
// completions.
func spans(s timingstats.SeriesSummary) (out []span, seconds bool) {
	end := float64(s.EndNS) / 1e9
	failed := slices.ContainsFunc(s.All.Errors, func(n int64) bool { return n > 0 })
	if end < shortRun && !failed && len(s.Progress) > 0 || len(s.StartS) == 0 {
		for _, b := range s.Progress {
			if b.EndNS > b.StartNS {
				out = append(out, span{from: float64(b.StartNS) / 1e9, to: float64(b.EndNS) / 1e9, done: b.Completions})
			}
		}
		return coarse(out, end), false
	}
	step := 1.0
	for i, start := range s.StartS {
		p := span{from: float64(start), to: end}
		if i+1 < len(s.StartS) {
			p.to = float64(s.StartS[i+1])
			step = p.to - p.from
		}
		if i < len(s.All.Completions) {
			p.done = s.All.Completions[i]
		}
		if i < len(s.All.Errors) {
			p.errors = s.All.Errors[i]
		}
		p.cut = i > 0 && i+1 == len(s.StartS) && p.to-p.from < step/2
		if p.to > p.from {
			out = append(out, p)
		}
	}
	return out, true
}

// throughputChart shows completions per second, and errors per second below
// where there are any.
func throughputChart(lines []line) *Chart {
	c := &Chart{Title: "Throughput over the run"}
	what := "writes"
	t := &render.Table{Name: "throughput", Header: []string{"run", "from", "to", what, what + "_per_s", "errors"}}
	p, e := newPlot(""), newPlot("seconds from the start")
	var top, topErrors, end float64
	var errors int64
	var rates, fails [][]point
	var desc []string
	bySecond := true
	for _, l := range lines {
		for _, s := range l.series {
			cut, seconds := spans(s.SeriesSummary)
			bySecond = bySecond && seconds
			var r, f []point
			first, last := math.NaN(), math.NaN()
			var failed int64
			for _, x := range cut {
				failed += x.errors
				t.Row(join(l.name, s.what), moment(x.from), moment(x.to), x.done, render.Fixed1(x.rate()), x.errors)
				end = max(end, x.to)
				if x.cut {
					continue
				}
				r = append(r, point{x.from, x.rate()}, point{x.to, x.rate()})
				f = append(f, point{x.from, x.failed()}, point{x.to, x.failed()})
				top, topErrors = max(top, x.rate()), max(topErrors, x.failed())
				if math.IsNaN(first) {
					first = x.rate()
				}
				last = x.rate()
			}
			errors += failed
			rates, fails = append(rates, r), append(fails, f)
			desc = append(desc, fmt.Sprintf("%s: first %s, last %s, %s errors.", join(l.name, s.what), render.Rate(first), render.Rate(last), render.Int(failed)))
			c.keys = append(c.keys, key{label: join(l.name, s.what), line: seriesLine(len(c.keys))})
			if len(rates) == maxLines {
				break
			}
		}
		if len(rates) == maxLines {
			break
		}
	}
	word := func(v float64) string { return number(v) }
	linearAxis(&p.X, 0, end, mostTicks, word)
	linearAxis(&e.X, 0, end, mostTicks, word)
	linearAxis(&p.Y, 0, top*1.06, mostTicks, word)
	linearAxis(&e.Y, 0, max(topErrors*1.1, 1), fewTicks, word)
	p.Add(grid{vertical: true, horizontal: true})
	e.Add(grid{vertical: true, horizontal: true})
	for i := range rates {
		p.Add(marked{strokes{style: seriesLine(i), lines: [][]point{rates[i]}}})
		e.Add(marked{strokes{style: seriesLine(i), lines: [][]point{fails[i]}}})
	}
	c.panels = []panel{{p, panelHeight, what + " per second"}}
	c.Caption = "Completed writes per second. A healthy run is level: one that falls holds something that grows with its entries."
	if !bySecond {
		c.Caption += " A short run is drawn in parts instead of seconds, each at least a fiftieth of it."
	}
	if errors > 0 {
		c.panels = append(c.panels, panel{e, 150, "errors per second"})
		c.Caption += " Errors are below, on their own scale."
	} else {
		p.X.Label.Text = "seconds from the start"
		c.Caption += " No request failed."
	}
	if all := totalSeries(lines); all > len(rates) {
		c.TableNotes = append(c.TableNotes, fmt.Sprintf("The first %d of %d series are drawn.", len(rates), all))
	}
	c.Table = t
	c.Desc = "Throughput over time. " + strings.Join(desc, " ")
	return c
}

func totalSeries(lines []line) int {
	n := 0
	for _, l := range lines {
		n += len(l.series)
	}
	return n
}

// moment is a moment as tables show times.
func moment(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
