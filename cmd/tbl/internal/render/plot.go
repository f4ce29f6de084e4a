package render

import (
	"fmt"
	"math"
	"strings"

	"tbl/timingstats"
)

// Distribution is a distribution of a result, for plots and for histogram
// logs.
type Distribution struct {
	Tag  string // "tmm_2", "response"
	Unit string // "clicks" or "ns"
	Hist timingstats.Histogram
}

// Range is what is known of a distribution that was not kept.
type Range struct {
	Label         string
	Min, Avg, Max float64 // clicks
}

// PlotStyle says how pictures are drawn in a terminal.
type PlotStyle struct {
	Width int  // of the terminal, in characters; below 40: 80
	ASCII bool // no block characters
}

// axisLabel is the width of the labels on the left.
const axisLabel = 14

// marks are the densities, from nothing to the most.
func (p PlotStyle) marks() []rune {
	if p.ASCII {
		return []rune(" .:-=+*#@")
	}
	return []rune(" ▁▂▃▄▅▆▇█")
}

// Plot appends pictures of the document's distributions and ranges, on one
// logarithmic scale per unit.
func (d *Document) Plot(p PlotStyle) error {
	if p.Width < 40 {
		p.Width = 80
	}
	for _, unit := range []string{"clicks", "ns"} {
		var rows []Distribution
		for _, x := range d.Distributions {
			if x.Unit == unit && x.Hist.N > 0 {
				rows = append(rows, x)
			}
		}
		if len(rows) == 0 {
			continue
		}
		lines, err := p.histograms(rows, unit)
		if err != nil {
			return err
		}
		for _, l := range lines {
			d.Linef("%s", l)
		}
	}
	for _, l := range p.ranges(d.Ranges) {
		d.Linef("%s", l)
	}
	return nil
}

// scale is a logarithmic axis.
type scale struct {
	low, high float64 // exponents of ten
	columns   int
}

func newScale(low, high float64, columns int) scale {
	s := scale{math.Floor(math.Log10(max(low, 1))), math.Ceil(math.Log10(max(high, 2))), columns}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

func (s scale) column(v float64) int {
	x := (math.Log10(max(v, 1)) - s.low) / (s.high - s.low)
	return min(max(int(x*float64(s.columns)), 0), s.columns-1)
}

// axis is the line of tick labels: 1, 10, 100, 1k, ….
func (s scale) axis(unit string) string {
	line := []rune(strings.Repeat(" ", s.columns))
	for e := s.low; e <= s.high; e++ {
		label := []rune(tick(int(e), unit))
		at := int((e - s.low) / (s.high - s.low) * float64(s.columns))
		if at+len(label) > s.columns {
			at = s.columns - len(label)
		}
		if e == s.low || at > 0 && line[at-1] == ' ' {
			copy(line[at:], label)
		}
	}
	return fmt.Sprintf("%*s%s", axisLabel, unitName(unit)+"  ", strings.TrimRight(string(line), " "))
}

func unitName(unit string) string {
	if unit == "ns" {
		return "time"
	}
	return unit
}

func tick(exponent int, unit string) string {
	if unit == "ns" {
		return strings.ReplaceAll(([]string{"1ns", "10ns", "100ns", "1µs", "10µs", "100µs", "1ms", "10ms", "100ms", "1s", "10s", "100s", "1000s"})[min(exponent, 12)], "µ", "u")
	}
	return []string{"1", "10", "100"}[exponent%3] + []string{"", "k", "M", "G"}[min(exponent/3, 3)]
}

func (p PlotStyle) histograms(rows []Distribution, unit string) ([]string, error) {
	low, high := math.Inf(1), 0.0
	for _, r := range rows {
		low, high = min(low, float64(r.Hist.Min)), max(high, float64(r.Hist.Max))
	}
	s := newScale(low, high, p.Width-axisLabel)
	marks := p.marks()
	lines := []string{s.axis(unit)}
	for _, r := range rows {
		rec, err := r.Hist.Recorder()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Tag, err)
		}
		counts := make([]float64, s.columns)
		rec.Each(func(low, high, n int64) { counts[s.column(float64(low+high)/2)] += float64(n) })
		top := 0.0
		for _, c := range counts {
			top = max(top, c)
		}
		line := make([]rune, s.columns)
		for i, c := range counts {
			k := 0
			if c > 0 {
				// A single sample among thousands must still show.
				k = 1 + int(c/top*float64(len(marks)-2))
			}
			line[i] = marks[k]
		}
		lines = append(lines, fmt.Sprintf("%*s%s", axisLabel, strings.ReplaceAll(r.Tag, "_", " ")+"  ", strings.TrimRight(string(line), " ")))
	}
	return lines, nil
}

// ranges draws minimum, mean and maximum: |---o-----|.
func (p PlotStyle) ranges(rs []Range) []string {
	if len(rs) == 0 {
		return nil
	}
	low, high := math.Inf(1), 0.0
	for _, r := range rs {
		low, high = min(low, r.Min), max(high, r.Max)
	}
	s := newScale(low, high, p.Width-axisLabel)
	lines := []string{s.axis("clicks")}
	for _, r := range rs {
		line := []rune(strings.Repeat(" ", s.columns))
		for i := s.column(r.Min); i <= s.column(r.Max); i++ {
			line[i] = '-'
		}
		line[s.column(r.Min)], line[s.column(r.Max)] = '|', '|'
		line[s.column(r.Avg)] = 'o'
		lines = append(lines, fmt.Sprintf("%*s%s", axisLabel, r.Label+"  ", strings.TrimRight(string(line), " ")))
	}
	return lines
}
