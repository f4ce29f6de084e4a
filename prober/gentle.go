package prober

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

const (
	// The most entries that are removed one by one; more are left to expire.
	removeAtMost = 200_000
	// After so long they have expired by themselves.
	entryLife = 62 * time.Second
)

// placed is an entry of the probe: its name and the core that wrote it.
type placed struct {
	name string
	core timingstats.CoreID
}

// placed are the entries that the probes wrote and that may still be there.
func (r *probing) placed() []placed {
	var out []placed
	now := r.clock.Now()
	for i := range r.names {
		if now.Sub(r.names[i].last) > entryLife {
			continue
		}
		for k, c := range r.names[i].cores {
			if c.n > 0 {
				out = append(out, placed{r.cfg.Names[i], r.ids[k]})
			}
		}
	}
	return out
}

// remove deletes the probes' entries, where the dataplane has table commands.
// These requests are no part of the account.
func (r *probing) remove(ctx context.Context, list []placed) {
	if len(list) == 0 {
		return
	}
	if len(list) > removeAtMost {
		r.warnings = append(r.warnings, fmt.Sprintf("%s entries of the probe are left to expire in 60 s", verdict.Thousands(len(list))))
		return
	}
	jobs := make([]job, len(list))
	for i := range jobs {
		jobs[i].name = i
	}
	q := newPool(r.tgt, r.workers, nil)
	ask := func(j *job, req *target.Request) {
		req.Op, req.Table = target.OpTable, target.TableDelete
		req.Subtable = append(req.Subtable, list[j.name].name...)
		req.Key = strconv.AppendInt([]byte("probe_"), int64(list[j.name].core.Core), 10)
	}
	take := func(j *job, ans *target.Answer) {
		j.n, _ = strconv.ParseInt(string(ans.Result), 10, 64)
	}
	merge := func(j *job) { r.removed += j.n }
	q.round(ctx, jobs[:1], ask, take, merge)
	if q.ok == 0 {
		r.warnings = append(r.warnings, "the probe's entries are left to expire in 60 s: the dataplane takes no table commands")
		return
	}
	q.round(ctx, jobs[1:], ask, take, merge)
	f := 0
	for attempt := 0; ; attempt++ { // those that failed are tried again
		left := jobs[:0]
		for _, j := range jobs {
			if !j.sent || j.err != nil {
				left = append(left, job{name: j.name})
			}
		}
		jobs = left
		if f = len(jobs); f == 0 || attempt == 3 || !q.round(ctx, jobs, ask, take, merge) {
			break
		}
	}
	if f > 0 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d of the probe's entries could not be removed and expire in 60 s", f))
	}
}

// The subtables from which on a probe that lists them takes noticeably long.
const largeSubtable = 1000

// enumerates notes that probing large subtables takes long: an older harness
// lists a subtable to count it, on every probe. It is held against plain
// requests, as many at a time, which are no part of the account.
func (r *probing) enumerates(ctx context.Context) {
	var slow []string
	large := 0
	plain := time.Duration(0)
	for i := range r.names {
		s := &r.names[i]
		n := int64(0)
		for _, c := range s.cores {
			n += int64(c.n)
		}
		if n == 0 || s.entries < largeSubtable {
			continue
		}
		if large++; large == 1 {
			q := newPool(r.tgt, r.workers, nil)
			q.round(ctx, make([]job, 4*r.workers), askInfo, takeNothing, func(j *job) { plain += j.latency })
			if q.ok == 0 {
				return
			}
			plain /= time.Duration(q.ok)
		}
		if mean := s.took / time.Duration(n); mean > 5*plain && mean > time.Millisecond {
			slow = append(slow, fmt.Sprintf("%q (%s entries, %v)", r.cfg.Names[i], verdict.Thousands(s.entries), mean.Round(10*time.Microsecond)))
		}
	}
	if 2*len(slow) <= large {
		return
	}
	r.warnings = append(r.warnings, fmt.Sprintf("probing takes long on %s, against %v for a plain request: the dataplane seems to list the subtable on each probe, which also renews the timers of its entries",
		examples(slow, func(s string) string { return s }), plain.Round(10*time.Microsecond)))
}
