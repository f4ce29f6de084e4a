package prober

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// ResetConfig configures Reset.
type ResetConfig struct {
	// Requests is how many are sent at least; after that, the call goes on
	// until every core has answered. 0: 200, and more where there are so many
	// cores that one would be missed with over 1e-4.
	Requests int
	// Workers is the number of concurrent requests. 0: 32.
	Workers int
	// UntilClean goes on, up to ten times as many requests, until the last
	// answer of every core was that it had nothing to delete.
	UntilClean bool
	// AllNames also deletes what is left under other names that the cores know
	// of (orphans of a reload).
	AllNames bool
	// MaxErrors is the share of failed requests above which the run fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	Progress  *Progress
}

// ResetResult is the answer of Reset.
type ResetResult struct {
	Run
	Resets []CoreReset `json:"resets"` // one per core that answered, in order
	// FirstDeleted and TotalDeleted are sums over the cores.
	FirstDeleted int64 `json:"first_deleted"`
	TotalDeleted int64 `json:"total_deleted"`
	// Clean says that the last answer of every known core was 0, so that
	// nothing was left and nobody else writes.
	Clean bool `json:"clean"`
	// Orphans are the other names that were cleared, and OrphansDeleted the
	// number of their entries.
	Orphans        []Orphan `json:"orphans,omitempty"`
	OrphansDeleted int64    `json:"orphans_deleted,omitempty"`
	// EntriesLeft is what all cores hold afterwards, under whatever name; nil
	// where the dataplane doesn't tell.
	EntriesLeft *int64 `json:"entries_left,omitempty"`
}

// CoreReset is what a core answered to being reset.
type CoreReset struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// FirstDeleted is what its first answer counted, LastDeleted its last,
	// TotalDeleted the sum of all. Among requests that were on their way at
	// the same time the one that deleted most counts as the earliest.
	FirstDeleted int64 `json:"first_deleted"`
	LastDeleted  int64 `json:"last_deleted"`
	TotalDeleted int64 `json:"total_deleted"`

	answers []resetAnswer
}

// resetAnswer is one answer, and when it was asked for and came in the order
// of the run.
type resetAnswer struct{ started, ended, deleted int64 }

// Orphan is a name that no core calls its own any more.
type Orphan struct {
	Subtable string `json:"subtable"`
	Deleted  int64  `json:"deleted"`
}

// summarise fills in the figures from the answers.
func (c *CoreReset) summarise() {
	firstEnd, lastStart := c.answers[0].ended, int64(0)
	c.TotalDeleted = 0
	for _, a := range c.answers {
		firstEnd, lastStart = min(firstEnd, a.ended), max(lastStart, a.started)
		c.TotalDeleted += a.deleted
	}
	first, last := int64(0), int64(-1)
	for _, a := range c.answers {
		if a.started < firstEnd {
			first = max(first, a.deleted)
		}
		if a.ended > lastStart && (last < 0 || a.deleted < last) {
			last = a.deleted
		}
	}
	c.FirstDeleted, c.LastDeleted = first, last
}

// Reset deletes the entries of every core's own subtable, and goes on until
// every core has answered.
func Reset(ctx context.Context, tgt target.Target, cfg ResetConfig) (*ResetResult, error) {
	if cfg.Requests < 0 {
		return nil, configError("requests %d: want 1 or more", cfg.Requests)
	}
	if err := checkCommon(cfg.Workers, cfg.MaxErrors); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 32), cfg.Progress)
	cores := make(map[timingstats.CoreID]*CoreReset)
	merge := func(j *job) {
		c := cores[j.core]
		if c == nil {
			c = &CoreReset{Core: j.core}
			cores[j.core] = c
		}
		c.Hits++
		c.answers = append(c.answers, resetAnswer{j.started, j.ended, j.n})
	}
	var names []string // every name the cores know of, theirs included
	listed := false
	if p.count(ctx) && cfg.AllNames {
		names, listed = p.allNames(ctx)
	}
	dirty := func() []timingstats.CoreID {
		var out []timingstats.CoreID
		for _, k := range p.known() {
			c := cores[k]
			if c != nil {
				c.summarise()
			}
			if c == nil || cfg.UntilClean && c.LastDeleted != 0 {
				out = append(out, k)
			}
		}
		return out
	}
	if p.err() == nil {
		n := len(p.known())
		first := cmp.Or(cfg.Requests, max(200, NeededRequests(n, 1e-4)))
		limit := max(first, NeededRequests(n, 1e-6))
		p.until(ctx, first, limit, 1e-6, askReset, takeDeleted, merge, dirty)
		// A core that is silent by now is not waited for, one that still has
		// something to delete is.
		if busy := func() []timingstats.CoreID { return heard(dirty(), p.hits) }; cfg.UntilClean && p.err() == nil && len(busy()) > 0 {
			p.until(ctx, 1, 9*limit, 1e-6, askReset, takeDeleted, merge, busy)
		}
	}
	var orphans []Orphan
	if p.err() == nil && len(names) > 0 { // those of the cores that told theirs go in any case
		var all bool
		orphans, all = p.resetAllNames(ctx, names)
		listed = listed && all
	}
	// What is left may have been written since its core was cleared. Once more,
	// between two looks at the counters, tells.
	var held *holdings
	written := int64(0)
	if p.err() == nil {
		held = askHoldings(ctx, tgt)
	}
	if held != nil && held.entries > 0 && len(dirty()) == 0 {
		again := make(map[timingstats.CoreID]bool)
		n := NeededRequests(len(p.known()), 1e-6)
		p.until(ctx, 1, n, 1e-6, askReset, takeDeleted, func(j *job) {
			merge(j)
			again[j.core] = true
		}, func() []timingstats.CoreID {
			return slices.DeleteFunc(p.known(), func(k timingstats.CoreID) bool { return again[k] })
		})
		before := held
		if p.err() == nil && len(names) > 0 {
			more, _ := p.resetAllNames(ctx, names)
			orphans = join(append(orphans, more...))
		}
		if held = askHoldings(ctx, tgt); held != nil {
			written = held.writes - before.writes
		}
	}
	left := dirty()
	res := &ResetResult{Run: p.result(cfg.MaxErrors), Orphans: orphans}
	for _, o := range orphans {
		res.OrphansDeleted += o.Deleted
	}
	res.Clean = len(p.hits) > 0 && len(res.Missing) == 0 && len(left) == 0
	for _, k := range p.known() {
		c := cores[k]
		if c == nil {
			continue
		}
		c.summarise()
		if res.Clean = res.Clean && (c.LastDeleted == 0 || c.Hits == 1); c.LastDeleted > 0 && c.Hits > 1 {
			res.Warnings = append(res.Warnings, fmt.Sprintf("core %s still had %d to delete in its last answer: somebody else writes", k, c.LastDeleted))
		}
		res.FirstDeleted += c.FirstDeleted
		res.TotalDeleted += c.TotalDeleted
		res.Resets = append(res.Resets, *c)
	}
	if held != nil {
		res.EntriesLeft = &held.entries
		if res.Clean && written > 0 && held.entries <= written {
			res.Clean = false
			res.Warnings = append(res.Warnings, fmt.Sprintf("%d entries are there, and %d were written since they were cleared: somebody else writes", held.entries, written))
		}
	}
	// A core that still had something to delete has been written to meanwhile,
	// which says nothing of what survived; only who waited for the end of that is
	// told that there was none.
	if p.err() == nil && (res.Clean || cfg.UntilClean) {
		leak := verdict.LeakInput{
			Deleted: res.TotalDeleted + res.OrphansDeleted, Cleared: len(res.Resets), Unreached: res.Missing,
			Refilled: !res.Clean, Foreign: !cfg.AllNames, AllNames: cfg.AllNames, Listed: listed,
		}
		if res.Clean && !cfg.AllNames && (res.EntriesLeft == nil || *res.EntriesLeft > 0) {
			leak.Orphans, leak.Listed = p.orphaned(ctx)
		}
		if res.EntriesLeft != nil {
			leak.Known, leak.EntriesAfter = true, *res.EntriesLeft
			leak.EntriesBefore = leak.Deleted + leak.EntriesAfter
		}
		res.Verdicts = append(res.Verdicts, verdict.JudgeLeak(leak))
	}
	if cfg.AllNames && !listed && p.err() == nil {
		res.Warnings = append(res.Warnings, "the dataplane does not list its names, or not every core did: entries left under other names may have been missed")
	}
	return res, p.err()
}

// join sorts by name, each once.
func join(all []Orphan) (out []Orphan) {
	slices.SortFunc(all, func(a, b Orphan) int { return cmp.Compare(a.Subtable, b.Subtable) })
	for _, o := range all {
		if n := len(out); n > 0 && out[n-1].Subtable == o.Subtable {
			out[n-1].Deleted += o.Deleted
		} else {
			out = append(out, o)
		}
	}
	return out
}

// holdings is what the cores hold in all, and their writes so far.
type holdings struct{ entries, writes int64 }

// askHoldings is nil where the dataplane doesn't tell.
func askHoldings(ctx context.Context, tgt target.Target) *holdings {
	var ans target.Answer
	if target.Ask(ctx, tgt, target.OpStats, &ans) != nil || len(ans.Stats) == 0 {
		return nil
	}
	h := new(holdings)
	for _, s := range ans.Stats {
		h.entries += s.Entries
		h.writes += s.WritesLocal + s.WritesRemote
	}
	return h
}

// heard are those of the cores that answered.
func heard(cores []timingstats.CoreID, hits map[timingstats.CoreID]int64) []timingstats.CoreID {
	return slices.DeleteFunc(cores, func(c timingstats.CoreID) bool { return hits[c] == 0 })
}

// allNames asks every core for the names that it knows to hold entries of
// ours, as many as it puts into one answer. False: not every core told.
func (p *pool) allNames(ctx context.Context) ([]string, bool) {
	var ans target.Answer
	if target.Unsupported(target.Ask(ctx, p.tgt, target.OpNames, &ans)) {
		return nil, false
	}
	q := newPool(p.tgt, p.workers, nil)
	q.cores = p.cores
	seen := make(map[string]bool)
	q.until(ctx, NeededRequests(len(p.known()), 1e-2), 0, 1e-6, askNames, takeList, func(j *job) {
		for _, name := range j.texts {
			seen[name] = true
		}
		j.texts = nil
	}, nil)
	return slices.Sorted(maps.Keys(seen)), q.ok > 0 && len(q.missing()) == 0
}

// orphaned are the names that hold entries and look like a discovery's, but that
// no core calls its own. False: the dataplane doesn't tell.
func (p *pool) orphaned(ctx context.Context) ([]string, bool) {
	names, listed := p.allNames(ctx)
	names = slices.DeleteFunc(names, func(name string) bool { return verdict.ShapeOf(name) == verdict.OtherName })
	if len(names) == 0 {
		return nil, listed
	}
	own := make(map[string]bool)
	q := newPool(p.tgt, p.workers, nil)
	q.cores = p.cores
	q.until(ctx, NeededRequests(len(p.known()), 1e-2), 0, 1e-6, askWhoami, takeName, func(j *job) { own[string(j.text)] = true }, nil)
	if q.ok == 0 || len(q.missing()) > 0 {
		return nil, false
	}
	return slices.DeleteFunc(names, func(name string) bool { return own[name] }), listed
}

// maxNameRounds bounds how often names are asked for and cleared, where an
// application goes on making new ones.
const maxNameRounds = 100

// resetAllNames deletes what the names hold now, after every core has cleared
// its own, and returns those that held something. A core lists only so many
// names at once, and a request may fail: it asks for names again until none is
// new or nothing was left to delete. False: not every core told its names.
func (p *pool) resetAllNames(ctx context.Context, names []string) (out []Orphan, listed bool) {
	listed = true
	cleared := make(map[string]bool)
	for range maxNameRounds {
		names = slices.DeleteFunc(names, func(name string) bool { return cleared[name] })
		if len(names) == 0 {
			break
		}
		orphans, failed := p.resetNames(ctx, names, cleared)
		out = append(out, orphans...)
		if p.err() != nil || len(orphans) == 0 && !failed {
			break
		}
		var all bool
		names, all = p.allNames(ctx)
		listed = listed && all
	}
	return join(out), listed
}

// resetNames deletes what the names hold, notes those that were cleared, and
// returns those that held something, and whether a request failed.
func (p *pool) resetNames(ctx context.Context, names []string, cleared map[string]bool) (out []Orphan, failed bool) {
	jobs := make([]job, len(names))
	for i := range jobs {
		jobs[i].name = i
	}
	p.progress.Planned.Store(p.progress.Sent.Load() + int64(len(jobs)))
	p.round(ctx, jobs, func(j *job, req *target.Request) {
		req.Op = target.OpResetName
		req.Subtable = append(req.Subtable, names[j.name]...)
	}, takeDeleted, func(j *job) {
		cleared[names[j.name]] = true
		if j.n > 0 {
			out = append(out, Orphan{Subtable: names[j.name], Deleted: j.n})
		}
	})
	return out, slices.ContainsFunc(jobs, func(j job) bool { return j.err != nil })
}
