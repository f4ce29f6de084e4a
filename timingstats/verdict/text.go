package verdict

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tbl/timingstats"
)

// Thousands writes a whole number with its thousands separated.
func Thousands[T int | int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	neg := strings.TrimPrefix(s, "-")
	var b strings.Builder
	b.WriteString(s[:len(s)-len(neg)])
	for i, c := range neg {
		if i > 0 && (len(neg)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// percent writes a share of n observations with no more digits than n allows:
// whole per cents up to 1,000, one decimal up to 100,000, two beyond.
func percent(share float64, n int64) string {
	digits := 2
	switch {
	case n <= 1000:
		digits = 0
	case n <= 100_000:
		digits = 1
	}
	s := strconv.FormatFloat(share*100, 'f', digits, 64)
	// A share that exists is not 0, one that isn't whole is not 100.
	if z := strconv.FormatFloat(0, 'f', digits, 64); s == z && share > 0 {
		s = "<" + strconv.FormatFloat(math.Pow10(-digits), 'f', digits, 64)
	}
	if h := strconv.FormatFloat(100, 'f', digits, 64); s == h && share < 1 {
		s = ">" + strconv.FormatFloat(100-math.Pow10(-digits), 'f', digits, 64)
	}
	return s + " %"
}

// probability writes a p-value or odds: two digits, one when tiny.
func probability(p float64) string {
	switch {
	case p < 1e-12:
		return "< 1e-12"
	case p < 1e-3:
		return "= " + strconv.FormatFloat(p, 'e', 0, 64)
	default:
		return "= " + strconv.FormatFloat(p, 'g', 2, 64)
	}
}

// odds writes the odds of an error.
func odds(p float64) string {
	return strings.TrimPrefix(probability(p), "= ")
}

// duration writes nanoseconds with three significant digits.
func duration(ns float64) string {
	switch d := math.Abs(ns); {
	case d < 1e3:
		return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
	case d < 1e6:
		return significant(ns/1e3) + " µs"
	case d < 1e9:
		return significant(ns/1e6) + " ms"
	default:
		return significant(ns/float64(time.Second)) + " s"
	}
}

func significant(f float64) string {
	switch a := math.Abs(f); {
	case a >= 100:
		return Thousands(int64(math.Round(f)))
	case a >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// coreList names cores: "TMM 2", "TMMs 0, 1, 3".
//
// Of many only the first are named.
func coreList(ids []timingstats.CoreID) string {
	const most = 16
	names := make([]string, 0, most)
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, id.String())
	}
	if len(ids) == 1 {
		return "TMM " + names[0]
	}
	list := "TMMs " + strings.Join(names, ", ")
	if more := len(ids) - most; more > 0 {
		list += fmt.Sprintf(" and %s more", Thousands(int64(more)))
	}
	return list
}

// Count is "1 core", "4 cores".
func Count[T int | int64](n T, noun string) string { return plural(int64(n), noun) }

// plural is Count.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", Thousands(n), noun)
}

func notJudged(name Name, format string, args ...any) Verdict {
	return Verdict{Name: name, Line: "not judged: " + fmt.Sprintf(format, args...)}
}
