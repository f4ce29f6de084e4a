package prober

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

// A run of failures this long, without one answer between, means that the
// target is gone. With half of the cores dead it has a chance of 2^-64 on a
// live one.
const goneAfter = 64

// job is one request of a round and what came back. A worker writes only to
// the job it took, so a round needs no locks; everything is merged, in the
// order of the jobs, when the round is over.
type job struct {
	name int            // index of the name it asks about
	src  netip.AddrPort // where the connection comes from; zero: the target chooses

	sent bool
	// started and ended order the requests among themselves: one that started
	// after another had ended came later, all else is concurrent.
	started, ended int64
	core           timingstats.CoreID
	cores          int   // the dataplane's count, 0 when not said
	clicks         int64 // of the timed write
	n              int64 // entries, deleted or count, by operation
	m              int64 // writes (whoami)
	local          bool
	owner          int // owning core, -1: not said
	text           []byte
	node           string
	texts          []string
	err            error
	latency        time.Duration
}

// pool sends rounds of requests and keeps the account.
type pool struct {
	tgt      target.Target
	clock    target.Clock
	workers  int
	progress *Progress
	start    time.Time

	sent, ok int64
	errs     [target.NumClasses]ErrorCount
	firstErr error
	hits     map[timingstats.CoreID]int64
	slots    map[int]bool // the blades heard
	cores    int          // the dataplane's own count per blade, 0: not known
	inRow    atomic.Int64
	order    atomic.Int64
	gone     atomic.Pointer[error]
	canceled error
	answers  []target.Answer // one per worker, reused
	requests []target.Request
}

func newPool(tgt target.Target, workers int, progress *Progress) *pool {
	if progress == nil {
		progress = new(Progress)
	}
	clock := tgt.Clock()
	return &pool{
		tgt: tgt, clock: clock, workers: workers, progress: progress, start: clock.Now(),
		hits:     make(map[timingstats.CoreID]int64),
		slots:    make(map[int]bool),
		answers:  make([]target.Answer, workers),
		requests: make([]target.Request, workers),
	}
}

// round sends one request per job and returns false when there is no point in
// another round: the context is done or the target is gone. ask fills the
// request of a job, take keeps what it needs of the answer in the job; both
// are called by the workers. merge is called afterwards, in order, for every
// job that was answered; it may be nil.
func (p *pool) round(ctx context.Context, jobs []job,
	ask func(*job, *target.Request), take func(*job, *target.Answer), merge func(*job)) bool {
	if p.stopped(ctx) {
		return false
	}
	var taken atomic.Int64
	p.clock.Run(min(p.workers, len(jobs)), func(w int) {
		req, ans := &p.requests[w], &p.answers[w]
		for {
			i := int(taken.Add(1)) - 1
			if i >= len(jobs) || p.gone.Load() != nil || ctx.Err() != nil {
				return
			}
			j := &jobs[i]
			sub := req.Subtable[:0]
			*req = target.Request{Subtable: sub, Conn: target.Conn{Src: j.src}}
			ask(j, req)
			j.started = p.order.Add(1)
			j.err = p.tgt.Do(ctx, req, ans)
			j.ended = p.order.Add(1)
			if j.err != nil && j.src.Port() != 0 && target.ClassOf(j.err) == target.ClassAddressExhausted {
				continue // a chosen port that isn't free: nothing was sent, another will do
			}
			j.sent = true
			p.progress.Sent.Add(1)
			if j.err != nil {
				p.progress.Errors.Add(1)
				if target.ClassOf(j.err) != target.ClassCanceled && p.inRow.Add(1) >= goneAfter {
					err := j.err
					p.gone.CompareAndSwap(nil, &err)
				}
				continue
			}
			p.inRow.Store(0)
			j.core = timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}
			j.cores, j.latency, j.owner = ans.Cores, ans.Timing.Total, -1
			take(j, ans)
		}
	})
	for i := range jobs {
		j := &jobs[i]
		if !j.sent {
			continue
		}
		p.sent++
		if j.err != nil {
			if p.firstErr == nil {
				p.firstErr = j.err
			}
			e := &p.errs[target.ClassOf(j.err)]
			if e.Count++; e.Count == 1 {
				e.Class, e.Example = target.ClassOf(j.err), j.err.Error()
			}
			continue
		}
		p.ok++
		p.hits[j.core]++
		p.slots[j.core.Slot] = true
		p.cores = max(p.cores, j.cores)
		if merge != nil {
			merge(j)
		}
	}
	p.progress.Heard.Store(int64(len(p.hits)))
	p.progress.Cores.Store(int64(len(p.known())))
	return !p.stopped(ctx)
}

// stopped says that no further round makes sense.
func (p *pool) stopped(ctx context.Context) bool {
	p.canceled = ctx.Err()
	return p.canceled != nil || p.gone.Load() != nil
}

// err is why the run was cut short, nil when it wasn't: the context's error,
// or ErrUnreachable or ErrNoDataplane with an example.
func (p *pool) err() error {
	if p.canceled != nil {
		return p.canceled
	}
	err := p.firstErr
	if e := p.gone.Load(); e != nil {
		err = *e
	} else if p.ok > 0 || p.sent == 0 {
		return nil
	}
	switch target.ClassOf(err) {
	case target.ClassMalformed, target.ClassHTTP4xx, target.ClassHTTP5xx:
		if p.ok == 0 {
			return fmt.Errorf("%w: %w", ErrNoDataplane, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// until sends rounds until no core is missing, at least `first` requests, at
// most `limit`; limit 0: until a core would be missed with less than miss.
// missing says which cores are still wanted; nil: those that did not answer.
func (p *pool) until(ctx context.Context, first, limit int, miss float64,
	ask func(*job, *target.Request), take func(*job, *target.Answer), merge func(*job),
	missing func() []timingstats.CoreID) {
	if missing == nil {
		missing = p.missing
	}
	n, total := first, 0
	for p.round(ctx, make([]job, n), ask, take, merge) {
		total += n
		// Where the dataplane doesn't count its cores, one more than was heard is
		// looked for.
		cores, wanted := len(p.known()), len(missing())
		if p.cores == 0 {
			cores, wanted = cores+1, max(wanted, 1)
		}
		most := limit
		if most == 0 {
			most = max(first, NeededRequests(cores, miss))
		}
		p.progress.Planned.Store(int64(most))
		if wanted == 0 || total >= most {
			return
		}
		n = min(nextRound(cores, wanted), most-total)
	}
}

// count learns how many cores there are by asking until it has an answer,
// which doesn't count as having heard a core.
func (p *pool) count(ctx context.Context) bool {
	// One is enough of a target that answers; one that doesn't is asked by all
	// workers at once, so that a silent one costs few time-outs.
	for n := 1; p.ok == 0; n = min(p.workers, goneAfter) {
		if !p.round(ctx, make([]job, n), askInfo, takeNothing, nil) {
			return false
		}
	}
	clear(p.hits)
	return true
}

func askInfo(_ *job, req *target.Request)    { req.Op = target.OpInfo }
func takeNothing(_ *job, _ *target.Answer)   {}
func askWhoami(_ *job, req *target.Request)  { req.Op = target.OpWhoami }
func askDump(_ *job, req *target.Request)    { req.Op = target.OpDump }
func askReset(_ *job, req *target.Request)   { req.Op = target.OpReset }
func askNames(_ *job, req *target.Request)   { req.Op = target.OpNames }
func takeDeleted(j *job, ans *target.Answer) { j.n = ans.Deleted }
func takeName(j *job, ans *target.Answer)    { j.text = slices.Clone(ans.Subtable) }
func takeList(j *job, ans *target.Answer)    { j.texts = texts(ans.List) }
func takeDump(j *job, ans *target.Answer)    { j.n, j.texts = ans.Count, texts(ans.List) }

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// known are the cores there are, in order: on every blade that was heard, as
// many as the dataplane counts, and those that answered.
func (p *pool) known() []timingstats.CoreID {
	out := make([]timingstats.CoreID, 0, len(p.hits))
	for c := range p.hits {
		if c.Core >= p.cores {
			out = append(out, c)
		}
	}
	for s := range p.slots {
		for c := range p.cores {
			out = append(out, timingstats.CoreID{Slot: s, Core: c})
		}
	}
	slices.SortFunc(out, timingstats.CoreID.Compare)
	return out
}

// missing are the known cores that did not answer, in order.
func (p *pool) missing() []timingstats.CoreID {
	out := []timingstats.CoreID{}
	for _, c := range p.known() {
		if p.hits[c] == 0 {
			out = append(out, c)
		}
	}
	return out
}

// accounting is the account so far.
func (p *pool) accounting() Accounting {
	a := Accounting{Sent: p.sent, OK: p.ok}
	for _, e := range p.errs {
		if e.Count > 0 {
			a.Errors = append(a.Errors, e)
		}
	}
	return a
}

// coreHits are the answered requests per known core, in order.
func (p *pool) coreHits() []CoreHits {
	known := p.known()
	out := make([]CoreHits, len(known))
	for i, c := range known {
		out[i] = CoreHits{Core: c, Hits: p.hits[c]}
	}
	return out
}
