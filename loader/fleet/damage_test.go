package fleet

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tbl/loader"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
)

// TestDamaged: a run that contradicts itself is refused by name.
func TestDamaged(t *testing.T) {
	ok := at(loadOf(t, steady(6*time.Second, 10*time.Millisecond)), time.Second)
	series := func(r *loader.LoadResult) *timingstats.SeriesSummary { return &r.Runs[0].Series }
	for name, c := range map[string]struct {
		want   string
		change func(r *loader.LoadResult)
	}{
		"negative":         {"sent is -600", func(r *loader.LoadResult) { r.Sent = -600 }},
		"huge":             {"ok is 9007199254740992", func(r *loader.LoadResult) { r.OK = 1 << 53 }},
		"huge elapsed":     {"elapsed_ns is 4611686018427387904", func(r *loader.LoadResult) { r.Runs[0].ElapsedNS = 1 << 62 }},
		"sent":             {"sent is 601, ok and failed together 600", func(r *loader.LoadResult) { r.Sent++ }},
		"errors":           {"failed is 1, its errors together 0", func(r *loader.LoadResult) { r.Sent, r.Failed = 601, 1 }},
		"negative error":   {"is -1", func(r *loader.LoadResult) { r.Errors = []loader.ErrorCount{{Class: target.ClassTimeout, Count: -1}} }},
		"no cores":         {"ok is 600, that of its cores together 0", func(r *loader.LoadResult) { r.Cores = nil }},
		"core's writes":    {"ok is 600, that of its cores together 605", func(r *loader.LoadResult) { r.Cores[0].Writes += 5 }},
		"core twice":       {"TMM 0 is listed twice", func(r *loader.LoadResult) { r.Cores[1].Core = r.Cores[0].Core }},
		"warm-up":          {"warmup_sent is 601 of 600", func(r *loader.LoadResult) { r.WarmupSent = 601 }},
		"run":              {"its run has 599 sent", func(r *loader.LoadResult) { r.Runs[0].Sent = 599 }},
		"histogram's n":    {"response is of 600 values, response_hist of 599", func(r *loader.LoadResult) { r.ResponseHist.N = 599 }},
		"times missing":    {"ok is 600, response_hist of 599", func(r *loader.LoadResult) { r.ResponseHist.N, r.Response.N = 599, 599 }},
		"minimum":          {"a distribution from -1", func(r *loader.LoadResult) { r.ResponseHist.Min = -1 }},
		"maximum":          {"a distribution from 1000000 to 0", func(r *loader.LoadResult) { r.Cores[1].ResponseHist.Max = 0 }},
		"completions":      {"all has -5 at point 2", func(r *loader.LoadResult) { series(r).All.Completions[1] = -5 }},
		"core completions": {"TMM 1 has -5 at point 2", func(r *loader.LoadResult) { p := series(r).Cores[timingstats.CoreID{Core: 1}]; p.Completions[1] = -5 }},
		"together":         {"completions at point 3 are 99 together", func(r *loader.LoadResult) { p := series(r).Cores[timingstats.CoreID{Core: 1}]; p.Completions[2]-- }},
		"too many points":  {"all has 8 points of 7", func(r *loader.LoadResult) { series(r).All.Completions = append(series(r).All.Completions, 0) }},
		"end":              {"of a run of 6000000000 ns", func(r *loader.LoadResult) { series(r).EndNS++ }},
		"progress":         {"600 completions, its progress has 601", func(r *loader.LoadResult) { series(r).Progress[3].Completions++ }},
		"progress's end":   {"a part of its progress", func(r *loader.LoadResult) { series(r).Progress[3].EndNS = 1 << 60 }},
		"failures":         {"7 errors, of 0 requests", func(r *loader.LoadResult) { series(r).All.Errors = []int64{7} }},
	} {
		bad := loadOf(t, steady(6*time.Second, 10*time.Millisecond))
		c.change(bad)
		_, _, err := Loads(parts(ok, bad), Config{})
		if !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "b") || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}

// faulty is a dataplane of whose requests every seventh fails, in one of three
// ways.
type faulty struct {
	target.Target
	n atomic.Int64
}

func (f *faulty) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := f.Target.Do(ctx, req, ans)
	if req.Op != target.OpLoad && req.Op != target.OpBulkLoad {
		return err
	}
	n := f.n.Add(1)
	switch {
	case n%7 != 0 || err != nil:
		return err
	case n%21 == 0 && req.Op == target.OpBulkLoad:
		ans.Written--
		return nil
	case n%14 == 0:
		return &target.Error{Class: target.ClassTimeout, Completion: target.CompletionMaybe, Err: errors.New("late")}
	}
	return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached, Err: errors.New("refused")}
}

// TestHealthyIsNoDamage: whatever befalls a run, what it saves fits together.
func TestHealthyIsNoDamage(t *testing.T) {
	refused := func(v view) string { return v.contradiction() + v.damaged() }
	for seed := range uint64(4) {
		for _, retries := range []int{0, 2} {
			p, err := refplane.New(refplane.Config{Cores: 4, Seed: seed + 1, Clock: refplane.Model})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, cfg := range []loader.LoadConfig{
				{Count: 2000}, {Count: 2000, Warmup: 20 * time.Millisecond}, {Count: 500, Warmup: time.Hour}, {Count: 1500, Rate: 1000, Warmup: 500 * time.Millisecond}, {},
			} {
				cfg.Seed, cfg.Retries, cfg.MaxErrors = seed, retries, 1
				r, err := loader.Load(context.Background(), &faulty{Target: p}, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if retries == 0 && r.Sent > 100 && r.Failed == 0 {
					t.Errorf("seed %d, %+v: nothing failed", seed, cfg)
				}
				if why := refused(view{
					acc: &r.Accounting, writes: r.OK, requested: r.Requested, runs: r.Runs, response: r.Response, hist: r.ResponseHist,
					workers: r.Workers, known: r.KnownCores, ports: r.SourcePorts, inside: insideLoad(r),
				}); why != "" {
					t.Errorf("seed %d, %+v: %s", seed, cfg, why)
				}
			}
			b, err := loader.Bulk(context.Background(), &faulty{Target: p}, loader.BulkConfig{NumPosts: 200, UUIDsPerPost: 20, Seed: seed, Retries: retries, MaxErrors: 1})
			if err != nil {
				t.Fatal(err)
			}
			if b.Mismatches == 0 {
				t.Errorf("seed %d: no mismatch", seed)
			}
			if why := refused(view{
				acc: &b.Accounting, writes: b.Written, requested: b.Requested, runs: b.Runs, response: b.Response, hist: b.ResponseHist,
				workers: b.Workers, known: b.KnownCores, ports: b.SourcePorts, inside: insideBulk(b),
			}); why != "" {
				t.Errorf("seed %d: bulk: %s", seed, why)
			}
		}
	}
}
