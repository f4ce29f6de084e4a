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
	"tbl/timingstats/verdict"
)

// judged is a result's verdict of a name.
func judged(t *testing.T, r *session.Result, name verdict.Name) verdict.Verdict {
	t.Helper()
	for _, v := range r.Verdicts {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no %s among %+v", name, r.Verdicts)
	return verdict.Verdict{}
}

// TestFaultsAreNamed: each fault by its verdict, and no other one fails.
func TestFaultsAreNamed(t *testing.T) {
	for _, c := range []struct {
		fault            string
		maxErrors        float64
		coverage, errors verdict.State
		recommends       bool
	}{
		{"", 0, verdict.Pass, verdict.Pass, true},
		{"", -1, verdict.Pass, verdict.Pass, true},
		{"flap", 0, verdict.Pass, verdict.Fail, false},
		{"flap", -1, verdict.Pass, verdict.Fail, false},
		{"flap", 0.2, verdict.Pass, verdict.Pass, true},
		{"dead-core=1", 0, verdict.Incomplete, verdict.Pass, false},
	} {
		for seed := range uint64(5) {
			cfg := refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model}
			if c.fault != "" {
				f, err := refplane.ParseFault(c.fault)
				if err != nil {
					t.Fatal(err)
				}
				cfg.Faults = append(cfg.Faults, f)
			}
			r, err := session.Run(t.Context(), plane(t, cfg), session.Config{Sessions: 100, Seed: seed, MaxErrors: c.maxErrors})
			if err != nil {
				t.Fatal(err)
			}
			if v := judged(t, r, verdict.Coverage); v.State != c.coverage {
				t.Errorf("%s, seed %d: %+v", c.fault, seed, v)
			}
			if v := judged(t, r, verdict.Errors); v.State != c.errors {
				t.Errorf("%s up to %v, seed %d: %+v", c.fault, c.maxErrors, seed, v)
			}
			if (len(r.Recommendation) > 0) != c.recommends {
				t.Errorf("%s up to %v, seed %d: recommends %+v, warnings %q", c.fault, c.maxErrors, seed, r.Recommendation, r.Warnings)
			}
		}
	}
}

// TestOneDesignFails: what fails in one design alone is not diluted by the
// others, and the others are compared without it.
func TestOneDesignFails(t *testing.T) {
	p := &failing{Plane: plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model}), every: 40, subtable: "tbl_sessions_"}
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 200, Visits: 6})
	if err != nil {
		t.Fatal(err)
	}
	v := judged(t, r, verdict.Errors)
	if v.State != verdict.Fail || !strings.HasSuffix(v.Line, "(shared)") {
		t.Errorf("%+v", v)
	}
	if r.Best != session.Local || !strings.Contains(r.Recommendation[0].Text, "shared was not compared") {
		t.Errorf("best %q: %+v", r.Best, r.Recommendation)
	}
	for _, a := range r.Recommendation {
		if strings.Contains(strings.ToLower(a.Text), "one shared subtable") {
			t.Errorf("compared all the same: %s", a.Text)
		}
	}
}

// failing answers every so manieth request to some subtables with an error.
type failing struct {
	*refplane.Plane
	every, n int
	subtable string
}

func (f *failing) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpTable && strings.HasPrefix(string(req.Subtable), f.subtable) {
		if f.n++; f.n%f.every == 0 {
			return &target.Error{Class: target.ClassHTTP5xx, Completion: target.CompletionYes, Status: 503}
		}
	}
	return f.Plane.Do(ctx, req, ans)
}

// TestFewRequests: a core that so few requests missed by chance counts for
// nothing, in either direction.
func TestFewRequests(t *testing.T) {
	passed, open := 0, 0
	for _, sessions := range []int64{1, 2, 5, 30} {
		for seed := range uint64(20) {
			p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{Sessions: sessions, Keys: 1, Visits: -1, Seed: seed, Designs: []session.Design{session.PerSession}})
			if err != nil {
				t.Fatal(err)
			}
			switch v := judged(t, r, verdict.Coverage); v.State {
			case verdict.Pass:
				passed++
			case verdict.NotJudged:
				open++
			default:
				t.Errorf("%d sessions, seed %d: %+v", sessions, seed, v)
			}
		}
	}
	if passed == 0 || open == 0 {
		t.Errorf("%d passed, %d not judged: want some of both", passed, open)
	}
}

// TestUndirected: a design that can't be played is not enough evidence, though
// every core was heard.
func TestUndirected(t *testing.T) {
	p := &translating{Plane: plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})}
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 200})
	if err != nil {
		t.Fatal(err)
	}
	v := judged(t, r, verdict.Coverage)
	if v.State != verdict.Incomplete || !strings.Contains(v.Line, "2 of 3 designs played: local left out") {
		t.Errorf("%+v", v)
	}
	if len(r.Recommendation) == 0 || !strings.Contains(r.Recommendation[0].Text, "local was not compared") {
		t.Errorf("%+v", r.Recommendation)
	}
}

// translating is behind an address translation that takes no notice of source
// ports.
type translating struct{ *refplane.Plane }

func (p *translating) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	req.Conn = target.Conn{}
	return p.Plane.Do(ctx, req, ans)
}

// TestMix: the shares of the mix hold over all sessions' keys, however many
// each session has, and from the first few sessions on.
func TestMix(t *testing.T) {
	for keys := 1; keys <= 17; keys++ {
		for seed := range uint64(2) {
			p := plane(t, refplane.Config{Cores: 2, Seed: seed, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{
				Sessions: 50, Keys: keys, Visits: -1, Leave: -1, Seed: seed, Designs: []session.Design{session.PerSession, session.Local},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Designs {
				if want := 0.1 * 50 * float64(keys); math.Abs(float64(d.Indefinite)-want) > 2 || d.LeftAfterExpiry != d.Indefinite {
					t.Errorf("%d keys, seed %d, %s: %d for ever, %d left after expiry, want about %v", keys, seed, d.Design, d.Indefinite, d.LeftAfterExpiry, want)
				}
			}
		}
	}
}

// TestHotByDesign: what chance makes of a few sessions is no hot core, one
// subtable for all is, and so are popular sessions.
func TestHotByDesign(t *testing.T) {
	busy := 0
	for seed := range uint64(20) {
		p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
		r, err := session.Run(t.Context(), p, session.Config{Sessions: 30, Visits: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Designs {
			if (d.HotCore != nil) != (d.Design == session.Shared) {
				t.Errorf("seed %d, %s: hot core %v with %.2f times the mean of 30 sessions", seed, d.Design, d.HotCore, d.ExecutedRatio)
			}
			if d.Design != session.Shared && d.ExecutedRatio > 1.25 {
				busy++
			}
		}
		for _, a := range r.Recommendation {
			if strings.Contains(a.Text, "no further core relieves it") && !strings.HasPrefix(a.Text, "One shared subtable") {
				t.Errorf("seed %d: %s", seed, a.Text)
			}
		}
	}
	if busy == 0 {
		t.Error("no run in which chance makes a core busy")
	}
	p := plane(t, refplane.Config{Cores: 16, Seed: 1, Clock: refplane.Model})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 2000, Visits: 10, Zipf: true, Designs: []session.Design{session.PerSession}})
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Designs[0]; d.HotCore == nil {
		t.Errorf("popular sessions make no core hot: %.2f times the mean", d.ExecutedRatio)
	}
}

// advice is what a recommendation says with some words in it.
func advice(r *session.Result, words string) string {
	for _, a := range r.Recommendation {
		if strings.Contains(a.Text, words) {
			return a.Text
		}
	}
	return ""
}

// TestIndex: a whole subtable is listed in the course of the visits, the
// index's own writes and deletions count, and where the difference may be
// chance nothing is advised.
func TestIndex(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  session.Config
		want string
	}{
		{"many sessions, listed often", session.Config{Sessions: 3000, Arrivals: 100, Enumerate: 1}, "keep the index"},
		{"hardly ever listed", session.Config{Sessions: 100, Enumerate: 0.02, Visits: 5}, "here an index doesn't pay"},
		{"one session at a time", session.Config{Sessions: 300, Visits: 5, Zipf: true, Think: time.Hour, Enumerate: 0.5, Leave: -1, Mix: session.Mix{Lifetime: 1}}, "no difference that so few can show"},
		{"never listed", session.Config{Sessions: 100, Enumerate: -1}, ""},
	} {
		c.cfg.Seed, c.cfg.Designs = 1, []session.Design{session.Shared}
		p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
		r, err := session.Run(t.Context(), p, c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Designs[0]
		text := advice(r, "listing the whole subtable")
		t.Log(c.name+":", text)
		if c.want == "" {
			if text != "" || d.Scan.N != 0 {
				t.Errorf("%s: %d listings, %s", c.name, d.Scan.N, text)
			}
			continue
		}
		if !strings.HasSuffix(text, c.want+".") {
			t.Errorf("%s: %q, want %s", c.name, text, c.want)
		}
		if d.Scan.N != session.DefaultScans || d.IndexSets != r.Sessions {
			t.Errorf("%s: %d listings, %d sets of index entries", c.name, d.Scan.N, d.IndexSets)
		}
	}
}

// TestListings: they see the subtable as it fills, and hardly hold up the
// visits.
func TestListings(t *testing.T) {
	var elapsed [2]time.Duration
	for i, scans := range []int{-1, 50} {
		p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
		r, err := session.Run(t.Context(), p, session.Config{Sessions: 2000, Scans: scans, Designs: []session.Design{session.Shared}})
		if err != nil {
			t.Fatal(err)
		}
		d := r.Designs[0]
		elapsed[i] = time.Duration(d.ElapsedNS)
		if i == 1 && (d.Scan.N != 50 || d.Scan.MinClicks*4 > d.Scan.P50Clicks) {
			t.Errorf("%d listings, from %d clicks, %d in the median: one fill only", d.Scan.N, d.Scan.MinClicks, d.Scan.P50Clicks)
		}
		if d.Operations != r.Designs[0].OK || d.Visits != 8000 {
			t.Errorf("%d operations in %d visits", d.Operations, d.Visits)
		}
	}
	if d := (elapsed[1] - elapsed[0]).Abs(); d > elapsed[0]/100 {
		t.Errorf("%v without listings, %v with", elapsed[0], elapsed[1])
	}
}

// TestFewEntries: what one entry says of a spread over cores is nothing.
func TestFewEntries(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 300, Seed: 1, Visits: 5, Zipf: true, Think: time.Hour, Enumerate: 0.5, Leave: -1, Mix: session.Mix{Lifetime: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Designs {
		if d.Entries < 1 || d.Entries > 20 {
			t.Fatalf("%s: %d entries, want a few", d.Design, d.Entries)
		}
	}
	for _, a := range r.Recommendation {
		if a.Table == session.TableMemory && strings.Contains(a.Text, "times the mean") || strings.Contains(a.Text, " 1 entries") {
			t.Error(a.Text)
		}
	}
}

// TestLostAnswers: a question whose answer is lost is put again, as the run
// hangs on it.
func TestLostAnswers(t *testing.T) {
	p := &forgetful{Plane: plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model}), lost: map[target.Op]bool{}}
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.lost) != 2 || len(r.Warnings) > 0 || r.Designs[0].Entries == 0 {
		t.Errorf("%d answers lost, %d entries, warnings %q", len(p.lost), r.Designs[0].Entries, r.Warnings)
	}
}

// forgetful loses the first answer about itself, and about its entries.
type forgetful struct {
	*refplane.Plane
	lost map[target.Op]bool
}

func (f *forgetful) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if (req.Op == target.OpInfo || req.Op == target.OpStats) && !f.lost[req.Op] {
		f.lost[req.Op] = true
		return &target.Error{Class: target.ClassReset, Completion: target.CompletionMaybe}
	}
	return f.Plane.Do(ctx, req, ans)
}
