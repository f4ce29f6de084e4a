package metrics

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tbl/target"
	"tbl/timingstats"
)

// Progress is how far a run is.
type Progress struct {
	Completed, Planned int64 // units of the run: writes, keys, visits; Planned 0: not known
	Known, Heard       int64 // cores that there are, and that have answered
	// Scheduled is how many requests of an open loop were due so far. 0: none, or
	// there is no schedule.
	Scheduled int64
}

// Run accumulates what a run does while it goes on. It is safe for concurrent
// use.
type Run struct {
	version string
	d       runDescs

	latency  prometheus.Histogram
	requests *prometheus.CounterVec
	written  *prometheus.CounterVec
	errors   *prometheus.CounterVec
	byClass  [target.NumClasses]classCounters

	mu    sync.RWMutex
	cores map[timingstats.CoreID]coreCounters

	poll atomic.Pointer[watched]
	log  atomic.Pointer[[]LogCore]
}

// LogCore is what a log says so far of one core of a device.
type LogCore struct {
	Device string
	timingstats.CoreSummary
}

// classCounters are the counters of failed requests of one class.
type classCounters struct{ requests, errors prometheus.Counter }

// coreCounters are the counters of answers of one core.
type coreCounters struct{ requests, written prometheus.Counter }

// watched is a part of the run whose progress is asked for, since when.
type watched struct {
	since time.Time
	poll  func() Progress
}

// latencyBuckets reach from an embedded core's answer to a request that times
// out, three to a decade; in seconds.
func latencyBuckets() []float64 {
	return []float64{
		1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3,
		1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
	}
}

// NewRun prepares the metrics of a command against a target.
func NewRun(version, command, tgt string) *Run {
	r := &Run{version: version, cores: map[timingstats.CoreID]coreCounters{}, d: newRunDescs(command, tgt)}
	r.latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tbl_run_request_duration_seconds", Help: "Time from sending a request to its whole answer, or its failure.", Buckets: latencyBuckets(),
	})
	r.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tbl_run_requests_total", Help: "Requests sent, by the core that answered and by class; who failed to answer has no core.",
	}, append(append([]string(nil), coreLabels...), "class"))
	r.written = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tbl_run_writes_total", Help: "Writes that were confirmed, by the core that confirmed them.",
	}, coreLabels)
	r.errors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tbl_run_errors_total", Help: "Failed requests by class.",
	}, []string{"class"})
	for c := target.ClassOK + 1; c < target.NumClasses; c++ {
		// The counters of errors are there from the start, at 0: a rate of
		// something that appears late misses its first.
		r.byClass[c].errors = r.errors.WithLabelValues(c.String())
	}
	return r
}

// Observe counts one request: its answer, or err, after so much time.
func (r *Run) Observe(req *target.Request, ans *target.Answer, took time.Duration, err error) {
	r.latency.Observe(took.Seconds())
	if err != nil {
		class := target.ClassOf(err)
		r.byClass[class].errors.Inc()
		r.failed(class).Inc()
		return
	}
	c := r.core(timingstats.CoreID{Slot: ans.Slot, Core: ans.Core})
	c.requests.Inc()
	switch req.Op {
	case target.OpLoad:
		c.written.Inc()
	case target.OpBulkLoad:
		c.written.Add(float64(max(0, ans.Written)))
	}
}

func (r *Run) core(id timingstats.CoreID) coreCounters {
	r.mu.RLock()
	c, ok := r.cores[id]
	r.mu.RUnlock()
	if ok {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok = r.cores[id]; !ok {
		core, slot := ofCore(id)
		c = coreCounters{r.requests.WithLabelValues(core, slot, target.ClassOK.String()), r.written.WithLabelValues(core, slot)}
		r.cores[id] = c
	}
	return c
}

// failed is the counter of failed requests of a class, which appears with the
// first.
func (r *Run) failed(class target.Class) prometheus.Counter {
	r.mu.RLock()
	c := r.byClass[class].requests
	r.mu.RUnlock()
	if c != nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byClass[class].requests == nil {
		r.byClass[class].requests = r.requests.WithLabelValues("", "", class.String())
	}
	return r.byClass[class].requests
}

// Watch lets scrapes ask how far the run is; a later call takes over. poll is
// called from other goroutines.
func (r *Run) Watch(poll func() Progress) { r.poll.Store(&watched{time.Now(), poll}) }

// Log takes over what a log that is being read says so far. Each core of a
// device stands in the list once; the list is r's from now on.
func (r *Run) Log(cores []LogCore) { r.log.Store(&cores) }

// Handler answers scrapes.
func (r *Run) Handler() http.Handler {
	return handler(r.version, r.latency, r.requests, r.written, r.errors, &runState{r, time.Now()})
}

// runDescs are the descriptions of what is read when somebody asks.
type runDescs struct {
	info, start                              *prometheus.Desc
	completed, planned, known, heard         *prometheus.Desc
	scheduled, offered, achieved             *prometheus.Desc
	samples, clicks, outOfRange, disagreeing *prometheus.Desc
}

func newRunDescs(command, tgt string) runDescs {
	one := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tbl_"+name, help, labels, nil)
	}
	ofLog := append(append([]string(nil), coreLabels...), "device")
	return runDescs{
		info:      prometheus.NewDesc("tbl_run_info", "Always 1; the labels say what is running.", nil, prometheus.Labels{"command": command, "target": tgt}),
		start:     one("run_start_time_seconds", "When the run started, in seconds since 1970."),
		completed: one("run_completed", "Units done so far, failed ones included: writes, keys, visits, transactions. Steps and runs begin anew."),
		planned:   one("run_planned", "Units that completed will reach; absent where that is not known."),
		known:     one("run_cores_known", "Cores that the dataplane says it has."),
		heard:     one("run_cores_heard", "Cores that have answered."),
		scheduled: one("run_scheduled_requests_total", "Open loop: requests that were due so far."),
		offered:   one("run_offered_requests_per_second", "Open loop: requests per second that were due, on average so far."),
		achieved:  one("run_achieved_per_second", "Units per second that were done, on average so far."),

		samples:     one("log_samples_total", "Timed writes read from the log, by whether they were at or above the threshold.", append(ofLog, "speed")...),
		clicks:      one("log_write_clicks", "Clicks per timed write in the log.", ofLog...),
		outOfRange:  one("log_out_of_range_total", "Samples whose clicks can't be true.", ofLog...),
		disagreeing: one("log_tag_disagreements_total", "Samples whose tag in the log says otherwise than the threshold.", ofLog...),
	}
}

// runState collects what is read when somebody asks.
type runState struct {
	r     *Run
	start time.Time
}

// Describe sends the descriptions.
func (s *runState) Describe(ch chan<- *prometheus.Desc) {
	d := &s.r.d
	for _, x := range []*prometheus.Desc{d.info, d.start, d.completed, d.planned, d.known, d.heard, d.scheduled, d.offered, d.achieved, d.samples, d.clicks, d.outOfRange, d.disagreeing} {
		ch <- x
	}
}

// Collect asks how far the run is.
func (s *runState) Collect(ch chan<- prometheus.Metric) {
	d := &s.r.d
	ch <- gauge(d.info, 1)
	ch <- gauge(d.start, float64(s.start.UnixMilli())/1000)
	if w := s.r.poll.Load(); w != nil {
		p, elapsed := w.poll(), time.Since(w.since).Seconds()
		ch <- gauge(d.completed, float64(p.Completed))
		if p.Planned > 0 {
			ch <- gauge(d.planned, float64(p.Planned))
		}
		if p.Known > 0 {
			ch <- gauge(d.known, float64(p.Known))
			ch <- gauge(d.heard, float64(p.Heard))
		}
		if elapsed > 0 {
			ch <- gauge(d.achieved, float64(p.Completed)/elapsed)
		}
		if p.Scheduled > 0 {
			ch <- counter(d.scheduled, float64(p.Scheduled))
			if elapsed > 0 {
				ch <- gauge(d.offered, float64(p.Scheduled)/elapsed)
			}
		}
	}
	if log := s.r.log.Load(); log != nil {
		for i := range *log {
			s.core(ch, &(*log)[i])
		}
	}
}

// core sends what a log says of one core.
func (s *runState) core(ch chan<- prometheus.Metric, c *LogCore) {
	d := &s.r.d
	core, slot := ofCore(c.Core)
	ch <- counter(d.samples, float64(c.N-c.AtThreshold), core, slot, c.Device, "fast")
	ch <- counter(d.samples, float64(c.AtThreshold), core, slot, c.Device, "slow")
	ch <- counter(d.outOfRange, float64(c.OutOfRange), core, slot, c.Device)
	ch <- counter(d.disagreeing, float64(c.Disagreements), core, slot, c.Device)
	ch <- prometheus.MustNewConstSummary(d.clicks, uint64(max(0, c.N)), float64(c.AvgClicks)*float64(c.N),
		map[float64]float64{0.5: float64(c.P50Clicks), 0.95: float64(c.P95Clicks), 0.99: float64(c.P99Clicks)}, core, slot, c.Device)
}
