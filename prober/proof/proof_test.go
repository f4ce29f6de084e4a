package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tbl/logparse"
	"tbl/logparse/logline"
	"tbl/prober"
	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

// memLog is the embedded dataplane's log, kept in memory, as a Log.
type memLog struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	from  int
	plane *refplane.Plane
}

func (l *memLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *memLog) Begin(context.Context) error {
	err := l.plane.FlushLog()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = l.buf.Len()
	return err
}

func (l *memLog) End(_ context.Context, add func(*logline.Line)) (logparse.Counts, error) {
	if err := l.plane.FlushLog(); err != nil {
		return logparse.Counts{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return logparse.Read(bytes.NewReader(l.buf.Bytes()[l.from:]), add)
}

// embedded is a plane with its log.
func embedded(t testing.TB, cfg refplane.Config) (*refplane.Plane, *memLog) {
	t.Helper()
	l := &memLog{}
	cfg.Log = l
	p, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l.plane = p
	return p, l
}

func fault(t testing.TB, s string) []refplane.Fault {
	t.Helper()
	f, err := refplane.ParseFault(s)
	if err != nil {
		t.Fatal(err)
	}
	return []refplane.Fault{f}
}

func report(r *Result) string {
	var b strings.Builder
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%d %-8s %-10v %s\n", s.Step, s.Word, s.State, s.Line)
		for _, m := range s.More {
			fmt.Fprintf(&b, "     %s\n", m)
		}
	}
	fmt.Fprintf(&b, "%v: %s\n", r.Overall.State, r.Overall.Line)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	fmt.Fprintf(&b, "changed %q\nput back %q\nlost %q\n", r.Changed, r.PutBack, r.Lost)
	return b.String()
}

func TestProof(t *testing.T) {
	type want struct {
		overall verdict.State
		steps   [5]verdict.State
		says    []string
	}
	const (
		pass, warn, incomplete, fail, none = verdict.Pass, verdict.Warn, verdict.Incomplete, verdict.Fail, verdict.NotJudged
	)
	allPass := [5]verdict.State{pass, pass, pass, pass, pass}
	cases := []struct {
		name  string
		plane refplane.Config
		fault string
		cfg   Config
		noLog bool
		want  want
	}{
		{name: "healthy", want: want{pass, allPass, []string{"OK:", "4 cores"}}},
		{name: "healthy without a log", noLog: true, cfg: Config{Count: 2000}, want: want{pass, allPass, []string{"OK:"}}},
		{name: "one core", plane: refplane.Config{Cores: 1}, want: want{pass, allPass, nil}},
		{name: "16 cores", plane: refplane.Config{Cores: 16, LogSample: 100}, cfg: Config{LogSample: 100}, want: want{pass, allPass, nil}},
		{name: "64 cores", plane: refplane.Config{Cores: 64, LogSample: 20}, cfg: Config{LogSample: 20}, want: want{pass, allPass, nil}},
		{name: "a chassis blade", plane: refplane.Config{Slot: 2}, want: want{pass, allPass, nil}},
		{name: "steered", cfg: Config{Steer: true}, want: want{pass, allPass, nil}},
		{name: "built names", fault: "deterministic-names", want: want{fail, [5]verdict.State{fail, pass, pass, fail, fail}, []string{"LOCALITY ISSUE:", "owned by TMM", "times as long"}}},
		{name: "built names without a log", fault: "deterministic-names", noLog: true, cfg: Config{Count: 2000}, want: want{fail, [5]verdict.State{fail, pass, pass, fail, fail}, []string{"LOCALITY ISSUE:", "owned by TMM"}}},
		{name: "a dead core", fault: "dead-core=2", want: want{incomplete, [5]verdict.State{incomplete, incomplete, incomplete, incomplete, incomplete}, []string{"INCOMPLETE:", "TMM 2"}}},
		{name: "one address, one core", plane: refplane.Config{DAG: refplane.SrcIP}, want: want{incomplete, [5]verdict.State{incomplete, incomplete, incomplete, incomplete, incomplete}, []string{"one client address reaches one core only"}}},
		{name: "skewed", fault: "dag-skew=3", want: want{warn, [5]verdict.State{pass, pass, warn, pass, pass}, []string{"SKEWED"}}},
		{name: "flapping", fault: "flap=10%", want: want{fail, [5]verdict.State{fail, fail, fail, pass, fail}, []string{"ERRORS"}}},
		{name: "orphans of a reset", fault: "reload-orphans", want: want{fail, [5]verdict.State{pass, fail, pass, pass, pass}, []string{"LEAK: 10,000 entries survived", "tbl reset --all-names"}}},
		{name: "jitter", fault: "jitter=2%:400000", want: want{pass, allPass, nil}},
		{name: "some steps", cfg: Config{Skip: []Step{StepLoad, StepOwners}}, want: want{pass, [5]verdict.State{pass, pass, none, pass, none}, []string{"not run: load, owners"}}},
		{name: "owners only", cfg: Config{Only: []Step{StepOwners}, Names: []string{"my_app"}}, want: want{pass, [5]verdict.State{none, none, none, none, pass}, []string{"subtable 'my_app': owned by TMM"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.plane.Seed, c.plane.Clock = 12345, refplane.Model
			if c.name != "healthy" && c.plane.LogSample == 0 {
				c.plane.LogSample, c.cfg.LogSample = 100, 100 // enough, and quicker
			}
			if c.fault != "" {
				c.plane.Faults = fault(t, c.fault)
			}
			p, log := embedded(t, c.plane)
			if !c.noLog {
				c.cfg.Log = log
			}
			r, err := Run(t.Context(), p, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			text := report(r)
			if r.Overall.State != c.want.overall {
				t.Errorf("overall %v, want %v", r.Overall.State, c.want.overall)
			}
			for i, s := range r.Steps {
				if s.State != c.want.steps[i] {
					t.Errorf("step %d: %v, want %v", i+1, s.State, c.want.steps[i])
				}
			}
			for _, s := range c.want.says {
				if !strings.Contains(text, s) {
					t.Errorf("nothing says %q", s)
				}
			}
			if t.Failed() || testing.Verbose() {
				t.Log("\n" + text)
			}
		})
	}
}

// Entries of somebody else are named and kept, until destroying is allowed.
func TestHeldEntries(t *testing.T) {
	p, _ := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model})
	var ans target.Answer
	for i := range 40 {
		req := target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "theirs %d", i), Value: []byte("x")}
		if err := p.Do(t.Context(), &req, &ans); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Run(t.Context(), p, Config{Count: 100})
	var held *NotEmptyError
	if !errors.As(err, &held) || r == nil {
		t.Fatalf("error %v", err)
	}
	total := int64(0)
	for _, e := range held.Entries {
		total += e.Entries
		if !strings.Contains(err.Error(), fmt.Sprintf("%d on core %s", e.Entries, e.Core)) {
			t.Errorf("%q does not name %d on core %s", err, e.Entries, e.Core)
		}
	}
	if total != 40 {
		t.Errorf("%d entries named, want 40", total)
	}
	dump, err := prober.Dump(t.Context(), p, prober.AskConfig{})
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, d := range dump.Dumps {
		kept += len(d.Keys)
	}
	if kept != 40 {
		t.Errorf("%d entries kept, want 40", kept)
	}
	r, err = Run(t.Context(), p, Config{Count: 2000, Destroy: true})
	if err != nil || r.Overall.State != verdict.Pass || len(r.Lost) == 0 {
		t.Errorf("destroying: %v\n%s", err, report(r))
	}
	// What the proof wrote is gone, so that the next run needs no permission.
	if r, err = Run(t.Context(), p, Config{Count: 2000}); err != nil || r.Overall.State != verdict.Pass {
		t.Errorf("again: %v", err)
	}
}

// mortal is a target that dies after some requests.
type mortal struct {
	target.Target
	left int
}

func (m *mortal) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if m.left--; m.left < 0 {
		ans.Reset()
		return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached, Err: errors.New("connection refused")}
	}
	return m.Target.Do(ctx, req, ans)
}

func TestDeadTarget(t *testing.T) {
	for _, left := range []int{0, 20, 100, 1000, 2400} {
		p, _ := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model})
		r, err := Run(t.Context(), &mortal{p, left}, Config{Count: 2000, Workers: 8})
		if left <= 20 && left == 0 {
			if !errors.Is(err, prober.ErrUnreachable) {
				t.Errorf("dead from the start: %v", err)
			}
			continue
		}
		if err != nil && !errors.Is(err, prober.ErrUnreachable) {
			t.Errorf("after %d: %v", left, err)
		}
		if r.Overall.State != verdict.Incomplete || !strings.HasPrefix(r.Overall.Line, "INCOMPLETE:") || !r.Partial {
			t.Errorf("after %d: partial %v, %v\n%s", left, r.Partial, err, report(r))
		}
		if r.Whoami == nil || len(r.Whoami.Names) == 0 {
			t.Errorf("after %d: what was shown is lost", left)
		}
	}
}

// The samples that were logged before the target died are judged.
func TestDeadTargetWithLog(t *testing.T) {
	p, log := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model, LogSample: 10})
	r, err := Run(t.Context(), &mortal{p, 1500}, Config{Count: 4000, Workers: 8, Log: log, LogSample: 10})
	if err != nil || r.Overall.State != verdict.Incomplete || r.Steps[3].State != verdict.Pass || r.Load.Sent > 2000 {
		t.Errorf("%v\n%s", err, report(r))
	}
}

func TestCancelled(t *testing.T) {
	p, _ := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, p, Config{Count: 2000, Progress: &Progress{OnStep: func(s StepInfo) {
		if s.Step == StepLocality {
			cancel()
		}
	}}})
	if !errors.Is(err, context.Canceled) || r == nil || !r.Partial || r.Load == nil || r.Overall.State != verdict.Incomplete {
		t.Errorf("%v\n%s", err, report(r))
	}
}

// Each step counts for itself, and the load its writes alone: never more than
// are planned.
func TestProgress(t *testing.T) {
	p, _ := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model})
	var progress Progress
	if _, counts := progress.Now(); counts != nil {
		t.Error("counts before the first step")
	}
	counted := make(map[Step]*prober.Progress)
	progress.OnStep = func(s StepInfo) {
		now, counts := progress.Now()
		if now != s || counts.Sent.Load() != 0 || counts.Planned.Load() != 0 {
			t.Errorf("step %d begins as %q with %d requests of %d", s.Step, now.Word, counts.Sent.Load(), counts.Planned.Load())
		}
		if s.Step > StepNames && (counts.Heard.Load() != 4 || counts.Cores.Load() != 4) {
			t.Errorf("step %d begins with %d of %d cores heard", s.Step, counts.Heard.Load(), counts.Cores.Load())
		}
		counted[s.Step] = counts
	}
	r, err := Run(t.Context(), p, Config{Count: 2000, Progress: &progress})
	if err != nil {
		t.Fatalf("%v\n%s", err, report(r))
	}
	if c := counted[StepLoad]; c == nil || c.Sent.Load() != 2000 || c.Planned.Load() != 2000 || c.Errors.Load() != 0 {
		t.Errorf("the load counted %+v", c)
	}
	for _, s := range Steps() {
		if c := counted[s.Step]; c == nil || c.Sent.Load() == 0 {
			t.Errorf("step %d counted %+v", s.Step, c)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	p, _ := embedded(t, refplane.Config{Seed: 4, Clock: refplane.Model})
	for i, cfg := range []Config{{Count: -1}, {Workers: -1}, {ProbeRequests: -1}, {Threshold: -1}, {LogSample: -1}, {TimedPerCore: -1}, {Only: []Step{6}}, {Skip: []Step{0}}, {Names: []string{""}}, {MaxErrors: 2}} {
		if r, err := Run(t.Context(), p, cfg); r != nil || !errors.Is(err, prober.ErrConfig) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestRunEach(t *testing.T) {
	healthy, log0 := embedded(t, refplane.Config{Seed: 1, Clock: refplane.Model, LogSample: 100})
	broken, log1 := embedded(t, refplane.Config{Seed: 2, Clock: refplane.Model, LogSample: 100, Faults: fault(t, "deterministic-names")})
	logs := []Log{log0, log1}
	out := RunEach(t.Context(), []target.Target{healthy, broken}, func(i int) Config { return Config{Log: logs[i], LogSample: 100} })
	for i, want := range []verdict.State{verdict.Pass, verdict.Fail} {
		if out[i].Err != nil || out[i].Result.Overall.State != want {
			t.Errorf("target %d: %v, want %v\n%s", i, out[i].Err, want, report(out[i].Result))
		}
	}
}
