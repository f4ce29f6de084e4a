package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"tbl/timingstats/compare"
)

func written(t *testing.T, d *Document, format string) string {
	t.Helper()
	d.Conclude(false)
	var b bytes.Buffer
	for _, f := range Formats() {
		if f.Name == format {
			if err := f.Write(&b, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.String()
}

// row is a figure of a core, or of the whole, with an outcome.
func row(name, group string, outcome compare.Outcome, runs int, note string) compare.Row {
	s := compare.Side{Runs: runs, Median: 5}
	return compare.Row{Name: name, Group: group, Better: compare.Lower, Base: s, New: s, Outcome: outcome, P: 1, AdjustedP: 1, Note: note}
}

// TestCompareHidesQuietOnly: figures of cores are left out where they don't
// differ or a side lacks them; those that nothing is known about never are.
func TestCompareHidesQuietOnly(t *testing.T) {
	r := compare.Report{State: compare.Holds, Line: "OK", Confidence: 0.95}
	for i, o := range []compare.Outcome{compare.Better, compare.Worse, compare.Different, compare.TooFew, compare.SingleRun, compare.NoDifference, compare.Absent, compare.Absent} {
		r.Rows = append(r.Rows, row(fmt.Sprintf("cores.%d.p50_clicks", i), "cores", o, 10, ""))
	}
	text := written(t, Compare("stats", nil, r, false), "text")
	for i := range r.Rows {
		if got, want := strings.Contains(text, fmt.Sprintf("cores.%d.", i)), i < 5; got != want {
			t.Errorf("core %d, %s: shown %t", i, r.Rows[i].Outcome, got)
		}
	}
	if want := "\n1 figure of single cores without a difference and 2 figures of single cores that a side lacks are left out: --all shows them\n"; !strings.Contains(text, want) {
		t.Errorf("%q is not in:\n%s", want, text)
	}
	if all := written(t, Compare("stats", nil, r, true), "text"); !strings.Contains(all, "cores.7.") || strings.Contains(all, "left out") {
		t.Errorf("with all:\n%s", all)
	}
	// Nothing but quiet figures: they are the result.
	r.Rows = r.Rows[5:]
	if quiet := written(t, Compare("stats", nil, r, false), "text"); !strings.Contains(quiet, "cores.5.") || strings.Contains(quiet, "left out") {
		t.Errorf("only quiet ones:\n%s", quiet)
	}
}

// TestCompareColumns: each figure comes with its direction and effect, and
// what may look like a contradiction is explained.
func TestCompareColumns(t *testing.T) {
	up := compare.Row{Name: "writes_per_s", Better: compare.Higher, Base: compare.Side{Runs: 10, Median: 36223}, New: compare.Side{Runs: 10, Median: 36343},
		Outcome: compare.NoDifference, Change: -0.0056, Tested: true, P: 1, AdjustedP: 1, Effect: -0.12}
	d := Compare("load", nil, compare.Report{State: compare.Holds, Line: "OK", Confidence: 0.95, Rows: []compare.Row{up, row("split", "", compare.SingleRun, 1, "")}}, false)
	text := written(t, d, "text")
	for _, want := range []string{"Hodges–Lehmann", "Holm", "Cliff's delta"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	records := csv.NewReader(strings.NewReader(written(t, d, "csv")))
	records.FieldsPerRecord = -1
	rows, err := records.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"table", "figure", "better", "base", "new", "change", "95%_interval", "p", "effect", "runs", "outcome"},
		{"figures", "writes_per_s", "higher", "36,223.0 ±50.0%", "36,343.0 ±50.0%", "-0.56%", "-", "1", "-0.12", "10+10", "no difference"},
		{"figures", "split", "lower", "5.0", "5.0", "+0.00%", "-", "-", "-", "1+1", "single run"},
	}
	for i := range want {
		for j := range want[i] {
			if rows[i][j] != want[i][j] && !strings.Contains(want[i][j], "±") {
				t.Errorf("row %d: %q, want %q", i, rows[i][j], want[i][j])
			}
		}
	}
	// Of single runs there is neither a pair to explain nor an effect.
	if one := written(t, Compare("load", nil, compare.Report{Rows: []compare.Row{row("split", "", compare.SingleRun, 1, "")}}, false), "text"); strings.Contains(one, "Hodges") {
		t.Errorf("single runs:\n%s", one)
	}
}

// TestCompareNotes: a note that several figures have is said once.
func TestCompareNotes(t *testing.T) {
	text := written(t, Compare("load", nil, compare.Report{Rows: []compare.Row{
		row("a", "", compare.TooFew, 2, "few"), row("b", "", compare.Absent, 0, "gone"), row("c", "cores", compare.TooFew, 2, "few"), row("d", "cores", compare.NoDifference, 9, "hidden"),
	}}, false), "text")
	if !strings.Contains(text, "\n2 figures: few\nb: gone\n") || strings.Contains(text, "hidden") {
		t.Errorf("notes:\n%s", text)
	}
}

// TestCompareMarkdown begins with the verdict, and says it once.
func TestCompareMarkdown(t *testing.T) {
	d := Compare("load", []Setting{{"seed", "1", "2"}}, compare.Report{State: compare.Regressed, Line: "REGRESSION: a|b", Rows: []compare.Row{row("a", "", compare.Worse, 9, "")}}, false)
	text := written(t, d, "markdown")
	if !strings.HasPrefix(text, "**REGRESSION: a\\|b**\n\nsettings differ") || strings.Count(text, "REGRESSION") != 1 {
		t.Errorf("markdown:\n%s", text)
	}
	if !strings.HasSuffix(written(t, &Document{Verdicts: d.Verdicts}, "markdown"), "\n**REGRESSION: a\\|b**\n") {
		t.Error("other documents end with the verdict")
	}
}

func TestChangeText(t *testing.T) {
	for change, want := range map[float64]string{0: "+0.00%", -0.2214: "-22.14%", 0.5: "+50.00%", 14004.8: "+1,400,480%"} {
		if got := changeText(change); got != want {
			t.Errorf("%v: %q, want %q", change, got, want)
		}
	}
}
