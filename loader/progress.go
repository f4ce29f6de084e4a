package loader

import "sync/atomic"

// Progress is what a run lets others see while it goes on. The zero value is
// ready. All fields may be read at any time; only the run writes them.
type Progress struct {
	// Total is what Completed will reach, 0 where the run doesn't know.
	Total atomic.Int64
	// Completed counts writes that are done or failed, Errors the failed ones.
	// A bulk run counts keys.
	Completed, Errors atomic.Int64
	// Known is the number of cores that the dataplane says it has, Heard how
	// many of them have answered. Missing of up to 64 cores are the bits of
	// those numbers that have not.
	Known, Heard atomic.Int64
	missing      atomic.Uint64
	// Run counts the runs from 1.
	Run atomic.Int64

	schedule atomic.Pointer[func() int64]
}

// Scheduled is how many requests of an open loop were due so far, in all runs
// together. 0: none, or the loop is closed, or time is virtual.
func (p *Progress) Scheduled() int64 {
	if due := p.schedule.Load(); due != nil {
		return (*due)()
	}
	return 0
}

// Missing lists the known cores below 64 that have not answered yet.
func (p *Progress) Missing() []int {
	var out []int
	m := p.missing.Load()
	for i := range 64 {
		if m&(1<<i) != 0 {
			out = append(out, i)
		}
	}
	return out
}

func (p *Progress) know(cores int) {
	p.Known.Store(int64(cores))
	if cores >= 64 {
		p.missing.Store(^uint64(0))
	} else {
		p.missing.Store(1<<cores - 1)
	}
}

func (p *Progress) hear(core int) {
	p.Heard.Add(1)
	if core < 64 {
		p.missing.And(^(uint64(1) << core))
	}
}
