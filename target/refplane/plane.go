// Package refplane is the reference dataplane: a shared-nothing engine of N
// cores, small enough to embed and real enough to show what writes to
// somebody else's storage cost.
package refplane

import (
	"context"

	"tbl/target"
)

// Plane is a dataplane in this process. All methods are safe for concurrent
// use.
type Plane struct {
	cfg Config
}

var _ target.Target = (*Plane)(nil)

// New starts a dataplane. Close ends it.
func New(cfg Config) (*Plane, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Plane{cfg: cfg}, nil
}

// Do serves req on the core that the disaggregator picks for req.Conn; where
// that is zero or has unset parts, these are invented.
func (p *Plane) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	return &target.Error{Class: target.ClassClosed}
}

// Clock is the wall's, or the simulation's.
func (p *Plane) Clock() target.Clock { return target.Wall{} }

// Name is "embedded".
func (p *Plane) Name() string { return "embedded" }

// Close waits for the requests under way, ends the cores and writes out the
// log. Calling it again does nothing.
func (p *Plane) Close() error { return nil }

// OwnerOf is the core that owns the subtable. It is the oracle for tests and
// for reports about names that were built, not found: measuring code must
// learn owners by asking.
func (p *Plane) OwnerOf(name []byte) int { return 0 }

// CoreOf is the core that accepts the connection: the oracle for tests of
// steering.
func (p *Plane) CoreOf(c target.Conn) int { return 0 }

// Config is the configuration in force, defaults filled in, the drawn seed
// included.
func (p *Plane) Config() Config { return p.cfg }

// Warnings are doubts about the configuration that a report should print.
func (p *Plane) Warnings() []string { return nil }

// FlushLog returns when every line sampled before the call has been written
// to Config.Log, or with the writer's first error.
func (p *Plane) FlushLog() error { return nil }

// LogLines is how many lines were written to the log so far, those of
// chatty-log included, and how many were dropped because the writer was too
// slow.
func (p *Plane) LogLines() (written, dropped int64) { return 0, 0 }
