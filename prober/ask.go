package prober

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// AskConfig configures Info, Whoami and Dump.
type AskConfig struct {
	// Requests is how many are sent at least. 0: 30 (Dump: one per core). After
	// that, the call goes on until every core has answered, or Limit is reached.
	Requests int
	// Limit is the most that is sent. 0: until a core would be missed with
	// less than one in a million, and at least Requests.
	Limit int
	// Workers is the number of concurrent requests. 0: 8.
	Workers int
	// MaxErrors is the share of failed requests above which the run fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	Progress  *Progress
}

func (c *AskConfig) validate() error {
	switch {
	case c.Requests < 0:
		return configError("requests %d: want 1 or more", c.Requests)
	case c.Limit < 0:
		return configError("limit %d: want 1 or more", c.Limit)
	case c.Limit > 0 && c.Limit < c.Requests:
		return configError("limit %d: want at least the %d requests", c.Limit, c.Requests)
	}
	return checkCommon(c.Workers, c.MaxErrors)
}

func checkCommon(workers int, maxErrors float64) error {
	switch {
	case workers < 0 || workers > maxWorkers:
		return configError("workers %d: want 1 to %d", workers, maxWorkers)
	case maxErrors != maxErrors || maxErrors > 1:
		return configError("maximum share of errors %v: want up to 1", maxErrors)
	}
	return nil
}

const maxWorkers = 1 << 16

// InfoResult is the answer of Info.
type InfoResult struct {
	Run
	// Hits are the answered requests per core, in order.
	Hits []CoreHits `json:"hits"`
}

// Info asks which cores there are.
func Info(ctx context.Context, tgt target.Target, cfg AskConfig) (*InfoResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 8), cfg.Progress)
	p.until(ctx, cmp.Or(cfg.Requests, 30), cfg.Limit, 1e-6, askInfo, takeNothing, nil, nil)
	res := &InfoResult{Run: p.result(cfg.MaxErrors), Hits: p.coreHits()}
	res.Verdicts = append(res.Verdicts, p.uniformity())
	return res, p.err()
}

// WhoamiResult is the answer of Whoami.
type WhoamiResult struct {
	Run
	Names []WhoamiCore `json:"names"` // one per core that answered, in order
}

// WhoamiCore is what a core said of itself.
type WhoamiCore struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	Node string             `json:"node,omitempty"`
	// Subtable is the name it gave last, Before the other names that it gave
	// earlier in this run (a restart lay between).
	Subtable string   `json:"subtable"`
	Before   []string `json:"before,omitempty"`
	Writes   int64    `json:"writes"`  // since the last reset, as last told
	Entries  int64    `json:"entries"` // by the incremental counter, as last told
	// Owner is the core that owns the name by the dataplane's own account, nil
	// where it doesn't say.
	Owner *timingstats.CoreID `json:"owner,omitempty"`
	// Built says that the name lacks the number that discovery appends: nobody
	// looked whether the core owns it.
	Built bool `json:"built,omitempty"`
	// Doubts are what is wrong with the name, one sentence each.
	Doubts []string `json:"doubts,omitempty"`

	ended                int64
	lookups, slowLookups int // timed look-ups of its own name
}

// Whoami asks every core for its subtable and its counters. It goes on until
// every core has answered, and then checks the names: two cores with one
// name, a name that carries another core's number, one that was built and not
// found, one that changed meanwhile, and, where the dataplane knows owners,
// one that somebody else owns.
func Whoami(ctx context.Context, tgt target.Target, cfg AskConfig) (*WhoamiResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 8), cfg.Progress)
	cores := make(map[timingstats.CoreID]*WhoamiCore)
	p.until(ctx, cmp.Or(cfg.Requests, 30), cfg.Limit, 1e-6, askWhoami,
		func(j *job, ans *target.Answer) {
			j.text, j.node = slices.Clone(ans.Subtable), string(ans.Node)
			j.n, j.m = ans.Entries, ans.Writes
		},
		func(j *job) {
			c := cores[j.core]
			if c == nil {
				c = &WhoamiCore{Core: j.core, Subtable: string(j.text)}
				cores[j.core] = c
			}
			c.Hits++
			name := string(j.text)
			if name != c.Subtable {
				// Answers are merged in the order of asking; which of the two names
				// is the newer one shows in the order of the answers.
				if j.ended < c.ended {
					c.before(name)
					return
				}
				c.before(c.Subtable)
			}
			if j.ended >= c.ended {
				c.Subtable, c.Node, c.Entries, c.Writes, c.ended = name, j.node, j.n, j.m, j.ended
			}
		}, nil)
	res := &WhoamiResult{Run: p.result(cfg.MaxErrors)}
	for _, c := range cores {
		res.Names = append(res.Names, *c)
	}
	slices.SortFunc(res.Names, func(a, b WhoamiCore) int { return a.Core.Compare(b.Core) })
	if p.err() == nil {
		p.askOwners(ctx, res)
	}
	res.Elapsed = p.clock.Now().Sub(p.start)
	res.checkNames()
	res.Verdicts = append(res.Verdicts, p.uniformity(), res.namesVerdict())
	return res, p.err()
}

func (c *WhoamiCore) before(name string) {
	if !slices.Contains(c.Before, name) {
		c.Before = append(c.Before, name)
	}
}

// DumpResult is the answer of Dump.
type DumpResult struct {
	Run
	Dumps []CoreDump `json:"dumps"` // one per core that answered, in order
}

// CoreDump are the keys in a core's own subtable.
type CoreDump struct {
	Core timingstats.CoreID `json:"core"`
	Hits int64              `json:"hits"`
	// Count is the number of keys that the core told last, Keys the keys.
	Count int64    `json:"count"`
	Keys  []string `json:"keys"`

	ended int64
}

// Dump lists the keys that each core holds in its own subtable. Every answer
// carries a whole subtable, so as few as possible are asked for.
func Dump(ctx context.Context, tgt target.Target, cfg AskConfig) (*DumpResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := newPool(tgt, cmp.Or(cfg.Workers, 8), cfg.Progress)
	cores := make(map[timingstats.CoreID]*CoreDump)
	first := cfg.Requests
	if p.count(ctx) && first == 0 {
		first = max(1, len(p.known()))
	}
	if p.err() == nil {
		p.until(ctx, first, cfg.Limit, 1e-6, askDump, takeDump, func(j *job) {
			c := cores[j.core]
			if c == nil {
				c = &CoreDump{Core: j.core}
				cores[j.core] = c
			}
			c.Hits++
			if j.ended >= c.ended {
				c.Count, c.Keys, c.ended = j.n, j.texts, j.ended
			}
			j.texts = nil
		}, func() []timingstats.CoreID {
			var out []timingstats.CoreID
			for _, c := range p.known() {
				if cores[c] == nil {
					out = append(out, c)
				}
			}
			return out
		})
	}
	res := &DumpResult{Run: p.result(cfg.MaxErrors)}
	for _, c := range cores {
		res.Dumps = append(res.Dumps, *c)
		if c.Count != int64(len(c.Keys)) {
			res.Warnings = append(res.Warnings, fmt.Sprintf("core %s counted %s and listed %d", c.Core, verdict.Count(c.Count, "key"), len(c.Keys)))
		}
	}
	slices.SortFunc(res.Dumps, func(a, b CoreDump) int { return a.Core.Compare(b.Core) })
	slices.Sort(res.Warnings)
	return res, p.err()
}
