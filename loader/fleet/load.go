package fleet

import (
	"fmt"

	"tbl/loader"
	"tbl/loader/steer"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Loads merges the loads of several clients. Distributions are those of all
// requests together, exactly as one client would have saved them; percentiles
// are read from them, also where a client kept every single sample. The merged
// run lasts from the first client's start to the last one's end. Its errors
// wrap ErrApart, or are about damaged distributions.
func Loads(parts []Part[loader.LoadResult], cfg Config) (*loader.LoadResult, *Summary, error) {
	views := make([]view, len(parts))
	for i, p := range parts {
		r := p.Result
		views[i] = view{
			name: p.Name, host: p.Host, target: r.Target, mode: loadMode(r), virtual: r.Virtual, known: r.KnownCores, workers: r.Workers,
			seed: r.Seed, acc: &r.Accounting, writes: r.OK, requested: r.Requested, perS: r.WritesPerS, runs: r.Runs, response: r.Response,
			hist: r.ResponseHist, missing: r.Missing, ports: r.SourcePorts, partial: r.Partial, stop: r.Stop, warnings: r.Warnings, verdicts: r.Verdicts,
			inside: insideLoad(r),
		}
	}
	w, err := join(views, cfg)
	if err != nil {
		return nil, nil, err
	}
	first := parts[0].Result
	out := &loader.LoadResult{
		Target: first.Target, Mode: first.Mode, Partial: w.partial, Stop: w.stop, Virtual: first.Virtual, Workers: w.workers, Seed: w.seed,
		Accounting: w.acc, Requested: w.requested, ElapsedNS: w.run.ElapsedNS, WritesPerS: w.run.WritesPerS,
		OpenLoop: first.OpenLoop, ShapedSchedule: first.ShapedSchedule, KnownCores: first.KnownCores, SourcePorts: w.ports(),
		Cores: []loader.LoadCore{}, Runs: []loader.RunSummary{w.run}, Warnings: append([]string{}, w.warnings...), Verdicts: []verdict.Verdict{},
	}
	if w.keys > 0 {
		out.WallPerWriteNS = float64(w.run.ElapsedNS) / float64(w.keys)
	}
	t, err := loadTimes(parts)
	if err != nil {
		return nil, nil, err
	}
	t.all.response = w.response
	if err := t.write(out); err != nil {
		return nil, nil, err
	}
	for _, p := range parts {
		r := p.Result
		out.WarmupSent += r.WarmupSent
		out.OfferedPerS += r.OfferedPerS
		out.AchievedPerS += r.AchievedPerS
		out.LateMaxNS = max(out.LateMaxNS, r.LateMaxNS)
		addSteering(&out.Steering, r.Steering)
	}
	var heard []timingstats.CoreID
	var counts []verdict.CoreCount
	for i := range out.Cores {
		c := &out.Cores[i]
		c.Share = share(c.Writes, out.OK)
		heard = append(heard, c.Core)
		counts = append(counts, verdict.CoreCount{Core: c.Core, Count: c.Writes})
	}
	out.Missing = missing(views, heard)
	out.Verdicts = append(out.Verdicts, w.coverageAndErrors(heard, out.Missing, onlyCore(out.Steering), cfg)...)
	if out.Steering == nil {
		out.Verdicts = append(out.Verdicts, verdict.JudgeUniformityOverPorts(counts, out.Missing, w.ports()).Verdict)
	}
	out.Verdicts = append(out.Verdicts, t.tail(out.OpenLoop))
	if !out.ShapedSchedule {
		out.Verdicts = append(out.Verdicts, w.decay(0))
	}
	out.Verdicts = append(out.Verdicts, kept(views)...)
	return out, &w.Summary, nil
}

// loadMode names how a load was driven.
func loadMode(r *loader.LoadResult) string {
	mode := r.Mode
	if r.OpenLoop {
		mode += " in an open loop"
	}
	if onlyCore(r.Steering) {
		mode += fmt.Sprintf(" on core %d only", *r.Steering.OnlyCore)
	} else if r.Steering != nil {
		mode += " with steering"
	}
	return mode
}

// times are a load's distributions.
type times struct {
	all                struct{ response, service timingstats.Recorder }
	connect, firstByte timingstats.Recorder
	cores              []coreTimes
}

type coreTimes struct {
	id                timingstats.CoreID
	writes            int64
	response, service timingstats.Recorder
}

// loadTimes adds the distributions up, but for the response times of all cores
// together.
func loadTimes(parts []Part[loader.LoadResult]) (*times, error) {
	t := &times{}
	for _, p := range parts {
		r := p.Result
		for _, add := range []struct {
			to   *timingstats.Recorder
			hist timingstats.Histogram
		}{{&t.all.service, r.ServiceHist}, {&t.connect, r.ConnectHist}, {&t.firstByte, r.FirstByteHist}} {
			if err := addTo(add.to, add.hist, p.Name); err != nil {
				return nil, err
			}
		}
		for i := range r.Cores {
			c := &r.Cores[i]
			to := coreOf(&t.cores, c.Core, func(c *coreTimes) *timingstats.CoreID { return &c.id })
			to.writes += c.Writes
			of := fmt.Sprintf("%s: TMM %v", p.Name, c.Core)
			if err := addTo(&to.response, c.ResponseHist, of); err != nil {
				return nil, err
			}
			if err := addTo(&to.service, c.ServiceHist, of); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// write writes the distributions out.
func (t *times) write(out *loader.LoadResult) error {
	var err error
	save := func(to *timingstats.Histogram, r *timingstats.Recorder) {
		if err == nil {
			*to, err = r.Histogram()
		}
	}
	out.Response, out.Service = t.all.response.Latency(), t.all.service.Latency()
	save(&out.ResponseHist, &t.all.response)
	save(&out.ServiceHist, &t.all.service)
	out.Connect, out.FirstByte = t.connect.Latency(), t.firstByte.Latency()
	if t.connect.N() > 0 {
		save(&out.ConnectHist, &t.connect)
		save(&out.FirstByteHist, &t.firstByte)
	}
	for i := range t.cores {
		c := &t.cores[i]
		core := loader.LoadCore{Core: c.id, Writes: c.writes, Response: c.response.Latency()}
		save(&core.ResponseHist, &c.response)
		core.Service = core.Response
		if out.OpenLoop {
			core.Service = c.service.Latency()
			save(&core.ServiceHist, &c.service)
		}
		out.Cores = append(out.Cores, core)
	}
	return err
}

func (t *times) tail(openLoop bool) verdict.Verdict {
	var response, service []verdict.TailCore
	for i := range t.cores {
		c := &t.cores[i]
		response = append(response, verdict.TailCore{Core: c.id, Latency: &c.response})
		if openLoop {
			service = append(service, verdict.TailCore{Core: c.id, Latency: &c.service})
		}
	}
	return verdict.JudgeTails(response, service)
}

// addSteering sums up what the clients learnt about their ports.
func addSteering(dst **steer.Result, s *steer.Result) {
	if s == nil {
		return
	}
	if *dst == nil {
		*dst = &steer.Result{OnlyCore: s.OnlyCore, Consistent: true}
	}
	d := *dst
	d.PortsLearnt += s.PortsLearnt
	d.Hits += s.Hits
	d.Misses += s.Misses
	d.Skipped += s.Skipped
	d.Consistent = d.Consistent && s.Consistent
}
