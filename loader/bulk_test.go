package loader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
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

// A core whose thread waits for a processor has slow batches among fast ones;
// that is no sign of another owner.
func TestBulkHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 2, answer: func(n int64, _ *target.Request, ans *target.Answer) {
			if ans.Core == 1 && n%8 > 2 {
				ans.Clicks *= 50
			}
		}}
		r, err := Bulk(t.Context(), f, BulkConfig{UUIDsPerPost: 100, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if state(r.Verdicts, verdict.Locality) != verdict.Pass || len(r.Warnings) != 1 {
			t.Errorf("warnings %q, verdicts %+v", r.Warnings, r.Verdicts)
		}
	})
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
		src, err := OpenCSV(&in, CSVOptions{KeyOnly: true})
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
	src, err := OpenCSV(strings.NewReader("a\nlong key\n"), CSVOptions{KeyOnly: true})
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
		_, err := OpenCSV(strings.NewReader(in), CSVOptions{KeyOnly: true})
		var bad *source.CSVError
		if !errors.As(err, &bad) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}
