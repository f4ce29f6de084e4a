package logparse

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

// pool keeps collectors for their next use. The engines of a parallel scan share it.
type pool struct {
	mu   sync.Mutex
	free []SampleCollector
}

// segment makes the segment of run number of d. Its collector is nil when nobody wants that run.
func (e *engine) segment(d *device, number int) *segment {
	s := &segment{number: number}
	if e.opt.NewSamples == nil || !d.deliver || e.opt.Run > 0 && number != int(e.opt.Run) {
		return s
	}
	e.pool.mu.Lock()
	if n := len(e.pool.free); n > 0 {
		s.coll = e.pool.free[n-1]
		e.pool.free = e.pool.free[:n-1]
	}
	e.pool.mu.Unlock()
	if s.coll == nil {
		s.coll = e.opt.NewSamples()
	}
	return s
}

// recycle takes back the collector of a run that nobody wants any more.
func (e *engine) recycle(s *segment) {
	if s == nil || s.coll == nil {
		return
	}
	s.coll.Reset()
	e.pool.mu.Lock()
	if len(e.pool.free) < 16 {
		e.pool.free = append(e.pool.free, s.coll)
	}
	e.pool.mu.Unlock()
	s.coll = nil
}

// merge adds what later collected to what s did.
func (e *engine) merge(d *device, s, later *segment) {
	if s == later {
		return
	}
	switch {
	case later.coll == nil:
	case !d.deliver:
		e.recycle(later)
	case s.coll == nil:
		s.coll, later.coll = later.coll, nil
	default:
		s.coll.Merge(later.coll)
		e.recycle(later)
	}
}

// absorb takes over what c found in the lines that follow e's, when what c
// found is what e would have. When it isn't, because a run or a restart turns
// out to have begun inside c's lines, or lines without a host to belong elsewhere, e stays as it
// is and the lines have to be read again.
func (e *engine) absorb(c *engine) bool {
	if c.hostless {
		if e.opt.Host != "" {
			return false
		}
		if len(c.named) > 0 && len(e.named) > 0 && (len(e.named) > 1 || e.named[0].name != c.named[0].name) {
			return false
		}
	}
	for d, cd := range e.matches(c) {
		if !d.continues(cd) {
			return false
		}
	}
	e.adopt(c)
	return true
}

// append is absorb for lines that can't be read again: where they don't go on
// where e's stopped, the next run begins with them, and where their process is
// another one it was started anew.
func (e *engine) append(c *engine) {
	for d, cd := range e.matches(c) {
		for _, p := range cd.pids {
			d.process(e, p.slot, p.first)
		}
		if !d.continues(cd) {
			d.breakRun()
		}
	}
	e.adopt(c)
}

// matches are the devices of e that c's lines belong to, each with c's.
func (e *engine) matches(c *engine) iter.Seq2[*device, *device] {
	return func(yield func(d, cd *device) bool) {
		for i, cd := range c.named {
			d := e.byKey[cd.name]
			if i == 0 && d == nil && len(e.named) == 0 {
				d = e.anon
			}
			if d != nil && !yield(d, cd) {
				return
			}
		}
		if c.anon != nil && len(c.named) == 0 {
			d := e.anon
			if len(e.named) == 1 {
				d = e.named[0]
			}
			if d != nil {
				yield(d, c.anon)
			}
		}
	}
}

// adopt adds what c found to what e did.
func (e *engine) adopt(c *engine) {
	for _, cd := range c.named {
		d := e.byKey[cd.name]
		if d == nil {
			d = e.name(cd.name)
		}
		e.absorbDevice(d, cd)
	}
	if c.anon != nil {
		var d *device
		if len(e.named) == 1 {
			d = e.named[0]
		} else {
			if e.anon == nil {
				e.anon = e.newDevice("")
			}
			d = e.anon
		}
		e.absorbDevice(d, c.anon)
	}
	e.hostless = e.hostless || c.hostless
	e.counts.merge(&c.counts)
	e.examples = append(e.examples, c.examples[:min(len(c.examples), 3-len(e.examples))]...)
	e.mixed = e.mixed || c.mixed
}

// continues says that the first samples of c go on where d stopped.
func (d *device) continues(c *device) bool {
	for _, p := range c.pids {
		for _, q := range d.pids {
			if q.slot == p.slot && q.now != p.first {
				return false
			}
		}
	}
	for i := range c.cores {
		cs := &c.cores[i]
		if !cs.hasFirst {
			continue
		}
		ds := d.coreState(cs.slot, cs.core)
		if ds.epoch == d.epoch && ds.last >= 0 && cs.first <= ds.last {
			return false
		}
	}
	return true
}

func (e *engine) absorbDevice(d, c *device) {
	d.counts.merge(&c.counts)
	if c.restarts > 0 {
		d.restarts += c.restarts
		d.probes, d.names = c.probes, c.names
	} else {
		switch {
		case c.probes == nil:
		case d.probes == nil:
			d.probes = c.probes
		default:
			d.probes.Merge(c.probes)
		}
		for _, n := range c.names {
			d.setName(n)
		}
	}
	if !d.deliver {
		d.probes = nil
	}
	for _, p := range c.pids {
		i := slices.IndexFunc(d.pids, func(q slotPID) bool { return q.slot == p.slot })
		if i < 0 {
			d.pids = append(d.pids, p)
		} else {
			d.pids[i].now = p.now
		}
	}

	if c.head != nil {
		if d.open {
			info := d.info()
			info.Samples += c.headInfo.Samples
			if !c.headInfo.Last.IsZero() {
				info.Last = c.headInfo.Last
			}
			e.merge(d, d.cur, c.head)
		} else {
			d.begin(e, c.headInfo, c.head)
		}
	}
	if !c.headOpen {
		d.breakRun()
	}
	if c.runs > 0 {
		for _, info := range c.infos {
			info.Number += d.runs
			d.addInfo(info)
		}
		d.runs += c.runs
		if c.cur != c.head {
			c.cur.number = d.runs
			d.replace(e, c.cur)
		}
		d.open = c.open
	}
	for i := range c.cores {
		cs := &c.cores[i]
		ds := d.coreState(cs.slot, cs.core)
		ds.samples += cs.samples
		if cs.epoch == c.epoch && cs.last >= 0 {
			ds.last, ds.epoch = cs.last, d.epoch
		}
	}
}

// merge adds o to c.
func (c *Counts) merge(o *Counts) {
	c.Lines += o.Lines
	c.Bytes += o.Bytes
	c.Samples += o.Samples
	c.Other += o.Other
	c.Probes += o.Probes
	c.Discovery += o.Discovery
	c.Truncated += o.Truncated
	c.Malformed += o.Malformed
	c.Wrapped += o.Wrapped
	c.Held += o.Held
	c.Throttled += o.Throttled
	c.Disagreements += o.Disagreements
	c.Outside += o.Outside
	c.OtherHosts += o.OtherHosts
	c.Undated += o.Undated
	c.Shortened += o.Shortened
}

// ours is the number of lines that are counted by kind.
func (c *Counts) ours() int64 {
	return c.Samples + c.Probes + c.Discovery + c.Truncated + c.Malformed + c.Wrapped
}

// result writes out what e knows. Collectors are handed out as they are.
func (e *engine) result() *Result {
	r := &Result{Counts: e.counts, Examples: slices.Clone(e.examples), Devices: []*Device{}}
	r.Counts.Other = r.Counts.Lines - r.Counts.ours() - r.Counts.Outside - r.Counts.OtherHosts
	devices := e.devices()
	for _, d := range devices {
		if e.opt.Host != "" && (!d.deliver || d == e.anon) || d.counts.ours() == 0 {
			continue
		}
		r.Devices = append(r.Devices, d.result(e, r))
	}
	slices.SortFunc(r.Devices, func(a, b *Device) int { return strings.Compare(a.Name, b.Name) })
	if e.opt.Host != "" && len(r.Devices) == 0 && len(devices) > 0 {
		names := make([]string, 0, len(devices))
		for _, d := range devices {
			names = append(names, fmt.Sprintf("%q", d.name))
		}
		r.warn("no line of host %q; seen: %s", e.opt.Host, strings.Join(names, ", "))
	}
	if e.anon != nil && len(e.named) > 1 {
		r.warn("%d lines name no host, and there are several devices: they are judged apart", e.anon.counts.ours())
	}
	if r.Counts.Undated > 0 {
		r.warn("%d lines have no time: --since and --until could not be applied to them", r.Counts.Undated)
	}
	return r
}

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (d *device) result(e *engine, r *Result) *Device {
	out := &Device{Name: d.name, Runs: d.runs, Restarts: d.restarts, Names: slices.Clone(d.names),
		Counts: d.counts, Probes: d.probes, Cores: make([]Core, 0, len(d.cores))}
	out.Counts.Lines = d.counts.ours()
	out.LastRuns = slices.Clone(d.infos[max(0, len(d.infos)-keepRuns):])
	for i := range d.cores {
		out.Cores = append(out.Cores, Core{Slot: d.cores[i].slot, Core: d.cores[i].core, Samples: d.cores[i].samples})
	}
	slices.SortFunc(out.Cores, func(a, b Core) int {
		if a.Slot != b.Slot {
			return a.Slot - b.Slot
		}
		return a.Core - b.Core
	})
	if s := d.selected(e.opt.Run); s != nil {
		out.Samples = s.coll
		if e.opt.Run != RunAll {
			out.Kept = s.number
		}
	}
	if e.opt.Run > 0 && out.Kept == 0 && d.runs > 0 {
		r.warn("run %d was asked for, but device %q has %d", e.opt.Run, d.name, d.runs)
	}
	if d.restarts > 0 {
		times, last := "once", ""
		if d.restarts > 1 {
			times, last = fmt.Sprintf("%d times", d.restarts), " the last time"
		}
		r.warn("device %q restarted %s (the process id changed): names found before%s are void", d.name, times, last)
	}
	return out
}
