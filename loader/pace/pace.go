// Package pace says when each request of an open loop is due.
package pace

import (
	"math"
	"time"
)

// Schedule says when each request of an open loop is due: a pure function of
// its number. The zero value has no stages and is done at once.
type Schedule struct {
	stages []leg
	open   bool // the last stage's rate goes on for ever
}

// leg is a stage with where it begins.
type leg struct {
	t0, d  float64 // seconds
	c0     float64 // requests due before it
	r0, r1 float64 // per second, at its beginning and end
}

// Stage is a stretch of an open-loop schedule. The rate goes in a straight
// line from the previous stage's end (0 before the first) to Rate, unless
// Step holds it at Rate from the start.
type Stage struct {
	Duration time.Duration
	Rate     float64 // requests per second, 0 or more
	Step     bool
}

// New makes the schedule of stages, or, with a rate, one that goes on for ever,
// after a ramp from 0 to it.
func New(rate float64, ramp time.Duration, stages []Stage) Schedule {
	var s Schedule
	if rate > 0 {
		s.open, stages = true, nil
		if ramp > 0 {
			stages = append(stages, Stage{Duration: ramp, Rate: rate})
		}
		stages = append(stages, Stage{Duration: time.Second, Rate: rate, Step: true})
	}
	var t, c, r float64
	for _, st := range stages {
		l := leg{t0: t, d: st.Duration.Seconds(), c0: c, r0: r, r1: st.Rate}
		if st.Step {
			l.r0 = st.Rate
		}
		s.stages = append(s.stages, l)
		t += l.d
		c = l.count(l.d)
		r = l.r1
	}
	return s
}

// count is how many requests are due until dt seconds into the leg.
func (l *leg) count(dt float64) float64 { return l.c0 + l.r0*dt + (l.r1-l.r0)*dt*dt/(2*l.d) }

// At is when request n (from 0) is due, from the start; false after the end.
func (s *Schedule) At(n int64) (time.Duration, bool) {
	x := float64(n)
	for i := range s.stages {
		l := &s.stages[i]
		last := i == len(s.stages)-1
		if last && s.open {
			return seconds(l.t0 + (x-l.c0)/l.r1), true
		}
		if x >= l.count(l.d) {
			continue
		}
		// c0 + r0·t + a·t² = x, solved without cancellation for small a.
		a, need := (l.r1-l.r0)/(2*l.d), x-l.c0
		root := math.Sqrt(max(0, l.r0*l.r0+4*a*need))
		dt := 0.0
		if need > 0 {
			dt = 2 * need / (l.r0 + root)
		}
		return seconds(l.t0 + min(dt, l.d)), true
	}
	return 0, false
}

// Due is how many requests are due until t.
func (s *Schedule) Due(t time.Duration) float64 {
	x, n := t.Seconds(), 0.0
	for i := range s.stages {
		l := &s.stages[i]
		if i == len(s.stages)-1 && s.open {
			if x > l.t0 {
				return l.c0 + (x-l.t0)*l.r1
			}
			return n
		}
		if x < l.t0+l.d {
			return l.count(max(0, x-l.t0))
		}
		n = l.count(l.d)
	}
	return n
}

// Total is how many requests a schedule that ends has.
func (s *Schedule) Total() int64 {
	if s.open || len(s.stages) == 0 {
		return 0
	}
	l := &s.stages[len(s.stages)-1]
	return int64(math.Ceil(l.count(l.d) - 1e-9))
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
