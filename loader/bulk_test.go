package loader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tbl/loader/source"
	"tbl/target"
	"tbl/timingstats/verdict"
)

func TestBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 100 * time.Millisecond}
		var p Progress
		r, err := Bulk(t.Context(), f, BulkConfig{UUIDsPerPost: 100, Progress: &p})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 64 || r.Written != 6400 || r.KeysSent != 6400 || r.Partial || r.BytesSent != 6400*37 {
			t.Errorf("sent %d, written %d of %d, %d bytes", r.Sent, r.Written, r.KeysSent, r.BytesSent)
		}
		// 64 posts by 16 workers: 4 times 100 ms.
		if r.ElapsedNS != 400e6 || r.WritesPerS != 16_000 {
			t.Errorf("elapsed %d, %v/s", r.ElapsedNS, r.WritesPerS)
		}
		if len(r.Cores) != 4 || r.Cores[0].Posts != 16 || r.Cores[0].Writes != 1600 || r.Cores[0].AvgClicks != 5 || r.Cores[0].Batches.N != 16 {
			t.Errorf("cores %+v", r.Cores)
		}
		if p.Completed.Load() != 6400 || p.Total.Load() != 6400 {
			t.Errorf("progress %d of %d", p.Completed.Load(), p.Total.Load())
		}
		if state(r.Verdicts, verdict.Locality) != verdict.Pass || verdict.Overall(r.Verdicts, true) != verdict.Pass {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

func TestBulkRemoteCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 2, answer: func(_ int64, _ *target.Request, ans *target.Answer) {
			if ans.Core == 1 {
				ans.Clicks *= 300
			}
		}}
		r, err := Bulk(t.Context(), f, BulkConfig{UUIDsPerPost: 100})
		if err != nil {
			t.Fatal(err)
		}
		if state(r.Verdicts, verdict.Locality) != verdict.Fail {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

// Every batch counts: slow ones are not excused by fast ones of the same core.
func TestBulkLocality(t *testing.T) {
	for _, tc := range []struct {
		name   string
		posts  int
		slow   func(n int64) bool // of core 1's batches, counted from 0
		state  verdict.State
		word   string
		warned bool
	}{
		{"all fast", 400, func(int64) bool { return false }, verdict.Pass, "OK", false},
		{"nearly all slow", 400, func(n int64) bool { return n >= 9 }, verdict.Fail, "LOCALITY ISSUE", false},
		{"half slow", 400, func(n int64) bool { return n%2 == 0 }, verdict.Fail, "LOCALITY ISSUE", false},
		{"a tenth slow", 2000, func(n int64) bool { return n%10 == 0 }, verdict.Fail, "LOCALITY ISSUE", false},
		{"one in fifty slow", 400, func(n int64) bool { return n%50 == 0 }, verdict.Pass, "OK", true},
		{"too few", 8, func(int64) bool { return false }, verdict.NotJudged, "not judged", false},
		{"too few, and one slow", 16, func(n int64) bool { return n == 0 }, verdict.NotJudged, "not judged", true},
		{"too few, and most slow", 8, func(n int64) bool { return n < 3 }, verdict.Incomplete, "INCOMPLETE", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{cores: 2, answer: func(n int64, _ *target.Request, ans *target.Answer) {
					if ans.Core == 1 && tc.slow(n/2) {
						ans.Clicks *= 500
					}
				}}
				r, err := Bulk(t.Context(), f, BulkConfig{NumPosts: tc.posts, UUIDsPerPost: 100, Workers: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range r.Verdicts {
					if v.Name == verdict.Locality && (v.State != tc.state || v.Word() != tc.word) {
						t.Errorf("%v: %s", v.State, v.Line)
					}
				}
				if got := len(r.Warnings) == 1; got != tc.warned {
					t.Errorf("warnings %q", r.Warnings)
				}
			})
		})
	}
}

// The least clicks per write of a core are those of its fastest batch, in
// whatever order workers hand them in.
func TestMinClicks(t *testing.T) {
	const cores = 4000 // each core's first batches can meet
	c := newCollector(nil, &fake{cores: cores}, cores)
	c.threshold = 100
	c.beginRun(time.Time{})
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			<-start
			for core := range cores {
				c.addBatch(&outcome{keys: 10}, &target.Answer{Core: core, Written: 10, Clicks: int64(10 * (i + 3))})
			}
		})
	}
	close(start)
	all.Wait()
	for _, s := range c.cores {
		if s.minClicks != 3 || s.maxClicks != 10 {
			t.Fatalf("core %v: clicks per write from %v to %v, want 3 to 10", s.id, s.minClicks, s.maxClicks)
		}
	}
}

func TestBulkMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 2, answer: func(n int64, _ *target.Request, ans *target.Answer) {
			if n == 6 {
				ans.Written--
			}
		}}
		r, err := Bulk(t.Context(), f, BulkConfig{UUIDsPerPost: 10, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Mismatches != 1 || r.OK != 63 || r.Written != 630 || r.Errors[0].Example != "malformed: post 7: written=9 for 10 keys" {
			t.Errorf("mismatches %d, %+v", r.Mismatches, r.Accounting)
		}
	})
}

func TestBulkSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in bytes.Buffer
		for i := range 1000 {
			fmt.Fprintf(&in, "key_%03d\n", i)
		}
		src, err := source.OpenCSV(&in, source.CSVOptions{KeyOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan string, 2000)
		f := &fake{cores: 2, answer: func(_ int64, req *target.Request, _ *target.Answer) {
			if len(req.Body) > 80 {
				t.Errorf("body of %d bytes", len(req.Body))
			}
			for line := range strings.Lines(string(req.Body)) {
				seen <- line
			}
		}}
		r, err := Bulk(t.Context(), f, BulkConfig{Source: src, BatchBytes: 80, Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		close(seen)
		keys := map[string]int{}
		for k := range seen {
			keys[k]++
		}
		if r.Written != 1000 || len(keys) != 1000 || r.Sent < 100 {
			t.Errorf("written %d, %d keys in %d posts", r.Written, len(keys), r.Sent)
		}
	})
}

func TestBulkRefusesLongKeysBeforeSending(t *testing.T) {
	src, err := source.OpenCSV(strings.NewReader("a\nlong key\n"), source.CSVOptions{KeyOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{cores: 2}
	if _, err := Bulk(t.Context(), f, BulkConfig{Source: src, BatchBytes: 8}); !errors.Is(err, ErrConfig) || f.n.Load() != 0 {
		t.Errorf("error %v, %d requests", err, f.n.Load())
	}
}

func TestBulkRefusesKeysBeforeSending(t *testing.T) {
	for _, in := range []string{"a\n\"b\nc\"\n", "\"a\rb\"\n", "a\n\"\"\n"} {
		_, err := source.OpenCSV(strings.NewReader(in), source.CSVOptions{KeyOnly: true})
		var bad *source.CSVError
		if !errors.As(err, &bad) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}
