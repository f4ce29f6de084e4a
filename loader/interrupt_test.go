package loader_test

import (
	"context"
	"fmt"
	"testing"

	"tbl/loader"
	"tbl/target/refplane"
	"tbl/target/remote"
)

// Ctrl-C at any moment: what was counted as done was done.
func TestInterruptedOverHTTP(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 2})
	addr, _ := serve(t, p, "127.0.0.1:0")
	// A request that was cut off may be served after its run has ended, so that
	// the server's count is held against all runs so far.
	var ok, sent int64
	for i, after := range []int64{0, 1, 100, 777, 0, 1, 100, 777} {
		var progress loader.Progress
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			await(ctx, t, &progress, after)
		}()
		r, err := loader.Load(ctx, client(t, addr, remote.Config{Portable: i < 4}), loader.LoadConfig{
			Count: 100_000, KeyPrefix: fmt.Sprint("k", i), Workers: 8, Progress: &progress})
		if err != nil {
			t.Fatal(err)
		}
		adds(t, r.Accounting)
		ok, sent = ok+r.OK, sent+r.Sent
		if now, _ := written(t, p); !r.Partial || now < ok || now > sent {
			t.Errorf("partial %v; the server did %d writes, ok %d of %d", r.Partial, now, ok, sent)
		}
	}
}
