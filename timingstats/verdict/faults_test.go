package verdict_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tbl/loader"
	"tbl/prober"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// everything puts a dataplane through all that is measured and returns every
// verdict: six runs of load with a reset between them, one at a fixed rate (a
// closed loop hardly sees a stall: while it lasts, it sends nothing), the
// sampled log, the owners of the names that the cores use, and what a last reset
// leaves behind.
func everything(seed uint64, cores int, faults ...refplane.Fault) (vs []verdict.Verdict, err error) {
	const sampling, runs, perRun, perS = 200, 6, 14_000, 2000
	ctx := context.Background()
	var sink sampleSink
	sink.clear(cores)
	p, err := refplane.New(refplane.Config{
		Cores: cores, Seed: seed, Clock: refplane.Model, Log: &sink, LogSample: sampling, Faults: faults,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := p.Close(); err == nil {
			err = e
		}
	}()

	// One worker, so that runs are long in virtual time and short in ours.
	load, err := loader.Load(ctx, p, loader.LoadConfig{Count: perRun, Runs: runs, Workers: 1, Seed: seed})
	if err != nil && !errors.Is(err, loader.ErrNotCleared) { // a dead core isn't cleared
		return nil, fmt.Errorf("load: %w", err)
	}
	vs = append(vs, load.Verdicts...)
	open, err := loader.Load(ctx, p, loader.LoadConfig{Count: perRun, Rate: perS, Workers: 128, KeyPrefix: "open", Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("load at a rate: %w", err)
	}
	vs = append(vs, open.Verdicts...)
	known := make([]timingstats.CoreID, load.KnownCores)
	for i := range known {
		known[i].Core = i
	}
	if err := p.FlushLog(); err != nil {
		return nil, err
	}
	lines, dropped := p.LogLines()
	vs = append(vs, verdict.JudgeLogBudget(lines+dropped, load.OK+open.OK))

	var all []timingstats.CoreSummary
	for core, s := range sink.cores {
		if len(s) > 0 {
			all = append(all, summary(core, s))
		}
	}
	vs = append(vs, verdict.JudgeLocality(all, verdict.LocalityOptions{Known: known}).Verdict)

	// What the cores hold after the last run, and who owns the names.
	held, err := stats(ctx, p)
	if err != nil {
		return nil, err
	}
	vs = append(vs, verdict.JudgeBalance(held, 0, load.Missing).Verdict)
	who, err := prober.Whoami(ctx, p, prober.AskConfig{Workers: 1})
	if err != nil {
		return nil, fmt.Errorf("whoami: %w", err)
	}
	cfg := prober.ProbeConfig{Workers: 1, Expect: map[string]timingstats.CoreID{}}
	for _, n := range who.Names {
		cfg.Names = append(cfg.Names, n.Subtable)
		cfg.Expect[n.Subtable] = n.Core
	}
	owners, err := prober.Probe(ctx, p, cfg)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	vs = append(vs, owners.Verdicts...)

	reset, err := prober.Reset(ctx, p, prober.ResetConfig{Workers: 1})
	if err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	return append(vs, reset.Verdicts...), nil
}

func stats(ctx context.Context, p *refplane.Plane) ([]verdict.CoreLoad, error) {
	var ans target.Answer
	var err error
	for range 20 { // flap spoils some
		if err = p.Do(ctx, &target.Request{Op: target.OpStats}, &ans); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	out := make([]verdict.CoreLoad, len(ans.Stats))
	for i, s := range ans.Stats {
		out[i] = verdict.CoreLoad{Core: timingstats.CoreID{Core: s.Core}, Entries: s.Entries, Bytes: s.Bytes}
	}
	return out, nil
}

// seeds runs everything for seeds 1 to n on all processors.
func seeds(t *testing.T, n int, faults []refplane.Fault, look func(seed uint64, vs []verdict.Verdict)) {
	t.Helper()
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1)
				if seed > int64(n) {
					return
				}
				vs, err := everything(uint64(seed), 4, faults...)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				} else {
					look(uint64(seed), vs)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// TestEveryFaultIsNamed: for every fault, a verdict that must name it does, and
// none outside its documented list fails. The long form takes
// -accuracy.runs seeds, 100 at most.
func TestEveryFaultIsNamed(t *testing.T) {
	n := 1
	if *accuracyRuns > 0 {
		n = min(*accuracyRuns, 100)
	}
	// The words that a verdict about the fault's default form has to hold.
	mention := map[string]string{
		refplane.DAGSkew: "TMM 0", refplane.Stall: "TMM 0", refplane.DeadCore: "TMM 1", refplane.EnumerateCount: "1/n",
	}
	for _, k := range refplane.FaultKinds() {
		t.Run(k.Name, func(t *testing.T) {
			text := k.Name
			if k.Name == refplane.DeadCore {
				text += "=1"
			}
			fault, err := refplane.ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			naming := map[string]int{}
			caught := int64(0)
			seeds(t, n, []refplane.Fault{fault}, func(seed uint64, vs []verdict.Verdict) {
				named := len(k.MustName) == 0
				var lines []string
				said := map[string]bool{}
				for _, v := range vs {
					if v.State <= verdict.Pass {
						continue
					}
					said[string(v.Name)+" "+v.State.String()] = true
					lines = append(lines, v.Line)
					if slices.Contains(k.MustName, string(v.Name)) && strings.Contains(v.Line, mention[k.Name]) {
						named = true
					}
					if v.State == verdict.Fail && !slices.Contains(k.MayTrip, string(v.Name)) {
						t.Errorf("seed %d: %s fails, which isn't documented: %s", seed, v.Name, v.Line)
					}
				}
				for k := range said {
					naming[k]++
				}
				if named {
					caught++
				} else {
					t.Errorf("seed %d: none of %v names the fault; not passed: %q", seed, k.MustName, lines)
				}
			})
			t.Logf("| `%s` | %d | %s | %s | %s |", fault, n, orNone(k.MustName), share(caught, int64(n)), counted(naming, n))
		})
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, " or ")
}

// counted lists how often what was said.
func counted(m map[string]int, n int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s in %d %%", k, 100*m[k]/n))
	}
	return strings.Join(parts, ", ")
}

// TestHealthyNeverFails: no verdict fails on a healthy dataplane. The long form
// takes -accuracy.runs seeds, 1,000 at most.
func TestHealthyNeverFails(t *testing.T) {
	n := 2
	if *accuracyRuns > 0 {
		n = min(*accuracyRuns, 1000)
	}
	states := map[string]int{}
	seeds(t, n, nil, func(seed uint64, vs []verdict.Verdict) {
		for _, v := range vs {
			states[string(v.Name)+" "+v.State.String()]++
			if v.State == verdict.Fail || v.State == verdict.Incomplete {
				t.Errorf("seed %d: %s: %s", seed, v.Name, v.Line)
			}
		}
	})
	t.Logf("%d seeds: %v", n, states)
}
