package logparse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tbl/logparse/logline"
)

// A pipe may hold a rotated set as `cat /var/log/ltm*` lists it, the newest file
// first. Files would be sorted; what comes through a pipe is cut where a device's
// time leaps and its counters don't go on, each piece is read by an engine of its
// own, and in the end they are put together in the order of their times, where
// these don't overlap.

const (
	// leapSlack is how far back the time of a log may go by itself: stamps are
	// whole seconds, and cores log apart.
	leapSlack = 2 * time.Second
	// leapStep is how far apart the lines are whose times are looked at. In the
	// first leapDense bytes they all are: of short files none is overlooked.
	leapStep  = 16 << 10
	leapDense = 1 << 20
	maxPieces = 64 // what comes after so many stays in the last one
	// goesOnWithin: a counter that is so many samples further at most goes on.
	goesOnWithin = 8
)

// ErrLeaps is a pipe whose times leap, of which one run was asked for by number.
var ErrLeaps = errors.New("the times of this pipe leap, as where rotated files come newest first: give the files by name, or leave --run out")

// span is the times of one device's lines that were looked at.
type span struct{ first, last time.Time }

// piece is what one engine reads.
type piece struct {
	eng   *engine
	spans map[string]*span // by device
}

// pieces cuts what it is fed. It is a feeder.
type pieces struct {
	scan    *scan
	changed time.Time
	whole   bool // nothing is cut, leaps are noted
	leapt   bool
	parser  logline.Parser
	line    logline.Line
	all     []*piece // in the order of reading; the last one is being read
	bytes   int64
}

// readPieces reads a pipe that nothing was read before.
func (s *scan) readPieces(ctx context.Context, r io.Reader, changed time.Time) error {
	p := &pieces{scan: s, changed: changed}
	if s.opt.Run > 0 { // a run's number is known in order only
		p.whole = true
		p.all = []*piece{{eng: s.main, spans: map[string]*span{}}}
		err := s.buf.stream(ctx, r, p)
		if err == nil && p.leapt {
			err = ErrLeaps
		}
		return err
	}
	p.cut()
	err := s.buf.stream(ctx, r, p)
	order := p.inTimeOrder()
	if order == nil {
		order = p.all
	} else {
		s.warnings = append(s.warnings, fmt.Sprintf("the input's times leap: its %d pieces were put in the order of their times, as a rotated set", len(order)))
	}
	for _, c := range order {
		s.main.append(c.eng)
	}
	return err
}

// cut begins the next piece.
func (p *pieces) cut() {
	e := newEngine(p.scan.opt, &p.scan.pool, true)
	e.reference(p.changed)
	p.all = append(p.all, &piece{eng: e, spans: map[string]*span{}})
}

func (p *pieces) now() *piece { return p.all[len(p.all)-1] }

func (p *pieces) tally() *Counts { return p.now().eng.tally() }

func (p *pieces) feed(buf []byte) int {
	p.parser.SetReference(p.scan.opt.reference(p.changed), p.scan.opt.Location) // it may go on for days
	end := bytes.LastIndexByte(buf, '\n') + 1
	for at := 0; at < end; {
		n := p.leap(buf[at:end])
		if n > 0 {
			p.now().eng.feed(buf[at : at+n])
		}
		if at += n; at < end {
			p.next(buf[at:end])
		}
	}
	p.bytes += int64(end)
	return end
}

func (p *pieces) finish(rest []byte) {
	if len(rest) > 0 && p.leap(rest) == 0 {
		p.next(rest)
	}
	p.now().eng.finish(rest)
}

// next begins the next piece with buf, whose first line leaps, unless the
// counters say that nothing but the clock was set.
func (p *pieces) next(buf []byte) {
	switch on := p.goesOn(buf); {
	case on: // from here on this is the device's time
	case p.whole:
		p.leapt = true
	default:
		p.cut()
	}
	host, t := p.timeOf(firstLine(buf))
	p.now().spans[host] = &span{t, t}
}

// goesOn says that the first samples in buf of the piece's cores, of a few of
// them, go on where those of the piece stopped, of the same process.
func (p *pieces) goesOn(buf []byte) bool {
	const enough = 4 // cores
	e := p.now().eng
	met := map[*coreState]bool{}
	for line := range bytes.Lines(buf) {
		l := &p.line
		if p.parser.Parse(line, l) != logline.KindSample {
			continue
		}
		d := e.byKey[string(deviceName(l.Host))]
		if len(l.Host) == 0 {
			if d = e.anon; len(e.named) == 1 {
				d = e.named[0]
			}
		}
		if d == nil {
			continue
		}
		if l.PID != 0 && slices.ContainsFunc(d.pids, func(q slotPID) bool { return q.slot == l.Slot && q.now != l.PID }) {
			return false
		}
		k := slices.IndexFunc(d.cores, func(c coreState) bool {
			return c.slot == l.Slot && c.core == l.Core && c.epoch == d.epoch && c.last >= 0
		})
		if k < 0 || met[&d.cores[k]] {
			continue
		}
		if ahead := l.Writes - d.cores[k].last; ahead <= 0 || ahead > goesOnWithin*l.Rate {
			return false
		}
		if met[&d.cores[k]] = true; len(met) == enough {
			return true
		}
	}
	return len(met) > 0
}

// leap is where in buf the first line is that belongs to another piece than the
// one being read, the length of buf when there is none.
func (p *pieces) leap(buf []byte) int {
	step := 1
	if p.bytes >= leapDense {
		step = leapStep
	}
	last := bytes.LastIndexByte(buf[:len(buf)-1], '\n') + 1 // its line is looked at in any case
	seen := 0                                               // the lines before it are this piece's
	for at := 0; at < len(buf); {
		line := firstLine(buf[at:])
		if p.leaps(line) {
			for seen < at {
				line := firstLine(buf[seen:])
				if p.leaps(line) {
					break
				}
				seen += len(line)
			}
			return seen
		}
		seen = at + len(line)
		at = seen
		if next := min(seen+step, last); step > 1 && next > seen {
			at = next
			if next < last {
				at += len(firstLine(buf[next:]))
			}
		}
	}
	return len(buf)
}

// firstLine is the first line of buf, with its newline.
func firstLine(buf []byte) []byte {
	if k := bytes.IndexByte(buf, '\n'); k >= 0 {
		return buf[:k+1]
	}
	return buf
}

// timeOf is the device of a line and its time.
func (p *pieces) timeOf(line []byte) (device string, t time.Time) {
	p.parser.Parse(line, &p.line)
	return string(deviceName(p.line.Host)), p.line.Time()
}

// leaps says that a line does not belong to the piece being read: it is from
// before its device's in it, or from behind those of another piece that these
// are before. The time of a line that belongs to it is noted.
func (p *pieces) leaps(line []byte) bool {
	host, t := p.timeOf(line)
	if t.IsZero() {
		return false
	}
	c := p.now().spans[host]
	if c == nil {
		p.now().spans[host] = &span{t, t}
		return false
	}
	if len(p.all) < maxPieces {
		if t.Before(c.first.Add(-leapSlack)) {
			return true
		}
		for _, o := range p.all[:len(p.all)-1] {
			if o := o.spans[host]; o != nil {
				if edge := o.first.Add(leapSlack); !c.last.After(edge) && t.After(edge) {
					return true
				}
			}
		}
	}
	if t.After(c.last) {
		c.last = t
	}
	return false
}

// inTimeOrder is the pieces in the order of their times; nil when that is the
// one they came in, or when pieces overlap.
func (p *pieces) inTimeOrder() []*piece {
	order := slices.Clone(p.all)
	slices.SortStableFunc(order, func(a, b *piece) int { return a.start().Compare(b.start()) })
	if slices.Equal(order, p.all) {
		return nil
	}
	for i, b := range order {
		for _, a := range order[:i] {
			for host, s := range a.spans {
				if o := b.spans[host]; o != nil && o.first.Before(s.last.Add(-leapSlack)) {
					return nil
				}
			}
		}
	}
	return order
}

// start is the earliest of the devices' first times.
func (c *piece) start() (at time.Time) {
	for _, s := range c.spans {
		if at.IsZero() || s.first.Before(at) {
			at = s.first
		}
	}
	return at
}
