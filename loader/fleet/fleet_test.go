package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tbl/loader"
	"tbl/loader/steer"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample is one finished request.
type sample struct {
	core        timingstats.CoreID
	at, service time.Duration
	late        time.Duration // response less service
	clicks      int64         // of a batch
}

// draw makes n samples over 20 s on four cores of two blades.
func draw(rng *rand.Rand, n int) []sample {
	out := make([]sample, n)
	for i := range out {
		out[i] = sample{
			core:    timingstats.CoreID{Slot: 1 + rng.IntN(2), Core: rng.IntN(2)},
			at:      time.Duration(rng.Int64N(int64(20 * time.Second))),
			service: time.Duration(200_000 * (1 + rng.ExpFloat64()*3)),
			late:    time.Duration(rng.Int64N(1 + rng.Int64N(5_000_000))),
			clicks:  3 + rng.Int64N(10),
		}
	}
	slices.SortFunc(out, func(a, b sample) int { return int(a.at - b.at) })
	return out
}

// loadOf is the result of a load that finished these requests.
func loadOf(t *testing.T, samples []sample) *loader.LoadResult {
	t.Helper()
	save := func(r *timingstats.Recorder) timingstats.Histogram {
		h, err := r.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	var series timingstats.Series
	var response, service, connect, first timingstats.Recorder
	type both struct{ response, service timingstats.Recorder }
	cores := map[timingstats.CoreID]*both{}
	var end time.Duration
	for _, s := range samples {
		if cores[s.core] == nil {
			cores[s.core] = &both{}
		}
		cores[s.core].response.Record(int64(s.service + s.late))
		cores[s.core].service.Record(int64(s.service))
		response.Record(int64(s.service + s.late))
		service.Record(int64(s.service))
		connect.Record(int64(s.service / 3))
		first.Record(int64(s.service / 2))
		series.Done(s.core, s.at, s.service+s.late, 1)
		end = max(end, s.at)
	}
	n := int64(len(samples))
	r := &loader.LoadResult{
		Target: "http://bigip", Mode: "count", Workers: 32, Seed: 7, OpenLoop: true, KnownCores: 2, SourcePorts: 28_000,
		Accounting: loader.Accounting{Sent: n, OK: n, Errors: []loader.ErrorCount{}}, Requested: n, ElapsedNS: int64(end),
		WritesPerS: perSecond(n, end), WallPerWriteNS: float64(end) / float64(n), OfferedPerS: 100, AchievedPerS: 99,
		Response: response.Latency(), Service: service.Latency(), ResponseHist: save(&response), ServiceHist: save(&service),
		Connect: connect.Latency(), FirstByte: first.Latency(), ConnectHist: save(&connect), FirstByteHist: save(&first),
		Cores: []loader.LoadCore{}, Missing: []timingstats.CoreID{}, Warnings: []string{}, Verdicts: []verdict.Verdict{},
		Runs: []loader.RunSummary{{Run: 1, Started: noon, Sent: n, OK: n, Writes: n, ElapsedNS: int64(end), WritesPerS: perSecond(n, end), Series: series.Summary(end)}},
	}
	for id, b := range cores {
		c := coreOf(&r.Cores, id, func(c *loader.LoadCore) *timingstats.CoreID { return &c.Core })
		c.Writes, c.Share = b.response.N(), share(b.response.N(), n)
		c.Response, c.Service = b.response.Latency(), b.service.Latency()
		c.ResponseHist, c.ServiceHist = save(&b.response), save(&b.service)
	}
	return r
}

// parts names results a, b, c, ….
func parts(rs ...*loader.LoadResult) []Part[loader.LoadResult] {
	var out []Part[loader.LoadResult]
	for i, r := range rs {
		out = append(out, Part[loader.LoadResult]{Name: string(rune('a' + i)), Host: "client-" + string(rune('a'+i)), Result: r})
	}
	return out
}

// deal gives n samples to eight clients, some of whom get few.
func deal(rng *rand.Rand, all []sample) [8][]sample {
	var out [8][]sample
	for _, s := range all {
		i := rng.IntN(8)
		if i > 4 {
			i = 5 + rng.IntN(3)*rng.IntN(2)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// TestEightPartsAreTheWhole: the merged distributions of eight parts are those
// of the whole, bit for bit, whether single samples were kept on either side or
// not; counts, series and percentiles follow.
func TestEightPartsAreTheWhole(t *testing.T) {
	for n, seeds := range map[int]uint64{400: 3, 9_000: 2, 12_000: 2, 90_000: 1} {
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			all := draw(rng, n)
			whole := loadOf(t, all)
			var rs []*loader.LoadResult
			for _, p := range deal(rng, all) {
				if len(p) == 0 {
					continue
				}
				r := loadOf(t, p)
				r.Runs[0].ElapsedNS, r.Runs[0].Series.EndNS = whole.ElapsedNS, whole.ElapsedNS
				rs = append(rs, r)
			}
			got, sum, err := Loads(parts(rs...), Config{})
			if err != nil {
				t.Fatalf("n %d, seed %d: %v", n, seed, err)
			}
			same := func(what string, got, want any) {
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("n %d, seed %d: %s (-whole +merged):\n%s", n, seed, what, d)
				}
			}
			same("response", got.ResponseHist, whole.ResponseHist)
			same("service", got.ServiceHist, whole.ServiceHist)
			same("connect", got.ConnectHist, whole.ConnectHist)
			same("first byte", got.FirstByteHist, whole.FirstByteHist)
			same("account", got.Accounting, whole.Accounting)
			same("rate", got.WritesPerS, whole.WritesPerS)
			same("completions", got.Runs[0].Series.All.Completions, whole.Runs[0].Series.All.Completions)
			for i, c := range got.Cores {
				w := whole.Cores[i]
				same("core", []any{c.Core, c.Writes, c.Share, c.ResponseHist, c.ServiceHist}, []any{w.Core, w.Writes, w.Share, w.ResponseHist, w.ServiceHist})
				same("core's series", got.Runs[0].Series.Cores[c.Core].Completions, whole.Runs[0].Series.Cores[c.Core].Completions)
			}
			if n > timingstats.ExactLimit {
				same("percentiles", got.Response, whole.Response)
			}
			if len(sum.Clients) != len(rs) || sum.StartSkewNS != 0 || got.Workers != 32*len(rs) || got.SourcePorts > 28_000*len(rs) || got.SourcePorts < 20_000*len(rs) || got.Seed != 7 {
				t.Errorf("n %d, seed %d: %d clients, skew %d, %d workers, %d ports, seed %d", n, seed, len(sum.Clients), sum.StartSkewNS, got.Workers, got.SourcePorts, got.Seed)
			}
		}
	}
}

// TestRealRuns merges loads and bulk loads of the reference dataplane.
func TestRealRuns(t *testing.T) {
	run := func(seed uint64) (*loader.LoadResult, *loader.BulkResult) {
		p, err := refplane.New(refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		l, err := loader.Load(context.Background(), p, loader.LoadConfig{Count: 3000, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		b, err := loader.Bulk(context.Background(), p, loader.BulkConfig{NumPosts: 80, UUIDsPerPost: 50, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return l, b
	}
	l1, b1 := run(1)
	l2, b2 := run(2)
	l, _, err := Loads(parts(l1, l2), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if l.OK != 6000 || l.Seed != 0 || len(l.Cores) != 4 || l.Cores[3].Writes != l1.Cores[3].Writes+l2.Cores[3].Writes {
		t.Errorf("merged load: %+v", l)
	}
	names := func(vs []verdict.Verdict) (out []verdict.Name) {
		for _, v := range vs {
			out = append(out, v.Name)
			if v.State > verdict.Warn {
				t.Errorf("%s: %s", v.Name, v.Line)
			}
		}
		return out
	}
	if d := cmp.Diff(names(l1.Verdicts), names(l.Verdicts)); d != "" {
		t.Errorf("verdicts of a merged load: %s", d)
	}
	b, sum, err := Bulks([]Part[loader.BulkResult]{{Name: "a", Result: b1}, {Name: "b", Result: b2}}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(names(b1.Verdicts), names(b.Verdicts)); d != "" {
		t.Errorf("verdicts of a merged bulk load: %s", d)
	}
	for i, c := range b.Cores {
		x, y := b1.Cores[i], b2.Cores[i]
		want := (x.AvgClicks*float64(x.Writes) + y.AvgClicks*float64(y.Writes)) / float64(x.Writes+y.Writes)
		if c.Posts != x.Posts+y.Posts || c.Writes != x.Writes+y.Writes || c.MinClicks != min(x.MinClicks, y.MinClicks) || c.MaxClicks != max(x.MaxClicks, y.MaxClicks) ||
			c.AvgClicks != want || c.Batches.N != c.Posts || c.Batches.Fast != x.Batches.Fast+y.Batches.Fast || c.BatchesHist.Unit != timingstats.UnitClicks {
			t.Errorf("core %v: %+v", c.Core, c)
		}
	}
	if b.Written != 8000 || b.BytesSent != b1.BytesSent+b2.BytesSent || sum.Clients[1].Writes != 4000 {
		t.Errorf("merged bulk load: %+v, %+v", b, sum)
	}
}

// at moves a run's start.
func at(r *loader.LoadResult, after time.Duration) *loader.LoadResult {
	r.Runs[0].Started = noon.Add(after)
	return r
}

// steady are the samples of a client that completes one request each step for
// so long.
func steady(length, step time.Duration) []sample {
	var out []sample
	for d := step; d <= length; d += step {
		out = append(out, sample{core: timingstats.CoreID{Core: len(out) % 2}, at: d, service: time.Millisecond})
	}
	return out
}

// find is the verdict of a name, which has to be there.
func find(t *testing.T, vs []verdict.Verdict, name verdict.Name) verdict.Verdict {
	t.Helper()
	i := slices.IndexFunc(vs, func(v verdict.Verdict) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("no verdict %s among %+v", name, vs)
	}
	return vs[i]
}

// TestStarts: start marks shift the series, skew and lateness are told, the time
// together is what all shared, and who starts late or ends early is no DECAY.
func TestStarts(t *testing.T) {
	a := at(loadOf(t, steady(20*time.Second, 5*time.Millisecond)), 500*time.Millisecond)
	b := at(loadOf(t, steady(12*time.Second, 5*time.Millisecond)), 0)
	c := at(loadOf(t, steady(20*time.Second, 5*time.Millisecond)), 2500*time.Millisecond)
	r, sum, err := Loads(parts(a, b, c), Config{StartAt: noon.Add(-time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2500 * time.Millisecond); sum.StartSkewNS != want || sum.Clients[2].OffsetNS != want || sum.Clients[1].OffsetNS != 0 || sum.Clients[0].LateNS != int64(501*time.Millisecond) {
		t.Errorf("starts: %+v", sum)
	}
	if r.ElapsedNS != int64(22500*time.Millisecond) || !r.Runs[0].Started.Equal(noon) {
		t.Errorf("from %v for %v", r.Runs[0].Started, r.Elapsed())
	}
	// All three were at work from 2.5 s to 12 s, 200/s each.
	if sum.TogetherNS != int64(9500*time.Millisecond) || sum.TogetherPerS < 590 || sum.TogetherPerS > 610 {
		t.Errorf("together for %v: %.0f/s", time.Duration(sum.TogetherNS), sum.TogetherPerS)
	}
	if n := r.Runs[0].Series.All.Completions; n[0] > 250 || n[5] < 550 || n[15] > 450 || n[21] > 250 {
		t.Errorf("series: %v", n)
	}
	if v := find(t, r.Verdicts, verdict.Decay); v.State != verdict.Pass {
		t.Errorf("DECAY: %v %s", v.State, v.Line)
	}
	if sum.Clients[0].Host != "client-a" {
		t.Errorf("host %q", sum.Clients[0].Host)
	}
}

// TestDecayOfAll: what slows all clients down is found.
func TestDecayOfAll(t *testing.T) {
	slowing := func() *loader.LoadResult {
		var out []sample
		for d := time.Duration(0); d < 20*time.Second; {
			d += 4*time.Millisecond + d/1500
			out = append(out, sample{core: timingstats.CoreID{Core: len(out) % 2}, at: d, service: time.Millisecond})
		}
		return loadOf(t, out)
	}
	r, _, err := Loads(parts(at(slowing(), 0), at(slowing(), 200*time.Millisecond)), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if v := find(t, r.Verdicts, verdict.Decay); v.State != verdict.Fail {
		t.Errorf("DECAY: %v %s", v.State, v.Line)
	}
}

func TestApart(t *testing.T) {
	ok := func() *loader.LoadResult { return loadOf(t, steady(6*time.Second, 10*time.Millisecond)) }
	other := func(change func(r *loader.LoadResult)) *loader.LoadResult {
		r := at(loadOf(t, steady(7*time.Second, 10*time.Millisecond)), 0)
		change(r)
		return r
	}
	for want, change := range map[string]func(r *loader.LoadResult){
		"a is of target http://bigip, b of http://other":         func(r *loader.LoadResult) { r.Target = "http://other" },
		"a is a run by count in an open loop, b one by duration": func(r *loader.LoadResult) { r.Mode = "duration" },
		"b one by count":                         func(r *loader.LoadResult) { r.OpenLoop = false },
		"on core 2 only":                         func(r *loader.LoadResult) { k := 2; r.Steering = &steer.Result{OnlyCore: &k} },
		"was simulated":                          func(r *loader.LoadResult) { r.Virtual = true },
		"a saw a dataplane of 2 cores, b one of": func(r *loader.LoadResult) { r.KnownCores = 8 },
		"b ended before its first request":       func(r *loader.LoadResult) { r.Runs = nil },
		"b is of 2 runs":                         func(r *loader.LoadResult) { r.Runs = append(r.Runs, r.Runs[0]) },
		"b was saved by an older version":        func(r *loader.LoadResult) { r.Runs[0].Started = time.Time{} },
		"a ended at 2026-03-01 12:00:06.000, b began at 2026-03-01 12:00:07.000": func(r *loader.LoadResult) { at(r, 7*time.Second) },
		"b: its series is damaged": func(r *loader.LoadResult) { r.Runs[0].Series.StartS[0] = 1 << 60 },
		"series is damaged":        func(r *loader.LoadResult) { r.Runs[0].Series.Progress[3].Completions = -1 },
		"a and b are the same run": func(r *loader.LoadResult) { *r = *ok() },
	} {
		_, _, err := Loads(parts(ok(), other(change)), Config{})
		if !errors.Is(err, ErrApart) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, _, err := Loads(parts(ok()), Config{}); !errors.Is(err, ErrApart) {
		t.Errorf("one run: %v", err)
	}
	broken := other(func(r *loader.LoadResult) { r.Cores[0].ResponseHist.V2 = "AAAA" })
	if _, _, err := Loads(parts(ok(), broken), Config{}); err == nil || !strings.Contains(err.Error(), "b: TMM 0") {
		t.Errorf("damaged distribution: %v", err)
	}
}

// TestAccount: errors are summed up by class, warnings told once where all say
// them, and what the parts alone could judge stays, the worst of it.
func TestAccount(t *testing.T) {
	fail := func(r *loader.LoadResult, class target.Class, n int64, example string, atNS int64) {
		r.Sent, r.Runs[0].Sent = r.Sent+n, r.Runs[0].Sent+n
		r.Failed, r.Runs[0].Failed = r.Failed+n, r.Runs[0].Failed+n
		r.Errors = append(r.Errors, loader.ErrorCount{Class: class, Count: n, Example: example, AtNS: atNS})
		slices.SortFunc(r.Errors, func(a, b loader.ErrorCount) int { return int(a.Class) - int(b.Class) })
	}
	a := loadOf(t, steady(6*time.Second, 10*time.Millisecond))
	b := at(loadOf(t, steady(7*time.Second, 10*time.Millisecond)), time.Second)
	fail(a, target.ClassTimeout, 3, "late", 5e9)
	fail(b, target.ClassTimeout, 2, "early", 1e9)
	fail(b, target.ClassRefused, 1, "refused", 2e9)
	a.Warnings, b.Warnings = []string{"both", "only a"}, []string{"both"}
	a.Verdicts = []verdict.Verdict{{Name: verdict.Balance, State: verdict.Pass, Line: "balanced"}}
	b.Verdicts = []verdict.Verdict{{Name: verdict.Balance, State: verdict.Warn, Line: "IMBALANCED"}, {Name: verdict.Assert, State: verdict.Fail}}
	b.Partial, b.Stop = true, "interrupted"
	r, _, err := Loads(parts(a, b), Config{MaxErrors: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	want := []loader.ErrorCount{
		{Class: target.ClassRefused, Count: 1, Example: "refused", AtNS: 3e9},
		{Class: target.ClassTimeout, Count: 5, Example: "early", AtNS: 2e9},
	}
	slices.SortFunc(want, func(a, b loader.ErrorCount) int { return int(a.Class) - int(b.Class) })
	if d := cmp.Diff(want, r.Errors); d != "" || r.Sent != r.OK+r.Failed || r.Failed != 6 {
		t.Errorf("sent %d, ok %d, failed %d: %s", r.Sent, r.OK, r.Failed, d)
	}
	if d := cmp.Diff([]string{"both", "a: only a"}, r.Warnings); d != "" {
		t.Error(d)
	}
	states := map[verdict.Name]string{}
	for _, v := range r.Verdicts {
		states[v.Name] = fmt.Sprint(v.State)
	}
	if states[verdict.Balance] != "warn" || states[verdict.Errors] != "fail" || states[verdict.Assert] != "" {
		t.Errorf("verdicts: %v", states)
	}
	if !r.Partial || r.Stop != "b: interrupted" {
		t.Errorf("partial %t: %s", r.Partial, r.Stop)
	}
}

// Clients with unlike numbers of ports are as lumpy as the lumpiest makes them:
// an even spread must not be called uneven.
func TestPortsOfAll(t *testing.T) {
	const cores, trials = 16, 300
	for _, clients := range [][]struct{ n, ports int }{
		{{100_000, 28_000}, {100_000, 500}},
		{{280_000, 28_000}, {28_000, 28_000}},
		{{5_000, 0}, {5_000, 100}},
	} {
		alarms := 0
		for seed := range uint64(trials) {
			rng := rand.New(rand.NewPCG(seed, 3))
			counts := make([]verdict.CoreCount, cores)
			w := new(whole)
			for _, c := range clients {
				w.add(&view{ports: c.ports, runs: []loader.RunSummary{{OK: int64(c.n)}}, acc: new(loader.Accounting)}, 0)
				ports := c.ports
				if ports == 0 {
					ports = c.n
				}
				for p := range ports { // each port's core is drawn once
					counts[rng.IntN(cores)].Count += int64(c.n*(p+1)/ports - c.n*p/ports)
				}
			}
			for i := range counts {
				counts[i].Core.Core = i
			}
			if verdict.JudgeUniformityOverPorts(counts, nil, w.ports()).P < 0.001 {
				alarms++
			}
		}
		if alarms > 4 { // 0.3 are to be expected, five in one of 10,000 cases
			t.Errorf("%v: %d of %d even spreads called uneven", clients, alarms, trials)
		}
	}
}
