package loader

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"tbl/target"
	"tbl/timingstats"
)

// maxCores bounds what is kept per core, whatever a server answers.
const maxCores = 4096

// outcome is one finished request as a worker hands it in. Times are from the
// run's start.
type outcome struct {
	due        time.Duration // its scheduled moment; in a closed loop its start
	start, end time.Duration // of the last attempt, and of its answer
	keys       int64         // that it carried
	bytes      int64         // of its body
	retries    int64
	err        error
}

// collector accumulates what workers hand in. Its lock is held for a few
// hundred nanoseconds, never across a request or a pause.
type collector struct {
	progress *Progress
	openLoop bool
	warmup   time.Duration

	counts      connCounter // nil: the target has no connections
	openedFirst int64       // when the run began
	opened      int64       // during all runs, what was asked between them left out

	mu sync.Mutex

	sent, ok, failed, retries  int64
	keysSent, written, bytes   int64
	serverClosed, clientClosed int64
	warmupSent                 int64
	errs                       [target.NumClasses]int64
	example                    [target.NumClasses]string
	exampleAt                  [target.NumClasses]time.Duration
	echoes                     int64 // answers that named another key
	echoExample                string

	known     int
	only      *timingstats.CoreID // the only core that is to be heard; nil: all
	uncleared *notCleared         // the reset that ended the runs; nil: none did
	cores     []*coreStats        // in the order of their first answers
	bySlot0   []*coreStats        // by core number, blade 0
	connect   timingstats.Recorder
	firstByte timingstats.Recorder
	lateMax   time.Duration
	minWrites int64 // coverage: writes that a core needs
	threshold int64 // bulk: clicks per write from which a batch is slow
	covered   int   // cores that have them

	run  runTotals
	runs []RunSummary
	// of finished runs, their measured parts
	elapsed      time.Duration
	measuredKeys int64 // successes
	measuredSent int64
}

// runTotals are what the counters stood at when the current run began, and
// what is known of it alone.
type runTotals struct {
	sent, ok, failed, written int64
	started                   time.Time     // of its measured part
	began, lastEnd            time.Duration // the same, from the run's start
	lastOK                    time.Duration // end of the latest success
	keys                      int64         // measured successes
	sentMeasured              int64
	series                    *timingstats.Series
}

// coreStats is what one core did.
type coreStats struct {
	id       timingstats.CoreID
	posts    int64
	writes   int64
	response timingstats.Recorder
	service  timingstats.Recorder // open loop only

	// bulk only
	batches              timingstats.CoreRecorder // their clicks per write
	clicks               int64
	minClicks, maxClicks float64
}

// connCounter is a target that counts its connections.
type connCounter interface{ Opened() int64 }

func newCollector(p *Progress, tgt target.Target, known int) *collector {
	c := &collector{progress: p, known: known}
	if n, ok := tgt.(connCounter); ok {
		c.counts = n
	}
	if p != nil {
		p.know(known)
	}
	return c
}

// beginRun starts the accounting of the next run, whose zero is now.
func (c *collector) beginRun(now time.Time) {
	c.run = runTotals{
		started: now.Add(c.warmup),
		sent:    c.sent, ok: c.ok, failed: c.failed, written: c.written,
		began: c.warmup, lastEnd: c.warmup, series: &timingstats.Series{},
	}
	if c.counts != nil {
		c.openedFirst = c.counts.Opened()
	}
	if c.progress != nil {
		c.progress.Run.Store(int64(len(c.runs) + 1))
	}
}

// endRun closes it.
func (c *collector) endRun(deleted int64) {
	r := &c.run
	if c.counts != nil {
		c.opened += c.counts.Opened() - c.openedFirst
	}
	elapsed := r.lastEnd - r.began
	c.elapsed += elapsed
	c.measuredKeys += r.keys
	c.measuredSent += r.sentMeasured
	sum := RunSummary{
		Run: len(c.runs) + 1, Started: r.started.UTC(), Sent: c.sent - r.sent, OK: c.ok - r.ok, Failed: c.failed - r.failed,
		Writes: c.written - r.written, ElapsedNS: int64(elapsed), Deleted: deleted,
		WritesPerS: perSecond(float64(r.keys), elapsed),
	}
	sum.Series = r.series.Summary(elapsed)
	c.runs = append(c.runs, sum)
}

func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

// core finds or makes the stats of a core; nil when there are too many.
func (c *collector) core(id timingstats.CoreID) *coreStats {
	if id.Slot == 0 && id.Core < len(c.bySlot0) && id.Core >= 0 {
		if s := c.bySlot0[id.Core]; s != nil {
			return s
		}
	} else if id.Slot != 0 {
		for _, s := range c.cores {
			if s.id == id {
				return s
			}
		}
	}
	if id.Core < 0 || id.Core >= maxCores || len(c.cores) >= maxCores {
		return nil
	}
	s := &coreStats{id: id}
	c.cores = append(c.cores, s)
	if id.Slot == 0 {
		for len(c.bySlot0) <= id.Core {
			c.bySlot0 = append(c.bySlot0, nil)
		}
		c.bySlot0[id.Core] = s
	}
	if c.progress != nil {
		c.progress.hear(id.Core)
	}
	return s
}

// standing is what a worker has to know to decide whether to go on.
type standing struct {
	ok, failed int64
	silence    time.Duration // since the latest success of the run
}

// add takes one outcome in.
func (c *collector) add(o *outcome, ans *target.Answer) standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(o, ans)
}

// take is add with the lock held.
func (c *collector) take(o *outcome, ans *target.Answer) standing {
	c.sent++
	c.retries += o.retries
	c.keysSent += o.keys
	c.bytes += o.bytes
	measured := o.start >= c.warmup
	if !measured {
		c.warmupSent++
	} else {
		c.run.sentMeasured++
	}
	c.lateMax = max(c.lateMax, o.start-o.due)
	c.run.lastEnd = max(c.run.lastEnd, o.end)
	var s *coreStats
	if o.err == nil {
		if s = c.core(timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}); s == nil {
			o.err = &target.Error{Class: target.ClassMalformed, Completion: target.CompletionMaybe,
				Err: fmt.Errorf("core number %d out of range", ans.Core)}
		}
	}
	if o.err != nil {
		c.fail(o)
		if measured {
			c.run.series.Failed(o.end - c.warmup)
		}
	} else {
		c.succeed(o, ans, s, measured)
	}
	if c.progress != nil {
		c.progress.Completed.Add(o.keys)
	}
	return standing{c.ok, c.failed, o.end - c.run.lastOK}
}

func (c *collector) fail(o *outcome) {
	c.failed++
	class := target.ClassOf(o.err)
	if c.errs[class] == 0 {
		c.example[class], c.exampleAt[class] = o.err.Error(), o.end
	}
	c.errs[class]++
	if c.progress != nil {
		c.progress.Errors.Add(o.keys)
	}
}

func (c *collector) succeed(o *outcome, ans *target.Answer, s *coreStats, measured bool) {
	c.ok++
	c.run.lastOK = max(c.run.lastOK, o.end)
	c.written += o.keys
	s.posts++
	s.writes += o.keys
	if s.writes >= c.minWrites && s.writes-o.keys < c.minWrites {
		c.covered++
	}
	if ans.Timing.Connect > 0 {
		if ans.Timing.ServerClosed {
			c.serverClosed++
		} else {
			c.clientClosed++
		}
	}
	if !measured {
		return
	}
	response := o.end - o.due
	s.response.Record(int64(response))
	if c.openLoop {
		s.service.Record(int64(o.end - o.start))
	}
	if ans.Timing.Connect > 0 {
		c.connect.Record(int64(ans.Timing.Connect))
		c.firstByte.Record(int64(ans.Timing.FirstByte))
	}
	c.run.series.Done(s.id, o.end-c.warmup, response, o.keys)
	c.run.keys += o.keys
}

// addBatch is add for a post of several keys, whose clicks are ans's.
func (c *collector) addBatch(o *outcome, ans *target.Answer) standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.err == nil {
		if s := c.core(timingstats.CoreID{Slot: ans.Slot, Core: ans.Core}); s != nil {
			perWrite := float64(ans.Clicks) / float64(o.keys)
			if s.posts == 0 || perWrite < s.minClicks {
				s.minClicks = perWrite
			}
			s.maxClicks = max(s.maxClicks, perWrite)
			s.clicks += ans.Clicks
			s.batches.Add(int64(math.Round(perWrite)), timingstats.Untagged, 1)
		}
	}
	return c.take(o, ans)
}

// echo notes an answer that named another key than was sent.
func (c *collector) echo(sent, got []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.echoes == 0 {
		c.echoExample = fmt.Sprintf("sent %q, answered %q", sent, got)
	}
	c.echoes++
}

// coverage says whether every known core has the writes it needs.
func (c *collector) coverage() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known > 0 && c.covered >= c.knownInAll()
}

// knownInAll is the number of cores on all blades seen.
func (c *collector) knownInAll() int { return c.known * max(1, len(c.slots())) }

// slots lists the blades that have answered.
func (c *collector) slots() []int {
	var out []int
	for _, s := range c.cores {
		if !slices.Contains(out, s.id.Slot) {
			out = append(out, s.id.Slot)
		}
	}
	slices.Sort(out)
	return out
}

// expectOnly says that one core alone is to be heard.
func (c *collector) expectOnly(id timingstats.CoreID) {
	c.only = &id
	if p := c.progress; p != nil {
		p.Known.Store(1)
		p.missing.Store(0)
		if id.Core < 64 {
			p.missing.Store(1 << id.Core)
		}
	}
}

// heard lists the cores with a successful write, or, where a reset that didn't
// reach every core ended the runs, those that it reached.
func (c *collector) heard() []timingstats.CoreID {
	if c.uncleared != nil {
		return c.uncleared.heard
	}
	var out []timingstats.CoreID
	for _, s := range c.sorted() {
		if s.posts > 0 {
			out = append(out, s.id)
		}
	}
	return out
}

// missing lists the known cores that were not heard.
func (c *collector) missing() []timingstats.CoreID {
	heard := c.heard()
	if c.only != nil && c.uncleared == nil { // a reset wants all of them
		if slices.Contains(heard, *c.only) {
			return []timingstats.CoreID{}
		}
		return []timingstats.CoreID{*c.only}
	}
	var slots []int
	for _, id := range heard {
		slots = append(slots, id.Slot)
	}
	if len(slots) == 0 {
		slots = []int{0}
	}
	out := []timingstats.CoreID{}
	for _, slot := range slices.Compact(slots) {
		for i := range c.known {
			if id := (timingstats.CoreID{Slot: slot, Core: i}); !slices.Contains(heard, id) {
				out = append(out, id)
			}
		}
	}
	return out
}

// sorted puts the cores in the order of their numbers.
func (c *collector) sorted() []*coreStats {
	out := slices.Clone(c.cores)
	slices.SortFunc(out, func(a, b *coreStats) int { return a.id.Compare(b.id) })
	return out
}

// accounting writes the counters out.
func (c *collector) accounting() Accounting {
	a := Accounting{
		Sent: c.sent, OK: c.ok, Failed: c.failed, Errors: []ErrorCount{}, Retries: c.retries,
		Connections:  c.opened,
		ServerClosed: c.serverClosed, ClientClosed: c.clientClosed,
	}
	for class, n := range c.errs {
		if n > 0 {
			a.Errors = append(a.Errors, ErrorCount{
				Class: target.Class(class), Count: n, Example: c.example[class], AtNS: int64(c.exampleAt[class]),
			})
		}
	}
	return a
}
