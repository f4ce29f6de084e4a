package verdict

import (
	"fmt"
	"math"
	"strings"
)

// StickyData is what a run of transactions over nodes found.
type StickyData struct {
	Transactions int64 // begun
	// Judged are the transactions that could have been seen to split: two or
	// more invocations of theirs were served by a node that named itself.
	Judged int64
	// Split are those of them that two nodes or more have served.
	Split int64
	// Refused are the transactions that ended with an error.
	Refused int64
	// Invocations is how many each transaction makes.
	Invocations int
	// Unnamed are the answers that did not say which node served them.
	Unnamed int64
	// Nodes are the distinct nodes that served anything.
	Nodes int
	// Examples are some of the split transactions, each in a few words.
	Examples []string
}

// JudgeSticky is the STICKY verdict: OK when no transaction was served by
// two nodes. Refused transactions do not fail it, they are named. Nothing
// judged, or a split that might hide behind answers without a name, is
// INCOMPLETE.
func JudgeSticky(d StickyData) Verdict {
	v := Verdict{Name: Sticky, Figures: map[string]float64{
		"transactions": float64(d.Transactions), "judged": float64(d.Judged), "split": float64(d.Split),
		"refused": float64(d.Refused), "nodes": float64(d.Nodes), "unnamed": float64(d.Unnamed),
	}}
	if d.Judged > 0 {
		v.Figures["split_share"] = float64(d.Split) / float64(d.Judged)
	}
	if d.Nodes > 0 && d.Invocations > 0 {
		v.Figures["random_split_share"] = RandomSplitShare(d.Nodes, d.Invocations)
	}
	var refused string
	if d.Refused > 0 {
		refused = fmt.Sprintf("; %s refused", Thousands(d.Refused))
	}
	switch {
	case d.Split > 0:
		v.State = Fail
		v.Line = fmt.Sprintf("STICKINESS ISSUE: %s of %s transactions (%s) were served by more than one node%s",
			Thousands(d.Split), Thousands(d.Judged), percent(float64(d.Split)/float64(d.Judged), d.Judged), refused)
		if len(d.Examples) > 0 {
			v.Line += ", e.g. " + strings.Join(d.Examples, ", ")
		}
		v.Causes = []string{
			"The balancer takes no notice of the transaction: no cookie or stick table, or the client does not send the cookie back.",
			"The key of the stickiness changes within a transaction: a client address behind address translation, or a port.",
			"A node left, and its transactions were moved instead of refused.",
		}
	case d.Unnamed > 0:
		v.State = Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: %s answers did not say which node served them%s", Thousands(d.Unnamed), refused)
		v.Causes = []string{"The nodes do not name themselves, or not where the name was looked for."}
	case d.Judged == 0:
		v.State = Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: no transaction had two served invocations%s", refused)
	default:
		v.State = Pass
		v.Line = fmt.Sprintf("OK: %s, each served by one node; %d nodes seen%s", plural(d.Judged, "transaction"), d.Nodes, refused)
		if d.Nodes == 1 {
			v.Line = fmt.Sprintf("OK: %s, all served by the only node seen: one node proves nothing about stickiness%s",
				plural(d.Judged, "transaction"), refused)
			v.Causes = []string{"Behind one node every transaction is on one node: repeat it with two nodes or more."}
		}
	}
	return v
}

// RandomSplitShare is the share of transactions, 0 to 1, that two nodes or
// more would serve if each of their invocations went to any of the nodes with
// equal probability: all but those in which the second and every later one
// meets the first one's node by chance, 1 − nodes^(1−invocations).
func RandomSplitShare(nodes, invocations int) float64 {
	return 1 - math.Pow(float64(nodes), float64(1-invocations))
}
