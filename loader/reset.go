package loader

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"tbl/target"
	"tbl/timingstats"
)

// resetAll resets every core: it goes on connecting until each of the known
// ones has answered; when one doesn't, the error is a *notCleared. known 0: as
// many connections as 64 cores would need.
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
		answered    int64
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
				answered++
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
	}
	return total.Load(), &notCleared{cores: known * max(1, len(slots)), heard: slices.SortedFunc(maps.Keys(heard), timingstats.CoreID.Compare), answered: answered, first: first}
}

// notCleared is a reset that didn't reach every core, an ErrNotCleared. It
// tells which cores there are to hear: no run that could has begun.
type notCleared struct {
	cores    int // there are on the blades heard, 0: not said
	heard    []timingstats.CoreID
	answered int64 // requests
	first    error // of a request; nil: none failed
}

func (e *notCleared) Error() string {
	if e.first != nil {
		return fmt.Sprintf("%v: %d of %d cores: %v", ErrNotCleared, len(e.heard), e.cores, e.first)
	}
	return fmt.Sprintf("%v: %d of %d cores answered", ErrNotCleared, len(e.heard), e.cores)
}

func (e *notCleared) Unwrap() []error {
	if e.first != nil {
		return []error{ErrNotCleared, e.first}
	}
	return []error{ErrNotCleared}
}
