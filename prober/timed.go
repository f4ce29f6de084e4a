package prober

import (
	"cmp"
	"context"
	"strconv"

	"tbl/target"
	"tbl/timingstats"
)

// TimedConfig configures TimedWrites.
type TimedConfig struct {
	// PerCore is the number of timed writes wanted of every core. 0: 25.
	PerCore int
	// KeyPrefix starts the keys; a running number follows. "": "timedkey_".
	KeyPrefix string
	// Limit is the most that is sent. 0: as many as are needed for every core
	// to have its share but for a chance of 1e-6.
	Limit int
	// Workers is the number of concurrent requests. 0: 8.
	Workers int
	// MaxErrors is the share of failed requests above which the run fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	Progress  *Progress
}

// TimedResult is the answer of TimedWrites.
type TimedResult struct {
	Run
	// Samples are the timed writes by core.
	Samples *timingstats.Set `json:"-"`
	// Written is the number of keys written.
	Written int64 `json:"written"`
}

// TimedWrites has every core time some writes into its own subtable: bulk
// loads of one key each, which every dataplane times.
func TimedWrites(ctx context.Context, tgt target.Target, cfg TimedConfig) (*TimedResult, error) {
	switch {
	case cfg.PerCore < 0:
		return nil, configError("timed writes per core %d: want 1 or more", cfg.PerCore)
	case cfg.Limit < 0:
		return nil, configError("limit %d: want 1 or more", cfg.Limit)
	}
	if err := checkCommon(cfg.Workers, cfg.MaxErrors); err != nil {
		return nil, err
	}
	per := int64(cmp.Or(cfg.PerCore, 25))
	prefix := cfg.KeyPrefix
	if prefix == "" {
		prefix = "timedkey_"
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 8), cfg.Progress)
	res := &TimedResult{Samples: new(timingstats.Set)}
	ask := func(j *job, req *target.Request) {
		req.Op = target.OpBulkLoad
		req.Body = append(strconv.AppendInt([]byte(prefix), int64(j.name), 10), '\n')
	}
	take := func(j *job, ans *target.Answer) { j.clicks, j.n = ans.Clicks, ans.Written }
	merge := func(j *job) {
		res.Samples.Core(j.core).Add(j.clicks, timingstats.Untagged, 1)
		res.Written += j.n
	}
	if p.count(ctx) {
		sent := 0
		for more := true; more; {
			cores := p.known()
			// What the worst core lacks decides: it gets one in len(cores).
			lack := int64(0)
			for _, c := range cores {
				lack = max(lack, per-p.hits[c])
			}
			limit := cmp.Or(cfg.Limit, ownerRequests(len(cores), int(per), 1e-6/float64(len(cores))))
			n := min(int(lack)*len(cores), limit-sent)
			if n <= 0 {
				break
			}
			p.progress.Planned.Store(int64(limit))
			jobs := make([]job, n)
			for i := range jobs {
				jobs[i].name = sent + i
			}
			more = p.round(ctx, jobs, ask, take, merge)
			sent += n
		}
	}
	res.Run = p.result(cfg.MaxErrors)
	return res, p.err()
}
