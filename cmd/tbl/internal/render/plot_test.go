package render

import (
	"strings"
	"testing"

	"tbl/timingstats"
)

func distribution(t *testing.T, tag, unit string, values ...int64) Distribution {
	t.Helper()
	r := timingstats.NewRecorder(timingstats.MaxLatencyNS)
	for _, v := range values {
		r.Record(v)
	}
	h, err := r.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	return Distribution{Tag: tag, Unit: unit, Hist: h}
}

func TestPlot(t *testing.T) {
	d := &Document{Distributions: []Distribution{
		distribution(t, "tmm_0", "clicks", 5, 5, 5, 5, 400_000),
		distribution(t, "tmm_1", "clicks", 70_000),
		distribution(t, "response", "ns", 1_000_000),
		{Tag: "empty", Unit: "clicks"},
	}, Ranges: []Range{{"tmm 0", 3, 10, 100}}}
	for _, ascii := range []bool{false, true} {
		d.Blocks = nil
		if err := d.Plot(PlotStyle{Width: 74, ASCII: ascii}); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, b := range d.Blocks {
			if n := len([]rune(b.Line)); n > 74 {
				t.Errorf("%d columns: %q", n, b.Line)
			}
			lines = append(lines, b.Line)
		}
		all := strings.Join(lines, "\n")
		if len(lines) != 7 || strings.Contains(all, "empty") {
			t.Fatalf("lines:\n%s", all)
		}
		if !strings.Contains(lines[0], "1k") || !strings.Contains(lines[3], "1ms") || !strings.Contains(lines[6], "|---") {
			t.Errorf("axes:\n%s", all)
		}
		// Six decades over sixty columns: 5 clicks in column 6, 400,000 in 56;
		// the lone sample shows, fainter than the four.
		row := []rune(lines[1])[axisLabel:]
		if len(row) != 57 || row[6] == ' ' || row[56] == ' ' || row[6] == row[56] || strings.Trim(string(row[7:56]), " ") != "" {
			t.Errorf("row %q", string(row))
		}
		if ascii && strings.ContainsFunc(all, func(r rune) bool { return r > 126 }) {
			t.Errorf("not ASCII:\n%s", all)
		}
	}
}

func TestSparkline(t *testing.T) {
	if got := Sparkline([]float64{0, 1, 2, 4}, 60); got != "▁▃▅█" {
		t.Errorf("got %q", got)
	}
	if got := Sparkline([]float64{1, 1, 3, 3}, 2); got != "▃█" {
		t.Errorf("averaged: %q", got)
	}
	if got := Sparkline(nil, 5); got != "" {
		t.Errorf("empty: %q", got)
	}
}
