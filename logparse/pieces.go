package logparse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"tbl/logparse/logline"
)

// A pipe may hold a rotated set as `cat /var/log/ltm*` lists it, the newest file
// first. Files would be sorted; what comes through a pipe is cut where its time
// leaps, each piece is read by an engine of its own, and in the end they are put
// together in the order of their times, where these don't overlap.

const (
	// leapSlack is how far back the time of a log may go by itself: stamps are
	// whole seconds, and cores log apart.
	leapSlack = 2 * time.Second
	// leapStep is how far apart the lines are whose times are looked at. In the
	// first leapDense bytes they all are: of short files none is overlooked.
	leapStep  = 16 << 10
	leapDense = 1 << 20
	maxPieces = 64 // what comes after so many stays in the last one
)

// piece is what one engine reads.
type piece struct {
	eng         *engine
	first, last time.Time // of the lines looked at; zero: none had a time
}

// pieces cuts what it is fed. It is a feeder.
type pieces struct {
	scan    *scan
	changed time.Time
	parser  logline.Parser
	line    logline.Line
	all     []*piece // in the order of reading; the last one is being read
	bytes   int64
}

// readPieces reads a pipe that nothing was read before.
func (s *scan) readPieces(ctx context.Context, r io.Reader, changed time.Time) error {
	p := &pieces{scan: s, changed: changed}
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
	p.all = append(p.all, &piece{eng: e})
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
			p.cut()
		}
	}
	p.bytes += int64(end)
	return end
}

func (p *pieces) finish(rest []byte) {
	if len(rest) > 0 && p.leap(rest) == 0 {
		p.cut()
	}
	p.now().eng.finish(rest)
}

// leap is where in buf the first line is that belongs to another piece than the
// one being read, the length of buf when there is none.
func (p *pieces) leap(buf []byte) int {
	step := 1
	if p.bytes >= leapDense {
		step = leapStep
	}
	seen := 0 // the lines before it are this piece's
	for at := 0; at < len(buf); {
		line := firstLine(buf[at:])
		if p.leaps(line) {
			for seen < at {
				if line := firstLine(buf[seen:]); p.leaps(line) {
					break
				} else {
					seen += len(line)
				}
			}
			return seen
		}
		seen = at + len(line)
		at = min(at+step, len(buf))
		at += len(firstLine(buf[at-1:])) - 1
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

// leaps says that a line does not belong to the piece being read: it is from
// before it, or from behind another one that the piece itself is before. The
// time of a line that belongs to it is noted.
func (p *pieces) leaps(line []byte) bool {
	p.parser.Parse(line, &p.line)
	t := p.line.Time()
	if t.IsZero() {
		return false
	}
	c := p.now()
	if c.first.IsZero() {
		c.first, c.last = t, t
		return false
	}
	if len(p.all) < maxPieces {
		if t.Before(c.first.Add(-leapSlack)) {
			return true
		}
		for _, o := range p.all[:len(p.all)-1] {
			if edge := o.first.Add(leapSlack); !c.last.After(edge) && t.After(edge) {
				return true
			}
		}
	}
	if t.After(c.last) {
		c.last = t
	}
	return false
}

// inTimeOrder is the pieces in the order of their times; nil when that is the
// one they came in, when pieces overlap, as when two devices' clocks differ, or
// when the samples' counters say that they came in order, as when a clock was set.
func (p *pieces) inTimeOrder() []*piece {
	order := slices.Clone(p.all)
	slices.SortStableFunc(order, func(a, b *piece) int { return a.first.Compare(b.first) })
	for i, c := range order {
		if i > 0 && c.first.Before(order[i-1].last.Add(-leapSlack)) {
			return nil
		}
	}
	if slices.Equal(order, p.all) || breaks(p.all) < breaks(order) {
		return nil
	}
	return order
}

// breaks counts the pieces whose first samples don't go on where those before
// them stopped.
func breaks(order []*piece) (n int) {
	type key struct {
		device     string
		slot, core int
	}
	last, pid := map[key]int64{}, map[key]int64{}
	only := onlyName(order)
	for _, p := range order {
		broken := false
		for _, d := range p.eng.devices() {
			name := cmp.Or(d.name, only)
			for _, q := range d.pids {
				k := key{name, q.slot, 0}
				was, ok := pid[k]
				broken = broken || ok && was != q.first
				pid[k] = q.now
			}
			for i := range d.cores {
				c := &d.cores[i]
				k := key{name, c.slot, c.core}
				was, ok := last[k]
				broken = broken || ok && c.hasFirst && c.first <= was
				if c.last >= 0 {
					last[k] = c.last
				}
			}
		}
		if broken {
			n++
		}
	}
	return n
}

// onlyName is the name of the only device that has one, else none: lines without
// a host are its.
func onlyName(all []*piece) (name string) {
	for _, p := range all {
		for _, d := range p.eng.named {
			if name != "" && d.name != name {
				return ""
			}
			name = d.name
		}
	}
	return name
}
