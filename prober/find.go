package prober

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// FindConfig configures FindNames.
type FindConfig struct {
	// Cores are those that names are wanted for. Nil: all.
	Cores []timingstats.CoreID
	// Pattern is a name with {rand} (8 random letters and digits) or {n} (a
	// running number) in it. "": "sess_{rand}".
	Pattern string
	// Each is the number of names wanted per core. 0: 1.
	Each int
	// Seed makes the names repeatable.
	Seed uint64
	// Requests is the most that is sent in all. 0: as many as the cores need,
	// with a wide margin.
	Requests int
	// Workers, MaxError, Threshold, Steer, KeepEntries: as in ProbeConfig.
	Workers     int
	MaxError    float64
	Threshold   int64
	Steer       bool
	KeepEntries bool
	MaxErrors   float64
	Progress    *Progress
}

// FindResult is the answer of FindNames.
type FindResult struct {
	Run
	Found []CoreNames `json:"found"` // one per wanted core, in order
	// Tried is the number of names that were asked about.
	Tried int `json:"tried"`
	// Removed is the number of the probe's own entries deleted at the end.
	Removed int64 `json:"entries_removed"`
}

// CoreNames are names that a core owns.
type CoreNames struct {
	Core  timingstats.CoreID `json:"core"`
	Names []string           `json:"names"`
}

// FindNames finds names under a pattern for each core, so that an application
// can be configured with them. A name is tried with one timed write on one
// core; where that is fast the name is asked about like any other (see Probe),
// and kept when the core proves to be its owner.
func FindNames(ctx context.Context, tgt target.Target, cfg FindConfig) (*FindResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 32), cfg.Progress)
	f := &finding{
		probing: newProbing(p, ProbeConfig{
			MaxError: cfg.MaxError, Threshold: cfg.Threshold, Steer: cfg.Steer, KeepEntries: cfg.KeepEntries, MaxErrors: cfg.MaxErrors,
		}),
		pattern: cmp.Or(cfg.Pattern, "sess_{rand}"), each: cmp.Or(cfg.Each, 1), limit: int64(cfg.Requests),
		rng: rand.New(rand.NewPCG(cfg.Seed, 0x66696e64)), found: make(map[timingstats.CoreID][]string),
	}
	if p.count(ctx) {
		f.search(ctx, cfg.Cores)
		if p.err() == nil && !cfg.KeepEntries {
			f.remove(ctx, f.tried)
		}
	}
	return f.result(cfg), p.err()
}

func (c *FindConfig) validate() error {
	pattern := cmp.Or(c.Pattern, "sess_{rand}")
	switch {
	case !strings.Contains(pattern, "{rand}") && !strings.Contains(pattern, "{n}"):
		return configError("pattern %q: want {rand} or {n} in it", pattern)
	case c.Each < 0:
		return configError("names per core %d: want 1 or more", c.Each)
	case c.Requests < 0:
		return configError("requests %d: want 1 or more", c.Requests)
	case !(c.MaxError >= 0 && c.MaxError < 0.5):
		return configError("error %v: want 0 to 0.5", c.MaxError)
	case c.Threshold < 0:
		return configError("threshold %d: want 1 or more clicks", c.Threshold)
	}
	return checkCommon(c.Workers, c.MaxErrors)
}

// finding is the state of one FindNames.
type finding struct {
	*probing
	pattern string
	each    int
	limit   int64
	rng     *rand.Rand
	count   int // names made
	wanted  []timingstats.CoreID
	found   map[timingstats.CoreID][]string
	tried   []placed // every entry that was written
}

// name makes the next name of the pattern.
func (f *finding) name() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b [8]byte
	for i := range b {
		b[i] = letters[f.rng.IntN(len(letters))]
	}
	f.count++
	return strings.NewReplacer("{rand}", string(b[:]), "{n}", strconv.Itoa(f.count)).Replace(f.pattern)
}

// lacking are the wanted cores, in order and as often as each lacks names.
// Cores that never answered are not waited for.
func (f *finding) lacking() []timingstats.CoreID {
	var out []timingstats.CoreID
	n := len(f.ids)
	for _, c := range f.wanted {
		if f.hits[c] == 0 && f.sent > int64(NeededRequests(n, 1e-6)) {
			continue
		}
		for range f.each - len(f.found[c]) {
			out = append(out, c)
		}
	}
	return out
}

func (f *finding) search(ctx context.Context, cores []timingstats.CoreID) {
	f.learn()
	if f.wanted = cores; f.wanted == nil {
		f.wanted = f.known()
	}
	if n := int64(len(f.ids)); f.limit == 0 {
		// Ten times what random ports are expected to need: each of n cores is met
		// by a name of its own after n·n·H(n) writes, and each name is then asked
		// about in full.
		f.limit = 10 * int64(f.each) * n * (4*int64(nextRound(int(n), int(n))) + n + int64(DefaultRequests(int(n))))
	}
	p := f.progress
	p.Names.Store(int64(len(f.wanted)))
	p.Planned.Store(f.limit)
	ask := func(j *job, req *target.Request) {
		req.Op = target.OpProbe
		req.Subtable = append(req.Subtable, f.tried[j.name].name...)
	}
	take := func(j *job, ans *target.Answer) { j.clicks = ans.Clicks }
	for {
		lacking := f.lacking()
		if len(lacking) == 0 || f.sent >= f.limit {
			return
		}
		// A screening round: as many new names as may be needed for a good part of
		// the cores that lack one.
		want := make(map[timingstats.CoreID]int)
		for _, c := range lacking {
			want[c]++
		}
		jobs := make([]job, min(max(len(f.ids)*len(lacking), f.workers), 4096))
		first := len(f.tried)
		for i := range jobs {
			f.tried = append(f.tried, placed{name: f.name()})
			jobs[i].name = first + i
			if f.steering != nil && !f.steering.off {
				jobs[i].src = f.steering.src(lacking[i%len(lacking)])
			}
		}
		var suspects []string
		more := f.round(ctx, jobs, ask, take, func(j *job) {
			f.tried[j.name].core = j.core
			if j.clicks < f.threshold && want[j.core] > 0 {
				want[j.core]--
				suspects = append(suspects, f.tried[j.name].name)
			}
		})
		for i := range jobs {
			if f.steering != nil {
				f.steering.done(&jobs[i])
			}
		}
		f.learn()
		if !more {
			return
		}
		if len(suspects) > 0 && !f.confirm(ctx, suspects) {
			return
		}
	}
}

// confirm asks about the suspects in full and keeps those with an owner that
// lacks a name.
func (f *finding) confirm(ctx context.Context, suspects []string) bool {
	f.cfg.Names = suspects
	f.run(ctx)
	for i := range f.names {
		n := f.nameResult(i)
		if n.Owner != nil && len(f.found[*n.Owner]) < f.each && slices.Contains(f.wanted, *n.Owner) {
			f.found[*n.Owner] = append(f.found[*n.Owner], n.Name)
		}
		for _, c := range n.Cores {
			f.tried = append(f.tried, placed{n.Name, c.Core})
		}
	}
	done := 0
	for _, c := range f.wanted {
		if len(f.found[c]) >= f.each {
			done++
		}
	}
	f.progress.Names.Store(int64(len(f.wanted)))
	f.progress.Decided.Store(int64(done))
	return f.err() == nil
}

// result writes everything out.
func (f *finding) result(cfg FindConfig) *FindResult {
	res := &FindResult{Run: f.pool.result(cfg.MaxErrors), Tried: f.count, Removed: f.removed}
	res.Warnings = append(res.Warnings, f.warnings...)
	if f.steering != nil && f.steering.off {
		res.Warnings = append(res.Warnings, f.steering.warning())
	}
	v := verdict.Verdict{Name: verdict.Ownership, State: verdict.Pass}
	var without []timingstats.CoreID
	for _, c := range f.wanted {
		res.Found = append(res.Found, CoreNames{Core: c, Names: f.found[c]})
		if len(f.found[c]) < f.each {
			without = append(without, c)
		}
	}
	v.Figures = map[string]float64{"cores": float64(len(f.wanted)), "cores_without": float64(len(without)), "names_tried": float64(f.count)}
	v.Line = fmt.Sprintf("OK: %s for each of %s", verdict.Count(f.each, "name"), verdict.Count(len(f.wanted), "core"))
	if len(without) > 0 || len(f.wanted) == 0 {
		v.State = verdict.Incomplete
		v.Line = fmt.Sprintf("INCOMPLETE: too few names found for %s in %d tries", Cores(without), f.count)
	}
	res.Verdicts = append(res.Verdicts, v)
	return res
}
