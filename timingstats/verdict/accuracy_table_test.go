package verdict_test

import (
	"fmt"
	"strconv"
	"strings"

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

// tables writes the cells out, summed over the sizes and one by one.
func (c *counts) tables(planes []dataplane) (summary, table string) {
	var short, long strings.Builder
	short.WriteString(summaryHead)
	long.WriteString(tableHead)
	var sum row
	for k := range grid(planes) {
		if k.dataplane != sum.dataplane || k.share != sum.share {
			sum.write(&short)
			sum = row{dataplane: k.dataplane, share: k.share}
		}
		if one, ok := c.Cells[k.String()]; ok {
			long.WriteString(one.row(k))
			sum.add(k, one)
		}
	}
	sum.write(&short)
	return short.String(), long.String()
}

// row is a row of the summary: the cells of a dataplane and share over all
// sizes, and the worst of them.
type row struct {
	dataplane           string
	share               float64
	sum                 cell
	missed, alarmed     cell
	missedAt, alarmedAt key
}

func (r *row) add(k key, one cell) {
	r.sum.add(one)
	if r.missed.Runs == 0 || one.Caught*r.missed.Remote < r.missed.Caught*one.Remote {
		r.missed, r.missedAt = one, k
	}
	if r.alarmed.Runs == 0 || one.Alarms*r.alarmed.Runs > r.alarmed.Alarms*one.Runs {
		r.alarmed, r.alarmedAt = one, k
	}
}

func (r *row) write(b *strings.Builder) {
	sum := &r.sum
	if sum.Runs == 0 {
		return
	}
	worst := "–"
	if sum.Remote > 0 {
		worst = fmt.Sprintf("%d × %s: %s", r.missedAt.cores, thousands(r.missedAt.samples), share(r.missed.Caught, r.missed.Remote))
	}
	alarm := "–"
	if sum.Alarms > 0 {
		alarm = fmt.Sprintf("%d × %s: %s", r.alarmedAt.cores, thousands(r.alarmedAt.samples), share(r.alarmed.Alarms, r.alarmed.Runs))
	}
	fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s |\n", key{r.dataplane, r.share, 0, 0}.row(), sum.Runs,
		share(sum.Caught, sum.Remote), worst, share(sum.MeanCaught, sum.Remote),
		share(sum.Alarms, sum.Runs), alarm, share(sum.MeanAlarms, sum.Runs), share(sum.Incomplete, sum.Runs))
}

// row is the name of a row of the table.
func (k key) row() string {
	if k.share > 0 {
		return fmt.Sprintf("healthy, %.0f %% of one core's writes remote", k.share*100)
	}
	return k.dataplane
}
