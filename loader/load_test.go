package loader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tbl/loader/source"
	"tbl/target"
	"tbl/timingstats/verdict"
)

func state(vs []verdict.Verdict, name verdict.Name) verdict.State {
	for _, v := range vs {
		if v.Name == name {
			return v.State
		}
	}
	return verdict.NotJudged
}

func TestCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: time.Millisecond, writes: map[string]string{}}
		var p Progress
		r, err := Load(t.Context(), f, LoadConfig{Count: 1000, Workers: 10, Progress: &p})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 1000 || r.OK != 1000 || r.Partial || r.Mode != "count" {
			t.Errorf("sent %d, ok %d, partial %v, mode %s", r.Sent, r.OK, r.Partial, r.Mode)
		}
		if len(f.writes) != 1000 || f.writes["loadkey_999"] != "1" {
			t.Errorf("%d keys written, loadkey_999=%q", len(f.writes), f.writes["loadkey_999"])
		}
		// 1,000 writes of 1 ms by 10 workers: 100 ms, 100 µs of wall time each.
		if r.ElapsedNS != 100e6 || r.WritesPerS != 10_000 || r.WallPerWriteNS != 100_000 {
			t.Errorf("elapsed %d ns, %v/s, %v ns per write", r.ElapsedNS, r.WritesPerS, r.WallPerWriteNS)
		}
		if r.Response.P50NS != 1e6 || r.Response.MaxNS != 1e6 || r.Response.N != 1000 {
			t.Errorf("response %+v", r.Response)
		}
		if len(r.Cores) != 4 || r.Cores[3].Writes != 250 || r.Cores[3].Share != 0.25 || len(r.Missing) != 0 {
			t.Errorf("cores %+v missing %v", r.Cores, r.Missing)
		}
		if p.Completed.Load() != 1000 || p.Total.Load() != 1000 || p.Heard.Load() != 4 || p.Known.Load() != 4 || len(p.Missing()) != 0 {
			t.Errorf("progress: completed %d of %d, heard %d of %d", p.Completed.Load(), p.Total.Load(), p.Heard.Load(), p.Known.Load())
		}
		if verdict.Overall(r.Verdicts, true) != verdict.Pass {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

// The published figure: 100,000 writes in 22.9 s are 229 µs of wall time each.
func TestWallTimePerWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 7328 * time.Microsecond} // 22.9 s · 32 workers / 100,000
		r, err := Load(t.Context(), f, LoadConfig{Count: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.0f/s %.0f µs", r.WritesPerS, r.WallPerWriteNS/1000); got != "4367/s 229 µs" {
			t.Errorf("got %s", got)
		}
	})
}

func TestCoverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: time.Millisecond}
		r, err := Load(t.Context(), f, LoadConfig{Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent < 20 || r.Sent > 24 || r.Mode != "coverage" {
			t.Errorf("sent %d, mode %s", r.Sent, r.Mode)
		}
		dead := &fake{cores: 4, core: func(n int64, _ *target.Request) int { return int(n) % 3 }}
		r, err = Load(t.Context(), dead, LoadConfig{MaxConnections: 300})
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent != 300 || len(r.Missing) != 1 || r.Missing[0].Core != 3 {
			t.Errorf("sent %d, missing %v", r.Sent, r.Missing)
		}
		if state(r.Verdicts, verdict.Coverage) != verdict.Incomplete || state(r.Verdicts, verdict.Uniformity) != verdict.NotJudged {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

func TestErrorsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: time.Millisecond, fail: func(n int64, _ *target.Request) error {
			switch n % 10 {
			case 3:
				return refused()
			case 6:
				return &target.Error{Class: target.ClassHTTP5xx, Completion: target.CompletionYes, Status: 503}
			}
			return nil
		}}
		r, err := Load(t.Context(), f, LoadConfig{Count: 1000, Workers: 7})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 1000 || r.OK != 800 || len(r.Errors) != 2 || r.Errors[1].Class != target.ClassHTTP5xx || r.Errors[1].Example != "http-5xx: status 503" {
			t.Errorf("accounting %+v", r.Accounting)
		}
		if r.Response.N != 800 {
			t.Errorf("failed requests entered the percentiles: n = %d", r.Response.N)
		}
		if state(r.Verdicts, verdict.Errors) != verdict.Fail {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

func TestRetriesOnlyWhatDidNotArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, fail: func(n int64, _ *target.Request) error {
			switch n % 10 {
			case 3:
				return refused()
			case 6:
				return &target.Error{Class: target.ClassReset, Completion: target.CompletionMaybe}
			}
			return nil
		}}
		r, err := Load(t.Context(), f, LoadConfig{Count: 500, Workers: 1, Retries: 3})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 500 || r.Retries == 0 || len(r.Errors) != 1 || r.Errors[0].Class != target.ClassReset {
			t.Errorf("accounting %+v", r.Accounting)
		}
		if f.n.Load() != r.Sent+r.Retries {
			t.Errorf("%d attempts at the target, sent %d + retries %d", f.n.Load(), r.Sent, r.Retries)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50500*time.Microsecond)
		defer cancel()
		f := &fake{cores: 4, latency: time.Millisecond}
		r, err := Load(ctx, f, LoadConfig{Count: 100_000, Workers: 8})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if !r.Partial || r.OK != 400 || r.Sent != 408 || r.Stop != "interrupted" {
			t.Errorf("partial %v %q, ok %d, sent %d", r.Partial, r.Stop, r.OK, r.Sent)
		}
		if s := state(r.Verdicts, verdict.Errors); s == verdict.Fail {
			t.Errorf("requests that the caller cut off count as failures of the target: %+v", r.Verdicts)
		}
	})
}

func TestNoTarget(t *testing.T) {
	info := func(err error) target.Target { return &infoFails{fake: fake{cores: 4}, err: err} }
	tests := []struct {
		name string
		tgt  target.Target
		want error
	}{
		{"refused", info(refused()), ErrUnreachable},
		{"timeout", info(&target.Error{Class: target.ClassTimeout}), ErrUnreachable},
		{"200 to everything", info(&target.Error{Class: target.ClassMalformed, Status: 200}), ErrNoDataplane},
		{"404", info(&target.Error{Class: target.ClassHTTP4xx, Status: 404}), ErrNoDataplane},
		{"info only", &fake{cores: 4, fail: func(int64, *target.Request) error {
			return &target.Error{Class: target.ClassHTTP4xx, Status: 404}
		}}, ErrNoDataplane},
		{"gone at once", &fake{cores: 4, fail: func(int64, *target.Request) error { return refused() }}, ErrUnreachable},
		{"no right", &fake{cores: 4, fail: func(int64, *target.Request) error {
			return &target.Error{Class: target.ClassHTTP4xx, Status: 401}
		}}, ErrAllFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := Load(t.Context(), tt.tgt, LoadConfig{Count: 100_000})
				if !errors.Is(err, tt.want) {
					t.Fatalf("load: error %v, want %v", err, tt.want)
				}
				checkAccount(t, r.Accounting)
				if r.Sent > 300 || !r.Partial && r.Sent > 0 {
					t.Errorf("went on for %d requests", r.Sent)
				}
				b, err := Bulk(t.Context(), tt.tgt, BulkConfig{UUIDsPerPost: 10, NumPosts: 1000})
				if !errors.Is(err, tt.want) {
					t.Fatalf("bulk: error %v, want %v", err, tt.want)
				}
				checkAccount(t, b.Accounting)
			})
		})
	}
}

type infoFails struct {
	fake
	err error
}

func (f *infoFails) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpInfo {
		return f.err
	}
	return f.fake.Do(ctx, req, ans)
}

func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, err := source.OpenCSV(strings.NewReader("key,value\na,1\n\"b,\"\"\n\",2\n"), source.CSVOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{cores: 2, writes: map[string]string{}}
		r, err := Load(t.Context(), f, LoadConfig{Source: src, SourceRows: src.Rows()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent != 2 || r.Requested != 2 || f.writes["a"] != "1" || f.writes["b,\"\n"] != "2" {
			t.Errorf("sent %d, wrote %q", r.Sent, f.writes)
		}
	})
}

func TestValidate(t *testing.T) {
	one := 1
	neg := -1
	good := []LoadConfig{{}, {Count: 5}, {Rate: 100, Ramp: time.Second}, {OnlyCore: &one}, {MaxImbalance: 1}, {MaxImbalance: 30}, {Stages: []Stage{{Duration: time.Second, Rate: 5}}}}
	for _, c := range good {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	bad := []LoadConfig{
		{Count: -1}, {Workers: -1}, {Rate: -1}, {Ramp: time.Second}, {Retries: -1}, {OnlyCore: &neg},
		{Count: 5, Source: &source.CSV{}}, {MaxErrors: 1.1}, {MaxImbalance: 0.9}, {MaxImbalance: -1}, {MaxImbalance: math.NaN()}, {MaxImbalance: math.Inf(1)}, {Runs: -1}, {Runs: 2, Source: &source.CSV{}},
		{Duration: time.Second, Warmup: time.Second}, {Rate: 1, Stages: []Stage{{Duration: 1, Rate: 1}}},
		{Stages: []Stage{{Rate: 1}}}, {Keys: 99},
	}
	for _, c := range bad {
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	badBulk := []BulkConfig{{NumPosts: -1}, {UUIDsPerPost: 453_439}, {BatchBytes: 20}, {BatchBytes: MaxBody + 1}, {Workers: -1}, {Runs: -1}, {MaxImbalance: 0.9}}
	for _, c := range badBulk {
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	if err := (&BulkConfig{UUIDsPerPost: 453_438}).Validate(); err != nil {
		t.Error(err)
	}
}
