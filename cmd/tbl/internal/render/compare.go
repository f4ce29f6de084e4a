package render

import (
	"fmt"
	"math"
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
// figures; those that don't differ, and those of single cores, only with all.
func Compare(command string, settings []Setting, r compare.Report, all bool) *Document {
	d := &Document{Command: "compare", Data: struct {
		Compared string    `json:"compared"`
		Settings []Setting `json:"settings_that_differ"`
		compare.Report
	}{command, settings, r}}
	for _, s := range settings {
		d.Linef("settings differ: %s: %q against %q", s.Name, s.Base, s.New)
	}
	t := d.Append("figures", "figure", "base", "new", "change", fmt.Sprintf("%g%%_interval", 100*r.Confidence), "p", "runs", "outcome")
	hidden := 0
	for _, x := range r.Rows {
		quiet := x.Outcome == compare.NoDifference || x.Outcome == compare.Absent || x.Group != "" && x.Outcome != compare.Worse && x.Outcome != compare.Better
		if quiet && !all && x.Group != "" {
			hidden++
			continue
		}
		change, interval, p := "-", "-", "-"
		if x.Absolute {
			change = fmt.Sprintf("%+.4g", x.Change)
		} else if !math.IsNaN(x.Change) {
			change = fmt.Sprintf("%+.2f%%", 100*x.Change)
		}
		if x.ChangeKnown {
			interval = fmt.Sprintf("%+.2f%% … %+.2f%%", 100*x.ChangeLow, 100*x.ChangeHigh)
			if x.Absolute {
				interval = fmt.Sprintf("%+.4g … %+.4g", x.ChangeLow, x.ChangeHigh)
			}
		}
		if x.P < 1 {
			p = fmt.Sprintf("%.2g", x.AdjustedP)
		}
		outcome := string(x.Outcome)
		if x.Regressed {
			outcome += ", over the limit"
		}
		if x.MoreRuns > 0 {
			outcome += fmt.Sprintf(" (%d more a side)", x.MoreRuns)
		}
		t.Row(x.Name, side(x.Name, x.Base), side(x.Name, x.New), change, interval, p, fmt.Sprintf("%d+%d", x.Base.Runs, x.New.Runs), outcome)
	}
	t.Left = true
	if hidden > 0 {
		d.Linef("%d figures of single cores without a difference are left out: --all shows them", hidden)
	}
	for _, x := range r.Rows {
		if x.Note != "" && (all || x.Group == "") {
			d.Linef("%s: %s", x.Name, x.Note)
		}
	}
	warnings(d, r.Warnings)
	state := map[compare.State]verdict.State{compare.Holds: verdict.Pass, compare.Regressed: verdict.Fail, compare.Unsure: verdict.Incomplete}[r.State]
	d.Verdicts = []verdict.Verdict{{Name: "COMPARE", State: state, Line: r.Line}}
	return d
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
