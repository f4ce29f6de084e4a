package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"tbl/timingstats/verdict"
)

// The place of the tables of every verdict in the page.
const (
	saidBegin = "<!-- verdicts: begin -->\n"
	saidEnd   = "<!-- verdicts: end -->\n"
)

// across writes a row: what it says of each number of cores.
func across(b *strings.Builder, first string, of func(cores int) string) {
	b.WriteString(first)
	for _, cores := range gridCores {
		b.WriteString(" " + of(cores) + " |")
	}
	b.WriteByte('\n')
}

func head(b *strings.Builder, columns ...string) {
	across(b, "| "+strings.Join(columns, " | ")+" |", func(cores int) string { return fmt.Sprintf("%d cores", cores) })
	b.WriteString(strings.Repeat("|:---", len(columns)+len(gridCores)) + "|\n")
}

// shareOfN is a share and of how many.
func shareOfN(k, n int64) string {
	if n == 0 {
		return "not judged"
	}
	return share(k, n) + " of " + thousands(int(n))
}

// named is the table of who names which fault.
func (s *sayings) named() string {
	var b strings.Builder
	head(&b, "fault", "named by")
	for _, c := range conditions() {
		names := c.MustName
		if len(names) > 1 {
			names = append(names[:len(names):len(names)], anyVerdict)
		}
		for _, name := range names {
			label := name
			if name == anyVerdict {
				label = "any of these"
			}
			across(&b, fmt.Sprintf("| %s | %s |", c.name(), label), func(cores int) string {
				one := s.Cells[saidKey(&c, cores, verdict.Name(name))]
				return shareOfN(one.Named, one.Runs)
			})
		}
	}
	return b.String()
}

// alarms is the table of what doesn't pass though there is no fault.
func (s *sayings) alarms() string {
	var b strings.Builder
	head(&b, "dataplane", "verdict")
	for _, c := range conditions() {
		if len(c.MustName) > 0 {
			continue
		}
		row := func(name verdict.Name, label string) {
			across(&b, fmt.Sprintf("| %s | %s |", c.name(), label), func(cores int) string {
				one := s.Cells[saidKey(&c, cores, name)]
				return shareOfN(one.Warned+one.Incomplete+one.Failed, one.Judged)
			})
		}
		for _, v := range verdict.Table() {
			if c.fault == "" && s.judged(&c, v.Name) {
				row(v.Name, string(v.Name))
			}
		}
		row(anyVerdict, "any of them")
	}
	return b.String()
}

// judged says that the runs have such a verdict.
func (s *sayings) judged(c *condition, name verdict.Name) bool {
	for _, cores := range gridCores {
		if s.Cells[saidKey(c, cores, name)].Judged > 0 {
			return true
		}
	}
	return false
}

// besides is the table of what else doesn't pass where there is a fault.
func (s *sayings) besides() string {
	var b strings.Builder
	head(&b, "fault", "verdict", "")
	for _, c := range conditions()[1:] {
		must := strings.Join(c.MustName, ", ")
		for _, v := range verdict.Table() {
			if strings.Contains(", "+must+", ", ", "+string(v.Name)+", ") {
				continue
			}
			for _, what := range []struct {
				label string
				of    func(said) int64
			}{
				{"warns", func(s said) int64 { return s.Warned }},
				{"is incomplete", func(s said) int64 { return s.Incomplete }},
				{"fails", func(s said) int64 { return s.Failed }},
			} {
				sum := int64(0)
				for _, cores := range gridCores {
					sum += what.of(s.Cells[saidKey(&c, cores, v.Name)])
				}
				if sum == 0 {
					continue
				}
				across(&b, fmt.Sprintf("| %s | %s | %s |", c.name(), v.Name, what.label), func(cores int) string {
					one := s.Cells[saidKey(&c, cores, v.Name)]
					return shareOfN(what.of(one), one.Judged)
				})
			}
		}
	}
	return b.String()
}

// text is the tables with what stands around them.
func (s *sayings) text() string {
	return usageBegin +
		"How often a verdict that has to name a fault does, in runs with it:\n\n" + s.named() +
		"\nHow often a verdict warns, fails or is incomplete though nothing is wrong, a false alarm, in runs in which it is judged:\n\n" + s.alarms() +
		usageEnd +
		"\nWhat else a fault trips, in runs in which that is judged:\n\n" + s.besides()
}

// TestFaultsPage: what the page says of every verdict is what was counted, in
// enough runs. UPDATE=1 writes the page anew.
func TestFaultsPage(t *testing.T) {
	const least = 200
	s := newSayings()
	if err := s.load("testdata/verdicts.json"); err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions() {
		for _, cores := range gridCores {
			for _, v := range append(verdict.Table(), verdict.Info{Name: anyVerdict}) {
				if n := s.Cells[saidKey(&c, cores, v.Name)].Runs; n < int64(c.runsOf(least, cores)) {
					t.Errorf("%s, %d cores, %s: %d runs, want %d", c.name(), cores, v.Name, n, c.runsOf(least, cores))
				}
			}
		}
	}
	s.check(t, conditions())
	checkPage(t, saidBegin, s.text(), saidEnd)
}
