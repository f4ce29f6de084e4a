package proof

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"tbl/target"
	"tbl/target/refplane"
	"tbl/timingstats/verdict"
)

// thief is another client: after some writes it resets every core.
type thief struct {
	target.Target
	loads atomic.Int64
}

func (t *thief) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpLoad && t.loads.Add(1) == 1500 {
		var mine target.Answer
		for range 100 {
			if err := t.Target.Do(ctx, &target.Request{Op: target.OpReset}, &mine); err != nil {
				return err
			}
		}
	}
	return t.Target.Do(ctx, req, ans)
}

// What another client deletes has not leaked.
func TestSomebodyElseDeletes(t *testing.T) {
	p, log := embedded(t, refplane.Config{Cores: 4, Clock: refplane.Model, Seed: 1})
	r, err := Run(t.Context(), &thief{Target: p}, Config{Count: 3000, Log: log, LogSample: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r.Overall.State != verdict.Incomplete || !strings.Contains(r.Overall.Line, "somebody else") {
		t.Errorf("%v: %s", r.Overall.State, r.Overall.Line)
	}
}
