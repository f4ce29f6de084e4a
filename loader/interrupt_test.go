package loader_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tbl/loader"
	"tbl/target/refplane"
	"tbl/target/remote"
)

// Ctrl-C at any moment: what was counted as done was done.
func TestInterruptedOverHTTP(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 2})
	addr, _ := serve(t, p, "127.0.0.1:0")
	for _, after := range []int64{0, 1, 100, 777} {
		var progress loader.Progress
		before, _ := written(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for progress.Completed.Load() < after {
				time.Sleep(100 * time.Microsecond)
			}
			cancel()
		}()
		r, err := loader.Load(ctx, client(t, addr, remote.Config{}), loader.LoadConfig{
			Count: 100_000, KeyPrefix: fmt.Sprint("k", after), Workers: 8, Progress: &progress})
		if err != nil {
			t.Fatal(err)
		}
		adds(t, r.Accounting)
		now, _ := written(t, p)
		if !r.Partial || now-before < r.OK || now-before > r.Sent {
			t.Errorf("partial %v; the server did %d writes, ok %d of %d", r.Partial, now-before, r.OK, r.Sent)
		}
	}
}
