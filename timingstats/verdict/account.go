package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tbl/timingstats"
)

// DefaultMaxErrors is the largest share of failed requests that ERRORS lets
// pass.
const DefaultMaxErrors = 0.01

// classCanceled is the class of requests that the caller itself cut off; they
// are part of the account, but no failure of the target.
const classCanceled = "canceled"

// lost says that a failure of this class may be a core that is down.
func lost(class string) bool { return class == "refused" || class == "reset" || class == "timeout" }

// notReached says that a failure of this class is no answer of the target.
func notReached(class string) bool {
	switch class {
	case "address exhausted", "truncated", "tls", "client", "closed", classCanceled:
		return true
	}
	return lost(class)
}

// ErrorsInput is the account of a run's requests.
type ErrorsInput struct {
	// Sent is every request begun; the rest of Sent after all classes was ok.
	Sent int64
	// Classes counts the failed ones by class.
	Classes map[string]int64
	// MaxShare of Sent that may fail; 0 means DefaultMaxErrors, negative that
	// none may.
	MaxShare float64
	// First is an example of each class, for the text; may be nil.
	First map[string]string
	// Unproven: nothing has shown that a dataplane is behind the target. When
	// nothing succeeds then, whatever answered is no evidence.
	Unproven bool
	// Unreached are cores that ought to have been heard. While there are any,
	// connections that fail are the sign of that, and judged by COVERAGE.
	Unreached []timingstats.CoreID
}

// Add counts n failed requests of a class, with an example.
func (in *ErrorsInput) Add(class string, n int64, example string) {
	if in.Classes == nil {
		in.Classes, in.First = map[string]int64{}, map[string]string{}
	}
	in.Classes[class] += n
	if in.First[class] == "" {
		in.First[class] = example
	}
}

// JudgeErrors holds the failed requests against the share allowed. When not one
// succeeded and nothing was answered there is no evidence, and the verdict is
// INCOMPLETE; a target that answers every request with an error fails.
func JudgeErrors(in ErrorsInput) Verdict {
	v := Verdict{Name: Errors}
	limit := in.MaxShare
	switch {
	case limit == 0:
		limit = DefaultMaxErrors
	case limit < 0:
		limit = 0
	}
	var failed, silent, lostOnes int64
	var parts []string
	for _, class := range slices.SortedFunc(maps.Keys(in.Classes), func(a, b string) int {
		if d := in.Classes[b] - in.Classes[a]; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return strings.Compare(a, b)
	}) {
		n := in.Classes[class]
		if n == 0 || class == classCanceled {
			continue
		}
		failed += n
		if notReached(class) {
			silent += n
		}
		if lost(class) {
			lostOnes += n
		}
		parts = append(parts, fmt.Sprintf("%s %s", class, Thousands(n)))
		if ex := in.First[class]; ex != "" && len(v.Causes) < 3 {
			v.Causes = append(v.Causes, fmt.Sprintf("First %s: %s.", class, strings.TrimSuffix(ex, ".")))
		}
	}
	ok := in.Sent - failed - in.Classes[classCanceled]
	v.Figures = map[string]float64{"sent": float64(in.Sent), "ok": float64(ok), "errors": float64(failed)}
	if in.Sent == 0 {
		v.State, v.Line = Incomplete, "INCOMPLETE: no request was sent"
		return v
	}
	share := float64(failed) / float64(in.Sent)
	v.Figures["errors_share"] = share
	list := ""
	if failed > 0 {
		list = " (" + strings.Join(parts, ", ") + ")"
	}
	what := fmt.Sprintf("%s of %s failed, %s%s", Thousands(failed), plural(in.Sent, "request"), percent(share, in.Sent), list)
	switch {
	case ok <= 0 && (failed == silent || in.Unproven || share <= limit):
		v.State, v.Line = Incomplete, fmt.Sprintf("INCOMPLETE: none of %s succeeded%s", plural(in.Sent, "request"), list)
	case share > limit && len(in.Unreached) > 0 && failed == lostOnes:
		v.State, v.Line = NotJudged, "not judged: coverage comes first; "+what
	case share > limit:
		v.State, v.Line = Fail, "ERRORS: "+what
	case failed > 0:
		v.State, v.Line = Pass, "OK: "+what
	default:
		v.State, v.Line = Pass, fmt.Sprintf("OK: none of %s failed", plural(in.Sent, "request"))
	}
	if v.State == Pass {
		v.Causes = nil
	}
	return v
}

// CutShort is what becomes of a verdict about a run whose target went away
// meanwhile: failed requests are no share of anything then, so ERRORS that
// fail are incomplete. Others stay as they are.
func CutShort(v Verdict) Verdict {
	if v.Name == Errors && v.State == Fail {
		v.State, v.Line = Incomplete, "INCOMPLETE: cut short: "+v.Line
	}
	return v
}

// LeakInput is what was there before a reset, what the reset said it deleted,
// and what is left.
type LeakInput struct {
	// Known: the dataplane tells entries exactly. False: entries and bytes are
	// not looked at; judged are Orphans, and the names of the cores Cleared.
	Known bool
	// EntriesBefore and EntriesAfter, BytesBefore and BytesAfter are those of
	// all cores together; 0 bytes: not known.
	EntriesBefore, EntriesAfter int64
	BytesBefore, BytesAfter     int64
	// Deleted is what the reset accounted for.
	Deleted int64
	// Cores names the cores that still hold entries, and how many; may be nil.
	Cores []CoreLoad
	// Cleared is the number of cores that the reset reached, each of which said
	// that nothing is left under its name; 0: not known. Unreached are those that
	// it did not reach: while there are any, what survived isn't known.
	Cleared   int
	Unreached []timingstats.CoreID
	// Refilled: new entries turned up as often as the reset was repeated.
	Refilled bool
	// Foreign: what is left may be entries that the reset was not to delete,
	// those of applications or of probes. Then they warn, and don't fail.
	Foreign bool
	// Orphans are names of an earlier discovery's that hold some of what is
	// left. With any it fails, also where EntriesAfter is not known.
	Orphans []string
	// Listed: every core told its names, so that there are no other Orphans.
	Listed bool
	// AllNames: the reset deleted under all names that the dataplane lists.
	AllNames bool
}

// JudgeLeak fails when entries survive a reset.
func JudgeLeak(in LeakInput) Verdict {
	switch {
	case len(in.Unreached) > 0:
		return notJudged(Leak, "%s unreached; coverage comes first", coreList(in.Unreached))
	case !in.Known && in.Cleared == 0 && len(in.Orphans) == 0:
		return notJudged(Leak, "the dataplane doesn't tell how many entries it holds")
	}
	v := Verdict{Name: Leak, Figures: map[string]float64{"deleted": float64(in.Deleted)}}
	if in.Known {
		v.Figures["entries_before"], v.Figures["entries_after"] = float64(in.EntriesBefore), float64(in.EntriesAfter)
		v.Figures["bytes_before"], v.Figures["bytes_after"] = float64(in.BytesBefore), float64(in.BytesAfter)
	} else {
		in.EntriesAfter, in.BytesAfter = 0, 0
	}
	if in.Refilled {
		v.State, v.Line = Incomplete, "INCOMPLETE: not clean, somebody else writes"
		return v
	}
	if in.EntriesAfter > 0 || len(in.Orphans) > 0 {
		v.State = Fail
		size := ""
		if in.BytesAfter > 0 {
			size = fmt.Sprintf(", %s bytes", Thousands(in.BytesAfter))
		}
		v.Line = fmt.Sprintf("LEAK: %s survived the reset%s, which says it deleted %s", entries(in.EntriesAfter), size, Thousands(in.Deleted))
		what := "entries"
		if in.EntriesAfter > 0 {
			what = entries(in.EntriesAfter)
		}
		switch {
		case len(in.Orphans) > 0:
			v.Line = fmt.Sprintf("LEAK: %s left under other names than the cores' own, those of an earlier discovery among them: %s; the reset deleted %s", what, firstOf(in.Orphans, 3), Thousands(in.Deleted))
		case in.Foreign:
			v.State = Warn
			v.Line = fmt.Sprintf("LEAK: %s left under other names than the cores' own; the reset deleted %s", what, Thousands(in.Deleted))
		}
		var where []timingstats.CoreID
		for _, c := range in.Cores {
			if c.Entries > 0 {
				where = append(where, c.Core)
			}
		}
		if len(where) > 0 {
			v.Line += " (on " + coreList(where) + ")"
		}
		v.Causes = []string{"Entries under names that nobody uses any more, as a reload leaves them: `tbl reset --all-names` finds and clears them."}
		if in.AllNames {
			v.Causes = []string{"`--all-names` cleared every name that the dataplane lists: what is left was written meanwhile, or is under names that it doesn't list, which go when they expire."}
		}
		if in.Foreign {
			v.Causes = append(v.Causes, "Or those of probes, which go by themselves, and of applications, which --all-names deletes as well.")
		}
		return v
	}
	v.State, v.Line = Pass, fmt.Sprintf("OK: nothing survived the reset, which deleted %s", entries(in.Deleted))
	if in.Cleared > 0 {
		v.Line = fmt.Sprintf("OK: all %s cleared, %s removed, %s", plural(int64(in.Cleared), "core"), entries(in.Deleted), in.nothing())
	}
	return v
}

// nothing says where nothing is left, and what isn't known.
func (in *LeakInput) nothing() string {
	switch {
	case in.Known:
		return "nothing left under any name"
	case in.Listed && in.AllNames:
		return "nothing left under their names and the others that the dataplane lists; how many entries it holds, it doesn't tell"
	case in.Listed:
		return "nothing left under their names and an earlier discovery's; what is under others, the dataplane doesn't tell"
	}
	return "nothing left under their names; what is under others, the dataplane doesn't tell"
}

// firstOf lists the first few names, and how many more there are.
func firstOf(names []string, most int) string {
	list := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %s more", Thousands(int64(more)))
	}
	return list
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return Thousands(n) + " entries"
}

// maxLogsPer1000 is the LOG BUDGET.
const maxLogsPer1000 = 10

// JudgeLogBudget warns when a dataplane logs too much for what it writes.
func JudgeLogBudget(lines, writes int64) Verdict {
	if writes <= 0 {
		return notJudged(LogBudget, "no writes")
	}
	per := float64(lines) / float64(writes) * 1000
	v := Verdict{Name: LogBudget, Figures: map[string]float64{
		"log_lines": float64(lines), "writes": float64(writes), "log_lines_per_1000_writes": per,
	}}
	figures := fmt.Sprintf("%s for %s, %s per 1,000", plural(lines, "log line"), plural(writes, "write"), significant(per))
	if per > maxLogsPer1000 {
		v.State, v.Line = Warn, "LOG BUDGET: "+figures
		v.Causes = []string{"Each line waits for the log's sink, and its backlog outlives the run: sample 1 in 1,000 writes, or log nothing in a request's path."}
		return v
	}
	v.State, v.Line = Pass, "OK: "+figures
	return v
}
