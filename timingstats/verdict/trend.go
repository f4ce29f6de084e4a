package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"tbl/timingstats"
)

// The limits of TAIL.
const (
	tailMinN    = 1000
	tailFactor  = 4.0
	tailSamples = 5
	tailCrowded = 1.25 // of the mean of all cores' requests: from there on more of them explain a tail
)

// foreignWrites is the cause that a load suffers from most and that its times
// alone can't tell from others.
const foreignWrites = "Or cores write into storage that others own, and wait for those: `tbl validate` shows it."

// TailCore is one core's response times.
type TailCore struct {
	Core timingstats.CoreID
	// Latency holds nanoseconds.
	Latency *timingstats.Recorder
	// P50Clicks is shown beside it; 0: not known.
	P50Clicks int64
}

// JudgeTails judges response times, and service times (nil: they are the
// same) where those pass. In an open loop a core that pauses takes all workers
// with it, and then every core's requests start late: what the cores themselves
// took tells them apart.
func JudgeTails(response, service []TailCore) Verdict {
	v := JudgeTail(response)
	if v.State == Pass && service != nil {
		if own := JudgeTail(service); own.State == Warn {
			own.Line += " (service time)"
			return own
		}
	}
	return v
}

// JudgeTail warns when one core's p99 stands out from those of the others.
// Cores with fewer than 1,000 samples take no part.
func JudgeTail(cores []TailCore) Verdict {
	type tail struct {
		TailCore
		p99 float64
	}
	var judged []tail
	var requests int64
	for _, c := range cores {
		if c.Latency != nil {
			requests += c.Latency.N()
		}
		if c.Latency != nil && c.Latency.N() >= tailMinN {
			judged = append(judged, tail{c, float64(c.Latency.Percentile(99))})
		}
	}
	if len(judged) < 2 {
		return notJudged(Tail, "fewer than two cores with %s samples", Thousands(tailMinN))
	}
	v := Verdict{Name: Tail, State: Pass, Figures: map[string]float64{}}
	var worst tail
	var worstRatio, worstOthers float64
	line := ""
	var crowded []string // of the cores that stand out, those with more requests than most
	own := false         // one stands out without
	for i, c := range judged {
		var rest []float64
		for k, o := range judged {
			if k != i {
				rest = append(rest, o.p99)
			}
		}
		others := median(rest)
		if others <= 0 {
			continue
		}
		if r := c.p99 / others; r > worstRatio {
			worst, worstRatio, worstOthers = c, r, others
		}
		beyond := c.Latency.CountFrom(int64(tailFactor*others) + 1)
		if c.p99 <= tailFactor*others || beyond < tailSamples {
			continue
		}
		v.State = Warn
		if n := c.Latency.N(); float64(n)*float64(len(cores)) > tailCrowded*float64(requests) {
			crowded = append(crowded, fmt.Sprintf("TMM %s %s", c.Core, percent(float64(n)/float64(requests), requests)))
		} else {
			own = true
		}
		if line != "" {
			line += "; "
		}
		line += fmt.Sprintf("TMM %s has p99 %s, %s× the others' %s (%s beyond %s)", c.Core, duration(c.p99),
			significant(c.p99/others), duration(others), plural(beyond, "sample"), duration(tailFactor*others))
		if c.P50Clicks > 0 {
			line += fmt.Sprintf(", its writes take %s clicks at p50", Thousands(c.P50Clicks))
		}
	}
	v.Figures["p99_max_over_others"], v.Figures["p99_max_ns"], v.Figures["p99_others_ns"] = worstRatio, worst.p99, worstOthers
	if v.State == Warn {
		v.Line = "TAIL: " + line
		if len(crowded) > 0 {
			v.Causes = append(v.Causes, fmt.Sprintf("Of all requests %s: they queue there (an even share is %s). UNIFORMITY judges how they spread.",
				strings.Join(crowded, ", "), percent(1/float64(len(cores)), requests)))
		}
		if own {
			v.Causes = append(v.Causes, "Something else runs on that core, or it pauses: look at its CPU use and at what was pinned to it.")
		}
		v.Causes = append(v.Causes, foreignWrites)
		return v
	}
	v.Line = fmt.Sprintf("OK: highest p99 %s on TMM %s, %s× the others'", duration(worst.p99), worst.Core, significant(worstRatio))
	return v
}

// The limits of DECAY.
const (
	decayMinNS     = 5e9
	decayMinN      = 1000
	decayP         = 1e-4
	decayFall      = 0.20
	decayMinBucket = 40 // buckets, of the 50
)

// DecayReport is the DECAY verdict with what it rests on.
type DecayReport struct {
	Verdict
	// Fall is how much lower the throughput of the last tenth was than that of
	// the first (0.2: 20 %); negative when it rose.
	Fall float64 `json:"fall"`
	// P is the Mann–Kendall test's, for a trend in either direction.
	P float64 `json:"p"`
	// Tau is Kendall's, from −1 (each bucket slower than the one before) to 1.
	Tau float64 `json:"tau"`
	// Shape of the fall, where there is one: "linear", or "1/n" when the time
	// per completion grows with the completions so far.
	Shape string `json:"shape,omitempty"`
	// FirstPerS and LastPerS are the throughputs of the first and last tenth.
	FirstPerS float64 `json:"first_per_s"`
	LastPerS  float64 `json:"last_per_s"`
}

// JudgeDecay tests whether a run's throughput fell in its course. buckets are
// its parts of equal completions (timingstats.SeriesSummary.Progress); the
// first and the last are dropped. requests is how many requests were completed,
// 0 when each completion was one. Under 5 s, or 1,000 requests, nothing is
// judged.
func JudgeDecay(buckets []timingstats.Bucket, requests int64) DecayReport {
	r := DecayReport{Verdict: Verdict{Name: Decay}, P: 1}
	var total, span int64
	for _, b := range buckets {
		total += b.Completions
		span = max(span, b.EndNS)
	}
	if requests == 0 {
		requests = total
	}
	switch {
	case requests < decayMinN:
		r.Verdict = notJudged(Decay, "%s, under %s", plural(requests, "request"), Thousands(decayMinN))
		return r
	case float64(span) < decayMinNS:
		r.Verdict = notJudged(Decay, "%s, under 5 s", duration(float64(span)))
		return r
	case len(buckets) < decayMinBucket:
		r.Verdict = notJudged(Decay, "completions came in %d lumps only", len(buckets))
		return r
	}
	tenth := len(buckets) / 10
	kept := buckets[1 : len(buckets)-1]
	rates := make([]float64, len(kept))
	mid := make([]float64, len(kept)) // completions so far, at the bucket's middle
	done := float64(buckets[0].Completions)
	for i, b := range kept {
		rates[i] = b.RatePerS()
		mid[i] = done + float64(b.Completions)/2
		done += float64(b.Completions)
	}
	r.Tau, r.P = mannKendall(rates)
	r.FirstPerS = throughput(kept[:max(tenth-1, 1)])
	r.LastPerS = throughput(kept[len(kept)-max(tenth-1, 1):])
	if r.FirstPerS > 0 {
		r.Fall = 1 - r.LastPerS/r.FirstPerS
	}
	r.Figures = map[string]float64{
		"decay_fall": r.Fall, "decay_p": r.P, "decay_tau": r.Tau,
		"first_tenth_per_s": r.FirstPerS, "last_tenth_per_s": r.LastPerS,
	}
	figures := fmt.Sprintf("%s/s in the first tenth, %s/s in the last", significant(r.FirstPerS), significant(r.LastPerS))
	if r.Tau >= 0 || r.P >= decayP || r.Fall <= decayFall {
		r.State, r.Line = Pass, "OK: no decay, "+figures
		return r
	}
	r.Shape = shape(mid, rates)
	r.State = Fail
	r.Line = fmt.Sprintf("DECAY: throughput fell by %.0f %%, shape %s: %s (Mann–Kendall p %s)", r.Fall*100, r.Shape, figures, probability(r.P))
	if r.Shape == "1/n" {
		r.Causes = []string{"Each request costs time in proportion to what was written before: something enumerates or counts the whole table in the request's path (`table keys -count`), or each request adds to a backlog that it then waits for (a log line per request)."}
	} else {
		r.Causes = []string{"Something fills up: a backlog (logging), memory, or the client's own ports."}
	}
	r.Causes = append(r.Causes, foreignWrites)
	return r
}

// throughput is that of several buckets together, per second.
func throughput(bs []timingstats.Bucket) float64 {
	var n, ns int64
	for _, b := range bs {
		n, ns = n+b.Completions, ns+b.EndNS-b.StartNS
	}
	return timingstats.Bucket{EndNS: ns, Completions: n}.RatePerS()
}

// mannKendall is Kendall's tau of a sequence against time and the two-sided
// p-value of the normal approximation with correction for ties (H. B. Mann,
// Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods).
func mannKendall(x []float64) (tau, p float64) {
	n := len(x)
	if n < 3 {
		return 0, 1
	}
	s := 0
	for i := range x {
		for _, y := range x[i+1:] {
			s += cmp.Compare(y, x[i])
		}
	}
	sorted := slices.Sorted(slices.Values(x))
	ties := 0.0
	for i := 0; i < n; {
		j := i
		for j < n && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		ties += t * (t - 1) * (2*t + 5)
		i = j
	}
	f := float64(n)
	variance := (f*(f-1)*(2*f+5) - ties) / 18
	tau = float64(s) / (f * (f - 1) / 2)
	if variance <= 0 {
		return tau, 1
	}
	z := (math.Abs(float64(s)) - 1) / math.Sqrt(variance) // continuity correction
	return tau, min(1, 2*distuv.UnitNormal.Survival(max(z, 0)))
}

// shape tells which law describes falling rates better: a straight line
// against completions, or 1/(a + b·completions), whose limit for a small a is
// rate × completions constant. Both have two parameters and are compared by
// what they leave of the rates' variance, each at its own best.
func shape(done, rates []float64) string {
	a, b := line(done, rates, nil)
	var linear float64
	for i, x := range done {
		linear += sq(rates[i] - (a + b*x))
	}
	if inverse(done, rates) < linear {
		return "1/n"
	}
	return "linear"
}

// inverse is the least sum of squares that 1/(a + b·x) leaves of rates,
// infinite where the law doesn't fit at all. It is found by Gauss–Newton
// steps, each of which is a weighted straight line through the inverse rates.
// The first one's weights are what errors of the rates are worth there.
func inverse(done, rates []float64) float64 {
	const steps = 20 // it settles within five, or wanders
	least := math.Inf(1)
	y, weight := make([]float64, len(rates)), make([]float64, len(rates))
	for i, r := range rates {
		r = max(r, 1e-9)
		y[i], weight[i] = 1/r, r*r*r*r
	}
	for range steps {
		a, b := line(done, y, weight)
		var left float64
		for i, x := range done {
			t := a + b*x
			if t <= 0 {
				return least
			}
			fit := 1 / t
			left += sq(rates[i] - fit)
			y[i], weight[i] = t+(fit-rates[i])/sq(fit), sq(sq(fit))
		}
		least = min(least, left)
	}
	return least
}

func sq(x float64) float64 { return x * x }

// line is the least-squares line y = a + b·x, weighted; nil: all alike.
func line(x, y, weight []float64) (a, b float64) {
	w := func(i int) float64 {
		if weight == nil {
			return 1
		}
		return weight[i]
	}
	var n, mx, my float64
	for i := range x {
		n += w(i)
		mx += w(i) * x[i]
		my += w(i) * y[i]
	}
	mx, my = mx/n, my/n
	var sxy, sxx float64
	for i := range x {
		sxy += w(i) * (x[i] - mx) * (y[i] - my)
		sxx += w(i) * sq(x[i]-mx)
	}
	if sxx == 0 {
		return my, 0
	}
	b = sxy / sxx
	return my - b*mx, b
}

// The limits of DRIFT.
const (
	driftMinRuns = 5
	driftFall    = 0.10
	driftErrors  = 3.0
)

// RunRate is one run's throughput and the error of it that the run itself
// shows.
type RunRate struct {
	PerS   float64 `json:"per_s"`
	StdErr float64 `json:"std_err_per_s"`
}

// RateOf is the throughput of a run cut into buckets. Its error comes from the
// differences between neighbouring buckets, which a trend within the run hardly
// touches (J. von Neumann, Ann. Math. Stat. 12, 1941).
func RateOf(buckets []timingstats.Bucket) RunRate {
	r := RunRate{PerS: throughput(buckets)}
	if len(buckets) < 3 {
		return r
	}
	var d2 float64
	for i := 1; i < len(buckets); i++ {
		d2 += sq(buckets[i].RatePerS() - buckets[i-1].RatePerS())
	}
	n := float64(len(buckets))
	r.StdErr = math.Sqrt(d2 / (2 * (n - 1)) / n)
	return r
}

// DriftReport is the DRIFT verdict with what it rests on.
type DriftReport struct {
	Verdict
	Runs []RunRate `json:"runs"`
	// Fall from the first to the last run along the Theil–Sen line, as a share
	// of its start.
	Fall float64 `json:"fall"`
	// ErrorShare is the pooled error within runs, as a share of the same.
	ErrorShare float64 `json:"error_share"`
}

// JudgeDrift warns when throughput falls from run to run: by over 10 %, and by
// over three times the error within runs, along the line whose slope is the
// median of all pairs' (H. Theil, 1950; P. K. Sen, JASA 63, 1968). Fewer than
// five runs give a suspicion at most.
func JudgeDrift(runs []RunRate) DriftReport {
	r := DriftReport{Verdict: Verdict{Name: Drift}, Runs: slices.Clone(runs)}
	n := len(runs)
	if n < 2 {
		r.Verdict = notJudged(Drift, "one run only")
		return r
	}
	var slopes, starts []float64
	var variance float64
	for i := range runs {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (runs[j].PerS-runs[i].PerS)/float64(j-i))
		}
		variance += sq(runs[i].StdErr)
	}
	slope := median(slopes)
	for i := range runs {
		starts = append(starts, runs[i].PerS-slope*float64(i))
	}
	start := median(starts)
	if start <= 0 {
		r.Verdict = notJudged(Drift, "no throughput")
		return r
	}
	r.Fall = -slope * float64(n-1) / start
	r.ErrorShare = math.Sqrt(variance/float64(n)) / start
	r.Figures = map[string]float64{"drift_fall": r.Fall, "drift_error_share": r.ErrorShare, "runs": float64(n)}
	figures := fmt.Sprintf("%s/s in the first of %d runs, %s/s in the last", significant(runs[0].PerS), n, significant(runs[n-1].PerS))
	fell := r.Fall > driftFall && r.Fall > driftErrors*r.ErrorShare
	switch {
	case fell && n >= driftMinRuns:
		r.State = Warn
		r.Line = fmt.Sprintf("DRIFT: throughput falls by %.0f %% from the first to the last run: %s", r.Fall*100, figures)
		r.Causes = []string{"Something outlives each run: entries that a reset doesn't find, a log's backlog, connections in TIME_WAIT."}
	case fell:
		r.Verdict.Line = fmt.Sprintf("not judged: drift suspected, %s; %d runs are needed to tell", figures, driftMinRuns)
	case n < driftMinRuns:
		r.Verdict.Line = fmt.Sprintf("not judged: %s, %d are needed; %s", Count(n, "run"), driftMinRuns, figures)
	default:
		r.State, r.Line = Pass, "OK: no drift, "+figures
	}
	return r
}

// median of x; 0 for none.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
