package verdict

import "strings"

// Info is what help texts and reports say about a rule.
type Info struct {
	Name Name
	// Fails: when violated, the run fails; else it warns.
	Fails bool
	Help  string
}

// Table lists every rule, in the order in which they are judged.
func Table() []Info {
	return []Info{
		{Coverage, false, "every expected core was heard; otherwise the evidence is incomplete and UNIFORMITY, BALANCE and OWNERSHIP are not judged"},
		{Errors, true, "the share of failed requests is at most --max-errors (1 %)"},
		{Locality, true, "every core's timed writes land in storage of its own"},
		{Ownership, true, "a name has one owning core, and it is the expected one"},
		{Uniformity, false, "requests spread evenly over the cores (chi-square: uneven below p = 0.001, skewed below 1e-6 where a share is over 10 % off)"},
		{Tail, false, "no core's p99 is over 4 times that of the others"},
		{Decay, true, "throughput does not fall in the course of a run"},
		{Drift, false, "throughput does not fall from run to run"},
		{Leak, true, "no entry of the cores' own, nor of an earlier discovery's names, survives a reset (entries under others' names, or where names can't be told: warns; where entries aren't counted: passes for the names that it gives)"},
		{Balance, false, "no core holds more than --max-imbalance (1.25) times the mean of entries or bytes"},
		{Sticky, true, "no transaction was served by two nodes"},
		{LogBudget, false, "at most 10 log lines per 1,000 writes (and none of --log lost: incomplete)"},
		{Assert, true, "the user's own thresholds hold; an absent figure doesn't"},
		{Proof, true, "every step of the proof holds: each core writes into storage it owns"},
	}
}

// Word is the judgement itself, the part of Line before the first colon:
// "OK", "LOCALITY ISSUE", "INCOMPLETE", "SKEWED", ….
func (v Verdict) Word() string {
	w, _, _ := strings.Cut(v.Line, ":")
	return w
}

// Title is the verdict's name with what it is about: no two verdicts of a run
// share it.
func (v Verdict) Title() string { return strings.TrimSpace(string(v.Name) + " " + v.Of) }

// About is v with one thing more that it is about.
func (v Verdict) About(what string) Verdict {
	if v.Of != "" {
		what = v.Of + ", " + what
	}
	v.Of = what
	return v
}

// Worst is the verdict that decides the outcome: the first of those with the
// worst state, false when there is none.
func Worst(vs []Verdict, strict bool) (Verdict, bool) {
	best, found := Verdict{}, false
	rank := func(s State) State {
		if strict && s == Warn {
			return Fail
		}
		return s
	}
	for _, v := range vs {
		if !found || rank(v.State) > rank(best.State) {
			best, found = v, true
		}
	}
	return best, found
}
