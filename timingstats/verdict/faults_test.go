package verdict_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tbl/loader"
	"tbl/prober"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/target/refplane/table"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// everything puts a dataplane through all that is measured and returns every
// verdict: six runs of load with a reset between them, one at a fixed rate (a
// closed loop hardly sees a stall: while it lasts, it sends nothing), the
// sampled log, the owners of the names that the cores use, and what a last reset
// leaves behind. With more cores there are more writes, as many to each: what
// enumerate-count costs grows with what a core holds, and TAIL judges none with
// fewer than 1,000 requests.
func everything(seed uint64, cores int, fault string) (vs []verdict.Verdict, err error) {
	const sampling, runs, perS = 200, 6, 2000
	perRun := int64(max(14_000, 3500*cores))
	ctx := context.Background()
	var sink sampleSink
	sink.clear(cores)
	p, err := newPlane(fault, cores, seed, &sink, sampling)
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

// condition is one kind of runs of everything: healthy or with a fault.
type condition struct {
	refplane.FaultKind
	fault   string         // as on the command line
	mention *regexp.Regexp // the core, or the shape, that a verdict about it has to name; nil: none
}

func (c *condition) name() string {
	if c.fault == "" {
		return "healthy"
	}
	return "`" + c.fault + "`"
}

// conditions are the healthy dataplane and one for each fault.
func conditions() []condition {
	mention := map[string]string{
		refplane.DAGSkew: `TMM 0\b`, refplane.Stall: `TMM 0\b`, refplane.DeadCore: `TMM 1\b`, refplane.EnumerateCount: "1/n",
	}
	argument := map[string]string{refplane.DeadCore: "=1", refplane.Jitter: "=2%"} // healthy has 1 %
	out := []condition{{}}
	for _, k := range refplane.FaultKinds() {
		c := condition{FaultKind: k, fault: k.Name + argument[k.Name]}
		if m := mention[k.Name]; m != "" {
			c.mention = regexp.MustCompile(m)
		}
		out = append(out, c)
	}
	return out
}

// says tells whether a verdict's line names what it has to. Of two cores, what
// one has too much is what the other lacks.
func (c *condition) says(line string, cores int) bool {
	return c.mention == nil || c.Name == refplane.DAGSkew && cores == 2 || c.mention.MatchString(line)
}

// anyVerdict stands for all verdicts of a run together.
const anyVerdict = "any"

// said counts what one verdict, or any of them, said in the runs of a condition
// and a number of cores.
type said struct {
	Runs   int64
	Judged int64 // runs in which it was judged
	Named  int64 // runs in which it had to name the fault, and did
	// What it said at worst; it passed in the others of those Judged.
	Warned, Incomplete, Failed int64
	Undocumented               int64 // runs in which it failed and the fault's list doesn't have it
}

func (s said) plus(o said) said {
	s.Runs += o.Runs
	s.Judged += o.Judged
	s.Named += o.Named
	s.Warned += o.Warned
	s.Incomplete += o.Incomplete
	s.Failed += o.Failed
	s.Undocumented += o.Undocumented
	return s
}

// saidKey names a cell.
func saidKey(c *condition, cores int, name verdict.Name) string {
	return fmt.Sprintf("%s|%d|%s", c.name(), cores, name)
}

// hear makes the cells of one run.
func (c *condition) hear(vs []verdict.Verdict, cores int, into map[string]said) {
	worst := map[verdict.Name]verdict.State{anyVerdict: verdict.NotJudged}
	for _, v := range verdict.Table() {
		worst[v.Name] = verdict.NotJudged
	}
	named, odd := map[verdict.Name]bool{}, map[verdict.Name]bool{}
	for _, v := range vs {
		for _, name := range []verdict.Name{v.Name, anyVerdict} {
			worst[name] = max(worst[name], v.State)
			if v.State > verdict.Pass && slices.Contains(c.MustName, string(v.Name)) && c.says(v.Line, cores) {
				named[name] = true
			}
			if v.State == verdict.Fail && !slices.Contains(c.MayTrip, string(v.Name)) || v.State == verdict.Incomplete && c.fault == "" {
				odd[name] = true
			}
		}
	}
	one := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	for name, state := range worst {
		into[saidKey(c, cores, name)] = said{
			Runs: 1, Judged: one(state != verdict.NotJudged), Named: one(named[name]),
			Warned: one(state == verdict.Warn), Incomplete: one(state == verdict.Incomplete), Failed: one(state == verdict.Fail),
			Undocumented: one(odd[name]),
		}
	}
}

// saidForm changes when the same seeds are no longer the same runs, or are
// judged in another way that matters.
const saidForm = 1

// sayings is the tally of every verdict.
type sayings struct{ tally[said] }

func newSayings() *sayings {
	var names []string
	for _, c := range conditions() {
		names = append(names, c.name())
	}
	return &sayings{tally[said]{Form: fmt.Sprintf("every verdict, form %d, cores %v; %s", saidForm, gridCores, strings.Join(names, "; "))}}
}

// runsOf is how many runs there are of n: five times as many healthy ones, and
// fewer with many cores, which take long.
func (c *condition) runsOf(n, cores int) int {
	if c.fault == "" {
		n *= 5
	}
	switch {
	case cores > 16:
		n /= 8
	case cores > 4:
		n /= 2
	}
	return max(1, n)
}

// hearAll counts what all verdicts say under the conditions.
func hearAll(t *testing.T, list []condition) {
	t.Helper()
	all := newSayings()
	if err := all.load(*accuracyFile); err != nil {
		t.Fatal(err)
	}
	n, sizes := *accuracyRuns, gridCores
	if n == 0 { // the short form
		n, sizes = 1, []int{4}
	}
	var until time.Time
	if *accuracyTime > 0 {
		until = time.Now().Add(*accuracyTime)
	}
	for _, cores := range sizes {
		for i := range list {
			c := &list[i]
			began := time.Now()
			fresh := all.fill(t, fmt.Sprintf("%s|%d", c.name(), cores), c.runsOf(n, cores), until, func() func(uint64, map[string]said) error {
				return func(seed uint64, into map[string]said) error {
					vs, err := everything(table.Hash(seed, []byte(c.name())), cores, c.fault)
					if err != nil {
						return err
					}
					c.hear(vs, cores, into)
					if one := into[saidKey(c, cores, anyVerdict)]; one.Undocumented > 0 || one.Named == 0 && len(c.MustName) > 0 {
						for _, v := range vs {
							if v.State > verdict.Pass {
								t.Logf("%s, %d cores, run %d: %s: %s", c.name(), cores, seed, v.Name, v.Line)
							}
						}
					}
					return nil
				}
			})
			if *accuracyRuns == 0 || fresh == 0 {
				continue
			}
			t.Logf("%s, %d cores: %d runs in %v", c.name(), cores, fresh, time.Since(began).Round(time.Millisecond))
			if err := all.save(*accuracyFile); err != nil {
				t.Fatal(err)
			}
		}
	}
	all.check(t, list)
	if *accuracyOut != "" {
		if err := rewrite(*accuracyOut, saidBegin, all.text(), saidEnd); err != nil {
			t.Error(err)
		}
	}
}

// check demands that a verdict that must name the fault does, and that none
// fails that the fault doesn't list.
func (s *sayings) check(t *testing.T, list []condition) {
	t.Helper()
	for i := range list {
		c := &list[i]
		for _, cores := range gridCores {
			one := s.Cells[saidKey(c, cores, anyVerdict)]
			if len(c.MustName) > 0 && one.Named < one.Runs {
				t.Errorf("%s, %d cores: none of %v names it in %d of %d runs", c.name(), cores, c.MustName, one.Runs-one.Named, one.Runs)
			}
			if one.Undocumented > 0 {
				t.Errorf("%s, %d cores: what isn't documented fails in %d of %d runs", c.name(), cores, one.Undocumented, one.Runs)
			}
		}
	}
}

// TestEveryFaultIsNamed: for every fault, a verdict that must name it does, and
// none outside its documented list fails. The long form counts how often which
// verdict says what, and TestHealthyNeverFails how often falsely:
//
//	go test -run 'TestEveryFaultIsNamed|TestHealthyNeverFails' ./timingstats/verdict -v -accuracy.runs 200 -timeout 2h \
//		-accuracy.state testdata/verdicts.json -accuracy.out testdata/accuracy.md
//
// It can be run in parts as that of TestVerdictAccuracy can.
func TestEveryFaultIsNamed(t *testing.T) { hearAll(t, conditions()[1:]) }

// TestHealthyNeverFails: no verdict fails, or lacks evidence, on a healthy
// dataplane.
func TestHealthyNeverFails(t *testing.T) { hearAll(t, conditions()[:1]) }
