// Package targettest is one conformance suite for every target.Target: what
// the tools rely on, asked through the contract alone.
package targettest

import (
	"testing"

	"tbl/target"
)

// Options says what a target can't be held to. The zero value asks for all.
type Options struct {
	// NoTable: the target has no OpTable, OpMeta, OpNames, OpResetName.
	NoTable bool
	// NoReload: the target has no OpReload and no OpStats.
	NoReload bool
}

// Run runs the suite. newTarget makes a fresh, empty target and registers its
// own clean-up with t; targets are not shared between subtests.
func Run(t *testing.T, newTarget func(t *testing.T) target.Target, opts Options) {
	t.Helper()
}
