package session_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"tbl/loader/session"
	"tbl/target"
	"tbl/target/refplane"
)

// TestCoverage: the figure of many sessions is within the bounds that a few
// give for it. Shared storage is left out: what it costs depends on the load.
func TestCoverage(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
	with := []session.Design{session.PerSession, session.Local}
	many, err := session.Run(t.Context(), p, session.Config{Sessions: 20_000, Seed: 1, Designs: with})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range with {
		truth, missed, off := many.Designs[i].ClicksPerVisit, uint64(0), 0.0
		for seed := range seeds {
			p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{Sessions: 100, Seed: seed, Designs: []session.Design{d}})
			if err != nil {
				t.Fatal(err)
			}
			x := r.Designs[0]
			if math.Abs(x.ClicksPerVisit-truth) > x.ClicksPerVisitError {
				t.Logf("%s, seed %d: %v ± %v, of many sessions %v", d, seed, x.ClicksPerVisit, x.ClicksPerVisitError, truth)
				missed++
			}
			off += x.ClicksPerVisitError / truth / float64(seeds)
		}
		if missed*20 > seeds || off > 0.1 {
			t.Errorf("%s: %d of %d runs miss the figure of many sessions, %.1f %% to either side in the mean", d, missed, seeds, off*100)
		}
	}
}

// TestEnough: as many sessions as a run asks for do tell.
func TestEnough(t *testing.T) {
	asked, told := 0, 0
	for seed := range uint64(10) {
		run := func(sessions int64) *session.Result {
			p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{Sessions: sessions, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := run(3)
		if r.Best != "" {
			continue
		}
		_, text, ok := strings.Cut(r.Recommendation[0].Text, "About ")
		var n int64
		for _, c := range text {
			if c == ' ' {
				break
			}
			if c != ',' {
				n = n*10 + int64(c-'0')
			}
		}
		if !ok || n > 1000 {
			t.Errorf("seed %d: %s", seed, r.Recommendation[0].Text)
			continue
		}
		asked++
		if run(n).Best != "" {
			told++
		}
	}
	if asked < 3 || told*10 < asked*8 {
		t.Errorf("of %d runs with as many sessions as asked for, %d tell", asked, told)
	}
}

// listings counts the whole subtables that are listed, and the empty ones.
type listings struct {
	*refplane.Plane
	all, empty int
}

func (l *listings) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := l.Plane.Do(ctx, req, ans)
	if req.Op == target.OpTable && req.Table == target.TableKeys && len(req.Key) == 0 {
		l.all++
		if len(ans.List) == 0 {
			l.empty++
		}
	}
	return err
}

// TestListedWhileThere: a session's visit lists the subtable before it leaves,
// also where nobody else is there.
func TestListedWhileThere(t *testing.T) {
	p := &listings{Plane: plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})}
	_, err := session.Run(t.Context(), p, session.Config{
		Sessions: 60, Visits: 1, Arrivals: 0.01, Think: time.Second, Enumerate: 1, Leave: 1, Designs: []session.Design{session.Shared}})
	if err != nil {
		t.Fatal(err)
	}
	if p.all != session.DefaultScans || p.empty > 0 {
		t.Errorf("%d of %d listings of an empty subtable", p.empty, p.all)
	}
}

// TestOneSession has no growth: it is no rate.
func TestOneSession(t *testing.T) {
	for _, virtual := range []bool{true, false} {
		cfg := refplane.Config{Cores: 2, Seed: 1}
		if virtual {
			cfg.Clock = refplane.Model
		}
		r, err := session.Run(t.Context(), plane(t, cfg), session.Config{
			Sessions: 1, Arrivals: 100, Visits: -1, Leave: -1, Mix: session.Mix{Indefinite: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Designs {
			if d.Indefinite != 10 || d.GrowthEntriesP1k != 0 || d.GrowthEntriesPH != 0 {
				t.Errorf("%s: %d indefinite, growth %v and %v", d.Design, d.Indefinite, d.GrowthEntriesP1k, d.GrowthEntriesPH)
			}
		}
		if text := advice(r, "stay for good"); !strings.Contains(text, ": 10 entries (") || strings.Contains(text, "more") {
			t.Errorf("%q", text)
		}
	}
}

// TestNone: negative values play nothing, zero ones the defaults.
func TestNone(t *testing.T) {
	for _, none := range []bool{false, true} {
		cfg := session.Config{Sessions: 50, Designs: []session.Design{session.PerSession}}
		if none {
			cfg.Lookups, cfg.Think = -1, -1
		}
		r, err := session.Run(t.Context(), plane(t, refplane.Config{Cores: 2, Seed: 1, Clock: refplane.Model}), cfg)
		if err != nil {
			t.Fatal(err)
		}
		looks := false
		for _, o := range r.Designs[0].Ops {
			looks = looks || o.Op == "lookup"
		}
		if looks == none || (r.ThinkNS == 0) != none || (r.Designs[0].ElapsedNS < int64(10*time.Second)) != none {
			t.Errorf("none %v: look-ups %v, %d ns between visits, %d ns in all", none, looks, r.ThinkNS, r.Designs[0].ElapsedNS)
		}
	}
}

// TestExpired: what has expired is missed, but the index entry stays for as
// long as the longest timer.
func TestExpired(t *testing.T) {
	p := &indexLookups{Plane: plane(t, refplane.Config{Cores: 2, Seed: 1, Clock: refplane.Model})}
	r, err := session.Run(t.Context(), p, session.Config{
		Sessions: 50, Think: 30 * time.Second, Timeout: 1, Lifetime: 3600, Mix: session.Mix{Timeout: 1}, Enumerate: 1, Write: -1, Leave: -1,
		Designs: []session.Design{session.Shared}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Designs[0]; d.Misses < 400 || d.Misses > 450 {
		t.Errorf("%d of 450 look-ups miss keys that last a second", d.Misses)
	}
	if p.all != 150 || p.empty > 0 {
		t.Errorf("%d of %d index entries gone", p.empty, p.all)
	}
}

// indexLookups counts the look-ups of index entries, and those that miss.
type indexLookups struct {
	*refplane.Plane
	all, empty int
}

func (l *indexLookups) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := l.Plane.Do(ctx, req, ans)
	if req.Op == target.OpTable && req.Table == target.TableLookup && strings.HasSuffix(string(req.Key), ":") {
		l.all++
		if len(ans.Result) == 0 {
			l.empty++
		}
	}
	return err
}
