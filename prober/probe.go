package prober

import (
	"cmp"
	"context"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// ProbeConfig configures Probe.
type ProbeConfig struct {
	// Names are the subtables to ask about, at least one, any bytes.
	Names []string
	// Requests is the most that is sent for one name. 0: as many as the cores
	// need, see DefaultRequests.
	Requests int
	// Exhaust sends Requests for every name instead of stopping as soon as the
	// name is decided.
	Exhaust bool
	// Workers is the number of concurrent requests. 0: 32.
	Workers int
	// MaxError is the model odds of naming the wrong owner below which a name
	// is decided. 0: 1e-6.
	MaxError float64
	// Threshold in clicks: a write below it is fast. 0: 100.
	Threshold int64
	// AutoThreshold takes the threshold from the two populations of this run
	// instead; Threshold is used where there are no two.
	AutoThreshold bool
	// Steer reaches each core on purpose, through source ports that were seen
	// to lead to it, where the target allows to choose them.
	Steer bool
	// KeepEntries leaves the probe's own entries to expire (60 s) instead of
	// deleting them at the end where the dataplane can.
	KeepEntries bool
	// Expect is the owner that a name ought to have; nil or a missing name: no
	// expectation.
	Expect map[string]timingstats.CoreID
	// MaxErrors is the share of failed requests above which the run fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	// OnPlan is told, once and before the first timed write, what is going to be
	// sent. Nil: nobody is.
	OnPlan   func(ProbePlan)
	Progress *Progress
}

// ProbePlan is what a Probe is going to send.
type ProbePlan struct {
	Cores, Names int
	// Expected is the number of requests for one name that hears every core
	// with 99.9 %, Ceiling the most that is sent for one.
	Expected, Ceiling int
}

// ProbeResult is the answer of Probe.
type ProbeResult struct {
	Run
	// ThresholdClicks is the threshold that was used, ThresholdRule how it was
	// found: "fixed" or "auto".
	ThresholdClicks int64  `json:"threshold_clicks"`
	ThresholdRule   string `json:"threshold_rule"`
	// ExpectedRequests is the number per name that was expected beforehand to
	// hear every core with 99.9 %; Ceiling the most that was allowed.
	ExpectedRequests int `json:"expected_requests"`
	Ceiling          int `json:"ceiling_requests"`
	// Names are in the order of the Config.
	Names []NameResult `json:"names"`
	// Hits are the answered requests per core, in order.
	Hits []CoreHits `json:"hits"`
	// Owned is the number of names found to be owned by each known core.
	Owned []CoreOwned `json:"owned"`
	// Spread tests whether the names are owned evenly (chi-square). It is no
	// verdict of the run. Nil where there are too few names.
	Spread *verdict.UniformityReport `json:"names_spread,omitempty"`
	// Removed is the number of the probe's own entries deleted at the end.
	Removed int64 `json:"entries_removed"`
}

// NameResult is what was found about one name.
type NameResult struct {
	Name string `json:"name"`
	// Outcome is one of verdict's outcomes: OWNER, NO OWNER, AMBIGUOUS (several
	// cores are mostly fast) or INCOMPLETE.
	Outcome string        `json:"outcome"`
	State   verdict.State `json:"state"`
	// Owner is the owning core, nil unless Outcome is OWNER. Likely is the
	// likeliest core whatever the Outcome, nil when none is.
	Owner  *timingstats.CoreID `json:"owner,omitempty"`
	Likely *timingstats.CoreID `json:"likely,omitempty"`
	// Odds are the model odds that the likeliest answer is wrong.
	Odds float64 `json:"model_odds_of_error"`
	// Expected is the owner that was expected, nil when none was.
	Expected *timingstats.CoreID `json:"expected,omitempty"`
	// Requests is the number sent for this name, answered or not.
	Requests int `json:"requests"`
	// Cores are those that answered for this name, in order.
	Cores []CoreProbe `json:"cores"`
	// Entries is the most that an answer said the subtable holds, the probe's
	// own included.
	Entries int64 `json:"entries"`
	// Line is the judgement in one line.
	Line string `json:"line"`
}

// CoreProbe is one core's timed writes into one name.
type CoreProbe struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Owner and NonOwner count by the threshold; TaggedOwner by the tag that
	// came with the answer.
	Owner       int64   `json:"owner"`
	NonOwner    int64   `json:"non_owner"`
	TaggedOwner int64   `json:"tagged_owner"`
	Min         int64   `json:"min_clicks"`
	Avg         float64 `json:"avg_clicks"`
	Max         int64   `json:"max_clicks"`
}

// CoreHits is how many requests a core answered.
type CoreHits struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
}

// CoreOwned is how many of the names a core owns.
type CoreOwned struct {
	Core  timingstats.CoreID `json:"core"`
	Names int                `json:"names"`
}

// Probe finds the owner of each name by timed writes of one small key. A name
// is done when every core was heard for it and the model odds of naming the
// wrong owner are below MaxError, or when Requests were sent.
func Probe(ctx context.Context, tgt target.Target, cfg ProbeConfig) (*ProbeResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 32), cfg.Progress)
	r := newProbing(p, cfg)
	if p.count(ctx) {
		r.run(ctx)
		if p.err() == nil && !cfg.KeepEntries {
			r.remove(ctx, r.placed())
		}
		if p.err() == nil {
			r.enumerates(ctx)
		}
	}
	return r.result(), p.err()
}

func (c *ProbeConfig) validate() error {
	switch {
	case len(c.Names) == 0:
		return configError("no name to ask about")
	case c.Requests < 0:
		return configError("requests %d: want 1 or more", c.Requests)
	case c.Exhaust && c.Requests == 0:
		return configError("a fixed number of requests: want the number")
	case !(c.MaxError >= 0 && c.MaxError < 0.5):
		return configError("error %v: want 0 to 0.5", c.MaxError)
	case c.Threshold < 0:
		return configError("threshold %d: want 1 or more clicks", c.Threshold)
	}
	for i, name := range c.Names {
		if name == "" {
			return configError("name %d is empty", i+1)
		}
	}
	return checkCommon(c.Workers, c.MaxErrors)
}

// probing is the state of one Probe.
type probing struct {
	*pool
	cfg       ProbeConfig
	threshold int64
	rule      string
	ids       []timingstats.CoreID       // the known cores
	index     map[timingstats.CoreID]int // their places in ids
	names     []nameState
	removed   int64
	warnings  []string
	steering  *steering // nil: random ports
	silent    bool      // some core is taken for unreachable
	// clicks are all timed writes by place of the core, kept only while the
	// threshold may change.
	clicks []*timingstats.Recorder
}

func newProbing(p *pool, cfg ProbeConfig) *probing {
	r := &probing{pool: p, cfg: cfg, threshold: cmp.Or(cfg.Threshold, timingstats.DefaultThreshold), rule: "fixed",
		index: make(map[timingstats.CoreID]int)}
	r.cfg.MaxError = cmp.Or(cfg.MaxError, verdict.DefaultOddsError)
	if cfg.Steer {
		r.steering = newSteering()
	}
	return r
}

// nameState is what is known of one name.
type nameState struct {
	odds    *verdict.Odds
	samples []sample // kept only while the threshold may change
	sent    int
	entries int64
	last    time.Time     // when the last round with it ended
	took    time.Duration // all its answers together
	cores   []tally       // by place of the core
	done    bool          // by the present threshold
}

// tally counts one core's writes into one name.
type tally struct{ n, fast int32 }

// sample is one timed write.
type sample struct {
	core   uint16
	tag    timingstats.Tag
	clicks int64
}

// learn takes over the known cores; more may turn up while running.
func (r *probing) learn() {
	for _, c := range r.known() {
		if _, ok := r.index[c]; !ok {
			r.meet(c)
		}
	}
}

// ceiling is the most that is sent for one name.
func (r *probing) ceiling() int {
	return cmp.Or(r.cfg.Requests, DefaultRequests(len(r.ids)))
}

// expected is the number of requests for one name that is likely enough.
func (r *probing) expected() int {
	if r.steering != nil {
		return len(r.ids) + 5 // each core once, the owner five times more
	}
	return NeededRequests(len(r.ids), 1e-3)
}

// left is how many requests the names still take: a guess, unless all are sent
// that may be.
func (r *probing) left(todo []int) int64 {
	if !r.cfg.Exhaust {
		return int64(len(todo) * NeededRequests(len(r.ids), 1e-3))
	}
	var n int64
	for _, i := range todo {
		n += int64(max(0, r.ceiling()-r.names[i].sent))
	}
	return n
}

// run probes until every name is done.
func (r *probing) run(ctx context.Context) {
	r.progress.Names.Store(int64(len(r.cfg.Names)))
	r.names = make([]nameState, len(r.cfg.Names))
	r.learn()
	todo := make([]int, len(r.names))
	for i := range todo {
		todo[i] = i
		r.names[i].odds = r.newOdds(i)
	}
	if r.cfg.OnPlan != nil {
		r.cfg.OnPlan(ProbePlan{Cores: len(r.ids), Names: len(r.names), Expected: r.expected(), Ceiling: r.ceiling()})
	}
	batch := max(4096, 8*r.workers)
	ask := func(j *job, req *target.Request) {
		req.Op = target.OpProbe
		req.Subtable = append(req.Subtable, r.cfg.Names[j.name]...)
	}
	take := func(j *job, ans *target.Answer) { j.clicks, j.local, j.n = ans.Clicks, ans.Local, ans.Entries }
	var jobs []job
	for len(todo) > 0 {
		jobs = jobs[:0]
		for _, i := range todo {
			jobs = r.plan(jobs, i)
			if len(jobs) >= batch {
				break
			}
		}
		r.progress.Planned.Store(r.sent + max(r.left(todo), int64(len(jobs))))
		more := r.round(ctx, jobs, ask, take, r.merge)
		now := r.clock.Now()
		for i := range jobs {
			if jobs[i].sent {
				r.names[jobs[i].name].sent++
				r.names[jobs[i].name].last = now
			}
			if r.steering != nil {
				r.steering.done(&jobs[i])
			}
		}
		r.learn()
		if r.autoThreshold() {
			// What was decided by another threshold has to be decided anew.
			todo = todo[:0]
			for i := range r.names {
				r.names[i].done = false
				todo = append(todo, i)
			}
		}
		r.silent = r.silent || len(r.missing()) > 0 && r.sent >= int64(max(r.ceiling(), DefaultRequests(len(r.ids))))
		left := todo[:0]
		for _, i := range todo {
			if !r.decided(i) {
				left = append(left, i)
			}
		}
		todo = left
		r.progress.Decided.Store(int64(len(r.names) - len(todo)))
		if !more {
			return
		}
	}
}

// plan appends the requests of this round for a name.
func (r *probing) plan(jobs []job, i int) []job {
	s := &r.names[i]
	left := r.ceiling() - s.sent
	if r.cfg.Exhaust {
		left = min(left, 1024)
	}
	if r.steering != nil && !r.steering.off {
		return r.planSteered(jobs, i, left)
	}
	if !r.cfg.Exhaust {
		left = min(left, wanted(s.odds, len(r.ids), r.unheard(s), r.cfg.MaxError))
	}
	for range left {
		jobs = append(jobs, job{name: i})
	}
	return jobs
}

// planSteered sends one request to every core that was not heard about the
// name; when all were, to the likeliest owner as many as it lacks to be
// certain, one to each rival, and, when no core looks like an owner, one to
// each.
func (r *probing) planSteered(jobs []job, i, left int) []job {
	s := &r.names[i]
	add := func(core timingstats.CoreID, n int) {
		for range min(n, left) {
			jobs = append(jobs, job{name: i, src: r.steering.src(core)})
			left--
		}
	}
	best, _ := r.likeliest(s)
	unheard := 0
	for k, id := range r.ids {
		if k >= len(s.cores) || s.cores[k].n == 0 {
			if r.cfg.Exhaust || !r.silent || r.hits[id] > 0 {
				add(id, 1)
				unheard++
			}
		}
	}
	if unheard > 0 && !r.cfg.Exhaust {
		return jobs
	}
	if r.cfg.Exhaust {
		for k := 0; left > 0; k++ {
			add(r.ids[k%len(r.ids)], 1)
		}
		return jobs
	}
	for k, id := range r.ids {
		switch {
		case k >= len(s.cores):
		case k == best:
			add(id, lacking(s.odds, r.cfg.MaxError))
		case best < 0 || s.cores[k].weight() > 0:
			add(id, 1)
		}
	}
	return jobs
}

func (r *probing) merge(j *job) {
	if _, ok := r.index[j.core]; !ok {
		r.meet(j.core)
	}
	s := &r.names[j.name]
	k := r.index[j.core]
	if len(s.cores) <= k {
		s.cores = append(s.cores, make([]tally, len(r.ids)-len(s.cores))...)
	}
	s.cores[k].n++
	if j.clicks < r.threshold {
		s.cores[k].fast++
	}
	tag := timingstats.Slow
	if j.local {
		tag = timingstats.Fast
	}
	s.odds.Add(j.core, j.clicks, tag)
	s.took += j.latency
	s.entries = max(s.entries, j.n)
	if r.cfg.AutoThreshold {
		s.samples = append(s.samples, sample{core: uint16(k), clicks: j.clicks, tag: tag})
		for len(r.clicks) <= k {
			r.clicks = append(r.clicks, timingstats.NewRecorder(timingstats.MaxClicks))
		}
		r.clicks[k].Record(j.clicks)
	}
}

// newOdds is a name without evidence.
func (r *probing) newOdds(i int) *verdict.Odds {
	cfg := verdict.OwnershipConfig{Subtable: r.cfg.Names[i], Expected: r.ids, Threshold: r.threshold, Error: r.cfg.MaxError}
	if want, ok := r.cfg.Expect[cfg.Subtable]; ok {
		cfg.Want = &want
	}
	return verdict.NewOdds(cfg)
}

// meet takes over one core.
func (r *probing) meet(c timingstats.CoreID) {
	r.index[c] = len(r.ids)
	r.ids = append(r.ids, c)
}

// unheard is the number of known cores that did not answer for this name. A
// dataplane that doesn't count its cores may have one more than was heard,
// until its chance to stay unheard is small.
func (r *probing) unheard(s *nameState) int {
	n := len(r.ids)
	for _, c := range s.cores {
		if c.n > 0 {
			n--
		}
	}
	if r.pool.cores == 0 && missChance(len(r.ids)+1, r.ok) > 1e-4 {
		n++
	}
	return n
}

// decided says whether a name is done.
func (r *probing) decided(i int) bool {
	s := &r.names[i]
	if s.done {
		return true
	}
	s.done = s.sent >= r.ceiling()
	if s.done || r.cfg.Exhaust {
		return s.done
	}
	unheard := r.unheard(s)
	if r.silent {
		// Who stayed silent through a whole ceiling is not waited for again: the
		// name stays incomplete, and is left when the others have said enough:
		// that one of them owns it, or that none of them does. In the second case
		// each silent core still weighs as much as "none", 1.
		silent := len(r.missing())
		odds := s.odds.ErrorOdds()
		rest := odds - float64(silent)
		s.done = unheard <= silent && (odds < r.cfg.MaxError || rest > -1e-9 && rest < r.cfg.MaxError)
		return s.done
	}
	// That nobody owns it is an alarm, and an owner that is slow in half of its
	// writes looks like that for a while: it is not said before the ceiling.
	best, _ := r.likeliest(s)
	s.done = unheard == 0 && s.odds.Decided() && best >= 0
	return s.done
}

// likeliest is the place of the core that is most likely the owner, −1 when
// none is likelier than nobody, with its log odds.
func (r *probing) likeliest(s *nameState) (best int, weight float64) {
	best = -1
	for k := range s.cores {
		if w := s.cores[k].weight(); w > weight {
			best, weight = k, w
		}
	}
	return best, weight
}

// suspect is the place of a core whose writes are fast too often for one that
// does not own the name, by the binomial tail at one in a hundred; −1: none.
func (r *probing) suspect(s *nameState) int {
	const chance = 0.01
	for k := range s.cores {
		if t := s.cores[k]; t.fast > 0 && binomialTail(int(t.n), int(t.fast), verdict.FastIfOther) < chance {
			return k
		}
	}
	return -1
}

// autoThreshold takes the threshold anew from all samples so far, and says
// whether it changed.
func (r *probing) autoThreshold() (changed bool) {
	if !r.cfg.AutoThreshold {
		return false
	}
	t := cmp.Or(r.cfg.Threshold, timingstats.DefaultThreshold)
	r.rule = "fixed, for want of two populations"
	if v := timingstats.FindValley(r.clicks...); v.Found {
		t, r.rule = v.ThresholdClicks, "auto"
	}
	if t == r.threshold {
		return false
	}
	r.threshold = t
	for i := range r.names {
		s := &r.names[i]
		s.odds = r.newOdds(i)
		clear(s.cores)
		for _, x := range s.samples {
			s.cores[x.core].n++
			if x.clicks < t {
				s.cores[x.core].fast++
			}
			s.odds.Add(r.ids[x.core], x.clicks, x.tag)
		}
	}
	return true
}
