package verdict

import (
	"fmt"
	"strings"

	"tbl/timingstats"
)

// fewBatches is how many batches LOCALITY needs of a core to call it local.
const fewBatches = 8

// JudgeBatches is LOCALITY over the clicks per write of whole batches, all of
// them: cores are their summaries, made with the threshold, known the number
// of cores on each blade (0: not known). warnings name the cores that pass
// though some of their batches were slow.
func JudgeBatches(cores []timingstats.CoreSummary, known int) (v Verdict, warnings []string) {
	rep := JudgeLocality(cores, LocalityOptions{Cores: known})
	few := true // no core that can't be judged has many batches, or a slow one
	for _, core := range rep.Cores {
		if core.State == Local && core.AtThreshold > 0 {
			warnings = append(warnings, fmt.Sprintf("TMM %v: %d of %d batches took %d clicks per write or more, too few for LOCALITY to fail: something held them up, or some writes went elsewhere",
				core.Core, core.AtThreshold, core.N, core.ThresholdClicks))
		}
		few = few && (core.State != Unknown || core.N < fewBatches && core.AtThreshold == 0)
	}
	if rep.State == Incomplete && len(rep.Missing) == 0 && few {
		// Nobody asked these few batches for a proof: how they spread over the
		// cores is chance, and that must not decide how a healthy run ends.
		rep.State = NotJudged
		rep.Line = "not judged: " + strings.TrimPrefix(rep.Line, "INCOMPLETE: ")
		rep.Causes = nil
	}
	return rep.Verdict, warnings
}
