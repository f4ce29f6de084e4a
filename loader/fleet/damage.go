package fleet

import (
	"fmt"
	"slices"
	"time"

	"tbl/loader"
	"tbl/timingstats"
)

// tooMany is what no count of a run reaches: a JSON number is exact below it
// (RFC 8259, section 6), and sums of a few counts stay in an int64.
const tooMany = 1 << 53

// amount is a count with the name that it has in the file.
type amount struct {
	of string
	n  int64
}

// coreCounts is what a part says of one core.
type coreCounts struct {
	id            timingstats.CoreID
	posts, writes int64 // posts: the requests that succeeded
	hists         []timingstats.Histogram
	times         int64 // values of its response times
}

// inside is what a part says of itself that has to fit together.
type inside struct {
	warmup  int64 // requests before the figures began
	amounts []amount
	hists   []timingstats.Histogram
	cores   []coreCounts
}

func insideLoad(r *loader.LoadResult) inside {
	in := inside{
		warmup:  r.WarmupSent,
		amounts: []amount{{"warmup_sent", r.WarmupSent}, {"late_max_ns", r.LateMaxNS}},
		hists:   []timingstats.Histogram{r.ServiceHist, r.ConnectHist, r.FirstByteHist},
	}
	if s := r.Steering; s != nil {
		in.amounts = append(in.amounts, amount{"steering.ports_learnt", int64(s.PortsLearnt)},
			amount{"steering.hits", s.Hits}, amount{"steering.misses", s.Misses}, amount{"steering.skipped", s.Skipped})
	}
	for _, c := range r.Cores {
		in.cores = append(in.cores, coreCounts{c.Core, c.Writes, c.Writes, []timingstats.Histogram{c.ResponseHist, c.ServiceHist}, c.ResponseHist.N})
	}
	return in
}

func insideBulk(r *loader.BulkResult) inside {
	in := inside{amounts: []amount{{"keys_sent", r.KeysSent}, {"mismatches", r.Mismatches}, {"bytes_sent", r.BytesSent}}}
	for _, c := range r.Cores {
		in.cores = append(in.cores, coreCounts{c.Core, c.Posts, c.Writes, []timingstats.Histogram{c.ResponseHist, c.BatchesHist}, c.ResponseHist.N})
	}
	return in
}

// contradiction is what in the part contradicts itself, empty for one that a
// run saves. It is for parts of one run.
func (v *view) contradiction() string {
	acc, run := v.acc, v.run()
	amounts := []amount{
		{"sent", acc.Sent}, {"ok", acc.OK}, {"failed", acc.Failed}, {"retries", acc.Retries}, {"connections", acc.Connections},
		{"server_closed", acc.ServerClosed}, {"client_closed", acc.ClientClosed}, {"writes", v.writes}, {"workers", int64(v.workers)},
		{"known_cores", int64(v.known)}, {"source_ports", int64(v.ports)}, {"elapsed_ns", run.ElapsedNS}, {"deleted", run.Deleted},
	}
	amounts = append(amounts, v.inside.amounts...)
	var failed, posts, writes []int64
	for _, e := range acc.Errors {
		failed = append(failed, e.Count)
		amounts = append(amounts, amount{"errors: count of " + e.Class.String(), e.Count})
	}
	for i, c := range v.inside.cores {
		posts, writes = append(posts, c.posts), append(writes, c.writes)
		amounts = append(amounts, amount{fmt.Sprintf("TMM %v: writes", c.id), c.writes}, amount{fmt.Sprintf("TMM %v: posts", c.id), c.posts})
		if slices.ContainsFunc(v.inside.cores[:i], func(o coreCounts) bool { return o.id == c.id }) {
			return fmt.Sprintf("TMM %v is listed twice", c.id)
		}
	}
	for _, a := range amounts {
		if a.n < 0 || a.n >= tooMany {
			return fmt.Sprintf("%s is %d: want 0 to 2^53", a.of, a.n)
		}
	}
	// The first sums are without overflow, as failed is below the limit.
	switch {
	case v.requested < 0:
		return fmt.Sprintf("requested is %d", v.requested)
	case acc.Sent != acc.OK+acc.Failed:
		return fmt.Sprintf("sent is %d, ok and failed together %d", acc.Sent, acc.OK+acc.Failed)
	case sum(failed) != acc.Failed:
		return fmt.Sprintf("failed is %d, its errors together %d", acc.Failed, sum(failed))
	case sum(posts) != acc.OK:
		return fmt.Sprintf("ok is %d, that of its cores together %d", acc.OK, sum(posts))
	case sum(writes) != v.writes:
		return fmt.Sprintf("%d writes, those of its cores together %d", v.writes, sum(writes))
	case v.inside.warmup > acc.Sent:
		return fmt.Sprintf("warmup_sent is %d of %d sent", v.inside.warmup, acc.Sent)
	case run.Sent != acc.Sent, run.OK != acc.OK, run.Failed != acc.Failed, run.Writes != v.writes:
		return fmt.Sprintf("its run has %d sent, %d ok, %d failed, %d writes, the whole %d, %d, %d, %d",
			run.Sent, run.OK, run.Failed, run.Writes, acc.Sent, acc.OK, acc.Failed, v.writes)
	}
	return v.distributions()
}

// distributions is contradiction for the distributions, whose counts are
// believed to be what they are beside.
func (v *view) distributions() string {
	hists := append([]timingstats.Histogram{v.hist}, v.inside.hists...)
	for _, c := range v.inside.cores {
		hists = append(hists, c.hists...)
		if c.times > c.posts {
			return fmt.Sprintf("TMM %v: %d response times of %d requests", c.id, c.times, c.posts)
		}
	}
	for _, h := range hists {
		switch {
		case h.N < 0 || h.N >= tooMany || h.OutOfRange < 0 || h.OutOfRange >= tooMany:
			return fmt.Sprintf("a distribution of %d values and %d out of range", h.N, h.OutOfRange)
		case h.Min < 0 || h.Max < h.Min:
			return fmt.Sprintf("a distribution from %d to %d", h.Min, h.Max)
		}
	}
	// A request that began in the warm-up is in ok, not in the distribution.
	times := v.hist.N + v.hist.OutOfRange
	switch {
	case v.hist.N != v.response.N:
		return fmt.Sprintf("response is of %d values, response_hist of %d", v.response.N, v.hist.N)
	case times > v.acc.OK || times < v.acc.OK-v.inside.warmup:
		return fmt.Sprintf("ok is %d, response_hist of %d values", v.acc.OK, times)
	}
	return ""
}

// damaged says what in the series of a part is none that a run saves, empty
// where all is well.
func (v *view) damaged() string {
	run := v.run()
	s := &run.Series
	for i, at := range s.StartS {
		if at != int64(timingstats.PointStart(i)/time.Second) {
			return fmt.Sprintf("point %d starts at %d s", i+1, at)
		}
	}
	if n := len(s.StartS); s.EndNS != run.ElapsedNS || n > 0 && int64(timingstats.PointStart(n-1)) > s.EndNS {
		return fmt.Sprintf("%d points until %d ns, of a run of %d ns", n, s.EndNS, run.ElapsedNS)
	}
	inRange := func(n int64) bool { return n >= 0 && n < tooMany }
	lines := map[string]timingstats.Points{"all": s.All}
	for id, p := range s.Cores {
		lines["TMM "+id.String()] = p
	}
	perPoint := make([]int64, len(s.StartS)) // what the cores completed together
	for of, p := range lines {
		for _, line := range [][]int64{p.Completions, p.Errors, p.P99NS} {
			if len(line) > len(s.StartS) {
				return fmt.Sprintf("%s has %d points of %d", of, len(line), len(s.StartS))
			}
			if i := slices.IndexFunc(line, func(n int64) bool { return !inRange(n) }); i >= 0 {
				return fmt.Sprintf("%s has %d at point %d: want 0 to 2^53", of, line[i], i+1)
			}
		}
		if of != "all" {
			for i, n := range p.Completions {
				perPoint[i] += n
			}
		}
	}
	for i, n := range perPoint {
		if i >= len(s.All.Completions) && n != 0 || i < len(s.All.Completions) && n != s.All.Completions[i] {
			return fmt.Sprintf("the cores' completions at point %d are %d together, not those of all", i+1, n)
		}
	}
	var parts []int64
	for _, b := range s.Progress {
		parts = append(parts, b.Completions)
		if !inRange(b.Completions) || b.StartNS < 0 || b.EndNS < b.StartNS || b.EndNS > s.EndNS {
			return fmt.Sprintf("a part of its progress has %d completions from %d to %d ns", b.Completions, b.StartNS, b.EndNS)
		}
	}
	done := sum(s.All.Completions)
	switch {
	case sum(parts) != done:
		return fmt.Sprintf("%d completions, its progress has %d", done, sum(parts))
	case done > v.writes || v.inside.warmup == 0 && done != v.writes:
		return fmt.Sprintf("%d completions of %d writes", done, v.writes)
	case sum(s.All.Errors) > v.acc.Failed:
		return fmt.Sprintf("%d errors, of %d requests that failed", sum(s.All.Errors), v.acc.Failed)
	}
	return ""
}

// sum adds counts up, each below tooMany; a sum beyond is told as that.
func sum(ns []int64) int64 {
	var out int64
	for _, n := range ns {
		if out += n; out >= tooMany {
			return tooMany
		}
	}
	return out
}
