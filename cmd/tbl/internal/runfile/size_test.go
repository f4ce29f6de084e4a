package runfile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
	"tbl/target"
)

// hour is a target of many cores in a time of its own, for one worker.
type hour struct {
	cores int
	now   time.Time
	rng   *rand.Rand
	n     int
}

func (h *hour) Name() string                  { return "hour" }
func (h *hour) Close() error                  { return nil }
func (h *hour) Clock() target.Clock           { return h }
func (h *hour) Now() time.Time                { return h.now }
func (h *hour) Virtual() bool                 { return true }
func (h *hour) Run(n int, worker func(i int)) { worker(0) }
func (h *hour) Sleep(ctx context.Context, d time.Duration) error {
	h.now = h.now.Add(max(d, 0))
	return ctx.Err()
}

// Do takes about as long as a core's share of a second: after an hour every
// core has something to say about each second.
func (h *hour) Do(_ context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	switch req.Op {
	case target.OpInfo:
	case target.OpStats:
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404}
	default:
		h.n++
		h.now = h.now.Add(time.Duration(float64(time.Second) / float64(h.cores) * (0.5 + h.rng.ExpFloat64()/2)))
		if h.n%1000 == 0 {
			return &target.Error{Class: target.ClassReset, Completion: target.CompletionMaybe}
		}
		ans.Key = append(ans.Key, req.Key...)
		for _, c := range req.Body {
			if c == '\n' {
				ans.Written++
			}
		}
		ans.Clicks = ans.Written * int64(4+h.rng.IntN(5))
	}
	ans.Core, ans.Cores = h.n%h.cores, h.cores
	return nil
}

// anHour is an hour of the real accumulator at so many cores, in an open loop
// with its two distributions per core or as batches, as it is saved.
func anHour(t testing.TB, cores int, bulk bool) []byte {
	t.Helper()
	h := &hour{cores: cores, now: time.Unix(1_767_225_600, 0), rng: rand.New(rand.NewPCG(1, 2))}
	var result any
	var err error
	command := "load"
	if bulk {
		command = "bulk-post"
		result, err = loader.Bulk(context.Background(), h, loader.BulkConfig{NumPosts: 3600 * cores, UUIDsPerPost: 20, Workers: 1, Seed: 1, ReuseBodies: true})
	} else {
		result, err = loader.Load(context.Background(), h, loader.LoadConfig{Duration: time.Hour, Rate: float64(cores), Workers: 1, Seed: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	f := &runfile.File{Header: runfile.Header{Schema: runfile.Schema, Version: runfile.Version, Command: command, Started: h.now, Environment: runfile.Here("devel")}}
	if err := json.Unmarshal(raw, &f.Fields); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestHourAt256Cores: a run file of an hour at 256 cores stays under 5 MB,
// with room for counts as a fast dataplane makes them.
func TestHourAt256Cores(t *testing.T) {
	const limit, cores = 5_000_000, 256
	for name, bulk := range map[string]bool{"load": false, "bulk-post": true} {
		raw := anHour(t, cores, bulk)
		f, err := runfile.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		var load loader.LoadResult
		var posts loader.BulkResult
		runs := &load.Runs
		if bulk {
			runs, err = &posts.Runs, f.Decode(&posts)
		} else {
			err = f.Decode(&load)
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Header.Command != name {
			t.Errorf("%s: saved as %s", name, f.Header.Command)
		}
		s := (*runs)[0].Series
		points := len(s.StartS)
		if len(s.Cores) != cores || points < 895 || points > 905 || s.StartS[599] != 599 || s.StartS[601] != 610 {
			t.Errorf("%s: %d cores, %d points", name, len(s.Cores), points)
		}
		// Counts here have one digit, or two; there is room for four.
		roomy := len(raw) + 2*cores*points
		t.Logf("%s: %d bytes, with longer counts %d", name, len(raw), roomy)
		if roomy > limit {
			t.Errorf("%s: %d bytes, with longer counts %d, want under %d", name, len(raw), roomy, limit)
		}
	}
}

// BenchmarkOpen reads such a file from disk and decodes it whole.
func BenchmarkOpen(b *testing.B) {
	for _, bulk := range []bool{false, true} {
		raw := anHour(b, 256, bulk)
		path := filepath.Join(b.TempDir(), "run.json")
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("bulk=%t", bulk), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				f, err := runfile.Read(path)
				if err != nil {
					b.Fatal(err)
				}
				if bulk {
					err = f.Decode(new(loader.BulkResult))
				} else {
					err = f.Decode(new(loader.LoadResult))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
