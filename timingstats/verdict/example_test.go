package verdict_test

import (
	"fmt"

	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// One core's writes land in its own storage, the other one's don't.
func ExampleJudgeLocality() {
	var set timingstats.Set
	for i := range int64(25) {
		set.Core(timingstats.CoreID{Core: 0}).Add(3+i%9, timingstats.Fast, 1000)
		set.Core(timingstats.CoreID{Core: 1}).Add(60_000+i, timingstats.Slow, 1000)
	}
	report := verdict.JudgeLocality(set.Summaries(timingstats.DefaultThreshold), verdict.LocalityOptions{})
	fmt.Println(report.Line)
	fmt.Println(verdict.Overall([]verdict.Verdict{report.Verdict}, false))
	// Output:
	// LOCALITY ISSUE: TMM 1 REMOTE (25 of 25 slow, p50 60,012, avg 60,012 clicks)
	// fail
}

// Timed writes to one name, taken in until it is clear who owns it.
func ExampleOdds() {
	odds := verdict.NewOdds(verdict.OwnershipConfig{
		Subtable: "uuid_01",
		Expected: []timingstats.CoreID{{Core: 0}, {Core: 1}},
	})
	for n := 0; !odds.Decided(); n++ {
		clicks := int64(2104) // core 0's
		if n%2 == 1 {
			clicks = 6
		}
		odds.Add(timingstats.CoreID{Core: n % 2}, clicks, timingstats.Untagged)
	}
	fmt.Println(odds.Report().Line)
	// Output:
	// OWNER TMM 1 of "uuid_01": 6 of 6 writes fast, avg 6.00 clicks; model odds of error 6e-08
}

// A threshold of the user's own.
func ExampleParseAssertion() {
	a, err := verdict.ParseAssertion("p99_ms<20", false)
	if err != nil {
		panic(err)
	}
	fmt.Println(a.Judge(verdict.Figures{All: map[string]float64{"p99_ns": 31_500_000}}).Line)
	// Output:
	// ASSERT FAILED: p99_ms<20: it is 31.5
}
