// Package verdict holds every rule that says good or bad, as pure functions
// over figures that others measured.
package verdict

import "fmt"

// Name names a rule.
type Name string

// The verdicts. They are judged in this order.
const (
	Coverage   Name = "COVERAGE"
	Errors     Name = "ERRORS"
	Locality   Name = "LOCALITY"
	Ownership  Name = "OWNERSHIP"
	Uniformity Name = "UNIFORMITY"
	Tail       Name = "TAIL"
	Decay      Name = "DECAY"
	Drift      Name = "DRIFT"
	Leak       Name = "LEAK"
	Balance    Name = "BALANCE"
	Sticky     Name = "STICKY"
	LogBudget  Name = "LOG BUDGET"
	Assert     Name = "ASSERT"
	Proof      Name = "PROOF" // of all steps of the proof together
)

// State is a verdict's outcome. The zero value is NotJudged.
type State uint8

// The outcomes, from harmless to bad.
const (
	NotJudged  State = iota // too little data, or coverage comes first: no influence on the exit code
	Pass                    //
	Warn                    // exit 0, unless --strict
	Incomplete              // not enough evidence: exit 3
	Fail                    // exit 1
)

var stateNames = [...]string{"not judged", "pass", "warn", "incomplete", "fail"}

// String is the state as tables and JSON spell it.
func (s State) String() string { return stateNames[s] }

// MarshalText spells the state for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *State) UnmarshalText(b []byte) error {
	for i, n := range stateNames {
		if n == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("unknown verdict state %q", b)
}

// Verdict is one judgement.
type Verdict struct {
	Name Name `json:"name"`
	// Of is what it is about, where several verdicts of a run share a name: the
	// expression of an ASSERT, a device, a subtable, a target. Empty: the run.
	Of    string `json:"of,omitempty"`
	State State  `json:"state"`
	// Line is the judgement in one line, ready to be grepped: it starts with
	// the word of the rule ("OK:", "LOCALITY ISSUE:", "INCOMPLETE:", "SKEWED", …).
	Line string `json:"line"`
	// Causes are likely reasons and remedies, one sentence each; may be empty.
	Causes []string `json:"causes,omitempty"`
	// Figures are the numbers that it rests on, by name with unit suffix.
	Figures map[string]float64 `json:"figures,omitempty"`
}

// Overall is the outcome of all: any Fail (or Warn under strict) is Fail, else
// any Incomplete is Incomplete, else Pass. Pass for none.
func Overall(vs []Verdict, strict bool) State {
	out := Pass
	for _, v := range vs {
		s := v.State
		if strict && s == Warn {
			s = Fail
		}
		if s > Warn {
			out = max(out, s)
		}
	}
	return out
}
