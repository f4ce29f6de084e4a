package fleet

import (
	"slices"

	"tbl/loader/steer"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// coreOf is one core's element of a list in the order of cores, made where it
// is missing.
func coreOf[C any](cores *[]C, id timingstats.CoreID, idOf func(*C) *timingstats.CoreID) *C {
	i, known := slices.BinarySearchFunc(*cores, id, func(c C, id timingstats.CoreID) int { return idOf(&c).Compare(id) })
	if !known {
		var c C
		*idOf(&c) = id
		*cores = slices.Insert(*cores, i, c)
	}
	return &(*cores)[i]
}

// missing lists the cores that a part missed and that none heard.
func missing(parts []view, heard []timingstats.CoreID) []timingstats.CoreID {
	out := []timingstats.CoreID{}
	for i := range parts {
		for _, id := range parts[i].missing {
			if !slices.Contains(heard, id) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	slices.SortFunc(out, timingstats.CoreID.Compare)
	return out
}

// coverageAndErrors judge the whole account. A run that was to reach one core
// alone is not judged by its coverage.
func (w *whole) coverageAndErrors(heard, lost []timingstats.CoreID, single bool, cfg Config) []verdict.Verdict {
	errs := verdict.JudgeErrors(w.acc.ErrorsInput(cfg.MaxErrors))
	if single && len(lost) == 0 {
		return []verdict.Verdict{errs}
	}
	expected := append(slices.Clone(heard), lost...)
	return []verdict.Verdict{verdict.JudgeCoverage(heard, verdict.CoverageOptions{Expected: expected, Requests: w.acc.OK}).Verdict, errs}
}

// decay judges the time in which all clients were at work: before and after,
// the throughput is lower because clients are missing.
func (w *whole) decay(requests int64) verdict.Verdict {
	return verdict.JudgeDecay(w.together, requests).Verdict
}

// kept are the parts' verdicts that rest on what the dataplane said about
// itself, which can't be asked again: the worst of each.
func kept(parts []view) []verdict.Verdict {
	var out []verdict.Verdict
	for _, name := range []verdict.Name{verdict.Leak, verdict.Balance, verdict.LogBudget} {
		var worst verdict.Verdict
		for i := range parts {
			for _, v := range parts[i].verdicts {
				if v.Name == name && (worst.Name == "" || v.State > worst.State) {
					worst = v
					worst.Line += " (" + parts[i].name + ")"
				}
			}
		}
		if worst.Name != "" {
			out = append(out, worst)
		}
	}
	return out
}

// onlyCore says that the run was to reach one core alone.
func onlyCore(s *steer.Result) bool { return s != nil && s.OnlyCore != nil }
