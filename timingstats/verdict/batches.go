package verdict

import (
	"fmt"
	"strings"

	"tbl/timingstats"
)

// BatchSummary is a core's summary of the clicks per write of its batches for
// JudgeBatches. Its threshold is the one given, unless a machine with other
// work slows all of the core's batches: where the quicker quarter of at least
// eight keeps below the threshold, so that it holds no remote writes worth the
// name, but not by much, a batch is slow from four times that on. Writes into
// others' storage cost a hundred times more, not four.
func BatchSummary(batches *timingstats.CoreRecorder, core timingstats.CoreID, threshold int64) timingstats.CoreSummary {
	const slower, enough = 4, 8
	if threshold == 0 {
		threshold = timingstats.DefaultThreshold
	}
	if batches.N() >= enough {
		if quick := batches.Distribution().Percentile(25); quick < threshold {
			threshold = max(threshold, slower*quick)
		}
	}
	return batches.Summary(core, threshold)
}

// JudgeBatches is LOCALITY over the clicks per write of whole batches, all of
// them: cores are their summaries, made with the threshold, known the number
// of cores on each blade (0: not known). warnings name the cores that don't
// fail though some of their batches were slow.
func JudgeBatches(cores []timingstats.CoreSummary, known int) (v Verdict, warnings []string) {
	rep := JudgeLocality(cores, LocalityOptions{Cores: known})
	few := true // of no core that can't be judged are most batches slow
	for _, core := range rep.Cores {
		chance := core.State == Unknown && 2*core.AtThreshold <= core.N
		if (core.State == Local || chance) && core.AtThreshold > 0 {
			warnings = append(warnings, fmt.Sprintf("TMM %v: %d of %d batches took %d clicks per write or more, too few for LOCALITY to fail: something held them up, or some writes went elsewhere",
				core.Core, core.AtThreshold, core.N, core.ThresholdClicks))
		}
		few = few && (core.State != Unknown || chance)
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
