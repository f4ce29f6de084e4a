// Package fleet adds the runs that several client machines made at the same
// time to one run of all of them: counts and distributions are summed up,
// series laid over each other by the moments at which they began, and the
// verdicts judged anew. It measures nothing; all of it is pure.
package fleet

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tbl/loader"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// ErrApart is wrapped by the errors about runs that don't belong together, or
// lack what is needed to tell.
var ErrApart = errors.New("these runs can't be merged")

// Part is one client's run.
type Part[R loader.LoadResult | loader.BulkResult] struct {
	// Name tells the run apart in what is said about it: its file. Host is the
	// client machine, empty where it isn't known.
	Name, Host string
	Result     *R
}

// Config says how the merged run is judged. The zero value judges as a load
// does by default.
type Config struct {
	// MaxErrors is as in loader.LoadConfig.
	MaxErrors float64
	// StartAt is the moment for which the runs had agreed to start. Zero: none.
	StartAt time.Time
}

// Client is what one client did.
type Client struct {
	Name string `json:"client"`
	Host string `json:"host,omitempty"`
	// Started is the client's start mark, on its own clock. OffsetNS is how long
	// after the first client's that is, LateNS how long after the agreed moment
	// (negative: before), 0 where none was agreed on.
	Started  time.Time `json:"started"`
	OffsetNS int64     `json:"offset_ns"`
	LateNS   int64     `json:"start_late_ns"`

	ElapsedNS  int64          `json:"elapsed_ns"`
	Workers    int            `json:"workers"`
	Seed       uint64         `json:"seed"`
	Sent       int64          `json:"sent"`
	OK         int64          `json:"ok"`
	Failed     int64          `json:"failed"`
	Writes     int64          `json:"writes"`
	WritesPerS float64        `json:"writes_per_s"`
	Response   loader.Latency `json:"response"`
	Partial    bool           `json:"partial"`
	// CommandLine makes the client's run again; empty: not known. Loads and Bulks
	// don't know it, it is for whoever does.
	CommandLine string `json:"command_line,omitempty"`
}

// Summary is what a merged run has beyond the runs that it was made of.
type Summary struct {
	Clients []Client `json:"clients"` // in the order of the parts
	// StartSkewNS is the time from the first start mark to the last one.
	StartSkewNS int64 `json:"start_skew_ns"`
	// TogetherNS is the time in which every client was at work, TogetherPerS
	// the writes per second within it.
	TogetherNS   int64   `json:"together_ns"`
	TogetherPerS float64 `json:"together_per_s"`
}

// view is what the parts of both kinds of run have in common.
type view struct {
	name, host string
	target     string
	mode       string // of a load; the threshold of a bulk load
	virtual    bool
	known      int
	workers    int
	seed       uint64
	acc        *loader.Accounting
	writes     int64
	requested  int64
	perS       float64
	runs       []loader.RunSummary
	response   loader.Latency
	hist       timingstats.Histogram
	missing    []timingstats.CoreID
	ports      int
	partial    bool
	stop       string
	warnings   []string
	verdicts   []verdict.Verdict
	inside     inside
}

// run is the one run of a part that has passed check.
func (v *view) run() *loader.RunSummary { return &v.runs[0] }

// apart names what is wrong with the runs.
func apart(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrApart}, args...)...)
}

// check refuses parts that don't belong together.
func check(parts []view) error {
	if len(parts) < 2 {
		return apart("want two runs or more, got %d", len(parts))
	}
	for i := range parts {
		p, first := &parts[i], &parts[0]
		switch {
		case len(p.runs) == 0:
			return apart("%s ended before its first request", p.name)
		case len(p.runs) > 1:
			return apart("%s is of %d runs with a reset before each, which clears what the other clients write: want one run each", p.name, len(p.runs))
		case p.run().Started.IsZero(), p.response.N > 0 && p.hist.V2 == "":
			return apart("%s was saved by an older version, without the start mark and the distributions that merging needs: run it again", p.name)
		case p.target != first.target:
			return apart("%s is of target %s, %s of %s", first.name, first.target, p.name, p.target)
		case p.mode != first.mode:
			return apart("%s is a run by %s, %s one by %s", first.name, first.mode, p.name, p.mode)
		case p.virtual != first.virtual:
			return apart("one of %s and %s was simulated, the other was not", first.name, p.name)
		case p.known != first.known:
			return apart("%s saw a dataplane of %d cores, %s one of %d", first.name, first.known, p.name, p.known)
		}
		if why := p.contradiction(); why != "" {
			return apart("%s is damaged: %s", p.name, why)
		}
		if why := p.damaged(); why != "" {
			return apart("%s: its series is damaged: %s", p.name, why)
		}
		for k := range i {
			if o := &parts[k]; o.run().Started.Equal(p.run().Started) && o.hist == p.hist && o.acc.Sent == p.acc.Sent && o.seed == p.seed {
				return apart("%s and %s are the same run", o.name, p.name)
			}
		}
	}
	return overlap(parts)
}

// overlap refuses parts that were not all made at the same time.
func overlap(parts []view) error {
	end := func(v *view) time.Time { return v.run().Started.Add(time.Duration(v.run().ElapsedNS)) }
	last, first := &parts[0], &parts[0] // the last to begin, the first to end
	for i := range parts {
		if p := &parts[i]; p.run().Started.After(last.run().Started) {
			last = p
		}
		if p := &parts[i]; end(p).Before(end(first)) {
			first = p
		}
	}
	if !last.run().Started.Before(end(first)) {
		const clock = "2006-01-02 15:04:05.000"
		return apart("%s ended at %s, %s began at %s: want runs made at the same time (--start-at), on machines whose clocks agree",
			first.name, end(first).UTC().Format(clock), last.name, last.run().Started.UTC().Format(clock))
	}
	return nil
}

// whole is the merged run as far as both kinds have it in common.
type whole struct {
	Summary
	acc       loader.Accounting
	run       loader.RunSummary
	keys      int64 // measured writes
	workers   int
	seed      uint64 // that of all, else 0
	requested int64
	clumping  float64 // Σ n²/p of clients whose n requests came from p ports
	response  timingstats.Recorder
	partial   bool
	stop      string
	warnings  []string
	together  []timingstats.Bucket // the progress of that time
}

// join merges what both kinds have in common.
func join(parts []view, cfg Config) (*whole, error) {
	if err := check(parts); err != nil {
		return nil, err
	}
	w := &whole{seed: parts[0].seed}
	begin := parts[0].run().Started
	for i := range parts {
		if s := parts[i].run().Started; s.Before(begin) {
			begin = s
		}
	}
	offsets := make([]time.Duration, len(parts))
	series := make([]timingstats.SeriesSummary, len(parts))
	var from, end time.Duration // of the time in which all were at work
	var last time.Duration      // the end of the last one
	for i := range parts {
		p := &parts[i]
		run := p.run()
		offsets[i], series[i] = run.Started.Sub(begin), run.Series
		stop := offsets[i] + time.Duration(run.ElapsedNS)
		from, last = max(from, offsets[i]), max(last, stop)
		if i == 0 || stop < end {
			end = stop
		}
		c := Client{
			Name: p.name, Host: p.host, Started: run.Started, OffsetNS: int64(offsets[i]), ElapsedNS: run.ElapsedNS,
			Workers: p.workers, Seed: p.seed, Sent: p.acc.Sent, OK: p.acc.OK, Failed: p.acc.Failed, Writes: p.writes, WritesPerS: p.perS,
			Response: p.response, Partial: p.partial,
		}
		if !cfg.StartAt.IsZero() {
			c.LateNS = int64(run.Started.Sub(cfg.StartAt))
		}
		w.Clients = append(w.Clients, c)
		w.add(p, offsets[i])
		if err := addTo(&w.response, p.hist, p.name); err != nil {
			return nil, err
		}
	}
	w.StartSkewNS, w.TogetherNS = int64(slices.Max(offsets)), int64(end-from)
	w.run.Run, w.run.Started, w.run.ElapsedNS = 1, begin, int64(last)
	w.run.Series = timingstats.MergeSeries(series, offsets)
	for _, n := range w.run.Series.All.Completions {
		w.keys += n
	}
	w.run.WritesPerS = perSecond(w.keys, last)
	w.together = within(series, offsets, from, end)
	var keys int64
	for _, b := range w.together {
		keys += b.Completions
	}
	w.TogetherPerS = perSecond(keys, end-from)
	w.warnings = append(w.warnings, shared(parts)...)
	return w, nil
}

// ports is how many ports spread all requests as their clients' ports do, 0:
// each request is a draw of its own. Client i's n requests over p ports add
// n + n²/p to a core's variance in the multinomial's unit (see
// verdict.JudgeUniformityOverPorts), and variances of clients add up.
func (w *whole) ports() int {
	if w.clumping == 0 {
		return 0
	}
	n := float64(w.run.OK)
	return max(1, int(math.Round(n*n/w.clumping)))
}

// add sums p up.
func (w *whole) add(p *view, offset time.Duration) {
	run := p.run()
	w.run.Sent += run.Sent
	w.run.OK += run.OK
	w.run.Failed += run.Failed
	w.run.Writes += run.Writes
	w.run.Deleted += run.Deleted
	w.workers += p.workers
	w.requested += min(p.requested, math.MaxInt64-w.requested)
	if p.ports > 0 {
		w.clumping += float64(run.OK) * float64(run.OK) / float64(p.ports)
	}
	if p.seed != w.seed {
		w.seed = 0
	}
	if p.partial {
		w.partial = true
		w.stop = strings.TrimPrefix(w.stop+"; "+p.name+": "+p.stop, "; ")
	}
	addAccount(&w.acc, p.acc, offset)
}

// addAccount sums up where requests went. The example of a class is the
// earliest one's.
func addAccount(dst, src *loader.Accounting, offset time.Duration) {
	if dst.Errors == nil {
		dst.Errors = []loader.ErrorCount{}
	}
	dst.Sent += src.Sent
	dst.OK += src.OK
	dst.Failed += src.Failed
	dst.Retries += src.Retries
	dst.Connections += src.Connections
	dst.ServerClosed += src.ServerClosed
	dst.ClientClosed += src.ClientClosed
	for _, e := range src.Errors {
		e.AtNS += int64(offset)
		i, known := slices.BinarySearchFunc(dst.Errors, e, func(a, b loader.ErrorCount) int { return int(a.Class) - int(b.Class) })
		if !known {
			dst.Errors = slices.Insert(dst.Errors, i, e)
			continue
		}
		d := &dst.Errors[i]
		e.Count += d.Count
		if d.AtNS <= e.AtNS {
			e.Example, e.AtNS = d.Example, d.AtNS
		}
		*d = e
	}
}

// addTo adds a saved distribution; an empty one is none.
func addTo(r *timingstats.Recorder, h timingstats.Histogram, of string) error {
	if h.V2 == "" && h.N == 0 {
		return nil
	}
	o, err := h.Recorder()
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	r.Merge(o)
	return nil
}

// within is the merged progress of the time from one moment to another. A
// bucket that reaches out of it counts with the part of its time that lies
// within.
func within(series []timingstats.SeriesSummary, offsets []time.Duration, from, end time.Duration) []timingstats.Bucket {
	cut := make([]timingstats.SeriesSummary, len(series))
	for i, s := range series {
		// On the part's own clock, then shifted so that from is 0.
		low, high := int64(from-offsets[i]), int64(end-offsets[i])
		for _, b := range s.Progress {
			c := timingstats.Bucket{StartNS: max(b.StartNS, low), EndNS: min(b.EndNS, high), Completions: b.Completions}
			if c.StartNS > b.StartNS || c.EndNS < b.EndNS {
				c.Completions = int64(float64(b.Completions)*float64(c.EndNS-c.StartNS)/float64(b.EndNS-b.StartNS) + 0.5)
			}
			if c.EndNS >= c.StartNS && c.Completions > 0 {
				c.StartNS, c.EndNS = c.StartNS-low, c.EndNS-low
				cut[i].Progress = append(cut[i].Progress, c)
			}
		}
	}
	return timingstats.MergeSeries(cut, nil).Progress
}

// shared lists the parts' warnings: once what all say, else with the name of
// who says it.
func shared(parts []view) []string {
	var out []string
	said := map[string]int{}
	for i := range parts {
		for _, w := range parts[i].warnings {
			said[w]++
		}
	}
	for i := range parts {
		for _, w := range parts[i].warnings {
			switch {
			case said[w] < len(parts):
				out = append(out, parts[i].name+": "+w)
			case i == 0:
				out = append(out, w)
			}
		}
	}
	return out
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func share(part, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}
