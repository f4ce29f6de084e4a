package fleet

import (
	"fmt"

	"tbl/loader"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// bulkCore is one core of a merged bulk load under way.
type bulkCore struct {
	out      loader.BulkCore
	clicks   float64 // of all its writes
	response timingstats.Recorder
	batches  timingstats.CoreRecorder
}

// Bulks merges the bulk loads of several clients, as Loads does for loads.
func Bulks(parts []Part[loader.BulkResult], cfg Config) (*loader.BulkResult, *Summary, error) {
	views := make([]view, len(parts))
	for i, p := range parts {
		r := p.Result
		views[i] = view{
			name: p.Name, host: p.Host, target: r.Target, mode: fmt.Sprintf("a threshold of %d clicks", r.Threshold), virtual: r.Virtual,
			known: r.KnownCores, workers: r.Workers, seed: r.Seed, acc: &r.Accounting, writes: r.Written, requested: r.Requested, perS: r.WritesPerS,
			runs: r.Runs, response: r.Response, hist: r.ResponseHist, missing: r.Missing, ports: r.SourcePorts,
			partial: r.Partial, stop: r.Stop, warnings: r.Warnings, verdicts: r.Verdicts,
			inside: insideBulk(r),
		}
	}
	w, err := join(views, cfg)
	if err != nil {
		return nil, nil, err
	}
	first := parts[0].Result
	out := &loader.BulkResult{
		Target: first.Target, Partial: w.partial, Stop: w.stop, Virtual: first.Virtual, Workers: w.workers, Seed: w.seed,
		Accounting: w.acc, Requested: w.requested, ElapsedNS: w.run.ElapsedNS, WritesPerS: w.run.WritesPerS, Threshold: first.Threshold,
		Response: w.response.Latency(), KnownCores: first.KnownCores, SourcePorts: w.ports(),
		Cores: []loader.BulkCore{}, Runs: []loader.RunSummary{w.run}, Warnings: append([]string{}, w.warnings...), Verdicts: []verdict.Verdict{},
	}
	if w.keys > 0 {
		out.WallPerWriteNS = float64(w.run.ElapsedNS) / float64(w.keys)
	}
	if out.ResponseHist, err = w.response.Histogram(); err != nil {
		return nil, nil, err
	}
	for _, p := range parts {
		r := p.Result
		out.KeysSent += r.KeysSent
		out.Written += r.Written
		out.Mismatches += r.Mismatches
		out.BytesSent += r.BytesSent
	}
	out.BytesPerS = perSecond(out.BytesSent, out.Elapsed())
	cores, err := bulkCores(parts)
	if err != nil {
		return nil, nil, err
	}
	var heard []timingstats.CoreID
	var counts []verdict.CoreCount
	var batches []timingstats.CoreSummary
	for i := range cores {
		c, err := cores[i].write(out)
		if err != nil {
			return nil, nil, err
		}
		out.Cores = append(out.Cores, c)
		if c.Posts > 0 {
			heard = append(heard, c.Core)
		}
		counts = append(counts, verdict.CoreCount{Core: c.Core, Count: c.Posts})
		batches = append(batches, c.Batches)
	}
	out.Missing = missing(views, heard)
	locality, held := verdict.JudgeBatches(batches, out.KnownCores)
	out.Warnings = append(out.Warnings, held...)
	out.Verdicts = append(out.Verdicts, w.coverageAndErrors(heard, out.Missing, false, cfg)...)
	out.Verdicts = append(out.Verdicts, locality,
		verdict.JudgeUniformityOverPorts(counts, out.Missing, w.ports()).Verdict, w.decay(max(out.OK, 1)))
	out.Verdicts = append(out.Verdicts, kept(views)...)
	return out, &w.Summary, nil
}

// bulkCores adds up what the clients saw of each core.
func bulkCores(parts []Part[loader.BulkResult]) ([]bulkCore, error) {
	var cores []bulkCore
	for _, p := range parts {
		for i := range p.Result.Cores {
			c := &p.Result.Cores[i]
			to := coreOf(&cores, c.Core, func(c *bulkCore) *timingstats.CoreID { return &c.out.Core })
			if c.Posts > 0 {
				if to.out.Posts == 0 || c.MinClicks < to.out.MinClicks {
					to.out.MinClicks = c.MinClicks
				}
				to.out.MaxClicks = max(to.out.MaxClicks, c.MaxClicks)
			}
			to.out.Posts += c.Posts
			to.out.Writes += c.Writes
			to.clicks += c.AvgClicks * float64(c.Writes)
			of := fmt.Sprintf("%s: TMM %v", p.Name, c.Core)
			if err := addTo(&to.response, c.ResponseHist, of); err != nil {
				return nil, err
			}
			var batches timingstats.Recorder
			if err := addTo(&batches, c.BatchesHist, of); err != nil {
				return nil, err
			}
			to.batches.MergeUntagged(&batches)
		}
	}
	return cores, nil
}

// write writes the core out.
func (c *bulkCore) write(r *loader.BulkResult) (loader.BulkCore, error) {
	out := c.out
	out.Share = share(out.Writes, r.Written)
	if out.Writes > 0 {
		out.AvgClicks = c.clicks / float64(out.Writes)
	}
	out.Response, out.Batches = c.response.Latency(), verdict.BatchSummary(&c.batches, out.Core, r.Threshold)
	var err error
	if out.ResponseHist, err = c.response.Histogram(); err == nil {
		out.BatchesHist, err = c.batches.Distribution().Histogram()
	}
	return out, err
}
