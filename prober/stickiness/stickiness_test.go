package stickiness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tbl/prober/stickiness"
	"tbl/target"
	"tbl/target/cluster"
	"tbl/timingstats/verdict"
)

// scripted answers invocation i of transaction n as told.
type scripted struct {
	target.Wall
	answer func(n int64, i int) (node string, err error)
	served atomic.Int64
}

type txKey struct{}

// txState is what the fake balancer knows of a transaction.
type txState struct {
	n int64
	i int
}

func (s *scripted) Do(ctx context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
	}
	tx := ctx.Value(txKey{}).(*txState)
	node, err := s.answer(tx.n, tx.i)
	tx.i++
	if err == nil {
		s.served.Add(1)
		ans.Node = append(ans.Node, node...)
		ans.Core = int(tx.n % 3)
		ans.Timing.Total = time.Duration(1+tx.i) * time.Microsecond
	}
	return err
}

func (s *scripted) Clock() target.Clock { return s.Wall }
func (s *scripted) Name() string        { return "scripted" }
func (s *scripted) Close() error        { return nil }

func run(t *testing.T, cfg stickiness.Config, answer func(n int64, i int) (string, error)) *stickiness.Result {
	t.Helper()
	s := &scripted{answer: answer}
	var ends atomic.Int64
	cfg.Begin = func(ctx context.Context, n int64) (context.Context, func()) {
		return context.WithValue(ctx, txKey{}, &txState{n: n}), func() { ends.Add(1) }
	}
	r, err := stickiness.Run(context.Background(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	account(t, r)
	if ends.Load() != r.Transactions || r.Served != s.served.Load() {
		t.Errorf("%d begun, %d ended; %d told as served, %d served", r.Transactions, ends.Load(), r.Served, s.served.Load())
	}
	return r
}

// account checks what holds for every result.
func account(t *testing.T, r *stickiness.Result) {
	t.Helper()
	failed, causes, inv := int64(0), int64(0), int64(0)
	for _, e := range r.Errors {
		failed += e.Count
	}
	for _, c := range r.Causes {
		causes += c.Transactions
	}
	share := 0.0
	for _, n := range r.Nodes {
		inv += n.Invocations
		share += n.Share
		cores := int64(0)
		for _, c := range n.Cores {
			cores += c.Invocations
		}
		if cores != n.Invocations || n.Transactions > n.Invocations {
			t.Errorf("node %s: %d transactions, %d invocations, %d by core", n.Name, n.Transactions, n.Invocations, cores)
		}
	}
	if r.Sent != r.Served+failed || inv != r.Served-r.Unnamed {
		t.Errorf("sent %d, served %d, failed %d, by node %d, unnamed %d", r.Sent, r.Served, failed, inv, r.Unnamed)
	}
	if r.Transactions != r.Whole+r.Split+r.Refused+r.Cut || causes != r.Refused+r.SplitRefused {
		t.Errorf("%d transactions: %d whole, %d split, %d refused, %d cut; causes of %d", r.Transactions, r.Whole, r.Split, r.Refused, r.Cut, causes)
	}
	if len(r.Nodes) > 0 && (share < 0.999999 || share > 1.000001) {
		t.Errorf("shares add up to %v", share)
	}
	if r.Verdicts[0].Name != verdict.Errors || r.Verdicts[1].Name != verdict.Sticky {
		t.Errorf("verdicts %v", r.Verdicts)
	}
}

func names(r *stickiness.Result) (out []string) {
	for _, n := range r.Nodes {
		out = append(out, n.Name)
	}
	return out
}

func refused() error {
	return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached, Err: errors.New("nobody there")}
}

func TestRun(t *testing.T) {
	node := func(n int64) string { return string(rune('A' + n%3)) }
	for name, tc := range map[string]struct {
		cfg    stickiness.Config
		answer func(n int64, i int) (string, error)
		state  verdict.State
		line   string // start
		check  func(t *testing.T, r *stickiness.Result)
	}{
		"sticky": {
			answer: func(n int64, _ int) (string, error) { return node(n), nil },
			state:  verdict.Pass, line: "OK: 1,000 transactions, each served by one node; 3 nodes seen",
			check: func(t *testing.T, r *stickiness.Result) {
				if !slices.Equal(names(r), []string{"A", "B", "C"}) || r.Nodes[0].Transactions != 334 || r.Nodes[0].Invocations != 1670 {
					t.Errorf("nodes %+v", r.Nodes)
				}
				l := r.Nodes[0].Latency
				if l.Min != 2*time.Microsecond || l.Max != 6*time.Microsecond || l.Mean != 4*time.Microsecond {
					t.Errorf("latency %+v", l)
				}
			},
		},
		"round-robin, one worker": {
			cfg:    stickiness.Config{Transactions: 100, Workers: 1},
			answer: func(n int64, i int) (string, error) { return node(5*n + int64(i)), nil },
			state:  verdict.Fail, line: "STICKINESS ISSUE: 100 of 100 transactions",
			check: func(t *testing.T, r *stickiness.Result) {
				if len(r.SplitExamples) != 10 || r.SplitExamples[1].String() != "#1: C A B C A" {
					t.Errorf("examples %v", r.SplitExamples)
				}
				if got := r.Verdicts[1].Figures["random_split_share"]; got < 0.98765 || got > 0.98766 {
					t.Errorf("share that chance would split: %v, want 80/81", got)
				}
			},
		},
		"one split, in its last invocation": {
			answer: func(n int64, i int) (string, error) {
				if n == 700 && i == 4 {
					return "Z", nil
				}
				return node(n), nil
			},
			state: verdict.Fail, line: "STICKINESS ISSUE: 1 of 1,000 transactions",
			check: func(t *testing.T, r *stickiness.Result) {
				if len(r.SplitExamples) != 1 || r.SplitExamples[0].String() != "#700: B×4 Z" {
					t.Errorf("examples %v", r.SplitExamples)
				}
			},
		},
		"one node": {
			answer: func(int64, int) (string, error) { return "A", nil },
			state:  verdict.Pass, line: "OK: 1,000 transactions, all served by the only node seen: one node proves nothing",
		},
		"no names": {
			answer: func(int64, int) (string, error) { return "", nil },
			state:  verdict.Incomplete, line: "INCOMPLETE: 5,000 answers did not say which node served them",
		},
		"one name missing could hide a split": {
			answer: func(n int64, i int) (string, error) {
				if n == 3 && i == 2 {
					return "", nil
				}
				return node(n), nil
			},
			state: verdict.Incomplete, line: "INCOMPLETE: 1 ",
		},
		"a split is one, whatever else has no name": {
			answer: func(n int64, i int) (string, error) { return []string{"", "A", "B"}[i%3], nil },
			state:  verdict.Fail, line: "STICKINESS ISSUE:",
			check: func(t *testing.T, r *stickiness.Result) {
				if got := r.SplitExamples[0].Nodes; !slices.Equal(got, []string{"?", "A", "B", "?", "A"}) {
					t.Errorf("example %v", got)
				}
			},
		},
		"refused": {
			cfg: stickiness.Config{MaxErrors: 1, Cause: func(error) string { return "because" }},
			answer: func(n int64, i int) (string, error) {
				if n%10 == 0 && i == 3 {
					return "", refused()
				}
				return node(n), nil
			},
			state: verdict.Pass, line: "OK: 1,000 transactions, each served by one node; 3 nodes seen; 100 refused",
			check: func(t *testing.T, r *stickiness.Result) {
				if r.Refused != 100 || r.Whole != 900 || len(r.Causes) != 1 || r.Causes[0].Cause != "because" || r.Causes[0].Transactions != 100 {
					t.Errorf("refused %d, causes %v", r.Refused, r.Causes)
				}
				if e := r.RefusedExamples[0]; !slices.Equal(e.Nodes, []string{"A", "A", "A"}) || !strings.Contains(e.Error, "nobody there") {
					t.Errorf("example %+v", e)
				}
				if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "100 of 1000") {
					t.Errorf("warnings %q", r.Warnings)
				}
			},
		},
		"all refused": {
			answer: func(int64, int) (string, error) { return "", refused() },
			state:  verdict.Incomplete, line: "INCOMPLETE: no transaction had two served invocations; 1,000 refused",
			check: func(t *testing.T, r *stickiness.Result) {
				if r.Sent != 1000 {
					t.Errorf("%d sent: a transaction goes on after its first error", r.Sent)
				}
			},
		},
		"split, then refused": {
			answer: func(n int64, i int) (string, error) {
				if i == 2 {
					return "", refused()
				}
				return node(int64(i)), nil
			},
			state: verdict.Fail, line: "STICKINESS ISSUE: 1,000 of 1,000",
			check: func(t *testing.T, r *stickiness.Result) {
				if r.SplitRefused != 1000 || r.Refused != 0 || len(r.RefusedExamples) != 0 {
					t.Errorf("%d split and refused, %d refused", r.SplitRefused, r.Refused)
				}
			},
		},
		"no examples": {
			cfg:    stickiness.Config{Examples: -1},
			answer: func(_ int64, i int) (string, error) { return node(int64(i)), nil },
			state:  verdict.Fail, line: "STICKINESS ISSUE: 1,000 of 1,000",
			check: func(t *testing.T, r *stickiness.Result) {
				if len(r.SplitExamples) != 0 {
					t.Errorf("examples %v", r.SplitExamples)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, tc.cfg, tc.answer)
			if v := r.Verdicts[1]; v.State != tc.state || !strings.HasPrefix(v.Line, tc.line) {
				t.Errorf("%v: %s; want %v: %s", v.State, v.Line, tc.state, tc.line)
			}
			if tc.check != nil {
				tc.check(t, r)
			}
		})
	}
}

// TestInterrupted: a cancelled run tells what it has.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &scripted{answer: func(n int64, i int) (string, error) {
		if n == 50 && i == 2 {
			cancel()
		}
		return "A", nil
	}}
	r, err := stickiness.Run(ctx, s, stickiness.Config{
		Workers: 4,
		Begin: func(ctx context.Context, n int64) (context.Context, func()) {
			return context.WithValue(ctx, txKey{}, &txState{n: n}), func() {}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	account(t, r)
	if !r.Interrupted || r.Cut == 0 || r.Cut > 4 || r.Refused != 0 || r.Whole < 40 || len(r.Warnings) == 0 {
		t.Errorf("interrupted %v, %d cut, %d refused, %d whole, warnings %q", r.Interrupted, r.Cut, r.Refused, r.Whole, r.Warnings)
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]stickiness.Config{
		"transactions": {Transactions: -1}, "one invocation": {Invocations: 1}, "invocations": {Invocations: -2}, "workers": {Workers: -1},
	} {
		if _, err := stickiness.Run(context.Background(), &scripted{}, cfg); !errors.Is(err, stickiness.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestBefore: each invocation is announced once, with its number.
func TestBefore(t *testing.T) {
	seen := make([]atomic.Int64, 500)
	var requests atomic.Int64
	run(t, stickiness.Config{
		Transactions: 100, Before: func(started int64) { seen[started].Add(1) },
		Request: func(int64, int) *target.Request { requests.Add(1); return &target.Request{} },
	}, func(int64, int) (string, error) { return "A", nil })
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Errorf("invocation %d announced %d times", i, n)
		}
	}
	if requests.Load() != 500 {
		t.Errorf("%d requests asked for", requests.Load())
	}
}

// TestBeforeGivenUp: what a transaction that fails doesn't send counts as gone
// by, so that half of the invocations is half of the run.
func TestBeforeGivenUp(t *testing.T) {
	var seen []int64
	run(t, stickiness.Config{Transactions: 4, Workers: 1, Before: func(started int64) { seen = append(seen, started) }},
		func(n int64, _ int) (string, error) {
			if n < 3 {
				return "", errors.New("no")
			}
			return "A", nil
		})
	if want := []int64{0, 5, 10, 15, 16, 17, 18, 19}; !slices.Equal(seen, want) {
		t.Errorf("announced %v, want %v", seen, want)
	}
}

// TestCluster drives real clusters of named nodes: what the answers tell is
// what the nodes count, sticky and not, for every policy.
func TestCluster(t *testing.T) {
	for policy := range cluster.NumPolicies {
		for _, sticky := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/sticky=%v", policy, sticky), func(t *testing.T) {
				var nodes []cluster.Node
				own := map[string]*cluster.Named{}
				for _, name := range []string{"A", "B", "C"} {
					own[name] = cluster.NewNamed(name, &silent{})
					nodes = append(nodes, cluster.NodeOf(name, own[name]))
				}
				f, err := cluster.NewFamily(cluster.FamilyConfig{Name: "svc", Seed: 3}, nodes...)
				if err != nil {
					t.Fatal(err)
				}
				pins := cluster.NewPins(cluster.PinsConfig{})
				p, err := cluster.New(cluster.Config{Family: f, Policy: policy, Sticky: sticky, Pins: pins, Seed: 4})
				if err != nil {
					t.Fatal(err)
				}
				r, err := stickiness.Run(context.Background(), p, stickiness.Config{
					Transactions: 3000, Workers: 8,
					Begin: func(ctx context.Context, _ int64) (context.Context, func()) {
						ctx, tx := cluster.Begin(ctx)
						return ctx, tx.End
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				account(t, r)
				for _, n := range r.Nodes {
					if n.Invocations != own[n.Name].Served() {
						t.Errorf("node %s: told %d, own count %d", n.Name, n.Invocations, own[n.Name].Served())
					}
				}
				elects := policy == cluster.FirstAvailable || policy == cluster.FirstAvailableIdentical
				switch {
				case sticky || elects:
					if r.Split != 0 || elects != (len(r.Nodes) == 1) {
						t.Errorf("%d split over %d nodes", r.Split, len(r.Nodes))
					}
				case policy == cluster.RoundRobin && r.Split < 2900:
					t.Errorf("%d of 3,000 split", r.Split)
				case policy == cluster.Random && (r.Split < 2900 || r.Split > 3000):
					t.Errorf("%d of 3,000 split, want about 2,963", r.Split)
				}
				if n := pins.Len(); n != 0 {
					t.Errorf("%d pins left", n)
				}
			})
		}
	}
}

type silent struct{ target.Wall }

func (*silent) Do(_ context.Context, _ *target.Request, ans *target.Answer) error {
	ans.Reset()
	return nil
}
func (*silent) Clock() target.Clock { return target.Wall{} }
func (*silent) Name() string        { return "silent" }
func (*silent) Close() error        { return nil }
