package loader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tbl/target"
	"tbl/timingstats/verdict"
)

// staller answers at once, except that it stands still for the last second of
// every ten.
type staller struct {
	fake
	start time.Time
}

func (s *staller) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if at := time.Since(s.start) % (10 * time.Second); at >= 9*time.Second {
		time.Sleep(10*time.Second - at)
	}
	return s.fake.Do(ctx, req, ans)
}

// At 1,000/s, a tenth of the requests is due in the stall and waits 500 ms on
// average: the p99 is 900 ms, whatever the number of workers.
func TestOpenLoopTellsTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &staller{fake: fake{cores: 4, latency: time.Millisecond}, start: time.Now()}
		r, err := Load(t.Context(), f, LoadConfig{Rate: 1000, Duration: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 30_000 || !r.OpenLoop || r.OfferedPerS != 1000 {
			t.Errorf("sent %d, offered %v", r.Sent, r.OfferedPerS)
		}
		if p := r.Response.P99NS; p < 890e6 || p > 910e6 {
			t.Errorf("p99 of the response time %v", time.Duration(p))
		}
		// Only the 32 requests on their way saw the stall: of 30,000, 0.3 %.
		if p := r.Service.P99NS; p > 1.01e6 {
			t.Errorf("p99 of the service time %v", time.Duration(p))
		}
		if r.LateMaxNS < 900e6 {
			t.Errorf("latest start %d ns late", r.LateMaxNS)
		}
	})
}

func TestBehindTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 10 * time.Millisecond} // 4 workers: 400/s
		r, err := Load(t.Context(), f, LoadConfig{Rate: 1000, Count: 4000, Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		if r.OfferedPerS != 1000 || r.AchievedPerS < 399 || r.AchievedPerS > 401 || len(r.Warnings) != 1 {
			t.Errorf("offered %v, achieved %v, warnings %q", r.OfferedPerS, r.AchievedPerS, r.Warnings)
		}
	})
}

func TestDurationAndWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 10 * time.Millisecond}
		f.answer = func(n int64, _ *target.Request, _ *target.Answer) {
			if n < 10 {
				time.Sleep(90 * time.Millisecond) // the first ones are slow
			}
		}
		r, err := Load(t.Context(), f, LoadConfig{Duration: 2 * time.Second, Warmup: time.Second, Workers: 10})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Mode != "duration" || r.Sent != 10+10*190 || r.WarmupSent != 910 || r.Response.MaxNS != 10e6 || r.WritesPerS != 1000 || r.Partial {
			t.Errorf("sent %d, warm-up %d, max %d, %v/s", r.Sent, r.WarmupSent, r.Response.MaxNS, r.WritesPerS)
		}
		if n := r.Runs[0].Series.All.Completions; len(n) != 2 || n[0]+n[1] != 1000 || n[1] > 10 {
			t.Errorf("series %v", n)
		}
	})
}

func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4}
		r, err := Load(t.Context(), f, LoadConfig{Stages: []Stage{
			{Duration: 2 * time.Second, Rate: 100}, {Duration: time.Second, Rate: 50, Step: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent != 150 || r.Requested != 150 || fmt.Sprint(r.Runs[0].Series.All.Completions) != "[25 75 50]" && fmt.Sprint(r.Runs[0].Series.All.Completions) != "[26 74 50]" {
			t.Errorf("sent %d of %d, series %v", r.Sent, r.Requested, r.Runs[0].Series.All.Completions)
		}
	})
}

// A server that is gone for a while leaves a gap in the series, and doesn't
// use up the run.
func TestServerGoneAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		down := func() bool {
			s := time.Since(start)
			return s >= 2*time.Second && s < 5*time.Second
		}
		f := &fake{cores: 4, latency: time.Millisecond, fail: func(int64, *target.Request) error {
			if down() {
				return refused()
			}
			return nil
		}}
		r, err := Load(t.Context(), f, LoadConfig{Count: 50_000, Workers: 10})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		all := r.Runs[0].Series.All
		if all.Completions[1] != 10_000 || all.Completions[3] != 0 || all.Errors[3] == 0 || all.Completions[6] == 0 {
			t.Errorf("series %v, errors %v", all.Completions, all.Errors)
		}
		if r.Failed > 2000 || r.Sent != 50_000 {
			t.Errorf("%d of %d failed in a gap of 3 s", r.Failed, r.Sent)
		}
	})
}

// One that stays away ends it.
func TestServerGoneForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{cores: 4, latency: time.Millisecond, fail: func(int64, *target.Request) error {
			if time.Since(start) > 2*time.Second {
				return refused()
			}
			return nil
		}}
		r, err := Load(t.Context(), f, LoadConfig{Count: 1_000_000, Workers: 10})
		if !errors.Is(err, ErrUnreachable) {
			t.Fatalf("error %v", err)
		}
		checkAccount(t, r.Accounting)
		if d := time.Since(start); !r.Partial || r.OK < 19_000 || d < 30*time.Second || d > 35*time.Second {
			t.Errorf("partial %v after %v, %+v", r.Partial, d, r.Accounting)
		}
	})
}

func TestDecay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Every write costs time in proportion to those before it.
		f := &fake{cores: 4, answer: func(n int64, _ *target.Request, _ *target.Answer) {
			time.Sleep(time.Duration(n) * time.Microsecond)
		}}
		r, err := Load(t.Context(), f, LoadConfig{Count: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		if state(r.Verdicts, verdict.Decay) != verdict.Fail {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

func TestRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, writes: map[string]string{}}
		var slower atomic.Int64
		f.latency = 100 * time.Microsecond
		f.answer = func(_ int64, req *target.Request, _ *target.Answer) {
			if req.Op == target.OpReset {
				slower.Add(1)
			}
			time.Sleep(time.Duration(slower.Load()) * 5 * time.Microsecond)
		}
		start := time.Now()
		r, err := Load(t.Context(), f, LoadConfig{Count: 2000, Runs: 6, Pause: time.Minute, Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		checkAccount(t, r.Accounting)
		if r.Sent != 12_000 || len(r.Runs) != 6 || r.Runs[1].Deleted != 2000 || r.Runs[5].Sent != 2000 || time.Since(start) < 5*time.Minute {
			t.Errorf("sent %d, runs %+v", r.Sent, r.Runs)
		}
		if r.Requested != 12_000 || r.ElapsedNS > int64(time.Minute) || len(f.writes) != 2000 {
			t.Errorf("requested %d, elapsed %d, left %d", r.Requested, r.ElapsedNS, len(f.writes))
		}
		if state(r.Verdicts, verdict.Drift) != verdict.Warn {
			t.Errorf("verdicts %+v", r.Verdicts)
		}
	})
}

// After its end a run has nothing more due: neither in the pause before the
// next one, nor when it ended early.
func TestScheduledStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 10 * time.Millisecond}
		var p Progress
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := Load(ctx, f, LoadConfig{Rate: 100, MinWritesPerCore: 10, Runs: 2, Pause: time.Minute, Workers: 4, Progress: &p})
			done <- err
		}()
		time.Sleep(5 * time.Second) // all cores have their ten writes after less than a second
		first := p.Scheduled()
		if first < 40 || first > 60 {
			t.Errorf("%d were due in a run of some 40 requests", first)
		}
		time.Sleep(30 * time.Second)
		if n := p.Scheduled(); n != first {
			t.Errorf("in the pause %d are due, want the %d of the first run", n, first)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		last := p.Scheduled()
		time.Sleep(time.Minute)
		if n := p.Scheduled(); n != last || last <= first || last > 2*first {
			t.Errorf("%d were due at the end, %d a minute later, and %d in the first run", last, n, first)
		}

		// One that is interrupted.
		var q Progress
		go func() {
			_, err := Load(ctx, f, LoadConfig{Rate: 100, Duration: time.Hour, Workers: 4, Progress: &q})
			done <- err
		}()
		time.Sleep(2 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		last = q.Scheduled()
		time.Sleep(time.Minute)
		if n := q.Scheduled(); n != last || last < 190 || last > 210 {
			t.Errorf("interrupted after 2 s %d were due, a minute later %d", last, n)
		}
	})
}

// The progress tells what the schedule has due, whatever was done of it.
func TestScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{cores: 4, latency: 10 * time.Millisecond} // 4 workers: 400/s
		var p Progress
		done := make(chan error, 1)
		go func() {
			_, err := Load(t.Context(), f, LoadConfig{Rate: 1000, Count: 2000, Runs: 2, Workers: 4, Progress: &p})
			done <- err
		}()
		time.Sleep(1500 * time.Millisecond)
		// A little less than 1,500: the reset before a run takes its time.
		if n, did := p.Scheduled(), p.Completed.Load(); n < 1400 || n > 1500 || did > 600 {
			t.Errorf("after 1.5 s %d are due and %d done, want 1500 and 600", n, did)
		}
		time.Sleep(2500 * time.Millisecond) // the first run is late still
		if n := p.Scheduled(); n != 2000 {
			t.Errorf("at the end of the first schedule %d are due, want 2000", n)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := p.Scheduled(); n != 4000 {
			t.Errorf("after two runs %d were due, want 4000", n)
		}
		var closed Progress
		if _, err := Load(t.Context(), f, LoadConfig{Count: 10, Progress: &closed}); err != nil || closed.Scheduled() != 0 {
			t.Errorf("a closed loop has %d scheduled, error %v", closed.Scheduled(), err)
		}
	})
}
