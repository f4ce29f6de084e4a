package loader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"tbl/target"
	"tbl/timingstats"
)

// resetAll resets every core: it goes on connecting until each of the known
// ones has answered. known 0: as many connections as 64 cores would need.
func resetAll(ctx context.Context, tgt target.Target, known, workers int) (deleted int64, err error) {
	limit := int64(100 + 50*known)
	if known == 0 {
		limit = 2000
	}
	var (
		sent, total atomic.Int64
		mu          sync.Mutex
		heard       = map[timingstats.CoreID]bool{}
		slots       = map[int]bool{}
		done        atomic.Bool
		first       error
	)
	tgt.Clock().Run(min(workers, 32), func(int) {
		req := target.Request{Op: target.OpReset}
		var ans target.Answer
		for !done.Load() && ctx.Err() == nil && sent.Add(1) <= limit {
			err := tgt.Do(ctx, &req, &ans)
			mu.Lock()
			if err != nil {
				if first == nil {
					first = err
				}
			} else {
				total.Add(ans.Deleted)
				heard[timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}] = true
				slots[ans.Slot] = true
				if known > 0 && len(heard) >= known*len(slots) {
					done.Store(true)
				}
			}
			mu.Unlock()
		}
	})
	switch {
	case done.Load() || known == 0 && len(heard) > 0:
		return total.Load(), nil
	case ctx.Err() != nil:
		return total.Load(), ctx.Err()
	case first != nil:
		return total.Load(), fmt.Errorf("%w: %d of %d cores: %w", ErrNotCleared, len(heard), known, first)
	}
	return total.Load(), fmt.Errorf("%w: %d of %d cores answered", ErrNotCleared, len(heard), known)
}
