// Package prober asks a dataplane about itself: which cores there are and how
// they call their subtables, which core owns a name, what each core holds.
//
// Everything is learnt by asking through target.Target, a fresh connection
// per request, and nothing is printed. Doubts travel as Warnings, judgements
// as Verdicts on the result.
//
// Every call returns the result so far together with an error when it was
// cut short: the context's error, or ErrUnreachable or ErrNoDataplane with
// the *target.Error that shows it. A configuration that makes no sense gives
// ErrConfig, with no result and before anything is sent.
package prober

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// The errors on which a caller decides.
var (
	// ErrConfig is wrapped by every error about a Config: nothing was sent.
	ErrConfig = errors.New("invalid configuration")
	// ErrUnreachable says that no request got through any more: refused, timed
	// out, cut.
	ErrUnreachable = errors.New("target unreachable")
	// ErrNoDataplane says that something answered, but no dataplane: a web
	// server, say, that has a 200 for everything.
	ErrNoDataplane = errors.New("no dataplane behind the target")
)

func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
}

// Accounting says what became of the requests: Sent = OK + Σ Errors.Count.
type Accounting struct {
	Sent   int64        `json:"sent"`
	OK     int64        `json:"ok"`
	Errors []ErrorCount `json:"errors,omitempty"`
}

// ErrorCount is one class of failed requests with its first example.
type ErrorCount struct {
	Class   target.Class `json:"class"`
	Count   int64        `json:"count"`
	Example string       `json:"example"`
}

// Failed is the number of requests that failed.
func (a *Accounting) Failed() int64 { return a.Sent - a.OK }

// Progress is filled while a call runs, for whoever shows a bar. It may be
// read at any time; nil in a Config means that nobody looks.
type Progress struct {
	Sent    atomic.Int64 // requests answered or failed so far
	Errors  atomic.Int64 // of these, failed
	Planned atomic.Int64 // requests at most; 0: not known
	Decided atomic.Int64 // names decided (Probe), cores found (FindNames)
	Names   atomic.Int64 // names asked about (Probe), cores wanted (FindNames)
	Heard   atomic.Int64 // cores that answered
	Cores   atomic.Int64 // cores there are; 0: not known
}

// Run is what every result of this package says of its run.
type Run struct {
	// Target is the target's name.
	Target string `json:"target"`
	// Cores are the cores there are, as far as known: the dataplane's own
	// count for each blade seen, or those that answered.
	Cores []timingstats.CoreID `json:"known_cores"`
	// Missing are the known cores that did not answer.
	Missing []timingstats.CoreID `json:"missing"`
	// MissChance is the chance that a core with an equal share of the
	// connections would have gone unheard in as many requests.
	MissChance float64       `json:"miss_chance"`
	Accounting Accounting    `json:"requests"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	// Partial says that the run was cut short.
	Partial  bool              `json:"partial,omitempty"`
	Verdicts []verdict.Verdict `json:"verdicts"`
	Warnings []string          `json:"warnings,omitempty"`
}
