package prober

import (
	"context"
	"errors"

	"tbl/target"
	"tbl/timingstats"
)

// ResetConfig configures Reset.
type ResetConfig struct {
	// Requests is how many are sent. 0: 200, and more where there are so many
	// cores that one would be missed with over 1e-4.
	Requests int
	// Workers is the number of concurrent requests. 0: 32.
	Workers int
	// UntilClean goes on, up to ten times Requests, until the last answer of
	// every core was that it had nothing to delete.
	UntilClean bool
	// AllNames also deletes what is left under other names that the cores know
	// of (orphans of a reload).
	AllNames bool
	// MaxErrors is the share of failed requests that fails the run. 0: 0.01.
	MaxErrors float64
	Progress  *Progress
}

// ResetResult is the answer of Reset.
type ResetResult struct {
	Run
	Resets []CoreReset `json:"resets"` // one per core that answered, in order
	// FirstDeleted and TotalDeleted are sums over the cores.
	FirstDeleted int64 `json:"first_deleted"`
	TotalDeleted int64 `json:"total_deleted"`
	// Clean says that the last answer of every known core was 0.
	Clean bool `json:"clean"`
	// Orphans are the other names that were cleared.
	Orphans []Orphan `json:"orphans,omitempty"`
}

// CoreReset is what a core answered to being reset.
type CoreReset struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// FirstDeleted is what its first answer counted, Last its last, Total the
	// sum of all.
	FirstDeleted int64 `json:"first_deleted"`
	LastDeleted  int64 `json:"last_deleted"`
	TotalDeleted int64 `json:"total_deleted"`
}

// Orphan is a name that no core calls its own any more.
type Orphan struct {
	Subtable string `json:"subtable"`
	Deleted  int64  `json:"deleted"`
}

// Reset deletes the entries of every core's own subtable.
func Reset(ctx context.Context, tgt target.Target, cfg ResetConfig) (*ResetResult, error) {
	return nil, errors.New("reset: not there yet")
}
