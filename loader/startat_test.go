package loader

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tbl/target"
)

// TestStartAt: the first request waits for its moment, and the saved start is
// that moment, or the end of the warm-up behind it.
func TestStartAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Minute)
		var first time.Time
		f := &fake{cores: 2, latency: time.Millisecond}
		f.fail = func(n int64, _ *target.Request) error {
			if n == 0 {
				first = time.Now().Add(-f.latency)
			}
			return nil
		}
		r, err := Load(context.Background(), f, LoadConfig{Duration: time.Second, Warmup: 100 * time.Millisecond, Workers: 2, StartAt: at})
		if err != nil {
			t.Fatal(err)
		}
		if !first.Equal(at) || !r.Runs[0].Started.Equal(at.Add(100*time.Millisecond)) {
			t.Errorf("first request at %v, figures from %v, want %v and 100ms later", first, r.Runs[0].Started, at)
		}

		at = time.Now().Add(time.Minute)
		b, err := Bulk(context.Background(), f, BulkConfig{NumPosts: 4, UUIDsPerPost: 10, StartAt: at})
		if err != nil {
			t.Fatal(err)
		}
		if !b.Runs[0].Started.Equal(at) {
			t.Errorf("bulk load from %v, want %v", b.Runs[0].Started, at)
		}

		// A moment that has passed is no reason to wait.
		before := time.Now()
		if r, err = Load(context.Background(), f, LoadConfig{Count: 10, Workers: 1, StartAt: before.Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if !r.Runs[0].Started.Equal(before) {
			t.Errorf("began %v late", r.Runs[0].Started.Sub(before))
		}
	})
}

// TestStartAtInterrupted: who gives up while waiting has sent nothing, and
// nothing is left running.
func TestStartAtInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 2}
		at := time.Now().Add(time.Hour)
		for name, run := range map[string]func(context.Context) (Accounting, bool, int, error){
			"load": func(ctx context.Context) (Accounting, bool, int, error) {
				r, err := Load(ctx, f, LoadConfig{Count: 10, StartAt: at})
				return r.Accounting, r.Partial, len(r.Runs), err
			},
			"bulk": func(ctx context.Context) (Accounting, bool, int, error) {
				r, err := Bulk(ctx, f, BulkConfig{NumPosts: 4, UUIDsPerPost: 10, StartAt: at})
				return r.Accounting, r.Partial, len(r.Runs), err
			},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			a, partial, runs, err := run(ctx)
			cancel()
			if err != nil || !partial || a.Sent != 0 || runs != 0 {
				t.Errorf("%s: sent %d in %d runs, partial %t, %v", name, a.Sent, runs, partial, err)
			}
		}
	})
}
