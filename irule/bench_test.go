package irule_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tbl/irule"
	"tbl/irule/bench"
	"tbl/target"
	"tbl/target/remote"
)

// rules renders both rules as they'd be deployed.
func rules(t testing.TB, o irule.Options) []bench.Rule {
	t.Helper()
	localdb, err := irule.Localdb(o)
	if err != nil {
		t.Fatal(err)
	}
	harness, err := irule.Harness(o)
	if err != nil {
		t.Fatal(err)
	}
	return []bench.Rule{{Name: irule.LocaldbName, Text: localdb}, {Name: irule.HarnessName, Text: harness}}
}

// start runs both rules on a bench until the test ends.
func start(t testing.TB, tmms int, seed int64, o irule.Options) *bench.Bench {
	t.Helper()
	b, err := bench.Start(context.Background(), bench.Config{TMMs: tmms, Seed: seed, Rules: rules(t, o)})
	if errors.Is(err, bench.ErrNoTclsh) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("closing the bench: %v", err)
		}
		if s := b.Stderr(); s != "" {
			t.Errorf("the interpreter complains: %s", s)
		}
		for _, l := range b.Log() {
			// A rule that has been taken away is called in vain.
			if strings.Contains(l, "TCL error") && !strings.Contains(l, "call: no proc") {
				t.Errorf("logged: %s", l)
			}
		}
		if s := b.Stray(); len(s) > 0 {
			t.Errorf("lines that something in a log line ended early: %q", s)
		}
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return b
}

// connect makes a client of b.
func connect(t testing.TB, b *bench.Bench, cfg remote.Config) *remote.Remote {
	t.Helper()
	cfg.URL = b.URL()
	r, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// client asks one request after another and fails the test when one fails.
type client struct {
	t   testing.TB
	tgt target.Target
	ans target.Answer
}

func (c *client) do(req target.Request) *target.Answer {
	c.t.Helper()
	if err := c.tgt.Do(context.Background(), &req, &c.ans); err != nil {
		c.t.Fatalf("op %d, key %.60q: %v", req.Op, req.Key, err)
	}
	return &c.ans
}

// everyTMM asks until every TMM answered, and calls f with the first answer
// of each.
func (c *client) everyTMM(req target.Request, f func(tmm int, ans *target.Answer)) {
	c.t.Helper()
	n := c.do(target.Request{Op: target.OpInfo}).Cores
	seen := make(map[int]bool)
	for range 200 * n {
		ans := c.do(req)
		if !seen[ans.Core] {
			seen[ans.Core] = true
			f(ans.Core, ans)
		}
		if len(seen) == n {
			return
		}
	}
	c.t.Fatalf("%d of %d TMMs answered", len(seen), n)
}
