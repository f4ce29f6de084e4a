package verdict

import (
	"math"
	"strings"
	"testing"
)

func TestSticky(t *testing.T) {
	for name, c := range map[string]struct {
		data  StickyData
		state State
		line  string
	}{
		"kept":         {StickyData{Transactions: 1000, Judged: 1000, Nodes: 3}, Pass, "OK: 1,000 transactions"},
		"one node":     {StickyData{Transactions: 1000, Judged: 1000, Nodes: 1}, Pass, "proves nothing"},
		"split":        {StickyData{Transactions: 1000, Judged: 1000, Split: 3, Nodes: 3, Examples: []string{"tx 7 on a, b"}}, Fail, "STICKINESS ISSUE: 3 of 1,000"},
		"refused":      {StickyData{Transactions: 1000, Judged: 990, Refused: 10, Nodes: 3}, Pass, "10 refused"},
		"unnamed":      {StickyData{Transactions: 10, Judged: 5, Unnamed: 5, Nodes: 2}, Incomplete, "INCOMPLETE: 5 answers"},
		"all refused":  {StickyData{Transactions: 10, Refused: 10}, Incomplete, "INCOMPLETE"},
		"split, holes": {StickyData{Transactions: 10, Judged: 5, Split: 1, Unnamed: 5, Nodes: 2}, Fail, "STICKINESS ISSUE"},
	} {
		v := JudgeSticky(c.data)
		if v.State != c.state || !strings.Contains(v.Line, c.line) || v.Name != Sticky {
			t.Errorf("%s: %v %s", name, v.State, v.Line)
		}
	}
	// Five calls over three nodes: all on one with (1/3)⁴.
	if got := RandomSplitShare(3, 5); math.Abs(got-80.0/81) > 1e-12 {
		t.Errorf("random split share %v", got)
	}
	if got := RandomSplitShare(3, 1); got != 0 {
		t.Errorf("of single calls: %v", got)
	}
}
