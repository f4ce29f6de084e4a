package loader

import (
	"context"
	"time"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// holdings is what the cores hold, where the dataplane tells.
type holdings struct {
	known          bool
	cores          []verdict.CoreLoad
	entries, bytes int64
}

// ask reads what the cores hold now. Only the reference dataplane tells.
func ask(ctx context.Context, tgt target.Target) holdings {
	var ans target.Answer
	if target.Ask(ctx, tgt, target.OpStats, &ans) != nil {
		return holdings{}
	}
	h := holdings{known: true}
	for _, s := range ans.Stats {
		h.cores = append(h.cores, verdict.CoreLoad{
			Core: timingstats.CoreID{Core: s.Core}, Entries: s.Entries, Bytes: s.Bytes,
		})
		h.entries += s.Entries
		h.bytes += s.Bytes
	}
	return h
}

// minus is what came on top of before, never less than nothing.
func (h holdings) minus(before holdings) holdings {
	out := holdings{known: h.known && before.known, entries: max(0, h.entries-before.entries), bytes: max(0, h.bytes-before.bytes)}
	for _, c := range h.cores {
		for _, b := range before.cores {
			if b.Core == c.Core {
				c.Entries, c.Bytes = max(0, c.Entries-b.Entries), max(0, c.Bytes-b.Bytes)
			}
		}
		out.cores = append(out.cores, c)
	}
	return out
}

// keeper resets the target before each of several runs, and remembers what
// survived.
type keeper struct {
	tgt     target.Target
	known   int // cores
	workers int
	most    float64  // MaxImbalance
	start   holdings // before the first run: nothing that a reset could reach
	leak    verdict.Verdict
}

// before prepares a run, counted from 0, of so many.
func (k *keeper) before(ctx context.Context, run, runs int, pause time.Duration) (deleted int64, err error) {
	switch {
	case run > 0:
		if err := k.tgt.Clock().Sleep(ctx, pause); err != nil {
			return 0, err
		}
		return k.clear(ctx)
	case runs > 1:
		if deleted, err = resetAll(ctx, k.tgt, k.known, k.workers); err != nil {
			return deleted, err
		}
	}
	k.start = ask(ctx, k.tgt)
	return deleted, nil
}

// clear resets every core, and judges whether something of the runs' survived.
func (k *keeper) clear(ctx context.Context) (deleted int64, err error) {
	before := ask(ctx, k.tgt).minus(k.start)
	if deleted, err = resetAll(ctx, k.tgt, k.known, k.workers); err != nil {
		return deleted, err
	}
	after := ask(ctx, k.tgt).minus(k.start)
	v := verdict.JudgeLeak(verdict.LeakInput{
		Known: before.known && after.known, EntriesBefore: before.entries, EntriesAfter: after.entries,
		BytesBefore: before.bytes, BytesAfter: after.bytes, Deleted: deleted, Cores: after.cores,
	})
	if k.leak.Name == "" || v.State >= k.leak.State {
		k.leak = v
	}
	return deleted, nil
}

// verdicts are LEAK where runs were repeated, and BALANCE where the dataplane
// tells what its cores hold.
func (k *keeper) verdicts(ctx context.Context, missing []timingstats.CoreID) []verdict.Verdict {
	var out []verdict.Verdict
	if k.leak.Name != "" {
		out = append(out, k.leak)
	}
	if h := ask(ctx, k.tgt); h.known {
		out = append(out, verdict.JudgeBalance(h.minus(k.start).cores, k.most, missing).Verdict)
	}
	return out
}
