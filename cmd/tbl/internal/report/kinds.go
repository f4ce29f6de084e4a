package report

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of chart.
type Kind struct {
	Name string
	// Shows says what it shows, in a few words.
	Shows string
	// Commands are those whose runs can have it.
	Commands []string

	has   func(line) bool
	lacks string // what a run without it lacks
	build func([]line) *Chart
}

// Kinds are all kinds of charts, in the order of a page.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "timing", Shows: "each core's timings on a logarithmic scale; several runs side by side are the before-and-after picture",
			Commands: []string{"stats", "validate", "load", "bulk-post", "probe"},
			has:      func(l line) bool { return len(l.timings) > 0 }, lacks: "timed writes of cores", build: timingChart,
		},
		{
			Name: "percentiles", Shows: "the distribution of times, or clicks, from the fastest to the slowest",
			Commands: []string{"load", "bulk-post", "validate", "stats"},
			has:      func(l line) bool { return len(l.curves) > 0 }, lacks: "a histogram of its timings", build: percentileChart,
		},
		{
			Name: "throughput", Shows: "writes per second over the run, and errors",
			Commands: []string{"load", "bulk-post", "validate"},
			has:      func(l line) bool { return len(l.series) > 0 }, lacks: "a series over time", build: throughputChart,
		},
		{
			Name: "spread", Shows: "each core's share of the requests, and the band in which an even spread falls",
			Commands: []string{"load", "bulk-post", "validate", "probe", "whoami", "info"},
			has:      func(l line) bool { return len(l.counts) > 1 }, lacks: "counts of several cores that were left to chance", build: spreadChart,
		},
		{
			Name: "ownership", Shows: "which core is fast on which name: the owner; also of `stats --probes`",
			Commands: []string{"probe", "validate"},
			has:      func(l line) bool { return len(l.names) > 0 }, lacks: "probed names", build: ownershipChart,
		},
		{
			Name: "stickiness", Shows: "what became of the transactions, and what each node served",
			Commands: []string{"sticky"},
			has:      func(l line) bool { return l.sticky != nil && l.sticky.Transactions > 0 }, lacks: "transactions", build: stickinessChart,
		},
	}
}

// Draws says that runs of a command can have charts.
func Draws(command string) bool {
	return slices.ContainsFunc(Kinds(), func(k Kind) bool { return slices.Contains(k.Commands, command) })
}

// maxLines is how many runs are drawn over one another; more can't be told
// apart.
const maxLines = 8

// chartsOf makes the charts of one command's runs, and says which ones it has
// not.
func chartsOf(command string, lines []line) (charts []*Chart, absent []string) {
	for _, k := range Kinds() {
		var have []line
		var without []string
		for _, l := range lines {
			if k.has(l) {
				have = append(have, l)
			} else {
				without = append(without, l.name)
			}
		}
		// Log reports with probe lines have names, most have none.
		if len(have) == 0 {
			if slices.Contains(k.Commands, command) {
				absent = append(absent, fmt.Sprintf("There is no %s chart: no run holds %s.", k.Name, k.lacks))
			}
			continue
		}
		shown := have[:min(len(have), maxLines)]
		c := k.build(shown)
		c.Name, c.Command = k.Name, command
		if len(without) > 0 {
			c.TableNotes = append(c.TableNotes, fmt.Sprintf("Not drawn: %s, without %s.", strings.Join(without, ", "), k.lacks))
		}
		if len(have) > maxLines {
			c.TableNotes = append(c.TableNotes, fmt.Sprintf("The first %d of %d runs are drawn; more could not be told apart.", maxLines, len(have)))
		}
		c.Notes = append(c.Notes, c.TableNotes...)
		charts = append(charts, c)
	}
	return charts, absent
}

// names are the lines' names.
func namesOf(lines []line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.name
	}
	return out
}
