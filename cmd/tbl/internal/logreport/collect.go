package logreport

import (
	"bytes"
	"maps"
	"slices"

	"tbl/logparse"
	"tbl/logparse/logline"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// samples collects the samples of one run of one device.
type samples struct {
	set   timingstats.Set
	cores map[timingstats.CoreID]*coreSamples
	// dense finds those without a blade: looking them up in a map would be a
	// sixth of the time of reading a log.
	dense     [256]*coreSamples
	slow      int
	threshold int64
	slowest   []SlowSample
	groupBy   string
	groups    map[string]*timingstats.Set
	ungrouped int64 // samples beyond maxGroups
	key       []byte
}

// coreSamples are those of one core.
type coreSamples struct {
	*timingstats.CoreRecorder
	// name is the subtable of the last slow sample, names what those of all
	// look like.
	name  []byte
	names verdict.NameShape
}

func newSamples(opt Options) *samples {
	s := &samples{slow: opt.Slow, threshold: opt.Threshold, groupBy: opt.GroupBy}
	if opt.AutoThreshold {
		s.threshold = 0 // not known before all are read: the slowest of all are kept
	}
	return s
}

// group is the set that the line belongs to besides the whole; nil when there
// are too many.
func (s *samples) group(l *logline.Line) *timingstats.Set {
	switch s.groupBy {
	case "subtable":
		s.key = append(s.key[:0], l.Subtable...)
	case "host":
		s.key = append(s.key[:0], l.Host...)
	case "minute":
		s.key = s.key[:0]
		if t := l.Time(); !t.IsZero() {
			s.key = t.AppendFormat(s.key, "2006-01-02 15:04")
		}
	}
	return s.groupNamed(s.key)
}

func (s *samples) groupNamed(name []byte) *timingstats.Set {
	if g, ok := s.groups[string(name)]; ok {
		return g
	}
	if len(s.groups) >= maxGroups {
		return nil
	}
	if s.groups == nil {
		s.groups = map[string]*timingstats.Set{}
	}
	g := new(timingstats.Set)
	s.groups[string(name)] = g
	return g
}

func (s *samples) Add(l *logline.Line) {
	tag := timingstats.Slow
	if l.Fast {
		tag = timingstats.Fast
	}
	id := timingstats.CoreID{Slot: l.Slot, Core: l.Core}
	c := s.core(id)
	c.Add(l.Clicks, tag, l.Rate)
	if (!l.Fast || l.Clicks >= s.threshold) && (c.names == 0 || !bytes.Equal(c.name, l.Subtable)) {
		c.name = append(c.name[:0], l.Subtable...)
		c.names |= verdict.ShapeOf(l.Subtable)
	}
	if s.groupBy != "" {
		if g := s.group(l); g != nil {
			g.Core(id).Add(l.Clicks, tag, l.Rate)
		} else {
			s.ungrouped++
		}
	}
	if s.slow > 0 && l.Clicks >= s.threshold && (len(s.slowest) < s.slow || l.Clicks > s.slowest[len(s.slowest)-1].Clicks) {
		s.keep(SlowSample{id, l.Clicks, string(l.Subtable), string(l.Key), l.Writes, string(l.Stamp)})
	}
}

func (s *samples) core(id timingstats.CoreID) *coreSamples {
	dense := id.Slot == 0 && id.Core < len(s.dense)
	if dense {
		if c := s.dense[id.Core]; c != nil {
			return c
		}
	}
	c := s.cores[id]
	if c == nil {
		c = &coreSamples{CoreRecorder: s.set.Core(id)}
		if s.cores == nil {
			s.cores = map[timingstats.CoreID]*coreSamples{}
		}
		s.cores[id] = c
	}
	if dense {
		s.dense[id.Core] = c
	}
	return c
}

// keep inserts behind its equals, so that the earlier of two stays in front.
func (s *samples) keep(x SlowSample) {
	i, _ := slices.BinarySearchFunc(s.slowest, x.Clicks, func(o SlowSample, clicks int64) int {
		if o.Clicks >= clicks {
			return -1
		}
		return 1
	})
	if i < s.slow {
		s.slowest = slices.Insert(s.slowest, i, x)
		s.slowest = s.slowest[:min(len(s.slowest), s.slow)]
	}
}

func (s *samples) Merge(later logparse.SampleCollector) {
	o := later.(*samples)
	s.set.Merge(&o.set)
	for id, c := range o.cores {
		s.core(id).names |= c.names
	}
	s.ungrouped += o.ungrouped
	for _, name := range slices.Sorted(maps.Keys(o.groups)) {
		if g := s.groupNamed([]byte(name)); g != nil {
			g.Merge(o.groups[name])
		} else {
			s.ungrouped += o.groups[name].Total().N()
		}
	}
	for _, x := range o.slowest {
		s.keep(x)
	}
}

func (s *samples) Reset() { *s = samples{slow: s.slow, threshold: s.threshold, groupBy: s.groupBy} }

// probes collects the PROBE lines of one device.
type probes struct {
	names map[string][]verdict.OwnershipSample
}

func (p *probes) Add(l *logline.Line) {
	if p.names == nil {
		p.names = map[string][]verdict.OwnershipSample{}
	}
	tag := timingstats.Slow
	if l.Fast {
		tag = timingstats.Fast
	}
	name := string(l.Subtable)
	p.names[name] = append(p.names[name], verdict.OwnershipSample{Core: timingstats.CoreID{Slot: l.Slot, Core: l.Core}, Clicks: l.Clicks, Tag: tag})
}

func (p *probes) Merge(later logparse.ProbeCollector) {
	o := later.(*probes)
	if p.names == nil {
		p.names = o.names
		o.names = nil
		return
	}
	for name, s := range o.names {
		p.names[name] = append(p.names[name], s...)
	}
}

// timings are the clicks of all names together, core by core.
func (p *probes) timings() *timingstats.Set {
	set := new(timingstats.Set)
	for _, list := range p.names {
		for _, x := range list {
			set.Core(x.Core).Add(x.Clicks, x.Tag, 1)
		}
	}
	return set
}

// expected are the cores below perBlade on each blade that was seen, known among
// them.
func (p *probes) expected(known []logparse.Core, perBlade int) []timingstats.CoreID {
	slots := map[int]bool{}
	for _, c := range known {
		slots[c.Slot] = true
	}
	for _, list := range p.names {
		for _, x := range list {
			slots[x.Core.Slot] = true
		}
	}
	var out []timingstats.CoreID
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		for k := range perBlade {
			out = append(out, timingstats.CoreID{Slot: slot, Core: k})
		}
	}
	return out
}

func (p *probes) Reset() { p.names = nil }
