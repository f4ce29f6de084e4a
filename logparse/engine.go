package logparse

import (
	"bytes"
	"time"

	"tbl/logparse/logline"
)

// keepRuns is the number of runs described per device.
const keepRuns = 64

// exampleBytes is where a malformed example is cut.
const exampleBytes = 200

// engine takes lines in order and keeps what a scan knows: devices, runs,
// counts. There is one for the scan, and in a parallel scan one for each chunk
// that is read ahead of its turn: a speculative engine starts without knowing
// what came before and notes what its result rests on, so that absorb can either
// take it over exactly or refuse it.
type engine struct {
	opt         *Options
	speculative bool
	parser      logline.Parser
	line        logline.Line

	counts   Counts
	examples []string

	named []*device // in order of appearance
	anon  *device   // of lines without a host
	byKey map[string]*device
	last  *device // of the last line, and the host it had
	lastH []byte

	// hostless: a line without a host was met. Which device it belongs to
	// depends on those named before it.
	hostless bool
	mixed    bool // a compressed file stands in the midst of the text
	window   bool
	changed  time.Time // when the input was; zero: it may go on
	pool     *pool
}

// device is the state of one device. Its runs: while headOpen, samples belong to the run that
// was going on before this engine's first line (speculative engines only).
type device struct {
	name     string
	deliver  bool
	counts   Counts
	headOpen bool
	open     bool // the current run goes on: samples belong to cur
	runs     int  // begun by this engine
	head     *segment
	cur      *segment
	kept     *segment  // the run that Options.Run numbers, once it is over
	infos    []RunInfo // the last runs begun by this engine, at most 2·keepRuns
	headInfo RunInfo
	pending  []byte // stamp of the last sample, in the buffer being read
	epoch    uint32 // last values of earlier epochs are forgotten
	cores    []coreState
	index    []int32 // [slot*denseCores+core] → index+1 into cores
	sparse   map[[2]int]int32
	pids     []slotPID
	restarts int

	// Since the last restart, or in a speculative engine since its start.
	probes ProbeCollector
	names  []Name
}

// segment is what is collected of one run.
type segment struct {
	number int
	coll   SampleCollector
}

type coreState struct {
	slot, core int
	last       int64 // writes, valid in epoch
	epoch      uint32
	first      int64 // the first writes while headOpen
	hasFirst   bool
	samples    int64
}

// slotPID is the process id of a blade: first seen, and now.
type slotPID struct {
	slot       int
	first, now int64
}

const (
	denseCores = 256
	denseSlots = 17
)

func newEngine(opt *Options, pool *pool, speculative bool) *engine {
	e := &engine{opt: opt, speculative: speculative, pool: pool, byKey: map[string]*device{}}
	e.window = !opt.Since.IsZero() || !opt.Until.IsZero()
	e.reference(time.Time{})
	return e
}

// reference makes years be inferred for an input last changed at changed.
func (e *engine) reference(changed time.Time) {
	e.changed = changed
	e.parser.SetReference(e.opt.reference(changed), e.opt.Location)
}

// tally is the counts.
func (e *engine) tally() *Counts { return &e.counts }

// devices are those that were met.
func (e *engine) devices() []*device {
	if e.anon == nil {
		return e.named
	}
	return append(e.named[:len(e.named):len(e.named)], e.anon)
}

// feed takes the lines of buf, each ended by a newline; what follows the last newline is left.
// It returns the number of bytes taken.
func (e *engine) feed(buf []byte) int {
	if e.changed.IsZero() { // a pipe or a live input, for days perhaps
		e.reference(time.Time{})
	}
	end := bytes.LastIndexByte(buf, '\n') + 1
	e.counts.Lines += e.parser.Each(buf[:end], &e.line, e.take)
	e.counts.Bytes += int64(end)
	e.settle()
	return end
}

// finish takes the last line of an input, which no newline ends.
func (e *engine) finish(rest []byte) {
	if len(rest) == 0 {
		return
	}
	e.counts.Lines++
	e.counts.Bytes += int64(len(rest))
	if e.parser.Parse(rest, &e.line) != logline.KindOther {
		e.take(rest)
	}
	e.settle()
}

// take counts and delivers one line of ours.
func (e *engine) take(raw []byte) {
	l := &e.line
	if l.Kind == logline.KindCompressed {
		e.mixed = true
		return
	}
	if e.window && !e.inWindow(l) {
		return
	}
	d := e.device(l)
	if e.opt.Host != "" && !d.deliver && d != e.anon {
		e.counts.OtherHosts++
		return
	}
	if l.Kind == logline.KindSample {
		e.counts.Samples++
		d.counts.Samples++
	} else {
		e.counts.add(l.Kind, l.Held)
		d.counts.add(l.Kind, l.Held)
	}
	switch l.Kind {
	case logline.KindHeld, logline.KindTruncated:
		return
	case logline.KindMalformed:
		if len(e.examples) < 3 {
			e.examples = append(e.examples, string(bytes.ToValidUTF8(raw[:min(len(raw), exampleBytes)], []byte("?"))))
		}
		return
	}
	if l.ProcCore >= 0 && l.ProcCore != l.Core {
		e.counts.Disagreements++
		d.counts.Disagreements++
	}
	if l.PID != 0 {
		d.process(e, l.Slot, l.PID)
	}
	switch l.Kind {
	case logline.KindSample, logline.KindWrapped:
		if l.Writes >= 0 {
			d.sample(e, l)
		}
	case logline.KindProbe:
		if e.opt.NewProbes != nil && d.deliver {
			if d.probes == nil {
				d.probes = e.opt.NewProbes()
			}
			d.probes.Add(l)
		}
		if e.opt.AllLines {
			d.enter(e, l)
			if d.cur.coll != nil {
				d.cur.coll.Add(l)
			}
		}
	case logline.KindDiscovery:
		d.name1(l)
	}
}

// add counts a line of ours by its kind.
func (c *Counts) add(k logline.Kind, held int64) {
	switch k {
	case logline.KindSample:
		c.Samples++
	case logline.KindWrapped:
		c.Wrapped++
	case logline.KindTruncated:
		c.Truncated++
	case logline.KindMalformed:
		c.Malformed++
	case logline.KindProbe:
		c.Probes++
	case logline.KindDiscovery:
		c.Discovery++
	case logline.KindHeld:
		c.Held += held
		if held == 0 {
			c.Throttled++
		}
	}
}

func (e *engine) inWindow(l *logline.Line) bool {
	t := l.Time()
	if t.IsZero() {
		e.counts.Undated++
		return true
	}
	if from, to := e.opt.from, e.opt.to; !from.IsZero() && t.Before(from) || !to.IsZero() && t.After(to) {
		e.counts.Outside++
		return false
	}
	return true
}

// device finds the device of a line. Lines without a host belong to the only device named
// so far; when there are several, to one without a name.
func (e *engine) device(l *logline.Line) *device {
	if len(l.Host) == 0 {
		e.hostless = true
		if len(e.named) == 1 {
			return e.named[0]
		}
		if e.anon == nil {
			e.anon = e.newDevice("")
		}
		return e.anon
	}
	if e.last != nil && bytes.Equal(l.Host, e.lastH) {
		return e.last
	}
	key := deviceName(l.Host)
	d := e.byKey[string(key)]
	if d == nil {
		d = e.name(string(key))
	}
	e.last, e.lastH = d, append(e.lastH[:0], l.Host...)
	return d
}

// name makes the device of a name met for the first time.
func (e *engine) name(key string) *device {
	var d *device
	if len(e.named) == 0 && e.anon != nil { // its lines came before its name
		d = e.anon
		e.anon = nil
		d.name = key
		d.deliver = e.delivers(key)
		if !d.deliver {
			d.drop()
		}
	} else {
		d = e.newDevice(key)
	}
	e.named = append(e.named, d)
	e.byKey[key] = d
	return d
}

func (e *engine) newDevice(name string) *device {
	return &device{name: name, deliver: name == "" || e.delivers(name), headOpen: e.speculative}
}

// drop lets go of what a device collected that turns out not to be wanted.
func (d *device) drop() {
	d.probes = nil
	for _, s := range []*segment{d.head, d.cur, d.kept} {
		if s != nil {
			s.coll = nil
		}
	}
}

func (e *engine) delivers(name string) bool {
	return e.opt.Host == "" || name == string(deviceName([]byte(e.opt.Host)))
}

// deviceName is the first label of a host, or the whole of an address.
func deviceName(host []byte) []byte {
	dot := bytes.IndexByte(host, '.')
	if dot <= 0 || bytes.IndexByte(host, ':') >= 0 {
		return host
	}
	for _, c := range host {
		if c != '.' && c-'0' >= 10 {
			return host[:dot]
		}
	}
	return host
}
