package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tbl/timingstats/compare"
)

// Benchmark is a part of a result whose figures are followed from run to run:
// the whole, or one core.
type Benchmark struct {
	// Name is made of words joined by "/", each without blanks: "Load",
	// "Load/tmm=2".
	Name string
	// N is how many operations the figures rest on, at least 1.
	N       int64
	Figures []BenchFigure
}

// BenchSetting is something that benchmarks were measured under. Its name
// begins with a lower-case letter and has no blanks.
type BenchSetting struct{ Name, Value string }

// BenchFigure is one of its figures.
type BenchFigure struct {
	Name   string // as in the JSON, with its unit: "response.p50_ns"
	Value  float64
	Better compare.Direction
}

// unit splits the figure's name into what it is and the unit that other tools
// know.
func (f BenchFigure) unit() (what, unit string) {
	for _, u := range [...]struct{ suffix, unit string }{
		{"_clicks_per_write", "clicks"}, {"_per_s", "/s"}, {"_ns", "ns"}, {"_clicks", "clicks"}, {"_share", "share"},
	} {
		if what, ok := strings.CutSuffix(f.Name, u.suffix); ok {
			return what, u.unit
		}
	}
	return f.Name, "count"
}

// writeBench writes Go's benchmark format, which benchstat reads:
// https://go.dev/design/14313-benchmark-format
func writeBench(w io.Writer, d *Document) error {
	b := bufio.NewWriter(w)
	for _, c := range d.BenchConfig {
		// A value ends with its line.
		fmt.Fprintf(b, "%s: %s\n", c.Name, strings.Join(strings.Fields(c.Value), " "))
	}
	told := map[string]bool{}
	for _, bm := range d.Benchmarks {
		for _, f := range bm.Figures {
			u := goUnit(f)
			if f.Better == compare.Neutral || told[u] {
				continue
			}
			told[u] = true
			better := "lower"
			if f.Better == compare.Higher {
				better = "higher"
			}
			fmt.Fprintf(b, "Unit %s better=%s\n", u, better)
		}
	}
	for _, bm := range d.Benchmarks {
		fmt.Fprintf(b, "Benchmark%s \t%8d", bm.Name, bm.N)
		for _, f := range bm.Figures {
			fmt.Fprintf(b, "\t%s %s", strconv.FormatFloat(f.Value, 'f', -1, 64), goUnit(f))
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// goUnit is the figure's unit in Go's format, where it also names the figure:
// "response-p50-ns", "writes/s".
func goUnit(f BenchFigure) string {
	what, unit := f.unit()
	what = strings.NewReplacer(".", "-", "_", "-").Replace(what)
	if strings.HasPrefix(unit, "/") {
		return what + unit
	}
	return what + "-" + unit
}

// writeTrend writes the figures of one direction as the list that
// github-action-benchmark reads: its customSmallerIsBetter and
// customBiggerIsBetter.
func writeTrend(better compare.Direction) func(io.Writer, *Document) error {
	return func(w io.Writer, d *Document) error {
		type entry struct {
			Name  string  `json:"name"`
			Unit  string  `json:"unit"`
			Value float64 `json:"value"`
			Extra string  `json:"extra,omitempty"`
		}
		entries := []entry{}
		var extra []string
		for _, c := range d.BenchConfig {
			extra = append(extra, c.Name+": "+c.Value)
		}
		for _, bm := range d.Benchmarks {
			for _, f := range bm.Figures {
				if f.Better != better {
					continue
				}
				what, unit := f.unit()
				if strings.HasPrefix(unit, "/") {
					what, unit = what+unit, what+unit
				}
				entries = append(entries, entry{bm.Name + " " + what, unit, f.Value, strings.Join(extra, "\n")})
			}
		}
		if len(entries) == 0 {
			return fmt.Errorf("no figure of %s is better when %s", d.Command, strings.TrimSuffix(better.String(), " is better"))
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(entries)
	}
}
