package verdict_test

import (
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// bounds is the 95 % interval of a share (C. J. Clopper and E. S. Pearson,
// Biometrika 26, 1934).
func bounds(k, n float64) (low, high float64) {
	low, high = 0, 1
	if k > 0 {
		low = distuv.Beta{Alpha: k, Beta: n - k + 1}.Quantile(0.025)
	}
	if k < n {
		high = distuv.Beta{Alpha: k + 1, Beta: n - k}.Quantile(0.975)
	}
	return low, high
}

func share(k, n int64) string { return shareOf(k, n, 1) }

// shareOf is a share of n judgements of which each run has so many: they agree
// so often that the bounds count the runs only. That is no less than the truth:
// no mean over several judgements of a run spreads wider than one of them.
func shareOf(k, n int64, perRun float64) string {
	if n == 0 {
		return "–"
	}
	low, high := bounds(float64(k)/perRun, float64(n)/perRun)
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
	distinct            int64 // runs, each of which is judged at all sizes
	samples             int   // the first size
	missed, alarmed     cell
	missedAt, alarmedAt key
}

func (r *row) add(k key, one cell) {
	if r.sum.Runs == 0 {
		r.samples = k.samples
	}
	if k.samples == r.samples {
		r.distinct += one.Runs
	}
	r.sum = r.sum.plus(one)
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
	of := func(k, n int64) string { return shareOf(k, n, float64(sum.Runs)/float64(r.distinct)) }
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", key{r.dataplane, r.share, 0, 0}.row(), thousands(int(r.distinct)),
		of(sum.Caught, sum.Remote), worst, of(sum.MeanCaught, sum.Remote),
		of(sum.Alarms, sum.Runs), alarm, of(sum.MeanAlarms, sum.Runs), of(sum.Incomplete, sum.Runs))
}

// Aims of LOCALITY: this share of runs may be missed where half of a core's
// writes are remote or more, or have a false alarm.
const aim = 0.001

// missed are the cells whose counts are worse than the aims, chance or not.
func (c *counts) missed(planes []dataplane) []key {
	var out []key
	for k := range grid(planes) {
		one := c.Cells[k.String()]
		if k.aimed() && float64(one.Remote-one.Caught) > aim*float64(one.Remote) || float64(one.Alarms) > aim*float64(one.Runs) {
			out = append(out, k)
		}
	}
	return out
}

// aimed says that half of a core's writes or more are remote, if any are.
func (k key) aimed() bool { return k.share == 0 || k.share >= 0.5 }

// exceptions says what the aims are, and which cells don't meet them.
func (c *counts) exceptions(planes []dataplane) string {
	const aims = "The aim is at most 0.1 % false alarms where timings are healthy with 1 % jitter, and at least 99.9 % caught where half of a core's writes or more are remote. "
	var list []string
	for _, k := range c.missed(planes) {
		one := c.Cells[k.String()]
		said := "false alarms in " + share(one.Alarms, one.Runs)
		if float64(one.Alarms) <= aim*float64(one.Runs) {
			said = "caught in " + share(one.Caught, one.Remote)
		}
		list = append(list, fmt.Sprintf("%s at %d cores with %s samples each: %s", k.row(), k.cores, thousands(k.samples), said))
	}
	if len(list) == 0 {
		return aims + "Every row keeps to these figures at every size.\n"
	}
	return aims + "Every row keeps to these figures at every size, but for: " + strings.Join(list, "; ") + ".\n"
}

// row is the name of a row of the table.
func (k key) row() string {
	if k.share > 0 {
		return fmt.Sprintf("healthy, %.0f %% of one core's writes remote", k.share*100)
	}
	return k.dataplane
}
