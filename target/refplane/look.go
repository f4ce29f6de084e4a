package refplane

import (
	"tbl/target"
	"tbl/target/refplane/table"
)

// AppendStats appends the counters of every core to dst, in the order of their
// numbers. It looks on from outside: unlike OpStats it takes no core's turn as
// a connection, is not counted, and meets no fault; a core answers it in the
// middle of long work too. On the model clock, whose time belongs to its
// workers, and after Close, it appends nothing.
func (p *Plane) AppendStats(dst []target.CoreStats) []target.CoreStats {
	p.inflight.Add(1)
	defer p.leave()
	if p.model != nil || p.closed.Load() {
		return dst
	}
	// The onlooker sends orders as a core does, and like a core waits for them
	// on its own mailbox.
	me := &core{p: p, now: p.unix()}
	me.box.wake = make(chan struct{}, 1)
	ans := target.Answer{Stats: dst}
	cmd := table.Command{Verb: verbStats, Ans: &ans}
	for _, c := range p.cores {
		me.order(c, &cmd)
		for !me.box.mine.done.Load() {
			me.sleep(0, noAnswer)
		}
	}
	return ans.Stats
}
