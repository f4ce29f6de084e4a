package timingstats

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A series has one point a second for its first ten minutes and one every ten
// seconds beyond.
const (
	finePoints = 600
	fineStep   = time.Second
	coarseStep = 10 * time.Second
	fineEnd    = finePoints * fineStep
)

// pointOf is the index of the point that covers the moment at.
func pointOf(at time.Duration) int {
	if at < fineEnd {
		return max(int(at/fineStep), 0)
	}
	return finePoints + int((at-fineEnd)/coarseStep)
}

// PointStart is the moment at which a series' point i, counted from 0, begins.
func PointStart(i int) time.Duration {
	if i < finePoints {
		return time.Duration(i) * fineStep
	}
	return fineEnd + time.Duration(i-finePoints)*coarseStep
}

// Series accumulates what happened when in a run: completions, errors and p99
// over time, in all and per core, and the progress from which DECAY is judged.
// Moments are counted from the run's start. The zero value is ready. Safe for
// concurrent use by all workers of a run; nothing is locked between calls. In
// the steady state nothing is allocated.
type Series struct {
	cores atomic.Pointer[map[CoreID]*track]
	grow  sync.Mutex // serialises additions to cores

	total track
	prog  progress
}

// track is one line of points.
type track struct {
	mu          sync.Mutex
	completions []int64
	errors      []int64
	p99         []int64      // of points that no sketch is open for
	open        [2]openPoint // by parity of the point's index
}

// openPoint is the distribution of a point that may still get samples.
type openPoint struct {
	point  int // index + 1; 0: unused
	n      uint64
	sketch buckets
}

// Done adds a request that completed at the moment at on a core, with its
// latency, and with the number n of things it completed (1, or the keys of a
// batch).
func (s *Series) Done(core CoreID, at, latency time.Duration, n int64) {
	s.core(core).done(at, latency, n)
	s.total.done(at, latency, n)
	s.prog.add(at, n)
}

// Failed adds a failed request whose core isn't known.
func (s *Series) Failed(at time.Duration) { s.total.failed(at) }

// FailedOn adds a failed request that a core answered.
func (s *Series) FailedOn(core CoreID, at time.Duration) {
	s.core(core).failed(at)
	s.total.failed(at)
}

// Completions is the number of things completed so far.
func (s *Series) Completions() int64 {
	s.prog.mu.Lock()
	defer s.prog.mu.Unlock()
	return s.prog.done
}

func (s *Series) core(id CoreID) *track {
	if m := s.cores.Load(); m != nil {
		if t := (*m)[id]; t != nil {
			return t
		}
	}
	s.grow.Lock()
	defer s.grow.Unlock()
	next := make(map[CoreID]*track)
	if m := s.cores.Load(); m != nil {
		if t := (*m)[id]; t != nil {
			return t
		}
		maps.Copy(next, *m)
	}
	t := &track{}
	next[id] = t
	s.cores.Store(&next)
	return t
}

func (t *track) reach(point int) {
	for len(t.completions) <= point {
		t.completions = append(t.completions, 0)
		t.errors = append(t.errors, 0)
		t.p99 = append(t.p99, 0)
	}
}

func (t *track) done(at, latency time.Duration, n int64) {
	p := pointOf(at)
	t.mu.Lock()
	t.reach(p)
	t.completions[p] += n
	o := &t.open[p&1]
	if o.point < p+1 {
		t.close(o)
		o.point = p + 1
	}
	if o.point == p+1 { // else: too late for the point's p99
		o.n++
		o.sketch.add(max(int64(latency), 0), 1)
	}
	t.mu.Unlock()
}

func (t *track) failed(at time.Duration) {
	p := pointOf(at)
	t.mu.Lock()
	t.reach(p)
	t.errors[p]++
	t.mu.Unlock()
}

// close writes an open point's p99 down and empties its sketch.
func (t *track) close(o *openPoint) {
	if o.point > 0 && o.n > 0 {
		t.p99[o.point-1] = o.p99()
	}
	o.sketch.bits = sketchBits
	o.sketch.clear()
	o.point, o.n = 0, 0
}

func (o *openPoint) p99() int64 { return o.sketch.atRank(nearestRank(99, o.n)) }

// Points is one line of a series, written out: one number per point. A line
// whose numbers are all 0 is left out.
type Points struct {
	Completions []int64 `json:"completions"`
	Errors      []int64 `json:"errors,omitempty"`
	// P99NS is the 99th percentile of the latency of the requests that
	// completed within the point, at most 3 % above the true one; 0 where none
	// did.
	P99NS []int64 `json:"p99_ns,omitempty"`
}

// SeriesSummary is a Series written out. Point i runs from StartS[i] to the
// start of the next one, the last one to EndNS.
type SeriesSummary struct {
	StartS []int64           `json:"start_s"`
	EndNS  int64             `json:"end_ns"`
	All    Points            `json:"all"`
	Cores  map[CoreID]Points `json:"cores"`
	// Progress are the run's parts of equal completions; see Bucket.
	Progress []Bucket `json:"progress"`
}

// Bucket is a part of a run: Completions things were completed in the time
// from StartNS to EndNS, counted from the run's start.
type Bucket struct {
	StartNS     int64 `json:"start_ns"`
	EndNS       int64 `json:"end_ns"`
	Completions int64 `json:"completions"`
}

// RatePerS is the bucket's throughput per second; 0 for an empty span of time.
func (b Bucket) RatePerS() float64 {
	if b.EndNS <= b.StartNS {
		return 0
	}
	return float64(b.Completions) / (float64(b.EndNS-b.StartNS) / 1e9)
}

// ProgressBuckets is how many buckets of equal completions a run is cut into.
const ProgressBuckets = 50

// Summary writes s out for a run that ended at the moment end. All lines have
// the same number of points, also through seconds in which nothing happened.
func (s *Series) Summary(end time.Duration) SeriesSummary {
	points := 0
	if end > 0 {
		points = pointOf(end-1) + 1
	}
	s.total.mu.Lock()
	points = max(points, len(s.total.completions))
	s.total.mu.Unlock()

	out := SeriesSummary{
		EndNS: int64(end), All: s.total.points(points), Cores: make(map[CoreID]Points),
		StartS: make([]int64, points), Progress: s.prog.buckets(ProgressBuckets),
	}
	for i := range out.StartS {
		out.StartS[i] = int64(PointStart(i) / time.Second)
	}
	if m := s.cores.Load(); m != nil {
		for id, t := range *m {
			out.Cores[id] = t.points(points)
		}
	}
	return out
}

func (t *track) points(n int) Points {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reach(n - 1)
	p := Points{
		Completions: slices.Clone(t.completions[:n]),
		Errors:      slices.Clone(t.errors[:n]),
		P99NS:       slices.Clone(t.p99[:n]),
	}
	for i := range t.open {
		if o := &t.open[i]; o.n > 0 && o.point <= n {
			p.P99NS[o.point-1] = o.p99()
		}
	}
	zero := func(v int64) bool { return v != 0 }
	if !slices.ContainsFunc(p.Errors, zero) {
		p.Errors = nil
	}
	if !slices.ContainsFunc(p.P99NS, zero) {
		p.P99NS = nil
	}
	return p
}

// MergeSeries adds series of runs that were made at the same time: completions
// and errors are added point by point; p99 is the largest of the parts', which
// that of the whole can't exceed; of the progress, each part's buckets are
// spread evenly over their time and cut anew. offsets[i] is how much later
// than the merged run part i started (nil: all together), which is rounded to
// whole points.
func MergeSeries(parts []SeriesSummary, offsets []time.Duration) SeriesSummary {
	var out SeriesSummary
	out.Cores = make(map[CoreID]Points)
	points := 0
	at := func(i int) time.Duration {
		if i < len(offsets) {
			return max(offsets[i], 0)
		}
		return 0
	}
	for i, p := range parts {
		out.EndNS = max(out.EndNS, p.EndNS+int64(at(i)))
		if n := len(p.StartS); n > 0 {
			last := time.Duration(p.StartS[n-1])*time.Second + at(i).Round(fineStep)
			points = max(points, pointOf(last)+1)
		}
	}
	out.StartS = make([]int64, points)
	for i := range out.StartS {
		out.StartS[i] = int64(PointStart(i) / time.Second)
	}
	for i, p := range parts {
		shift := at(i).Round(fineStep)
		addPoints(&out.All, p.All, p.StartS, shift, points)
		for id, cp := range p.Cores {
			dst := out.Cores[id]
			addPoints(&dst, cp, p.StartS, shift, points)
			out.Cores[id] = dst
		}
	}
	out.Progress = mergeProgress(parts, at)
	return out
}

func addPoints(dst *Points, src Points, startS []int64, shift time.Duration, points int) {
	place := func(line *[]int64, from []int64, add func(a, b int64) int64) {
		if from == nil {
			return
		}
		if *line == nil {
			*line = make([]int64, points)
		}
		for i, v := range from {
			if i >= len(startS) {
				break
			}
			p := pointOf(time.Duration(startS[i])*time.Second + shift)
			(*line)[p] = add((*line)[p], v)
		}
	}
	sum := func(a, b int64) int64 { return a + b }
	place(&dst.Completions, src.Completions, sum)
	place(&dst.Errors, src.Errors, sum)
	place(&dst.P99NS, src.P99NS, func(a, b int64) int64 { return max(a, b) })
}
