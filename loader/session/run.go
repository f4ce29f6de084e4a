package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"tbl/target"
)

// Run plays the workload against each design in turn, and removes its entries
// after each. A run cut short by ctx returns its result with Partial set. Other
// errors wrap ErrConfig, ErrUnreachable or ErrUnsupported.
func Run(ctx context.Context, tgt target.Target, cfg Config) (*Result, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	clock := tgt.Clock()
	if cfg.Arrivals == 0 && clock.Virtual() {
		cfg.Arrivals = DefaultArrivals
	}
	r := &Result{
		Target: tgt.Name(), Virtual: clock.Virtual(), Seed: cfg.Seed, Sessions: cfg.Sessions, Keys: cfg.Keys,
		Visits: cfg.Visits, ThinkNS: int64(cfg.Think), Arrivals: cfg.Arrivals, Zipf: cfg.Zipf, Mix: cfg.Mix,
		TimeoutS: cfg.Timeout, LifetimeS: cfg.Lifetime, Enumerate: cfg.Enumerate, Write: cfg.Write, Leave: cfg.Leave,
		Designs: []DesignResult{}, Recommendation: []Advice{}, Warnings: []string{},
	}
	j := judge{cfg: &cfg, r: r}
	defer j.verdicts()
	var ans target.Answer
	if err := target.Ask(ctx, tgt, target.OpInfo, &ans); err != nil {
		return r, fmt.Errorf("%w: %s: %w", ErrUnreachable, tgt.Name(), err)
	}
	r.Cores = ans.Cores
	plan := newPlan(&cfg)
	visits := plan.total()
	if p := cfg.Progress; p != nil {
		p.Total.Store(visits * int64(len(cfg.Designs)))
	}
	for i, d := range cfg.Designs {
		if cfg.Progress != nil {
			cfg.Progress.Design.Store(int64(i + 1))
		}
		p := &play{cfg: &cfg, plan: plan, tgt: tgt, clock: clock, design: d, cores: r.Cores}
		if d == Local {
			p.affinity, err = learn(ctx, tgt, r.Cores, cfg.Seed)
			j.learnt(p.affinity)
			if err != nil {
				if ctx.Err() == nil {
					j.leaveOut(d, fmt.Sprintf("sessions can't be held to a core: %v", err))
				}
				continue
			}
		}
		res, err := p.run(ctx, visits)
		r.Designs = append(r.Designs, res)
		r.Warnings = append(r.Warnings, p.warnings...)
		if err != nil {
			return r, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	for _, d := range r.Designs {
		if d.Design == Local && d.RemoteShare > 0.05 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s of the operations are remote, though sessions are held to their cores: some cores' subtables are not their own (tbl validate says which)",
				d.Design, percent(d.RemoteShare)))
		}
	}
	r.Partial = ctx.Err() != nil
	if r.Partial {
		r.Warnings = append(r.Warnings, "interrupted: no recommendation follows from a part of the workload")
		return r, nil
	}
	if lost := j.lost(); len(lost) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no recommendation follows: coverage comes first, and %d of %d cores accepted nothing", len(lost), len(lost)+len(j.heard())))
		return r, nil
	}
	recommend(r, cfg.Designs, j.compared())
	return r, nil
}

// play is one design's run.
type play struct {
	cfg      *Config
	plan     *plan
	tgt      target.Target
	clock    target.Clock
	design   Design
	cores    int
	affinity *affinity // local design only
	warnings []string

	base    time.Time
	value   []byte
	index   []byte // the names of all keys, as the index entry holds them
	gone    []bool // sessions that left
	begun   []bool // sessions that began
	groups  int    // into which the sessions are dealt
	slowest [opScan]slowest
	ok      atomic.Int64
	failed  atomic.Int64
	ended   atomic.Bool
	fatal   atomic.Pointer[error]
	workers []*worker
}

// worker is one client.
type worker struct {
	*play
	stats
	lister *worker // lists whole subtables, apart from the visits' account
	req    target.Request
	ans    target.Answer
	pcg    *rand.PCG
	rng    *rand.Rand
	sub    []byte
	key    []byte
	group  int // of the session being played
	// home is where the session being played is held, nil if nowhere.
	home *home
}

func (p *play) now() time.Duration { return p.clock.Now().Sub(p.base) }

// run plays all visits.
func (p *play) run(ctx context.Context, visits int64) (DesignResult, error) {
	p.value = make([]byte, p.cfg.ValueSize)
	for i := range p.value {
		p.value[i] = 'v'
	}
	for j := range p.cfg.Keys {
		p.index = appendAttr(append(p.index, ' '), j)
	}
	p.gone, p.begun = make([]bool, p.cfg.Sessions), make([]bool, p.cfg.Sessions)
	before := p.loads(ctx)
	a := &agenda{plan: p.plan, total: visits}
	if p.design != PerSession && p.cfg.Enumerate > 0 {
		a.scans = int64(p.cfg.Scans)
	}
	p.groups = int(min(p.cfg.Sessions, maxGroups))
	for op, most := range [opScan]int64{
		opSet: p.cfg.Sessions*int64(p.cfg.Keys+1) + visits, opLookup: visits * int64(p.cfg.Lookups), opEnumerate: visits,
		opDelete: p.cfg.Sessions * int64(p.cfg.Keys+1),
	} {
		p.slowest[op].reset(most)
	}
	p.workers = make([]*worker, p.cfg.Workers)
	for i := range p.workers {
		pcg := rand.NewPCG(0, 0)
		p.workers[i] = &worker{play: p, pcg: pcg, rng: rand.New(pcg), stats: stats{groups: make([]group, p.groups)}}
	}
	p.base = p.clock.Now()
	p.clock.Run(len(p.workers), func(i int) {
		w := p.workers[i]
		for !p.ended.Load() && ctx.Err() == nil {
			v, ok := a.take()
			if !ok {
				return
			}
			if p.cfg.Arrivals > 0 {
				if p.clock.Sleep(ctx, v.at-p.now()) != nil {
					return
				}
			}
			w.visit(ctx, v)
			if v.num < p.plan.visits(v.session) {
				v.num, v.at, v.scan = v.num+1, v.at+p.plan.think(v.session, w.rng), 0
				a.put(v)
			}
			if p.cfg.Progress != nil {
				p.cfg.Progress.Completed.Add(1)
			}
		}
	})
	elapsed := p.now()
	res := p.result(elapsed, before, p.loads(ctx))
	p.cleanup(ctx, &res, before)
	if f := p.fatal.Load(); f != nil {
		return res, *f
	}
	return res, nil
}

// visit plays one visit.
func (w *worker) visit(ctx context.Context, v visit) {
	w.visits++
	w.group = int(v.session % int64(w.play.groups))
	w.stats.groups[w.group].visits++
	w.pcg.Seed(mix64(w.cfg.Seed^mix64(uint64(v.session))), uint64(v.num))
	w.place(v.session)
	if v.num == 0 {
		w.begun[v.session] = true
		for j := range w.cfg.Keys {
			w.set(ctx, v.session, j)
		}
		if w.design != PerSession {
			w.setIndex(ctx, v.session)
		}
	}
	if v.scan > 0 {
		w.scan(ctx, v) // while the session is there
	}
	if v.num > 0 {
		if w.rng.Float64() < w.cfg.Enumerate {
			w.enumerate(ctx, v.session)
		}
		for range w.cfg.Lookups {
			w.attr(v.session, w.rng.IntN(w.cfg.Keys))
			w.do(ctx, opLookup, target.Request{Table: target.TableLookup})
		}
		if w.rng.Float64() < w.cfg.Write {
			w.set(ctx, v.session, w.rng.IntN(w.cfg.Keys))
		}
	}
	if v.num == w.plan.visits(v.session) && w.rng.Float64() < w.cfg.Leave {
		w.leave(ctx, v.session)
	}
}

// place decides where the session's keys are: w.sub, and w.home.
func (w *worker) place(session int64) {
	w.home = nil
	w.sub = w.sub[:0]
	switch w.design {
	case PerSession:
		w.sub = appendSession(append(w.sub, "tbl_sess_"...), w.cfg.Seed, session)
	case Shared:
		w.sub = strconv.AppendUint(append(w.sub, "tbl_sessions_"...), mix64(w.cfg.Seed)&0xffffffff, 16)
	case Local:
		w.home = w.affinity.of(session, w.cfg.Seed)
		w.sub = append(w.sub, w.home.name...)
	}
}

func appendSession(b []byte, seed uint64, session int64) []byte {
	b = strconv.AppendUint(b, mix64(seed)&0xffffffff, 16)
	return strconv.AppendInt(append(b, '_'), session, 10)
}

func appendAttr(b []byte, j int) []byte {
	return strconv.AppendInt(append(b, "attr_"...), int64(j), 10)
}

// prefix begins the session's key names where sessions share a subtable.
func (w *worker) prefix(session int64) {
	w.key = w.key[:0]
	if w.design != PerSession {
		w.key = append(appendSession(w.key, w.cfg.Seed, session), ':')
	}
}

// attr makes w.key the name of a session's key number j.
func (w *worker) attr(session int64, j int) {
	w.prefix(session)
	w.key = appendAttr(w.key, j)
}

// set writes key number j with its timer.
func (w *worker) set(ctx context.Context, session int64, j int) {
	w.attr(session, j)
	req := target.Request{Table: target.TableSet, Value: w.value, Timeout: target.Indefinite, Lifetime: target.Indefinite}
	switch w.plan.kindOf(session, j) {
	case idle:
		req.Timeout = target.Seconds(w.cfg.Timeout)
	case bounded:
		req.Lifetime = target.Seconds(w.cfg.Lifetime)
	}
	w.do(ctx, opSet, req)
}

// setIndex writes the entry that lists a session's keys where they share a
// subtable with others'. It goes when unused for as long as the longest timer.
func (w *worker) setIndex(ctx context.Context, session int64) {
	w.prefix(session)
	if w.do(ctx, opSet, target.Request{Table: target.TableSet, Value: w.index,
		Timeout: target.Seconds(max(w.cfg.Timeout, w.cfg.Lifetime)), Lifetime: target.Indefinite}) {
		w.indexed++
	}
}

// enumerate finds out which keys a session has: by listing its subtable, or
// by its index entry.
func (w *worker) enumerate(ctx context.Context, session int64) {
	w.prefix(session)
	if w.design == PerSession {
		w.do(ctx, opEnumerate, target.Request{Table: target.TableKeys, Flags: target.FlagNoTouch})
		return
	}
	w.do(ctx, opEnumerate, target.Request{Table: target.TableLookup})
}

// leave deletes the session's keys.
func (w *worker) leave(ctx context.Context, session int64) {
	w.gone[session] = true
	if w.design == PerSession {
		w.key = w.key[:0]
		w.gone[session] = w.do(ctx, opDelete, target.Request{Table: target.TableDeleteAll})
		return
	}
	for j := range w.cfg.Keys {
		w.attr(session, j)
		if !w.do(ctx, opDelete, target.Request{Table: target.TableDelete}) {
			w.gone[session] = false
		}
	}
	w.prefix(session)
	if w.do(ctx, opDelete, target.Request{Table: target.TableDelete}) {
		w.unindexed++
	}
}

// portTries is how many ports are tried when one is busy.
const portTries = 8

// do sends one operation on w.sub and w.key and records it.
func (w *worker) do(ctx context.Context, op opKind, req target.Request) bool {
	if w.ended.Load() || ctx.Err() != nil {
		return false
	}
	w.req = req
	w.req.Op, w.req.Subtable, w.req.Key = target.OpTable, w.sub, w.key
	var start, end time.Duration
	var err error
	for try := range portTries {
		if w.home != nil {
			w.req.Conn = w.home.conn()
			if try == portTries-1 {
				w.req.Conn = target.Conn{} // all busy: better on another core than not at all
			}
		}
		start = w.now()
		err = w.tgt.Do(ctx, &w.req, &w.ans)
		end = w.now()
		if w.home == nil || target.ClassOf(err) != target.ClassAddressExhausted {
			break
		}
	}
	w.record(op, w.home, &w.ans, end-start, err)
	if err == nil && w.stats.groups != nil {
		t := &w.stats.groups[w.group].ops[op]
		t.n++
		t.clicks += w.ans.Clicks
		w.slowest[op].add(slow{w.ans.Clicks, w.group})
	}
	if err == nil {
		w.ok.Add(1)
		return true
	}
	failed := w.failed.Add(1)
	if w.cfg.Progress != nil {
		w.cfg.Progress.Errors.Add(1)
	}
	if w.ok.Load() == 0 {
		switch class := target.ClassOf(err); {
		case target.Unsupported(err):
			w.stop(fmt.Errorf("%w: %w", ErrUnsupported, err))
		case failed >= int64(max(20, 2*len(w.workers))) && class != target.ClassCanceled:
			w.stop(fmt.Errorf("%w: the first %d operations failed: %w", ErrUnreachable, failed, err))
		}
	}
	return false
}

func (p *play) stop(err error) {
	p.fatal.CompareAndSwap(nil, &err)
	p.ended.Store(true)
}

// scan lists the whole subtable that a visit's session shares with others.
func (w *worker) scan(ctx context.Context, v visit) {
	if w.lister == nil {
		w.lister = &worker{play: w.play}
	}
	w = w.lister
	w.place(v.session)
	w.key = w.key[:0]
	if w.do(ctx, opScan, target.Request{Table: target.TableKeys, Flags: target.FlagNoTouch}) {
		w.listings = append(w.listings, scanned{v.scan, w.ans.Clicks})
	}
}

// cleanupTime bounds the removal of entries after an interruption.
const cleanupTime = 10 * time.Second

// cleanup removes what the design left. In virtual time the timers are waited
// for first: what is left then is left for good.
func (p *play) cleanup(ctx context.Context, res *DesignResult, before map[int]target.CoreStats) {
	expired := false
	res.LeftAfterExpiry = -1
	if p.clock.Virtual() && ctx.Err() == nil {
		p.clock.Run(1, func(int) {
			expired = p.clock.Sleep(ctx, time.Duration(max(p.cfg.Timeout, p.cfg.Lifetime)+2)*time.Second) == nil
		})
		if now := p.loads(ctx); expired && now != nil && before != nil {
			res.LeftAfterExpiry = entriesOf(now) - entriesOf(before)
		}
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
	}
	var next, left atomic.Int64
	p.ended.Store(false)
	p.clock.Run(len(p.workers), func(int) {
		w := &worker{play: p}
		for {
			i := next.Add(1) - 1
			if i >= p.cfg.Sessions || p.design == Shared && i > 0 {
				return
			}
			if p.design != Shared && (!p.begun[i] || p.gone[i]) {
				continue
			}
			w.place(i)
			if p.design != Local {
				w.key = w.key[:0]
				if !w.do(ctx, opDelete, target.Request{Table: target.TableDeleteAll}) {
					left.Add(1)
				}
				continue
			}
			for j := range p.cfg.Keys {
				if expired && p.plan.kindOf(i, j) != forever {
					continue
				}
				w.attr(i, j)
				if !w.do(ctx, opDelete, target.Request{Table: target.TableDelete}) {
					left.Add(1)
				}
			}
			if !expired {
				w.prefix(i)
				w.do(ctx, opDelete, target.Request{Table: target.TableDelete})
			}
		}
	})
	if res.LeftAfterCleanup = left.Load(); res.LeftAfterCleanup > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %d deletions of our own entries failed: they stay", p.design, res.LeftAfterCleanup))
	}
}

// loads are every core's counters; nil where the dataplane has none.
func (p *play) loads(ctx context.Context) map[int]target.CoreStats {
	var ans target.Answer
	if err := target.Ask(ctx, p.tgt, target.OpStats, &ans); err != nil {
		var e *target.Error
		if errors.As(err, &e) && !target.Unsupported(err) && e.Class != target.ClassCanceled {
			p.warnings = append(p.warnings, fmt.Sprintf("%s: entries and bytes per core unknown: %v", p.design, err))
		}
		return nil
	}
	out := map[int]target.CoreStats{}
	for _, s := range ans.Stats {
		out[s.Core] = s
	}
	return out
}

func entriesOf(loads map[int]target.CoreStats) (n int64) {
	for _, s := range loads {
		n += s.Entries
	}
	return n
}
