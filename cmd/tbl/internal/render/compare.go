package render

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tbl/timingstats/compare"
	"tbl/timingstats/verdict"
)

// Setting is a setting that differs between the two sides of a comparison.
type Setting struct {
	Name string `json:"name"`
	Base string `json:"base"`
	New  string `json:"new"`
}

// Compare is the document of a comparison: first what else differs, then the
// figures. Those of single cores that don't differ, or that a side lacks, are
// shown only with all, or where there would be none else.
func Compare(command string, settings []Setting, r compare.Report, all bool) *Document {
	d := &Document{Command: "compare", VerdictFirst: true, Data: struct {
		Compared string    `json:"compared"`
		Settings []Setting `json:"settings_that_differ"`
		compare.Report
	}{command, settings, r}}
	for _, s := range settings {
		d.Linef("settings differ: %s: %q against %q", s.Name, s.Base, s.New)
	}
	hides := func(x compare.Row) bool {
		return !all && x.Group != "" && (x.Outcome == compare.NoDifference || x.Outcome == compare.Absent)
	}
	shown := slices.DeleteFunc(slices.Clone(r.Rows), hides)
	if len(shown) == 0 {
		shown = r.Rows
	}
	t := d.Append("figures", "figure", "better", "base", "new", "change", fmt.Sprintf("%g%%_interval", 100*r.Confidence), "p", "effect", "runs", "outcome")
	t.Left = true
	pairs := false
	for _, x := range shown {
		comparedRow(t, x)
		pairs = pairs || x.Base.Runs > 1 && x.New.Runs > 1
	}
	if pairs {
		d.Linef("change: the middle one of the changes from every base run to every new run (Hodges–Lehmann), which need not be that from median to median, not even in its sign; p: corrected for the number of figures (Holm); effect: from -1, every new run is lower than every base run, to +1, every one is higher (Cliff's delta)")
	}
	if hidden := len(r.Rows) - len(shown); hidden > 0 {
		absent := 0
		for _, x := range r.Rows {
			if hides(x) && x.Outcome == compare.Absent {
				absent++
			}
		}
		var parts []string
		if n := hidden - absent; n > 0 {
			parts = append(parts, figureCount(n)+" of single cores without a difference")
		}
		if absent > 0 {
			parts = append(parts, figureCount(absent)+" of single cores that a side lacks")
		}
		verb := "are"
		if hidden == 1 {
			verb = "is"
		}
		d.Linef("%s %s left out: --all shows them", strings.Join(parts, " and "), verb)
	}
	notes(d, shown)
	warnings(d, r.Warnings)
	state := map[compare.State]verdict.State{compare.Holds: verdict.Pass, compare.Regressed: verdict.Fail, compare.Unsure: verdict.Incomplete}[r.State]
	d.Verdicts = []verdict.Verdict{{Name: "COMPARE", State: state, Line: r.Line}}
	return d
}

func figureCount(n int) string {
	if n == 1 {
		return "1 figure"
	}
	return Int(int64(n)) + " figures"
}

// comparedRow adds a figure to the table.
func comparedRow(t *Table, x compare.Row) {
	change, interval, p, effect := "-", "-", "-", "-"
	if x.Outcome != compare.Absent && !math.IsNaN(x.Change) {
		change = changeText(x.Change)
		if x.Absolute {
			change = fmt.Sprintf("%+.4g", x.Change)
		}
	}
	if x.ChangeKnown {
		interval = changeText(x.ChangeLow) + " … " + changeText(x.ChangeHigh)
		if x.Absolute {
			interval = fmt.Sprintf("%+.4g … %+.4g", x.ChangeLow, x.ChangeHigh)
		}
	}
	if x.Tested {
		p = fmt.Sprintf("%.2g", x.AdjustedP)
	}
	if x.Base.Runs > 1 && x.New.Runs > 1 {
		effect = fmt.Sprintf("%+.2f", x.Effect)
	}
	outcome := string(x.Outcome)
	if x.Regressed {
		outcome += ", over the limit"
	}
	if x.MoreRuns > 0 {
		outcome += fmt.Sprintf(" (%d more a side)", x.MoreRuns)
	}
	better := map[compare.Direction]string{compare.Neutral: "-", compare.Higher: "higher", compare.Lower: "lower"}[x.Better]
	t.Row(x.Name, better, side(x.Name, x.Base), side(x.Name, x.New), change, interval, p, effect, fmt.Sprintf("%d+%d", x.Base.Runs, x.New.Runs), outcome)
}

// changeText is a change as a percentage; of a large one no digits that nobody
// reads.
func changeText(change float64) string {
	if change < 10 {
		return fmt.Sprintf("%+.2f%%", 100*change)
	}
	return "+" + Int(int64(math.Round(100*change))) + "%"
}

// notes are what the figures can't say, each once.
func notes(d *Document, rows []compare.Row) {
	var texts []string
	of := map[string][]string{}
	for _, x := range rows {
		if x.Note == "" {
			continue
		}
		if of[x.Note] == nil {
			texts = append(texts, x.Note)
		}
		of[x.Note] = append(of[x.Note], x.Name)
	}
	for _, text := range texts {
		if names := of[text]; len(names) > 1 {
			d.Linef("%s: %s", figureCount(len(names)), text)
		} else {
			d.Linef("%s: %s", names[0], text)
		}
	}
}

// side is a median with its half width.
func side(name string, s compare.Side) string {
	if s.Runs == 0 || math.IsNaN(s.Median) {
		return "-"
	}
	v := text(figure(name, s.Median))
	if half := (s.High - s.Low) / 2; s.Runs > 1 && s.Median != 0 {
		v += fmt.Sprintf(" ±%.1f%%", 100*math.Abs(half/s.Median))
	}
	return v
}

// figure gives a number the type that its name's unit asks for.
func figure(name string, v float64) any {
	switch {
	case strings.HasSuffix(name, "_ns"):
		return time.Duration(v)
	case strings.HasSuffix(name, "_share"):
		return Percent(v)
	}
	return Fixed1(v)
}
