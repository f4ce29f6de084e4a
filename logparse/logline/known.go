package logline

import "bytes"

// known remembers what stands between time and "writes=" on the samples of one
// core. It hardly changes, and comparing it is cheaper than reading it.
type known struct {
	text     []byte // from behind "tmm" of the process name to "writes="
	subtable [2]int // where the name is in text
	proc     int
	core     int
	pid      int64
}

// knownCores bounds the cores whose samples are remembered.
const knownCores = 1024

// knownTail is the end of a sample, from behind its clicks: " FAST_LOCAL
// (sampled 1/1000)".
type knownTail struct {
	text         []byte
	rate         int64
	fast, unique bool
}

// knownPlace is the number behind "tmm" at b[i:], 0 for none.
func knownPlace(b []byte, i int) int {
	n := 0
	for j := i; j < len(b) && j < i+4 && isDigit(b[j]); j++ {
		n = n*10 + int(b[j]-'0')
	}
	return n
}

// recall parses a sample whose beginning is known. When it returns false l
// holds nothing of use.
func (p *Parser) recall(b []byte, l *Line) bool {
	n := len(p.common)
	if n == 0 {
		return false
	}
	var e int
	if len(b) > 32 && load64(b, 0) == p.stamp[0] && load64(b, 7) == p.stamp[1] && b[15] == ' ' {
		e = 15 // still the same second
	} else if e = stampEnd(b, 0); e == 15 {
		p.stamp = [2]uint64{load64(b, 0), load64(b, 7)}
	}
	i := e + 1
	if e == 0 || len(b)-i < n+2 || b[e] != ' ' || b[i] != p.common[0] || !bytes.Equal(b[i:i+n], p.common) {
		return false
	}
	d := i + n
	place := knownPlace(b, d)
	if place >= len(p.known) {
		return false
	}
	t := &p.known[place]
	m := len(t.text)
	if m == 0 || len(b)-d < m+8 || !bytes.Equal(b[d:d+m], t.text) {
		return false
	}
	w, j, ok := number(b, d+m)
	if !ok || len(b)-j < 6 || b[j] != ' ' || load32(b, j+1) != wKey || !p.recallTail(b, j+5, l) {
		return false
	}
	l.Kind = KindSample
	l.Stamp, l.Host, l.Slot = b[:e], b[i+p.commonHost[0]:i+p.commonHost[1]], p.commonSlot
	l.ProcCore, l.PID, l.Core, l.Writes = t.proc, t.pid, t.core, w
	l.Subtable = b[d+t.subtable[0] : d+t.subtable[1]]
	l.Entries, l.Tries, l.TMMs, l.Held, l.Warning = 0, 0, 0, 0, false
	l.cal = &p.cal
	return true
}

// recallTail is parseTail with what the last samples ended in.
func (p *Parser) recallTail(b []byte, key int, l *Line) bool {
	for i := range p.tails {
		t := &p.tails[i]
		e := len(b) - len(t.text)
		if len(t.text) == 0 || e < key+9 || !bytes.Equal(b[e:], t.text) {
			continue
		}
		clicks, c, ok := numberBack(b, e, key)
		if !ok || clicks >= wrapAt || c-8 < key || load64(b, c-8) != wClicks {
			return false
		}
		l.Key = b[key : c-8]
		l.Clicks, l.Rate, l.Fast, l.Unique = clicks, t.rate, t.fast, t.unique
		return true
	}
	if parseTail(b, key, l) != KindSample {
		return false
	}
	clicks := key + len(l.Key) + len(" clicks=")
	for isDigit(b[clicks]) {
		clicks++
	}
	t := &p.tails[p.nextTail]
	p.nextTail ^= 1
	t.text = append(t.text[:0], b[clicks:]...)
	t.rate, t.fast, t.unique = l.Rate, l.Fast, l.Unique
	return true
}

// learn remembers the beginning of a sample that was parsed in full.
func (p *Parser) learn(b []byte, l *Line) {
	if len(l.Host) == 0 || l.PID == 0 || l.ProcCore < 0 || len(l.Stamp) == 0 || cap(b) != cap(l.Stamp) {
		return
	}
	i := len(l.Stamp) + 1
	k := bytes.Index(b[i:], []byte(" tmm"))
	host := cap(b) - cap(l.Host) - i
	name := cap(b) - cap(l.Subtable)
	if k < host || i+k+4 > name {
		return
	}
	d := i + k + 4
	end := name + len(l.Subtable) + len(" writes=")
	if end-d > 512 {
		return
	}
	if !bytes.Equal(p.common, b[i:d]) {
		p.common = append(p.common[:0], b[i:d]...)
		p.commonHost = [2]int{host, host + len(l.Host)}
		p.commonSlot = l.Slot
		for i := range p.known {
			p.known[i].text = p.known[i].text[:0]
		}
	}
	place := knownPlace(b, d)
	if place >= knownCores {
		return
	}
	if place >= len(p.known) {
		p.known = append(p.known, make([]known, place+1-len(p.known))...)
	}
	t := &p.known[place]
	t.text = append(t.text[:0], b[d:end]...)
	t.subtable = [2]int{name - d, name - d + len(l.Subtable)}
	t.proc, t.core, t.pid = l.ProcCore, l.Core, l.PID
}
