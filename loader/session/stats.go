package session

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

// opKind is a kind of operation.
type opKind uint8

const (
	opSet opKind = iota
	opLookup
	opEnumerate
	opDelete
	opScan
	numOps
)

var opNames = [numOps]string{opSet: "set", opLookup: "lookup", opEnumerate: "enumerate", opDelete: "delete", opScan: "scan"}

// stats are what one worker saw; they are merged when all have ended.
type stats struct {
	visits    int64
	ops       int64
	okOps     int64
	remote    int64
	byOwner   int64 // operations whose owner the dataplane named
	misses    int64
	elsewhere int64 // affinity misses
	indexed   int64 // index entries written
	unindexed int64 // index entries deleted
	listings  []scanned
	groups    []group // of sessions; nil where costs are of no account
	clicks    [numOps]timingstats.Recorder
	latency   [numOps]timingstats.Recorder
	errs      [target.NumClasses]int64
	example   [target.NumClasses]string
	accepted  map[timingstats.CoreID]int64
	executed  map[timingstats.CoreID]int64
}

// record takes one operation in.
func (s *stats) record(op opKind, home *home, ans *target.Answer, latency time.Duration, err error) {
	s.ops++
	if err != nil {
		class := target.ClassOf(err)
		if s.errs[class] == 0 {
			s.example[class] = err.Error()
		}
		s.errs[class]++
		return
	}
	s.okOps++
	id := timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}
	if s.accepted == nil {
		s.accepted, s.executed = map[timingstats.CoreID]int64{}, map[timingstats.CoreID]int64{}
	}
	s.accepted[id]++
	switch {
	case ans.OwnerKnown:
		s.byOwner++
		s.executed[timingstats.CoreID{Slot: ans.Slot, Core: ans.Owner}]++
		if ans.Owner != ans.Core {
			s.remote++
		}
	case !ans.Local:
		s.remote++
	}
	if home != nil && home.id != id {
		s.elsewhere++
	}
	if op == opLookup && len(ans.Result) == 0 {
		s.misses++
	}
	s.clicks[op].Record(ans.Clicks)
	s.latency[op].Record(int64(latency))
}

func (s *stats) merge(o *stats) {
	s.visits += o.visits
	s.ops += o.ops
	s.okOps += o.okOps
	s.remote += o.remote
	s.byOwner += o.byOwner
	s.misses += o.misses
	s.elsewhere += o.elsewhere
	s.indexed += o.indexed
	s.unindexed += o.unindexed
	s.listings = append(s.listings, o.listings...)
	for i, g := range o.groups {
		s.groups[i].visits += g.visits
		for op, t := range g.ops {
			s.groups[i].ops[op].n += t.n
			s.groups[i].ops[op].clicks += t.clicks
		}
	}
	for i := range numOps {
		s.clicks[i].Merge(&o.clicks[i])
		s.latency[i].Merge(&o.latency[i])
	}
	for i, n := range o.errs {
		if n > 0 && s.errs[i] == 0 {
			s.example[i] = o.example[i]
		}
		s.errs[i] += n
	}
	if s.accepted == nil {
		s.accepted, s.executed = map[timingstats.CoreID]int64{}, map[timingstats.CoreID]int64{}
	}
	for id, n := range o.accepted {
		s.accepted[id] += n
	}
	for id, n := range o.executed {
		s.executed[id] += n
	}
}

// cost is that of a kind of operation, the slowest set apart as in t.
func (s *stats) cost(op opKind, t trimmed) OpCost {
	c := &s.clicks[op]
	return OpCost{
		Op: opNames[op], N: c.N(), MinClicks: c.Min(), P50Clicks: c.Percentile(50), AvgClicks: c.Mean(), TrimmedClicks: t.mean, off: t.off,
		P95Clicks: c.Percentile(95), P99Clicks: c.Percentile(99), MaxClicks: c.Max(), Latency: s.latency[op].Latency(),
	}
}

// scanned is what listing a whole subtable cost, for the so manieth time.
type scanned struct{ num, clicks int64 }

// minScans is how many listings of a subtable it takes to say what one costs.
const minScans = 8

// whileFilling is the mean of listings made at even distances while a subtable
// fills and empties, without the slowest, as one that is pre-empted would
// decide. What the fill makes of the costs is no chance, so the variance is
// that of neighbours (von Neumann 1941).
func whileFilling(ls []scanned) (t trimmed) {
	ls = slices.Clone(ls)
	slices.SortFunc(ls, func(a, b scanned) int { return cmp.Compare(a.num, b.num) })
	if len(ls) >= minScans {
		i := 0
		for j := range ls {
			if ls[j].clicks > ls[i].clicks {
				i = j
			}
		}
		ls = slices.Delete(ls, i, i+1)
	}
	n := float64(len(ls))
	var variance float64
	for i := range ls {
		t.mean += float64(ls[i].clicks) / n
		if i > 0 {
			d := float64(ls[i].clicks - ls[i-1].clicks)
			variance += d * d / 2 / (n - 1) / n
		}
	}
	t.off = student99(n-1) * math.Sqrt(variance)
	return t
}

// hotRatio is the max/mean from which a core is called hot.
const hotRatio = 1.25

// beyondChance says that a core with so many times the mean has more than
// chance gives it where each of n sessions falls on one of N cores: n/N ±
// √(n/N·(1−1/N)). The fullest of all is that far off by chance unless it is
// four times further.
func beyondChance(ratio, sessions float64, cores int) bool {
	return sessions > 0 && ratio-1 > 4*math.Sqrt(float64(cores-1)/sessions)
}

// result writes the design's figures out.
func (p *play) result(elapsed time.Duration, before, after map[int]target.CoreStats) DesignResult {
	s := stats{groups: make([]group, p.groups)}
	var scan stats
	for _, w := range p.workers {
		s.merge(&w.stats)
		if w.lister != nil {
			scan.merge(&w.lister.stats)
		}
	}
	r := DesignResult{
		Design: p.design, Title: p.design.Title(), Visits: s.visits, Operations: s.ops, OK: s.okOps, Failed: s.ops - s.okOps,
		Errors: []ErrorCount{}, ElapsedNS: int64(elapsed), Remote: s.remote, RemoteBy: "clicks", Misses: s.misses,
		AffinityMisses: s.elsewhere, IndexSets: s.indexed, IndexDeletes: s.unindexed, Ops: []OpCost{}, Load: []CoreLoad{}, Scan: scan.cost(opScan, whileFilling(scan.listings)),
	}
	for class, n := range s.errs {
		if n > 0 {
			r.Errors = append(r.Errors, ErrorCount{Class: target.Class(class), Count: n, Example: s.example[class]})
		}
	}
	if elapsed > 0 {
		r.OpsPerS = float64(s.okOps) / elapsed.Seconds()
	}
	if s.byOwner == s.okOps && s.okOps > 0 {
		r.RemoteBy = "owner"
	}
	if p.design != Local && p.cores > 0 {
		r.TheoryShare = float64(p.cores-1) / float64(p.cores)
	}
	sums, per := make([]float64, p.groups), make([]float64, p.groups)
	var clicks float64
	for op := range opScan {
		t := p.slowest[op].trim(op, s.groups)
		clicks += t.mean * float64(t.n)
		for i, v := range t.sums {
			sums[i] += v
		}
		if c := s.cost(op, t); c.N > 0 {
			r.Ops = append(r.Ops, c)
		}
	}
	for i, g := range s.groups {
		per[i] = float64(g.visits)
	}
	if s.okOps > 0 {
		r.RemoteShare = float64(s.remote) / float64(s.okOps)
	}
	if s.visits > 0 {
		r.ClicksPerVisit = clicks / float64(s.visits)
		r.ClicksPerVisitError = offBy(sums, per)
	}
	p.loadTable(&r, &s, before, after)
	p.growth(&r)
	return r
}

// loadTable fills in what each core did and holds.
func (p *play) loadTable(r *DesignResult, s *stats, before, after map[int]target.CoreStats) {
	ids := map[timingstats.CoreID]bool{}
	for id := range s.accepted {
		ids[id] = true
	}
	for id := range s.executed {
		ids[id] = true
	}
	for i := range p.cores {
		if _, ok := after[i]; ok {
			ids[timingstats.CoreID{Core: i}] = true
		}
	}
	for id := range ids {
		c := CoreLoad{Core: id, Accepted: s.accepted[id], Executed: -1, Entries: -1, Bytes: -1}
		if r.RemoteBy == "owner" {
			c.Executed = s.executed[id]
		}
		if now, ok := after[id.Core]; ok && id.Slot == 0 && before != nil {
			c.Entries, c.Bytes = now.Entries-before[id.Core].Entries, now.Bytes-before[id.Core].Bytes
			r.Entries += c.Entries
			r.Bytes += c.Bytes
		}
		r.Load = append(r.Load, c)
	}
	slices.SortFunc(r.Load, func(a, b CoreLoad) int { return a.Core.Compare(b.Core) })
	if r.Entries > 0 {
		r.BytesPerEntry = float64(r.Bytes) / float64(r.Entries)
	}
	r.EntriesRatio = ratio(r.Load, func(c CoreLoad) int64 { return c.Entries })
	r.BytesRatio = ratio(r.Load, func(c CoreLoad) int64 { return c.Bytes })
	r.ExecutedRatio = ratio(r.Load, func(c CoreLoad) int64 { return c.Executed })
	// A shared subtable is on one core by design, no chance in that.
	if r.ExecutedRatio > hotRatio && (p.design == Shared || beyondChance(r.ExecutedRatio, float64(p.came()), len(r.Load))) {
		hot := slices.MaxFunc(r.Load, func(a, b CoreLoad) int { return int(min(max(a.Executed-b.Executed, -1), 1)) })
		r.HotCore = &hot.Core
	}
}

// ratio is max/mean; 0 when it isn't known.
func ratio(cores []CoreLoad, of func(CoreLoad) int64) float64 {
	var sum, most int64
	for _, c := range cores {
		v := of(c)
		if v < 0 {
			return 0
		}
		sum, most = sum+v, max(most, v)
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(cores)) / float64(sum)
}

// came is how many sessions began.
func (p *play) came() (n int64) {
	for _, b := range p.begun {
		if b {
			n++
		}
	}
	return n
}

// growth is what the sessions that never leave leave behind for good: for each
// thousand that come, and in an hour at the rate at which they are to come.
// Without one there is no hour to speak of: how fast they came is the speed of
// the design, and the fastest would look like the worst. A single session is
// no thousand either.
func (p *play) growth(r *DesignResult) {
	for i, began := range p.begun {
		for j := range p.cfg.Keys {
			if began && !p.gone[i] && p.plan.kindOf(int64(i), j) == forever {
				r.Indefinite++
			}
		}
	}
	if came := p.came(); came > 1 {
		r.GrowthEntriesP1k = float64(r.Indefinite) / float64(came) * 1000
		r.GrowthBytesP1k = r.GrowthEntriesP1k * r.BytesPerEntry
		thousandsPH := p.cfg.Arrivals * 3600 / 1000
		r.GrowthEntriesPH, r.GrowthBytesPH = r.GrowthEntriesP1k*thousandsPH, r.GrowthBytesP1k*thousandsPH
	}
	if r.AffinityMisses > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("%s: %d operations were accepted by another core than their session's", p.design, r.AffinityMisses))
	}
}
