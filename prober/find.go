package prober

import (
	"context"
	"errors"

	"tbl/target"
	"tbl/timingstats"
)

// FindConfig configures FindNames.
type FindConfig struct {
	// Cores are those that names are wanted for. Nil: all.
	Cores []timingstats.CoreID
	// Pattern is a name with {rand} (8 random letters and digits) or {n} (a
	// running number) in it. "": "sess_{rand}".
	Pattern string
	// Each is the number of names wanted per core. 0: 1.
	Each int
	// Seed makes the names repeatable.
	Seed uint64
	// Requests is the most that is sent in all. 0: as many as the cores need,
	// with a wide margin.
	Requests int
	// Workers, MaxError, Threshold, Steer, KeepEntries: as in ProbeConfig.
	Workers     int
	MaxError    float64
	Threshold   int64
	Steer       bool
	KeepEntries bool
	MaxErrors   float64
	Progress    *Progress
}

// FindResult is the answer of FindNames.
type FindResult struct {
	Run
	Found []CoreNames `json:"found"` // one per wanted core, in order
	// Tried is the number of names that were asked about.
	Tried int `json:"tried"`
	// Removed is the number of the probe's own entries deleted at the end.
	Removed int64 `json:"entries_removed"`
}

// CoreNames are names that a core owns.
type CoreNames struct {
	Core  timingstats.CoreID `json:"core"`
	Names []string           `json:"names"`
}

// FindNames finds names under a pattern for each core, so that an application
// can be configured with them.
func FindNames(ctx context.Context, tgt target.Target, cfg FindConfig) (*FindResult, error) {
	return nil, errors.New("find names: not there yet")
}
