package refplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tbl/target"
)

// TestEqualHistories runs one seeded list of requests under different
// configurations: who owns what, on which clock and with which fault must not
// show in what a client is answered.
func TestEqualHistories(t *testing.T) {
	const seed, n = 20, 3000
	timers := []target.Seconds{0, target.KeepSeconds, target.Indefinite, 1000, 5000}
	history := func(cfg Config) []string {
		cfg.Seed = 77
		p := start(t, cfg)
		r := rand.New(rand.NewPCG(seed, 1))
		var out []string
		var ans target.Answer
		for range n {
			req := target.Request{
				Op: target.OpTable, Table: target.TableOp(r.IntN(int(target.TableLifetime) + 1)),
				Flags:    target.TableFlags(r.IntN(32)) &^ target.FlagRemaining,
				Subtable: fmt.Appendf(nil, "sub%d", r.IntN(5)), Key: fmt.Appendf(nil, "key%d", r.IntN(40)),
				Value: strconv.AppendInt(nil, int64(r.IntN(2000)-1000), 10),
				// Too long to expire while the histories are made, on any clock.
				Timeout: timers[r.IntN(len(timers))], Lifetime: timers[r.IntN(len(timers))],
			}
			switch r.IntN(50) {
			case 0:
				req.Op = target.OpResetName
			case 1, 2, 3:
				req.Value = []byte("word")
			}
			if req.Table == target.TableDeleteAll && r.IntN(5) > 0 {
				req.Table = target.TableSet
			}
			err := p.Do(context.Background(), &req, &ans)
			out = append(out, fmt.Sprintf("%d/%d flags %b %s %s %q: %v %q %q %d", req.Op, req.Table, req.Flags, req.Subtable, req.Key, req.Value, err, ans.Result, ans.List, ans.Deleted))
		}
		return out
	}
	want := history(Config{Cores: 1})
	for _, cfg := range []Config{
		{Cores: 8}, {Cores: 3, DAG: SrcIP}, {Cores: 8, Clock: Model}, {Cores: 64, Clock: Model},
		{Cores: 8, Faults: []Fault{{Name: DeterministicNames}, {Name: DeadCore, Core: 3}, {Name: Jitter, Share: .5, Clicks: 1000}}},
	} {
		got := history(cfg)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%+v, seed %d, request %d:\n got %s\nwant %s", cfg, seed, i, got[i], want[i])
				break
			}
		}
		if t.Failed() {
			return
		}
	}
	if !slices.ContainsFunc(want, func(s string) bool { return strings.Count(s, `"key`) > 10 }) {
		t.Error("no list came back in the whole history")
	}
}
