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

// CoverageOptions says what else is known about a run's reach.
type CoverageOptions struct {
	// Expected are the cores that must be heard. Empty: not known, then the
	// gaps in the numbers heard are what is missing.
	Expected []timingstats.CoreID
	// Requests is how many requests were answered; 0: not known.
	Requests int64
	// MissChance is up to which chance, for any of the cores with equal shares
	// to get none of the requests, a core that was not heard counts as
	// unreached. With more it isn't judged. 0: it always counts.
	MissChance float64
}

// byChance says that chance may be why a core of so many was not heard.
func (o *CoverageOptions) byChance(cores int) bool {
	return o.MissChance > 0 && float64(cores)*math.Pow(1-1/float64(cores), float64(o.Requests)) > o.MissChance
}

// CoverageReport is the COVERAGE verdict with the cores it rests on.
type CoverageReport struct {
	Verdict
	Heard   []timingstats.CoreID `json:"heard"`
	Missing []timingstats.CoreID `json:"missing"`
}

// JudgeCoverage names the cores that were not heard.
func JudgeCoverage(heard []timingstats.CoreID, opt CoverageOptions) CoverageReport {
	r := CoverageReport{Verdict: Verdict{Name: Coverage}, Heard: slices.Clone(heard)}
	slices.SortFunc(r.Heard, timingstats.CoreID.Compare)
	r.Heard = slices.Compact(r.Heard)
	if len(r.Heard) > 0 || len(opt.Expected) > 0 {
		r.Missing = timingstats.Missing(r.Heard, opt.Expected, 0)
	}
	all := len(r.Heard) + len(r.Missing)
	after := ""
	if opt.Requests > 0 {
		after = fmt.Sprintf(" after %s", plural(opt.Requests, "request"))
	}
	switch {
	case len(r.Heard) == 0:
		r.State, r.Line = Incomplete, "INCOMPLETE: no core was heard"+after
	case len(r.Missing) > 0 && opt.byChance(all):
		r.Verdict = notJudged(Coverage, "%d of %d cores heard%s, not %s; so few requests miss a core by chance", len(r.Heard), all, after, coreList(r.Missing))
	case len(r.Missing) > 0:
		r.State = Incomplete
		r.Line = fmt.Sprintf("INCOMPLETE: %d of %d cores heard%s, not %s", len(r.Heard), all, after, coreList(r.Missing))
		switch {
		case len(r.Heard) == 1 && all > 1:
			r.Causes = []string{"One client address reaches one core only if the disaggregator hashes nothing but the source address: send from several addresses (`--bind`), or hash ports too."}
		default:
			r.Causes = []string{"A core that accepts nothing is dead or disabled, or no connection happened to hash to it: more requests from fresh source ports tell the two apart."}
		}
	default:
		r.State = Pass
		r.Line = fmt.Sprintf("OK: all %s heard%s", plural(int64(all), "core"), after)
	}
	r.Figures = map[string]float64{"cores_heard": float64(len(r.Heard)), "cores_missing": float64(len(r.Missing))}
	return r
}

// CoreCount is a number of something on one core.
type CoreCount struct {
	Core  timingstats.CoreID `json:"core"`
	Count int64              `json:"count"`
	// Share of all and Off from an equal share (0.1: 10 % more); filled in by
	// the verdict.
	Share float64 `json:"share"`
	Off   float64 `json:"off"`
}

// The limits of UNIFORMITY.
const (
	unevenP        = 1e-3
	skewedP        = 1e-6
	skewedOff      = 0.10
	minExpectation = 5 // per core, below which chi-square says nothing
)

// UniformityReport is the UNIFORMITY verdict with what it rests on.
type UniformityReport struct {
	Verdict
	ChiSquare float64     `json:"chi_square"`
	DF        int         `json:"df"`
	P         float64     `json:"p"`
	Cores     []CoreCount `json:"cores"`
}

// JudgeUniformity tests whether requests spread evenly over the cores
// (Pearson's chi-square against equal shares). missing are cores that exist
// and got none: while there is one, the spread isn't judged.
func JudgeUniformity(counts []CoreCount, missing []timingstats.CoreID) UniformityReport {
	return JudgeUniformityOverPorts(counts, missing, 0)
}

// JudgeUniformityOverPorts is JudgeUniformity for requests that came from so
// many different source ports, over and over when there were more requests. A
// port leads to the same core each time, so that the requests are no
// independent draws: with n requests over p ports, each port's core drawn once,
// the variance of a core's count is 1 + n/p times the multinomial one, and the
// chi-square is divided by that. 0: every request is a draw of its own.
func JudgeUniformityOverPorts(counts []CoreCount, missing []timingstats.CoreID, ports int) UniformityReport {
	r := UniformityReport{Verdict: Verdict{Name: Uniformity}, Cores: slices.Clone(counts), P: 1}
	missing = slices.Clone(missing)
	slices.SortFunc(r.Cores, func(a, b CoreCount) int { return a.Core.Compare(b.Core) })
	var total int64
	for _, c := range r.Cores {
		total += c.Count
		if c.Count == 0 && !slices.Contains(missing, c.Core) {
			missing = append(missing, c.Core)
		}
	}
	n := len(r.Cores)
	want := float64(total) / float64(max(n, 1))
	var worst CoreCount
	for i := range r.Cores {
		c := &r.Cores[i]
		if total > 0 {
			c.Share, c.Off = float64(c.Count)/float64(total), float64(c.Count)/want-1
			d := float64(c.Count) - want
			r.ChiSquare += d * d / want
		}
		if math.Abs(c.Off) > math.Abs(worst.Off) {
			worst = *c
		}
	}
	switch {
	case total == 0:
		r.Verdict = notJudged(Uniformity, "no requests")
		return r
	case len(missing) > 0:
		r.Verdict = notJudged(Uniformity, "%s unreached; coverage comes first", coreList(missing))
		return r
	case n < 2:
		r.Verdict = notJudged(Uniformity, "one core only")
		return r
	case want < minExpectation:
		r.Verdict = notJudged(Uniformity, "%s over %d cores are too few", plural(total, "request"), n)
		return r
	}
	if ports > 0 {
		r.ChiSquare /= 1 + float64(total)/float64(ports)
	}
	r.DF = n - 1
	r.P = distuv.ChiSquared{K: float64(r.DF)}.Survival(r.ChiSquare)
	r.Figures = map[string]float64{"chi_square": r.ChiSquare, "df": float64(r.DF), "p": r.P, "max_off_share": math.Abs(worst.Off)}
	figures := fmt.Sprintf("%s over %d cores, chi-square %s, p %s", plural(total, "request"), n, significant(r.ChiSquare), probability(r.P))
	far := fmt.Sprintf("TMM %s got %s (%s instead of %s)", worst.Core, Thousands(worst.Count), percent(worst.Share, total), percent(1/float64(n), total))
	switch {
	case r.P >= unevenP:
		r.State, r.Line = Pass, "even: "+figures
	case r.P < skewedP && math.Abs(worst.Off) > skewedOff:
		r.State, r.Line = Warn, "SKEWED: "+far+"; "+figures+": no sampling variance explains it"
		r.Causes = []string{"The disaggregator's hash sees too little that differs (few source ports or addresses), or weighs the cores differently."}
	default:
		r.State, r.Line = Warn, "uneven: "+far+"; "+figures
	}
	return r
}

// DefaultMaxImbalance is the largest max/mean that BALANCE lets pass.
const DefaultMaxImbalance = 1.25

// CoreLoad is what one core holds.
type CoreLoad struct {
	Core    timingstats.CoreID `json:"core"`
	Entries int64              `json:"entries"`
	Bytes   int64              `json:"bytes"` // 0 on all cores: not known
}

// BalanceReport is the BALANCE verdict with what it rests on.
type BalanceReport struct {
	Verdict
	// EntriesRatio and BytesRatio are max/mean; 0: not known.
	EntriesRatio float64    `json:"entries_max_over_mean"`
	BytesRatio   float64    `json:"bytes_max_over_mean"`
	Cores        []CoreLoad `json:"cores"`
}

// JudgeBalance compares what the cores hold. maxImbalance 0 means
// DefaultMaxImbalance. missing are cores whose load isn't known: while there is
// one, the balance isn't judged. An excess that so few entries show by chance
// isn't judged either.
func JudgeBalance(cores []CoreLoad, maxImbalance float64, missing []timingstats.CoreID) BalanceReport {
	if maxImbalance <= 0 {
		maxImbalance = DefaultMaxImbalance
	}
	r := BalanceReport{Verdict: Verdict{Name: Balance}, Cores: slices.Clone(cores)}
	slices.SortFunc(r.Cores, func(a, b CoreLoad) int { return a.Core.Compare(b.Core) })
	entries, total := ratio(r.Cores, func(c CoreLoad) int64 { return c.Entries })
	bytes, totalBytes := ratio(r.Cores, func(c CoreLoad) int64 { return c.Bytes })
	r.EntriesRatio, r.BytesRatio = entries.ratio, bytes.ratio
	switch {
	case len(missing) > 0:
		r.Verdict = notJudged(Balance, "%s unreached; coverage comes first", coreList(missing))
		return r
	case total == 0:
		r.Verdict = notJudged(Balance, "no entries")
		return r
	case len(r.Cores) < 2:
		r.Verdict = notJudged(Balance, "one core only")
		return r
	}
	r.Figures = map[string]float64{"entries_max_over_mean": entries.ratio, "entries": float64(total)}
	parts := []string{fmt.Sprintf("entries %.2f (TMM %s, %s of %s)", entries.ratio, entries.core, Thousands(entries.most), Thousands(total))}
	worst := entries
	if totalBytes > 0 {
		r.Figures["bytes_max_over_mean"], r.Figures["bytes"] = bytes.ratio, float64(totalBytes)
		parts = append(parts, fmt.Sprintf("bytes %.2f (TMM %s)", bytes.ratio, bytes.core))
		if bytes.ratio > worst.ratio {
			worst = bytes
		}
	}
	figures := "max/mean of " + strings.Join(parts, ", ")
	// Entries that fall on cores by chance vary by their square root: the
	// highest of N cores is over the limit by chance unless it is four of
	// these away.
	mean := float64(total) / float64(len(r.Cores))
	noise := 4 * math.Sqrt(mean) / mean
	switch {
	case worst.ratio <= maxImbalance:
		r.State, r.Line = Pass, "balanced: "+figures
	case worst.ratio-1 < noise:
		r.Verdict = notJudged(Balance, "%s; so few entries differ as much by chance", figures)
	default:
		r.State, r.Line = Warn, fmt.Sprintf("IMBALANCED: %s, above %.2f", figures, maxImbalance)
		r.Causes = []string{"One core fills up first: others write into its storage (under names that it owns, which `tbl validate` shows, or into a subtable that all share), the disaggregator is skewed (UNIFORMITY), or sessions stick to one core."}
	}
	return r
}

type loadRatio struct {
	ratio float64
	most  int64
	core  timingstats.CoreID
}

func ratio(cores []CoreLoad, f func(CoreLoad) int64) (loadRatio, int64) {
	var total int64
	for _, c := range cores {
		total += f(c)
	}
	if total == 0 {
		return loadRatio{}, 0
	}
	top := slices.MaxFunc(cores, func(a, b CoreLoad) int { return cmp.Compare(f(a), f(b)) })
	return loadRatio{float64(f(top)) * float64(len(cores)) / float64(total), f(top), top.Core}, total
}
