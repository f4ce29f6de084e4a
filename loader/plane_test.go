package loader_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/loader"
	"tbl/loader/source"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

func plane(t *testing.T, cfg refplane.Config) *refplane.Plane {
	t.Helper()
	p, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func fault(t *testing.T, s string) []refplane.Fault {
	t.Helper()
	f, err := refplane.ParseFault(s)
	if err != nil {
		t.Fatal(err)
	}
	return []refplane.Fault{f}
}

func judged(vs []verdict.Verdict, name verdict.Name) verdict.Verdict {
	for _, v := range vs {
		if v.Name == name {
			return v
		}
	}
	return verdict.Verdict{}
}

// Two runs of one seed in virtual time are the same to the byte.
func TestModelClockIsRepeatable(t *testing.T) {
	for _, cfg := range []loader.LoadConfig{
		{Count: 20_000},
		{Count: 5_000, Keys: source.KeysUUID, Rate: 50_000},
		{},
		{Count: 3_000, Steer: true},
		{Count: 2_000, Runs: 3},
	} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			var out [2][]byte
			for i := range out {
				p := plane(t, refplane.Config{Cores: 8, Seed: 42, Clock: refplane.Model})
				r, err := loader.Load(t.Context(), p, cfg)
				if err != nil {
					t.Fatal(err)
				}
				if out[i], err = json.Marshal(r); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(out[0], out[1]) {
				t.Errorf("two runs differ:\n%s\n%s", out[0], out[1])
			}
		})
	}
	t.Run("bulk", func(t *testing.T) {
		var out [2][]byte
		for i := range out {
			p := plane(t, refplane.Config{Cores: 4, Seed: 42, Clock: refplane.Model})
			r, err := loader.Bulk(t.Context(), p, loader.BulkConfig{UUIDsPerPost: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if out[i], err = json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out[0], out[1]) {
			t.Errorf("two runs differ:\n%s\n%s", out[0], out[1])
		}
	})
}

func TestEmbedded(t *testing.T) {
	p := plane(t, refplane.Config{})
	r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK != 20_000 || len(r.Cores) != 4 || judged(r.Verdicts, verdict.Errors).State != verdict.Pass || judged(r.Verdicts, verdict.Coverage).State != verdict.Pass {
		t.Errorf("%+v", r.Verdicts)
	}
	b, err := loader.Bulk(t.Context(), p, loader.BulkConfig{UUIDsPerPost: 1000})
	if err != nil {
		t.Fatal(err)
	}
	// Locality is judged on the model clock: how fast an own write is here
	// depends on what else the machine does.
	if b.Written != 64_000 || judged(b.Verdicts, verdict.Errors).State != verdict.Pass || judged(b.Verdicts, verdict.Coverage).State != verdict.Pass {
		t.Errorf("%+v %+v", b.Verdicts, b.Warnings)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	t.Run("dead-core", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "dead-core=2")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Coverage); v.State != verdict.Incomplete || len(r.Missing) != 1 || r.Missing[0].Core != 2 {
			t.Errorf("missing %v, %+v", r.Missing, v)
		}
	})
	t.Run("deterministic-names", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "deterministic-names")})
		r, err := loader.Bulk(t.Context(), p, loader.BulkConfig{UUIDsPerPost: 200})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Locality); v.State != verdict.Fail {
			t.Errorf("%+v", r.Verdicts)
		}
	})
	t.Run("enumerate-count", func(t *testing.T) {
		p := plane(t, refplane.Config{Cores: 1, Seed: 1, Clock: refplane.Model, Faults: fault(t, "enumerate-count")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 14_000})
		if err != nil {
			t.Fatal(err)
		}
		v := judged(r.Verdicts, verdict.Decay)
		t.Log(v.Line, r.ElapsedNS)
		if v.State != verdict.Fail || !bytes.Contains([]byte(v.Line), []byte("1/n")) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("reload-orphans", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "reload-orphans")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 2000, Runs: 2})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Leak); v.State != verdict.Fail {
			t.Errorf("%+v", r.Verdicts)
		}
	})
	t.Run("dag-skew", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "dag-skew=3")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 2000})
		if err != nil {
			t.Fatal(err)
		}
		if judged(r.Verdicts, verdict.Uniformity).State != verdict.Warn || judged(r.Verdicts, verdict.Balance).State != verdict.Warn {
			t.Errorf("%+v", r.Verdicts)
		}
	})
	t.Run("flap", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "flap")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 2000})
		if err != nil {
			t.Fatal(err)
		}
		adds(t, r.Accounting)
		if judged(r.Verdicts, verdict.Errors).State != verdict.Fail || len(r.Errors) < 2 {
			t.Errorf("%+v", r.Accounting)
		}
	})
	// In a closed loop a stall catches as many requests as there are workers,
	// and the p99 doesn't see it: only a schedule tells.
	for _, workers := range []int{32, 256} {
		t.Run(fmt.Sprintf("stall, %d workers", workers), func(t *testing.T) {
			p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "stall")})
			r, err := loader.Load(t.Context(), p, loader.LoadConfig{Rate: 5000, Duration: 5 * time.Second, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if v := judged(r.Verdicts, verdict.Tail); v.State != verdict.Warn {
				t.Errorf("%+v", v)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 20_000, Runs: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []verdict.Name{verdict.Coverage, verdict.Errors, verdict.Uniformity, verdict.Tail, verdict.Drift, verdict.Leak, verdict.Balance} {
			if v := judged(r.Verdicts, name); v.State != verdict.Pass {
				t.Errorf("%s: %v %s", name, v.State, v.Line)
			}
		}
	})
	t.Run("chatty-log", func(t *testing.T) {
		p := plane(t, refplane.Config{Seed: 1, Clock: refplane.Model, Faults: fault(t, "chatty-log")})
		r, err := loader.Load(t.Context(), p, loader.LoadConfig{Count: 20_000, Runs: 6})
		if err != nil {
			t.Fatal(err)
		}
		if v := judged(r.Verdicts, verdict.Drift); v.State != verdict.Warn {
			t.Errorf("%+v", v)
		}
	})
}

// While others keep every processor busy, a core's thread waits for one most of
// the time. Its own writes are no slower for that.
func TestBulkBesideBusyLoops(t *testing.T) {
	if testing.Short() || loader.RaceDetector {
		t.Skip("the clicks of an own write mean something in an ordinary build only")
	}
	var done atomic.Bool
	var busy sync.WaitGroup
	for range 3 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !done.Load() {
			}
		})
	}
	defer busy.Wait()
	defer done.Store(true)
	p := plane(t, refplane.Config{Seed: 3})
	r, err := loader.Bulk(t.Context(), p, loader.BulkConfig{NumPosts: 160, UUIDsPerPost: 2000})
	if err != nil {
		t.Fatal(err)
	}
	v := judged(r.Verdicts, verdict.Locality)
	for _, c := range r.Cores {
		t.Logf("core %v: %d posts, %.1f to %.1f clicks per write", c.Core, c.Posts, c.MinClicks, c.MaxClicks)
	}
	if v.State != verdict.Pass {
		t.Errorf("%s %q", v.Line, r.Warnings)
	}
}

// In real time, too, writes into others' storage are told from own ones.
func TestBulkRemoteInRealTime(t *testing.T) {
	p := plane(t, refplane.Config{Seed: 1, Faults: fault(t, "deterministic-names")})
	r, err := loader.Bulk(t.Context(), p, loader.BulkConfig{NumPosts: 160, UUIDsPerPost: 20})
	if err != nil {
		t.Fatal(err)
	}
	if v := judged(r.Verdicts, verdict.Locality); v.State != verdict.Fail {
		t.Errorf("%s", v.Line)
	} else {
		t.Log(v.Line)
	}
}

// TestUnclearedNamesTheCore: where the reset before a run doesn't reach every
// core, COVERAGE names those that it missed, and those alone; also when the
// core went away only after the first run.
func TestUnclearedNamesTheCore(t *testing.T) {
	runs := map[string]func(tgt target.Target) (verdicts []verdict.Verdict, missing []timingstats.CoreID, err error){
		"load": func(tgt target.Target) ([]verdict.Verdict, []timingstats.CoreID, error) {
			r, err := loader.Load(t.Context(), tgt, loader.LoadConfig{Count: 2000, Runs: 2})
			return r.Verdicts, r.Missing, err
		},
		"only-core": func(tgt target.Target) ([]verdict.Verdict, []timingstats.CoreID, error) {
			only := 0
			r, err := loader.Load(t.Context(), tgt, loader.LoadConfig{Count: 2000, Runs: 2, OnlyCore: &only})
			return r.Verdicts, r.Missing, err
		},
		"bulk-post": func(tgt target.Target) ([]verdict.Verdict, []timingstats.CoreID, error) {
			r, err := loader.Bulk(t.Context(), tgt, loader.BulkConfig{NumPosts: 16, UUIDsPerPost: 10, Runs: 2})
			return r.Verdicts, r.Missing, err
		},
	}
	for name, run := range runs {
		check := func(when string, vs []verdict.Verdict, missing []timingstats.CoreID, err error) {
			t.Helper()
			v := judged(vs, verdict.Coverage)
			if !errors.Is(err, loader.ErrNotCleared) || v.State != verdict.Incomplete ||
				!strings.HasPrefix(v.Line, "INCOMPLETE: 3 of 4 cores heard after ") || !strings.HasSuffix(v.Line, "not TMM 1") ||
				len(missing) != 1 || missing[0].Core != 1 {
				t.Errorf("%s, dead %s: %v, missing %v, %+v", name, when, err, missing, v)
			}
		}
		vs, missing, err := run(plane(t, refplane.Config{Seed: 5, Clock: refplane.Model, Faults: fault(t, "dead-core=1")}))
		check("from the start", vs, missing, err)

		vs, missing, err = run(&dying{Target: plane(t, refplane.Config{Seed: 5, Clock: refplane.Model}), core: 1})
		check("after a run", vs, missing, err)
	}
}

// dying is a target one core of which answers no reset after the first write.
type dying struct {
	target.Target
	core    int
	written atomic.Bool
}

func (d *dying) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := d.Target.Do(ctx, req, ans)
	switch req.Op {
	case target.OpLoad, target.OpBulkLoad:
		d.written.Store(true)
	case target.OpReset:
		if err == nil && ans.Core == d.core && d.written.Load() {
			return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached}
		}
	}
	return err
}
