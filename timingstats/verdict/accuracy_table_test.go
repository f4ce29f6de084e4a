package verdict_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// bounds is the 95 % interval of a share (C. J. Clopper and E. S. Pearson,
// Biometrika 26, 1934).
func bounds(k, n int64) (low, high float64) {
	low, high = 0, 1
	if k > 0 {
		low = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(0.025)
	}
	if k < n {
		high = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(0.975)
	}
	return low, high
}

func share(k, n int64) string {
	if n == 0 {
		return "–"
	}
	low, high := bounds(k, n)
	return fmt.Sprintf("%.2f %% [%.2f, %.2f]", 100*float64(k)/float64(n), 100*low, 100*high)
}

const tableHead = "| dataplane | cores | samples per core | runs | caught | all remote cores named | caught by the mean | false alarms per run | by the mean | INCOMPLETE |\n" +
	"|---|---|---|---|---|---|---|---|---|---|\n"

func (c *cell) row(k key) string {
	return fmt.Sprintf("| %s | %d | %s | %d | %s | %s | %s | %s | %s | %s |\n", k.row(), k.cores, thousands(k.samples), c.Runs,
		share(c.Caught, c.Remote), share(c.Named, c.Remote), share(c.MeanCaught, c.Remote),
		share(c.Alarms, c.Runs), share(c.MeanAlarms, c.Runs), share(c.Incomplete, c.Runs))
}

func thousands(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return strconv.Itoa(n)
}

const summaryHead = "| dataplane | runs | caught | worst size | caught by the mean | false alarms per run | worst size | by the mean | INCOMPLETE |\n" +
	"|---|---|---|---|---|---|---|---|---|\n"

// tables writes the cells out, one by one and summed over the sizes, and checks
// each.
func (c *counts) tables(t *testing.T, planes []dataplane) (summary, table string) {
	t.Helper()
	var short, long strings.Builder
	short.WriteString(summaryHead)
	long.WriteString(tableHead)
	filled := 0
	for _, d := range planes {
		for _, s := range append([]float64{0}, d.shares...) {
			var sum cell
			var missed, alarmed cell // the worst
			var missedAt, alarmedAt key
			for _, cores := range []int{2, 4, 16, 64} {
				for _, n := range d.sizes {
					k := key{d.Name, s, cores, n}
					one, ok := c.Cells[k.String()]
					if !ok {
						continue
					}
					filled++
					long.WriteString(one.row(k))
					one.check(t, k)
					sum.add(one)
					if missed.Runs == 0 || one.Caught*missed.Remote < missed.Caught*one.Remote {
						missed, missedAt = one, k
					}
					if alarmed.Runs == 0 || one.Alarms*alarmed.Runs > alarmed.Alarms*one.Runs {
						alarmed, alarmedAt = one, k
					}
				}
			}
			if sum.Runs == 0 {
				continue
			}
			worst := "–"
			if sum.Remote > 0 {
				worst = fmt.Sprintf("%d × %s: %s", missedAt.cores, thousands(missedAt.samples), share(missed.Caught, missed.Remote))
			}
			alarm := "–"
			if sum.Alarms > 0 {
				alarm = fmt.Sprintf("%d × %s: %s", alarmedAt.cores, thousands(alarmedAt.samples), share(alarmed.Alarms, alarmed.Runs))
			}
			fmt.Fprintf(&short, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", key{d.Name, s, 0, 0}.row(), sum.Runs,
				share(sum.Caught, sum.Remote), worst, share(sum.MeanCaught, sum.Remote),
				share(sum.Alarms, sum.Runs), alarm, share(sum.MeanAlarms, sum.Runs), share(sum.Incomplete, sum.Runs))
		}
	}
	if filled == 0 {
		t.Error("no cell has a run")
	}
	return short.String(), long.String()
}

// row is the name of a row of the table.
func (k key) row() string {
	if k.share > 0 {
		return fmt.Sprintf("healthy, %.0f %% of one core's writes remote", k.share*100)
	}
	return k.dataplane
}
