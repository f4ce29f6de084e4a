package loader

import (
	"fmt"
	"slices"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// result writes the run out.
func (l *load) result() *LoadResult {
	c, cfg := l.col, l.cfg
	runs := int64(max(1, cfg.Runs))
	r := &LoadResult{
		Target: l.tgt.Name(), Mode: cfg.ModeOf(), Virtual: l.clock.Virtual(), Workers: l.workers, Seed: l.seed,
		Accounting: c.accounting(), Requested: l.requested() * runs,
		ElapsedNS: int64(c.elapsed), WritesPerS: perSecond(float64(c.measuredKeys), c.elapsed),
		WarmupSent: c.warmupSent, OpenLoop: c.openLoop,
		ShapedSchedule: cfg.Ramp > 0 || len(cfg.Stages) > 0,
		KnownCores:     c.known, SourcePorts: ports(l.tgt), Cores: []LoadCore{}, Missing: c.missing(),
		Runs: c.runs, Warnings: []string{}, Verdicts: []verdict.Verdict{},
	}
	r.Partial, r.Stop = l.stopped()
	if c.measuredKeys > 0 {
		r.WallPerWriteNS = float64(c.elapsed) / float64(c.measuredKeys)
	}
	var response, service timingstats.Recorder
	for _, s := range c.sorted() {
		own := LoadCore{Core: s.id, Writes: s.writes, Share: share(s.writes, c.written), Response: s.response.Latency()}
		response.Merge(&s.response)
		own.Service = own.Response
		if c.openLoop {
			own.Service = s.service.Latency()
			own.ServiceHist = histogram(&s.service, &r.Warnings)
			service.Merge(&s.service)
		}
		own.ResponseHist = histogram(&s.response, &r.Warnings)
		r.Cores = append(r.Cores, own)
	}
	r.Response, r.ResponseHist = response.Latency(), histogram(&response, &r.Warnings)
	r.Service, r.ServiceHist = r.Response, r.ResponseHist
	if c.openLoop {
		r.Service, r.ServiceHist = service.Latency(), histogram(&service, &r.Warnings)
		l.offered(r)
	}
	r.Connect, r.FirstByte = c.connect.Latency(), c.firstByte.Latency()
	if c.connect.N() > 0 {
		r.ConnectHist, r.FirstByteHist = histogram(&c.connect, &r.Warnings), histogram(&c.firstByte, &r.Warnings)
	}
	if l.steer != nil {
		r.Steering = l.steer.Result()
		if s := r.Steering; s.Misses > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d requests reached another core than their source port promised: something in between picks other ports, or the disaggregator changed",
				s.Misses, s.Hits+s.Misses))
		}
	}
	if c.echoes > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s named another key than was sent: %s", verdict.Count(c.echoes, "answer"), c.echoExample))
	}
	if c.sent > 0 && c.measuredSent == 0 && len(c.runs) > 0 {
		r.Warnings = append(r.Warnings, "the run ended within its warm-up: there are no figures")
	}
	r.Warnings = append(r.Warnings, c.warnings()...)
	l.judge(r)
	return r
}

// histogram writes h out; what can't be is a warning.
func histogram(h *timingstats.Recorder, warnings *[]string) timingstats.Histogram {
	out, err := h.Histogram()
	if err != nil {
		*warnings = append(*warnings, err.Error())
	}
	return out
}

func share(part, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// behind is the share of the offered rate below which the client is said to
// be behind.
const behind = 0.98

// offered compares the schedule with what was sent. Several runs all have the
// same schedule.
func (l *load) offered(r *LoadResult) {
	c := l.col
	if len(c.runs) == 0 {
		return
	}
	// The schedule's own time, not the run's, which a late client stretches.
	if span := l.scheduleSpan(c.runs[0].Sent); span > c.warmup {
		r.OfferedPerS = perSecond(l.sched.Due(span)-l.sched.Due(c.warmup), span-c.warmup)
	}
	r.AchievedPerS = perSecond(float64(c.measuredSent), c.elapsed)
	r.LateMaxNS = int64(c.lateMax)
	if r.AchievedPerS < behind*r.OfferedPerS && c.elapsed >= time.Second {
		r.Warnings = append(r.Warnings, fmt.Sprintf("behind the schedule: offered %.0f/s, achieved %.0f/s, latest start %v late: more workers, or a lower rate",
			r.OfferedPerS, r.AchievedPerS, c.lateMax.Round(time.Millisecond)))
	}
}

// scheduleSpan is how much of the schedule n requests take: until the next
// one would be due, or the last one was.
func (l *load) scheduleSpan(n int64) time.Duration {
	if n < 2 {
		return 0
	}
	t, ok := l.sched.At(n)
	if !ok {
		t, _ = l.sched.At(n - 1)
	}
	return t
}

// ports is the number of source ports that tgt's connections can come from, 0
// where each request is as good as a new one.
func ports(tgt target.Target) int {
	if p, ok := tgt.(interface{ Ports() int }); ok {
		return p.Ports()
	}
	return 0
}

// warnings are the doubts that both kinds of run share.
func (c *collector) warnings() []string {
	var out []string
	if c.known == 0 && c.sent > 0 {
		out = append(out, "the dataplane doesn't say how many cores it has: a core that was never heard goes unnoticed")
	}
	for _, s := range c.sorted() {
		if c.known > 0 && s.id.Core >= c.known {
			out = append(out, fmt.Sprintf("TMM %v answered, but the dataplane says that there are %d", s.id, c.known))
		}
	}
	if n := c.opened; n > 0 && n < c.ok {
		out = append(out, fmt.Sprintf("%s for %d answers: connections were used again, so that several requests reached one core", verdict.Count(n, "connection"), c.ok))
	}
	if n := c.errs[target.ClassAddressExhausted]; n > 0 {
		out = append(out, fmt.Sprintf("%s found no free local port: a lower rate, more source addresses, or connections that end with a reset", verdict.Count(n, "request")))
	}
	return out
}

// coverageAndErrors are the verdicts that both kinds of run share.
func (c *collector) coverageAndErrors(maxErrors float64) []verdict.Verdict {
	heard, requests := c.heard(), c.ok
	if c.uncleared != nil {
		requests = c.uncleared.answered
	}
	coverage := verdict.JudgeCoverage(heard, verdict.CoverageOptions{Expected: slices.Concat(heard, c.missing()), Requests: requests})
	account := c.accounting()
	errs := verdict.JudgeErrors(account.ErrorsInput(maxErrors))
	if c.only != nil && len(c.missing()) == 0 { // the others are not to be heard
		return []verdict.Verdict{errs}
	}
	return []verdict.Verdict{coverage.Verdict, errs}
}

// judge attaches the verdicts.
func (l *load) judge(r *LoadResult) {
	c := l.col
	r.Verdicts = append(r.Verdicts, c.coverageAndErrors(l.cfg.MaxErrors)...)
	if l.steer == nil {
		var counts []verdict.CoreCount
		for _, s := range c.sorted() {
			counts = append(counts, verdict.CoreCount{Core: s.id, Count: s.writes})
		}
		r.Verdicts = append(r.Verdicts, verdict.JudgeUniformityOverPorts(counts, r.Missing, r.SourcePorts).Verdict)
	}
	r.Verdicts = append(r.Verdicts, c.tail())
	if !r.ShapedSchedule { // else the schedule makes the throughput
		r.Verdicts = append(r.Verdicts, c.decay(false))
	}
	r.Verdicts = append(r.Verdicts, c.drift()...)
}

// tail judges the cores' response times, and in an open loop what they took
// themselves.
func (c *collector) tail() verdict.Verdict {
	var response, service []verdict.TailCore
	for _, s := range c.sorted() {
		response = append(response, verdict.TailCore{Core: s.id, Latency: &s.response})
		if c.openLoop {
			service = append(service, verdict.TailCore{Core: s.id, Latency: &s.service})
		}
	}
	return verdict.JudgeTails(response, service)
}

// decay judges every run and returns the worst verdict, or the first one's.
func (c *collector) decay(bulk bool) verdict.Verdict {
	var out verdict.Verdict
	for i, run := range c.runs {
		requests := int64(0)
		if bulk {
			requests = max(run.OK, 1)
		}
		v := verdict.JudgeDecay(run.Series.Progress, requests).Verdict
		if i == 0 || v.State > out.State {
			out = v
			if len(c.runs) > 1 && v.State == verdict.Fail {
				out.Line += fmt.Sprintf(", in run %d of %d", i+1, len(c.runs))
			}
		}
	}
	if len(c.runs) == 0 {
		out = verdict.JudgeDecay(nil, 0).Verdict
	}
	return out
}

// drift judges the runs' throughput against each other; nothing for one run.
func (c *collector) drift() []verdict.Verdict {
	if len(c.runs) < 2 {
		return nil
	}
	var rates []verdict.RunRate
	for _, run := range c.runs {
		rates = append(rates, verdict.RateOf(run.Series.Progress))
	}
	return []verdict.Verdict{verdict.JudgeDrift(rates).Verdict}
}

// result writes the run out.
func (b *bulk) result() *BulkResult {
	c, cfg := b.col, b.cfg
	r := &BulkResult{
		Target: b.tgt.Name(), Virtual: b.clock.Virtual(), Workers: b.workers, Seed: b.seed,
		Accounting: c.accounting(), Requested: b.posts * int64(max(1, cfg.Runs)),
		KeysSent: c.keysSent, Written: c.written, Mismatches: b.mismatches.Load(), BytesSent: c.bytes,
		ElapsedNS: int64(c.elapsed), WritesPerS: perSecond(float64(c.measuredKeys), c.elapsed),
		BytesPerS:  perSecond(float64(c.bytes), c.elapsed),
		Threshold:  c.threshold,
		KnownCores: c.known, SourcePorts: ports(b.tgt), Cores: []BulkCore{}, Missing: c.missing(), Runs: c.runs,
		Warnings: []string{}, Verdicts: []verdict.Verdict{},
	}
	r.Partial, r.Stop = b.stopped()
	if c.measuredKeys > 0 {
		r.WallPerWriteNS = float64(c.elapsed) / float64(c.measuredKeys)
	}
	var response timingstats.Recorder
	var counts []verdict.CoreCount
	var batches []timingstats.CoreSummary
	for _, s := range c.sorted() {
		core := BulkCore{
			Core: s.id, Posts: s.posts, Writes: s.writes, Share: share(s.writes, c.written),
			MinClicks: s.minClicks, MaxClicks: s.maxClicks, Response: s.response.Latency(),
			Batches: verdict.BatchSummary(&s.batches, s.id, r.Threshold),
		}
		if s.writes > 0 {
			core.AvgClicks = float64(s.clicks) / float64(s.writes)
		}
		core.ResponseHist = histogram(&s.response, &r.Warnings)
		core.BatchesHist = histogram(s.batches.Distribution(), &r.Warnings)
		response.Merge(&s.response)
		r.Cores = append(r.Cores, core)
		batches = append(batches, core.Batches)
		counts = append(counts, verdict.CoreCount{Core: s.id, Count: s.posts})
	}
	r.Response, r.ResponseHist = response.Latency(), histogram(&response, &r.Warnings)
	r.Warnings = append(r.Warnings, c.warnings()...)
	if r.Mismatches > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d posts were answered with another number of writes than they had keys: they count as failed, and part of each may be stored", r.Mismatches))
	}
	if cfg.ReuseBodies {
		r.Warnings = append(r.Warnings, "bodies were sent again and again: the same keys were overwritten")
	}
	r.Verdicts = append(r.Verdicts, c.coverageAndErrors(cfg.MaxErrors)...)
	locality, held := verdict.JudgeBatches(batches, c.known)
	r.Warnings = append(r.Warnings, held...)
	r.Verdicts = append(r.Verdicts, locality,
		verdict.JudgeUniformityOverPorts(counts, r.Missing, r.SourcePorts).Verdict, c.decay(true))
	r.Verdicts = append(r.Verdicts, c.drift()...)
	return r
}
