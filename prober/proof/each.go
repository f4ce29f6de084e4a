package proof

import (
	"context"
	"sync"

	"tbl/target"
)

// Outcome is what Run returned for one of several targets.
type Outcome struct {
	Result *Result
	Err    error
}

// RunEach runs one proof per target, all at the same time, each in the time of
// its own target, and returns the outcomes in the order of the targets. config
// is called for each before any starts; what it returns must not be shared
// (a Log, a Progress).
func RunEach(ctx context.Context, targets []target.Target, config func(i int) Config) []Outcome {
	out := make([]Outcome, len(targets))
	configs := make([]Config, len(targets))
	for i := range targets {
		configs[i] = config(i)
	}
	var wg sync.WaitGroup
	for i, tgt := range targets {
		wg.Go(func() { out[i].Result, out[i].Err = Run(ctx, tgt, configs[i]) })
	}
	wg.Wait()
	return out
}
