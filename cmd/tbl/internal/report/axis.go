package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"

	"tbl/cmd/tbl/internal/render"
)

// unit is what an axis counts in.
type unit uint8

const (
	clicks unit = iota
	nanoseconds
)

// short writes a value for an axis: 1,000 or 10 ms.
func (u unit) short(v float64) string {
	if u == nanoseconds {
		s := render.Duration(time.Duration(math.Round(v)))
		number, rest, _ := strings.Cut(s, " ")
		if strings.Contains(number, ".") {
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		return number + " " + rest
	}
	return number(v)
}

// number writes a value with thousands separated and no digits that say
// nothing.
func number(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 1000 {
		return render.Int(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// cell is a value in a table.
func (u unit) cell(v float64) any {
	if u == nanoseconds {
		return time.Duration(math.Round(v))
	}
	if v == math.Trunc(v) {
		return int64(v)
	}
	return render.Fixed1(v)
}

// logRange widens low to high to round numbers on a logarithmic axis, with some
// room on either side. Both are at least floor.
func logRange(low, high, floor float64) (float64, float64) {
	// Damaged files hold anything; no time and no count is beyond most.
	const most = 1e15
	low, high = min(max(low, floor), most), min(max(high, floor), most)
	l, h := max(round125(low/1.1, false), floor), round125(high*1.1, true)
	if h/l < 10 {
		h = l * 10
	}
	return l, h
}

// round125 is the next number of the form 1, 2 or 5 times a power of ten, down
// or up.
func round125(v float64, up bool) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	steps := [...]float64{1, 2, 5, 10}
	if up {
		for _, s := range steps {
			if v <= s*p*(1+1e-9) {
				return s * p
			}
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if v >= steps[i]*p*(1-1e-9) {
			return steps[i] * p
		}
	}
	return p
}

// logAxis makes a logarithmic axis from low to high.
func logAxis(a *plot.Axis, low, high float64, u unit) {
	a.Min, a.Max = low, high
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		var out []plot.Tick
		decades := math.Log10(high / low)
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			for d := 1.0; d < 10; d++ {
				v := d * math.Pow(10, e)
				if v < low*(1-1e-9) || v > high*(1+1e-9) {
					continue
				}
				label := ""
				if d == 1 || decades < 2.5 && (d == 2 || d == 5) {
					label = u.short(v)
				}
				out = append(out, plot.Tick{Value: v, Label: label})
			}
		}
		return out
	})
}

// The labels of a linear axis: along a side of a chart, and up one of its
// lower panels.
const (
	mostTicks = 8
	fewTicks  = 4
)

// linearAxis makes a linear axis from low to high with at most so many labels,
// written by word.
func linearAxis(a *plot.Axis, low, high float64, most int, word func(float64) string) {
	if high <= low {
		high = low + 1
	}
	a.Min, a.Max = low, high
	a.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		step := round125((high-low)/float64(most), true)
		var out []plot.Tick
		for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
			v := i*step + 0 // a range that begins below zero rounds up to −0, which reads "-0"
			out = append(out, plot.Tick{Value: v, Label: word(v)})
		}
		return out
	})
}

// nameAxis makes an axis of names at 0, 1, 2, …; where they are many, some are
// left out.
func nameAxis(a *plot.Axis, names []string) {
	longest := 1
	for _, n := range names {
		longest = max(longest, len(n))
	}
	fit := max(int(float64(chartWidth-80)/(6.5*float64(longest)+8)), 1)
	every := (len(names) + fit - 1) / fit
	a.Min, a.Max = -0.5, float64(len(names))-0.5
	a.Tick.Length = 0
	a.Tick.LineStyle.Width = 0
	var ticks []plot.Tick
	for i, n := range names {
		if i%every == 0 {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: n})
		}
	}
	a.Tick.Marker = plot.ConstantTicks(ticks)
}
