package logparse

import (
	"cmp"
	"slices"

	"tbl/logparse/logline"
)

// process notes the process id of a line; a new one is a restart.
func (d *device) process(e *engine, slot int, pid int64) {
	for i := range d.pids {
		p := &d.pids[i]
		if p.slot != slot {
			continue
		}
		if p.now != pid {
			p.now = pid
			d.restarts++
			d.breakRun()
			d.probes, d.names = nil, nil
		}
		return
	}
	d.pids = append(d.pids, slotPID{slot: slot, first: pid, now: pid})
}

// breakRun ends the run: all last values are forgotten.
func (d *device) breakRun() {
	d.epoch++
	d.open = false
	d.headOpen = false
}

// sample takes a sample, wrapped or not.
func (d *device) sample(e *engine, l *logline.Line) {
	c := d.coreState(l.Slot, l.Core)
	if c.epoch == d.epoch && c.last >= 0 && l.Writes <= c.last {
		d.breakRun()
	}
	d.enter(e, l)
	if d.headOpen && !c.hasFirst {
		c.first, c.hasFirst = l.Writes, true
	}
	c.last, c.epoch = l.Writes, d.epoch
	if l.Kind != logline.KindSample {
		return
	}
	c.samples++
	d.info().Samples++
	if len(l.Stamp) > 0 {
		d.pending = l.Stamp
	}
	if d.cur.coll != nil {
		d.cur.coll.Add(l)
	}
}

// enter makes sure that a run is open.
func (d *device) enter(e *engine, l *logline.Line) {
	if d.open {
		return
	}
	d.open = true
	if d.headOpen {
		if d.head == nil {
			d.head = e.segment(d, 0)
			d.headInfo.First = l.Time()
		}
		d.cur = d.head
		return
	}
	d.settle(&e.parser)
	d.begin(e, RunInfo{First: l.Time()}, nil)
}

// begin starts the next run, with what seg holds already where it isn't nil.
func (d *device) begin(e *engine, info RunInfo, seg *segment) {
	d.open = true
	d.runs++
	info.Number = d.runs
	d.addInfo(info)
	if seg == nil {
		seg = e.segment(d, d.runs)
	}
	seg.number = d.runs
	d.replace(e, seg)
}

// replace makes seg the current run's, or adds it to what is kept of all runs.
func (d *device) replace(e *engine, seg *segment) {
	old := d.cur
	switch {
	case old == nil || old == d.head:
		if old != nil && e.opt.Run == RunAll {
			e.merge(d, old, seg)
			return
		}
		d.cur = seg
	case e.opt.Run == RunAll:
		e.merge(d, old, seg)
	case e.opt.Run > 0 && old.number == int(e.opt.Run):
		d.kept, d.cur = old, seg
	default:
		e.recycle(old)
		d.cur = seg
	}
}

// selected is the segment that the selected runs went to, nil when there is none.
func (d *device) selected(run RunSelect) *segment {
	switch {
	case d.kept != nil:
		return d.kept
	case d.cur == nil || run > 0 && d.cur.number != int(run):
		return nil
	}
	return d.cur
}

func (d *device) addInfo(info RunInfo) {
	if len(d.infos) == 2*keepRuns {
		d.infos = append(d.infos[:0], d.infos[keepRuns:]...)
	}
	d.infos = append(d.infos, info)
}

// info describes the current run.
func (d *device) info() *RunInfo {
	if d.runs == 0 {
		return &d.headInfo
	}
	return &d.infos[len(d.infos)-1]
}

// settle reads the time of the last sample, whose bytes are about to go.
func (d *device) settle(p *logline.Parser) {
	if d.pending != nil {
		d.info().Last = p.Time(d.pending)
		d.pending = nil
	}
}

func (e *engine) settle() {
	for _, d := range e.named {
		d.settle(&e.parser)
	}
	if e.anon != nil {
		e.anon.settle(&e.parser)
	}
}

// coreState finds the state of a core.
func (d *device) coreState(slot, core int) *coreState {
	if slot < denseSlots && core < denseCores {
		i := slot*denseCores + core
		if i < len(d.index) && d.index[i] != 0 {
			return &d.cores[d.index[i]-1]
		}
	} else if i, ok := d.sparse[[2]int{slot, core}]; ok {
		return &d.cores[i-1]
	}
	return d.newCore(slot, core)
}

func (d *device) newCore(slot, core int) *coreState {
	d.cores = append(d.cores, coreState{slot: slot, core: core, last: -1, epoch: d.epoch})
	n := int32(len(d.cores))
	if slot < denseSlots && core < denseCores {
		i := slot*denseCores + core
		if i >= len(d.index) {
			d.index = append(d.index, make([]int32, (slot+1)*denseCores-len(d.index))...)
		}
		d.index[i] = n
	} else {
		if d.sparse == nil {
			d.sparse = map[[2]int]int32{}
		}
		d.sparse[[2]int{slot, core}] = n
	}
	return &d.cores[n-1]
}

// name1 keeps a discovery line.
func (d *device) name1(l *logline.Line) {
	d.setName(Name{Slot: l.Slot, Core: l.Core, Subtable: string(l.Subtable), Tries: l.Tries,
		Clicks: l.Clicks, TMMs: l.TMMs, Warning: l.Warning})
}

func (d *device) setName(n Name) {
	i, found := slices.BinarySearchFunc(d.names, n, func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Core, b.Core))
	})
	if found {
		d.names[i] = n
	} else {
		d.names = slices.Insert(d.names, i, n)
	}
}
