package verdict

import (
	"math"
	"strings"
	"testing"
)

func TestJudgeSticky(t *testing.T) {
	for name, tc := range map[string]struct {
		in    StickyData
		state State
		line  string // start
	}{
		"ok":                {StickyData{Transactions: 10, Judged: 10, Nodes: 3, Invocations: 5}, Pass, "OK: 10 transactions, each served by one node; 3 nodes seen"},
		"one node":          {StickyData{Transactions: 10, Judged: 10, Nodes: 1, Invocations: 5}, Pass, "OK: 10 transactions, all served by the only node seen: one node proves nothing"},
		"one split":         {StickyData{Transactions: 20_000, Judged: 20_000, Split: 1, Nodes: 3, Invocations: 5}, Fail, "STICKINESS ISSUE: 1 of 20,000 transactions (<0.1 %)"},
		"all but one split": {StickyData{Transactions: 20_000, Judged: 20_000, Split: 19_999, Nodes: 3, Invocations: 5}, Fail, "STICKINESS ISSUE: 19,999 of 20,000 transactions (>99.9 %)"},
		"examples":          {StickyData{Transactions: 1, Judged: 1, Split: 1, Nodes: 2, Invocations: 2, Examples: []string{"#0: A B"}}, Fail, "STICKINESS ISSUE: 1 of 1 transactions (100 %) were served by more than one node, e.g. #0: A B"},
		"refused":           {StickyData{Transactions: 10, Judged: 9, Refused: 1, Nodes: 3, Invocations: 5}, Pass, "OK: 9 transactions, each served by one node; 3 nodes seen; 1 refused"},
		"nothing":           {StickyData{}, Incomplete, "INCOMPLETE: no transaction had two served invocations"},
		"all refused":       {StickyData{Transactions: 10, Refused: 10, Invocations: 5}, Incomplete, "INCOMPLETE: no transaction had two served invocations; 10 refused"},
		"unnamed":           {StickyData{Transactions: 10, Judged: 10, Unnamed: 1, Nodes: 3, Invocations: 5}, Incomplete, "INCOMPLETE: 1 "},
		"unnamed and split": {StickyData{Transactions: 10, Judged: 10, Unnamed: 1, Split: 1, Nodes: 3, Invocations: 5}, Fail, "STICKINESS ISSUE: 1 of 10"},
	} {
		v := JudgeSticky(tc.in)
		if v.Name != Sticky || v.State != tc.state || !strings.HasPrefix(v.Line, tc.line) {
			t.Errorf("%s: %v: %s; want %v: %s", name, v.State, v.Line, tc.state, tc.line)
		}
		if v.Figures["split"] != float64(tc.in.Split) || v.Figures["judged"] != float64(tc.in.Judged) {
			t.Errorf("%s: figures %v", name, v.Figures)
		}
	}
}

// TestRandomSplitShare compares the formula with counting all cases.
func TestRandomSplitShare(t *testing.T) {
	for nodes := 1; nodes <= 4; nodes++ {
		for inv := 1; inv <= 6; inv++ {
			all, split := 0, 0
			total := int(math.Pow(float64(nodes), float64(inv)))
			for c := range total {
				first, mixed := c%nodes, false
				for x, i := c, 0; i < inv; i++ {
					mixed = mixed || x%nodes != first
					x /= nodes
				}
				if all++; mixed {
					split++
				}
			}
			if got, want := RandomSplitShare(nodes, inv), float64(split)/float64(all); math.Abs(got-want) > 1e-12 {
				t.Errorf("%d nodes, %d invocations: %v, want %v", nodes, inv, got, want)
			}
		}
	}
}
