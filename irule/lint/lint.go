// Package lint finds the locality and throughput mistakes that iRules make:
// work that lands on a core that doesn't own its state, and work per request
// that grows with the state.
//
// It reads a rule as Tcl 8.4 does, commands and words with their lines, and
// never runs any of it.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Severity sorts findings. The zero value is Warning.
type Severity uint8

// The severities. Errors make the command fail.
const (
	Warning Severity = iota
	Error
)

var severityNames = [...]string{Warning: "warning", Error: "error"}

// String is the severity as the outputs spell it, which is also SARIF's level.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity(%d)", uint8(s))
}

// MarshalText spells the severity for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Severity) UnmarshalText(b []byte) error {
	i := slices.Index(severityNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown severity %q", b)
	}
	*s = Severity(i)
	return nil
}

// Rule is one thing the linter looks for.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"` // what is wrong
	Cost     string   `json:"cost"`    // what it costs
	Instead  string   `json:"instead"` // what to write instead
}

// Finding is one place where a rule was broken.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1
	Column   int      `json:"column"` // from 1, in bytes
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what is wrong here
	Cost     string   `json:"cost"`
	Instead  string   `json:"instead"`
}

// Check returns the findings in src in the order of their lines. file is
// only copied into them. A rule that isn't well-formed Tcl is itself a
// finding (rule "syntax") and is checked as far as it could be read.
func Check(file string, src []byte) []Finding {
	c := &checker{file: file, src: validText(src)}
	c.run()
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(c.found)
}

// validText is src with every byte that is no UTF-8 as a question mark, so that
// offsets stay and what is taken from it can go into a regular expression.
func validText(src []byte) string {
	if utf8.Valid(src) {
		return string(src)
	}
	out := make([]byte, 0, len(src))
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n == 1 {
			out = append(out, '?')
		} else {
			out = append(out, src[:n]...)
		}
		src = src[n:]
	}
	return string(out)
}

// Errors counts the findings that make a check fail.
func Errors(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Severity == Error {
			n++
		}
	}
	return n
}

// Rules lists what Check looks for, in the order of the documentation.
func Rules() []Rule { return append([]Rule(nil), rules[:]...) }
