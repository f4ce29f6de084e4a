package steer

import (
	"context"
	"testing"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

// clock is a time that stands still unless somebody sleeps.
type clock struct {
	target.Wall
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return nil
}

func (c *clock) Run(n int, worker func(int)) {
	for i := range n {
		worker(i)
	}
}

// byPort is a dataplane of so many cores whose disaggregator takes the source
// port modulo their number.
type byPort struct {
	target.Target
	clock clock
	cores int
}

func (b *byPort) Clock() target.Clock { return &b.clock }

func (b *byPort) Do(_ context.Context, req *target.Request, ans *target.Answer) error {
	ans.Core, ans.Cores = int(req.Conn.Src.Port())%b.cores, b.cores
	return nil
}

func learnt(t *testing.T, cores int) (*Steering, *byPort) {
	t.Helper()
	b := &byPort{cores: cores, clock: clock{now: time.Unix(1000, 0)}}
	s, err := Learn(t.Context(), b, cores, 1, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// TestPickIsEven: each core gets as many writes, over ports that reach it.
func TestPickIsEven(t *testing.T) {
	s, b := learnt(t, 4)
	var ans target.Answer
	got := map[int]int{}
	for range 400 {
		p, err := s.Pick(t.Context(), &ans)
		if err != nil {
			t.Fatal(err)
		}
		_ = b.Do(t.Context(), &target.Request{Conn: target.Conn{Src: p.Addr()}}, &ans)
		if ans.Core != p.core.id.Core {
			t.Fatalf("port %d reaches core %d, held to reach %v", p.num, ans.Core, p.core.id)
		}
		got[ans.Core]++
		if s.Done(p, &ans, nil) {
			t.Fatal("again after an answer")
		}
	}
	for core := range 4 {
		if got[core] != 100 {
			t.Errorf("core %d got %d of 400", core, got[core])
		}
	}
	if r := s.Result(); r.Hits != 400 || r.Misses != 0 || r.Skipped != 0 || !r.Consistent {
		t.Errorf("%+v", r)
	}
}

// TestPortMoves: a port that reaches another core than it did is that core's
// from then on, and so is the write.
func TestPortMoves(t *testing.T) {
	s, _ := learnt(t, 2)
	var ans target.Answer
	p, err := s.Pick(t.Context(), &ans)
	if err != nil {
		t.Fatal(err)
	}
	was := p.core
	other := s.byID[timingstats.CoreID{Core: 1 - was.id.Core}]
	before := [2]int64{was.writes, other.writes}
	ans = target.Answer{Core: other.id.Core}
	s.Done(p, &ans, nil)
	if p.core != other || was.writes != before[0]-1 || other.writes != before[1]+1 {
		t.Errorf("port of %v; writes %d and %d, were %v", p.core.id, was.writes, other.writes, before)
	}
	if last := other.ports[len(other.ports)-1]; last != p {
		t.Errorf("port %d is not among those of its core", p.num)
	}
	if r := s.Result(); r.Misses != 1 || r.Hits != 0 {
		t.Errorf("%+v", r)
	}
}

// TestPortInUse: a port that the system has not free rests twice as long each
// time, a minute at most, and an answer ends that. Its write is another's.
func TestPortInUse(t *testing.T) {
	s, b := learnt(t, 1)
	var ans target.Answer
	taken := &target.Error{Class: target.ClassAddressExhausted}
	p, err := s.Pick(t.Context(), &ans)
	if err != nil {
		t.Fatal(err)
	}
	c := p.core
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		writes := c.writes
		if !s.Done(p, &ans, taken) {
			t.Fatal("not to be tried again")
		}
		if got := p.ready.Sub(b.clock.now); got != want*time.Second || c.writes != writes-1 {
			t.Errorf("rests %v, want %v s; %d writes, had %d", got, int(want), c.writes, writes)
		}
		if q, err := s.Pick(t.Context(), &ans); err != nil || q == p {
			t.Fatalf("port %d again at once, error %v", p.num, err)
		}
		c.ports = c.ports[:len(c.ports)-1] // p, as Pick would take it
	}
	s.Done(p, &ans, nil)
	if s.Done(p, &ans, taken); p.wait != time.Second {
		t.Errorf("after an answer it rests %v", p.wait)
	}
	if r := s.Result(); r.Skipped != 9 {
		t.Errorf("%+v", r)
	}
}
