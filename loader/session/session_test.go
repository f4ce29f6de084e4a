package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"strings"
	"testing"

	"tbl/loader/session"
	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/refplane"
	"tbl/target/remote"
	"tbl/timingstats/verdict"
)

func plane(t testing.TB, cfg refplane.Config) *refplane.Plane {
	t.Helper()
	p, err := refplane.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func design(t *testing.T, r *session.Result, name session.Design) session.DesignResult {
	t.Helper()
	for _, d := range r.Designs {
		if d.Design == name {
			return d
		}
	}
	t.Fatalf("no design %s in the result", name)
	return session.DesignResult{}
}

func TestThreeDesigns(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 16, Seed: 1, Clock: refplane.Model})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 1000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := design(t, r, session.PerSession), design(t, r, session.Shared), design(t, r, session.Local)
	if math.Abs(a.RemoteShare-0.9375) > 0.005 || a.TheoryShare != 0.9375 {
		t.Errorf("per session: remote share %v", a.RemoteShare)
	}
	if c.RemoteShare != 0 || c.AffinityMisses != 0 {
		t.Errorf("local: remote share %v, affinity misses %d", c.RemoteShare, c.AffinityMisses)
	}
	if b.HotCore == nil || b.ExecutedRatio != 16 {
		t.Errorf("shared: hot core %v, ratio %v", b.HotCore, b.ExecutedRatio)
	}
	if r.Best != session.Local || len(r.Recommendation) < 5 {
		t.Errorf("best %q: %+v", r.Best, r.Recommendation)
	}
	for _, d := range r.Designs {
		if d.Failed != 0 || d.LeftAfterCleanup != 0 || d.OK != d.Operations {
			t.Errorf("%s: %+v", d.Design, d)
		}
		if d.LeftAfterExpiry != d.Indefinite {
			t.Errorf("%s: %d entries left after all timers, %d expected by the account", d.Design, d.LeftAfterExpiry, d.Indefinite)
		}
		if d.Entries <= 0 || d.Bytes <= 0 || d.EntriesRatio < 1 {
			t.Errorf("%s: %d entries, %d bytes, ratio %v", d.Design, d.Entries, d.Bytes, d.EntriesRatio)
		}
	}
	var ans target.Answer
	if err := p.Do(t.Context(), &target.Request{Op: target.OpStats}, &ans); err != nil {
		t.Fatal(err)
	}
	for _, s := range ans.Stats {
		if s.Entries != 0 {
			t.Errorf("core %d still holds %d entries", s.Core, s.Entries)
		}
	}
	for _, a := range r.Recommendation {
		t.Log(a.Table+":", a.Text)
		if a.Table != session.TableOps && a.Table != session.TableCost && a.Table != session.TableMemory {
			t.Errorf("advice from no table: %+v", a)
		}
	}
}

func TestRepeatable(t *testing.T) {
	for _, zipf := range []bool{false, true} {
		var out [2][]byte
		for i := range out {
			p := plane(t, refplane.Config{Cores: 4, Seed: 7, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{Sessions: 300, Zipf: zipf})
			if err != nil {
				t.Fatal(err)
			}
			if out[i], err = json.Marshal(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out[0], out[1]) {
			t.Errorf("two runs differ:\n%s\n%s", out[0], out[1])
		}
	}
}

func TestWallClock(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 2})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 300, Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	c := design(t, r, session.Local)
	// Which names the cores found depends on what else the machine does, so
	// that the remote share is judged on the model clock.
	if c.AffinityMisses != 0 || c.RemoteBy != "owner" || c.LeftAfterExpiry != -1 || c.Failed != 0 {
		t.Errorf("%+v", c)
	}
	var ans target.Answer
	if err := p.Do(t.Context(), &target.Request{Op: target.OpStats}, &ans); err != nil {
		t.Fatal(err)
	}
	for _, s := range ans.Stats {
		if s.Entries != 0 {
			t.Errorf("core %d still holds %d entries", s.Core, s.Entries)
		}
	}
}

// Where one client address reaches one core only there is no affinity to have.
func TestNoAffinity(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 4, Seed: 3, Clock: refplane.Model, DAG: refplane.SrcIP})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 50})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Designs) != 2 || len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "local left out") {
		t.Errorf("%d designs, warnings %q", len(r.Designs), r.Warnings)
	}
	if v := judged(t, r, verdict.Coverage); v.State != verdict.Incomplete || r.Best != "" || len(r.Recommendation) > 0 {
		t.Errorf("best %q of 1 core of 4: %+v", r.Best, v)
	}
}

func TestConfig(t *testing.T) {
	p := plane(t, refplane.Config{Clock: refplane.Model})
	for _, c := range []session.Config{
		{Sessions: -1}, {Keys: -1}, {ValueSize: -1}, {Enumerate: 1.5}, {Workers: -1}, {Designs: []session.Design{"x"}},
		{Arrivals: math.NaN()}, {Mix: session.Mix{Timeout: -1}}, {Timeout: -5},
	} {
		if _, err := session.Run(t.Context(), p, c); !errors.Is(err, session.ErrConfig) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}

// Over HTTP, through the table endpoint.
func TestRemote(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 4})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		httpserve.New(p, httpserve.Config{}).Serve(ctx, ln)
	}()
	defer func() { cancel(); <-done }()
	c, err := remote.New(remote.Config{URL: "http://" + ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := session.Run(t.Context(), c, session.Config{Sessions: 40, Keys: 4, Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Designs {
		if d.Failed != 0 || d.RemoteBy != "owner" || d.LeftAfterCleanup != 0 {
			t.Errorf("%s: %d failed %+v, remote by %s, left %d", d.Design, d.Failed, d.Errors, d.RemoteBy, d.LeftAfterCleanup)
		}
	}
	if d := design(t, r, session.Local); d.AffinityMisses*100 > d.Operations {
		t.Errorf("local: %d affinity misses of %d operations", d.AffinityMisses, d.Operations)
	}
	var ans target.Answer
	if err := p.Do(t.Context(), &target.Request{Op: target.OpStats}, &ans); err != nil {
		t.Fatal(err)
	}
	for _, s := range ans.Stats {
		if s.Entries != 0 {
			t.Errorf("core %d still holds %d entries", s.Core, s.Entries)
		}
	}
}

// A dataplane without the table endpoint says so at once.
func TestUnsupported(t *testing.T) {
	p := noTable{plane(t, refplane.Config{Clock: refplane.Model})}
	_, err := session.Run(t.Context(), p, session.Config{Sessions: 1000})
	if !errors.Is(err, session.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

type noTable struct{ *refplane.Plane }

func (n noTable) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if req.Op == target.OpTable {
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: 404}
	}
	return n.Plane.Do(ctx, req, ans)
}

// Where the dataplane doesn't name owners, slow operations count as remote.
func TestRemoteByClicks(t *testing.T) {
	p := noOwner{plane(t, refplane.Config{Cores: 16, Seed: 1, Clock: refplane.Model})}
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 300})
	if err != nil {
		t.Fatal(err)
	}
	a := design(t, r, session.PerSession)
	if a.RemoteBy != "clicks" || math.Abs(a.RemoteShare-0.9375) > 0.03 || a.ExecutedRatio != 0 || r.Best != session.Local {
		t.Errorf("remote share %v by %s, ratio %v, best %s", a.RemoteShare, a.RemoteBy, a.ExecutedRatio, r.Best)
	}
}

type noOwner struct{ *refplane.Plane }

func (n noOwner) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := n.Plane.Do(ctx, req, ans)
	ans.OwnerKnown, ans.Owner = false, 0
	return err
}

// Ctrl-C leaves nothing behind.
func TestInterrupted(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &stopper{Plane: p, after: 5000, cancel: cancel}
	r, err := session.Run(ctx, s, session.Config{Sessions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Partial || r.Best != "" || len(r.Designs) != 1 {
		t.Errorf("partial %v, best %q, %d designs", r.Partial, r.Best, len(r.Designs))
	}
	var ans target.Answer
	if err := p.Do(t.Context(), &target.Request{Op: target.OpStats}, &ans); err != nil {
		t.Fatal(err)
	}
	for _, c := range ans.Stats {
		if c.Entries != 0 {
			t.Errorf("core %d still holds %d entries", c.Core, c.Entries)
		}
	}
}

// stopper cancels a run after so many requests.
type stopper struct {
	*refplane.Plane
	after  int
	cancel func()
}

func (s *stopper) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	if s.after--; s.after == 0 {
		s.cancel()
	}
	return s.Plane.Do(ctx, req, ans)
}

// TestFewVisits: where chance may make the difference nothing is recommended,
// and what is recommended is right.
func TestFewVisits(t *testing.T) {
	for _, sessions := range []int64{3, 10, 300} {
		none := 0
		for seed := range uint64(8) {
			p := plane(t, refplane.Config{Cores: 4, Seed: seed, Clock: refplane.Model})
			r, err := session.Run(t.Context(), p, session.Config{Sessions: sessions, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if r.Best != "" && r.Best != session.Local {
				t.Errorf("%d sessions, seed %d: recommends %s", sessions, seed, r.Best)
			}
			if r.Best == "" {
				none++
			}
		}
		if sessions == 3 && none < 4 || sessions == 300 && none > 2 {
			t.Errorf("%d sessions: no recommendation %d times of 8", sessions, none)
		}
	}
}

// TestOneDesign has nothing to compare with.
func TestOneDesign(t *testing.T) {
	p := plane(t, refplane.Config{Cores: 4, Seed: 1, Clock: refplane.Model})
	r, err := session.Run(t.Context(), p, session.Config{Sessions: 300, Designs: []session.Design{session.Shared}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Best != "" || len(r.Recommendation) == 0 || !strings.Contains(r.Recommendation[0].Text, "no other design") {
		t.Errorf("best %q: %+v", r.Best, r.Recommendation)
	}
}

// TestOneCore: designs that do the same are not told apart.
func TestOneCore(t *testing.T) {
	for seed := range uint64(4) {
		p := plane(t, refplane.Config{Cores: 1, Seed: seed, Clock: refplane.Model})
		r, err := session.Run(t.Context(), p, session.Config{Sessions: 100, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Recommendation {
			if strings.Contains(a.Text, "times as much") || strings.Contains(a.Text, "It needs affinity") {
				t.Errorf("seed %d: %s", seed, a.Text)
			}
		}
	}
}

// TestGrowthIsOfTheArrivals: a slow design leaves no less behind, and without
// a rate of arrivals there is no hour.
func TestGrowthIsOfTheArrivals(t *testing.T) {
	for _, virtual := range []bool{true, false} {
		cfg := refplane.Config{Cores: 4, Seed: 1}
		if virtual {
			cfg.Clock = refplane.Model
		}
		r, err := session.Run(t.Context(), plane(t, cfg), session.Config{Sessions: 1000})
		if err != nil {
			t.Fatal(err)
		}
		want := r.Designs[0]
		for _, d := range r.Designs {
			if d.GrowthEntriesP1k != want.GrowthEntriesP1k || d.GrowthEntriesP1k < 400 || d.GrowthEntriesP1k > 600 { // of 1,000 keys
				t.Errorf("%s: %v entries more per 1,000 sessions, others %v", d.Design, d.GrowthEntriesP1k, want.GrowthEntriesP1k)
			}
			perHour := 0.0
			if virtual {
				perHour = 3600 * d.GrowthEntriesP1k // at 1,000 a second
			}
			if d.GrowthEntriesPH != perHour {
				t.Errorf("%s, virtual %v: %v entries more per hour, want %v", d.Design, virtual, d.GrowthEntriesPH, perHour)
			}
		}
		for _, a := range r.Recommendation {
			if !virtual && strings.Contains(a.Text, "per hour") {
				t.Errorf("no rate of arrivals, and yet: %s", a.Text)
			}
		}
		per := map[bool]string{true: "more per hour at this rate of arrivals.", false: "more for each 1,000 sessions."}[virtual]
		if text := advice(r, "stay for good"); !strings.HasSuffix(text, per) {
			t.Errorf("virtual %v: %q, want %s", virtual, text, per)
		}
	}
}
