package target

import (
	"context"
	"sync"
	"time"
)

// Clock is the time a target lives in: the wall's, or the virtual one of a
// simulation, in which workers are coroutines of one event queue.
//
// A worker under Run shares state with other workers through atomics and
// through values merged after Run has returned. It must not block on a
// channel, a lock held across Do or Sleep, or a timer of its own: under a
// virtual clock only one worker runs at a time, and time passes only in Do
// and Sleep.
type Clock interface {
	// Now is the current time. Differences are monotonic.
	Now() time.Time
	// Sleep pauses the calling worker until d has passed or ctx is done, and
	// returns ctx.Err() in the second case. Not positive: returns at once.
	Sleep(ctx context.Context, d time.Duration) error
	// Run calls worker(0) … worker(n-1) as n concurrent workers and returns
	// when all have returned. Calls may not be nested.
	Run(n int, worker func(i int))
	// Virtual says that time is simulated: environment and wall times are then
	// no part of a result.
	Virtual() bool
}

// Wall is the real clock. The zero value is ready to use.
type Wall struct{}

// Now returns time.Now().
func (Wall) Now() time.Time { return time.Now() }

// Virtual is false.
func (Wall) Virtual() bool { return false }

// Sleep waits for d or for ctx.
func (Wall) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run runs the workers as goroutines.
func (Wall) Run(n int, worker func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { worker(i) })
	}
	wg.Wait()
}
