package logline

import (
	"bytes"
	"math"
	"math/bits"
)

func bitTrailing(x uint64) int { return bits.TrailingZeros64(x) }

// maxCore bounds the core numbers that are believed.
const maxCore = 1 << 16

// wrapAt is the count of clicks from which a counter must have wrapped: the
// source subtracts two 32-bit readings.
const wrapAt = 1 << 31

// Parse fills l from line and returns l.Kind. Line ends, NULs and blanks at
// the end of line are ignored.
func (p *Parser) Parse(line []byte, l *Line) Kind {
	n := len(line)
	for n > 0 && (line[n-1] <= ' ') && (line[n-1] == '\r' || line[n-1] == '\n' || line[n-1] == 0 || line[n-1] == ' ') {
		n--
	}
	b := line[:n]
	if n > 0 && b[n-1] == ')' && p.recall(b, l) {
		return KindSample
	}
	*l = Line{ProcCore: -1, cal: &p.cal}
	if n >= len(gzipMagic) && string(b[:len(gzipMagic)]) == gzipMagic {
		l.Kind = KindCompressed
		return KindCompressed
	}
	m, other := p.prefix(b, l)
	msg := b[m:]
	if other {
		l.Kind = heldNotice(msg, l)
		return l.Kind
	}
	if len(msg) < 8 {
		return KindOther
	}
	switch {
	case load32(msg, 0) == wTMM:
		if l.Kind = parseTMM(msg, l); l.Kind == KindSample {
			p.learn(b, l)
		}
	case msg[0] == 'P' && string(msg[:6]) == "PROBE ":
		l.Kind = parseProbe(msg, l)
	case m >= 3 && b[m-1] == ' ' && (b[m-2] == '>' || b[m-3] == '>'):
		// A rule's text may say anything.
	default:
		l.Kind = heldNotice(msg, l)
	}
	return l.Kind
}

// gzipMagic is what a gzip file begins with: two bytes of its own, and deflate,
// the only method there is.
const gzipMagic = "\x1f\x8b\x08"

// number reads decimal digits from b[i:]; ok is false for none, or for more than 18.
func number(b []byte, i int) (v int64, end int, ok bool) {
	if len(b)-i > 16 {
		x := load64(b, i) ^ (ones * '0')
		m := (x + ones*(0x7f-9) | x) & highs
		if m == 0 { // eight digits, and perhaps some more
			v = eightDigits(x)
			i += 8
			x = load64(b, i) ^ (ones * '0')
			m = (x + ones*(0x7f-9) | x) & highs
			if k := bits.TrailingZeros64(m) >> 3; k < 8 {
				return v*tens[k&7] + someDigits(x, k), i + k, true
			}
			i, v = i-8, 0
		} else if k := bits.TrailingZeros64(m) >> 3; k > 0 {
			return someDigits(x, k), i + k, true
		}
	}
	s := i
	for i < len(b) && isDigit(b[i]) {
		v = v*10 + int64(b[i]-'0')
		i++
	}
	return v, i, i > s && i-s <= 18
}

// tens are the powers of ten.
var tens = [8]int64{1, 10, 100, 1000, 10000, 100000, 1000000, 10000000}

// someDigits is the number that the first k bytes of x make, 0 ≤ k < 8: shifted
// to the end of the word, the digits before them are zeros.
func someDigits(x uint64, k int) int64 { return eightDigits(x << (64 - 8*k)) }

// eightDigits is the number of eight digits, the first in the lowest byte:
// pairs, fours and eights of them are added up.
func eightDigits(x uint64) int64 {
	x = (x & (ones * 0x0f)) * (10<<8 + 1) >> 8
	x = (x & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	x = (x & 0x0000ffff0000ffff) * (10000<<32 + 1) >> 32
	return int64(x)
}

// numberBack reads decimal digits that end before b[e], down to b[from].
func numberBack(b []byte, e, from int) (v int64, start int, ok bool) {
	s, mul := e, int64(1)
	for s > from && isDigit(b[s-1]) {
		s--
		if e-s <= 18 {
			v += int64(b[s]-'0') * mul
			mul *= 10
		}
	}
	if e-s > 18 {
		v = math.MaxInt64
	}
	return v, s, e > s
}

// parseTMM parses a message that starts with "tmm=". Fields before the key are
// taken from the left, those after it from the right: the key is user input
// and may look like any of them.
func parseTMM(b []byte, l *Line) Kind {
	core, i, okCore := number(b, 4)
	if i < len(b) && b[i] != ' ' {
		okCore, i = false, tokenEnd(b, i)
	}
	if len(b)-i < 10 || b[i] != ' ' {
		return KindOther
	}
	i++
	if b[i] != 's' || load64(b, i+1) != wSubtable {
		if b[i] == 'W' && okCore && core < maxCore {
			return parseWarning(b, i, int(core), l)
		}
		return KindOther
	}
	i += 9
	okCore = okCore && core < maxCore
	e := bytes.IndexByte(b[i:], ' ')
	switch {
	case !okCore:
		return KindMalformed
	case e < 0:
		return KindTruncated
	}
	name := b[i : i+e]
	i += e + 1
	l.Core = int(core)
	if len(b)-i < 8 || string(b[i:i+7]) != "writes=" {
		if cut(b[i:], "writes=") {
			return KindTruncated
		}
		return parseFound(b, i, name, l)
	}
	w, j, ok := number(b, i+7)
	switch {
	case j == len(b):
		return KindTruncated
	case !ok || b[j] != ' ':
		return KindMalformed
	}
	j++
	if len(b)-j < 4 || load32(b, j) != wKey {
		if cut(b[j:], "key=") {
			return KindTruncated
		}
		return KindMalformed
	}
	l.Subtable, l.Writes = name, w
	return parseTail(b, j+4, l)
}

// cut says that b is a beginning of word.
func cut(b []byte, word string) bool {
	return len(b) <= len(word) && string(b) == word[:len(b)]
}

// parseTail parses "KEY clicks=5 FAST_LOCAL (unique, sampled 1/1000)" from its
// right end; key is where KEY starts.
func parseTail(b []byte, key int, l *Line) Kind {
	n := len(b)
	if n == key || b[n-1] != ')' {
		return KindTruncated
	}
	rate, i, ok := numberBack(b, n-1, key)
	if !ok || i-10 < key || b[i-1] != '/' || b[i-2] != '1' || load64(b, i-10) != wSampled {
		return KindTruncated
	}
	i -= 10
	unique := i-9 >= key && load64(b, i-8) == wUnique
	if unique {
		i -= 8
	}
	// From here on the tail is there, so what doesn't fit is no cut line.
	if i-6 < key || b[i-1] != '(' || b[i-2] != ' ' || rate == 0 || rate == math.MaxInt64 {
		return KindMalformed
	}
	i -= 2
	fast := false
	switch {
	case i-11 >= key && load64(b, i-8) == wSTLocal && b[i-9] == 'A' && b[i-10] == 'F':
		fast = true
		i -= 10
	case load32(b, i-4) == wSlow:
		i -= 4
	default:
		return KindMalformed
	}
	if i-10 < key || b[i-1] != ' ' {
		return KindMalformed
	}
	clicks, i, ok := numberBack(b, i-1, key)
	if !ok {
		return KindMalformed
	}
	if i > key && b[i-1] == '-' {
		clicks = -clicks
		i--
	}
	if i-8 < key || load64(b, i-8) != wClicks {
		return KindMalformed
	}
	l.Key = b[key : i-8]
	l.Clicks, l.Rate, l.Fast, l.Unique = clicks, rate, fast, unique
	if clicks < 0 || clicks >= wrapAt {
		return KindWrapped
	}
	return KindSample
}

// parseFound parses "initialized after 3 probes (diff=11 clicks of 4 total TMMs)".
func parseFound(b []byte, i int, name []byte, l *Line) Kind {
	rest, ok := bytes.CutPrefix(b[i:], []byte("initialized after "))
	if !ok {
		return KindMalformed
	}
	tries, i, ok := number(rest, 0)
	rest, ok2 := bytes.CutPrefix(rest[i:], []byte(" probes (diff="))
	if !ok || !ok2 {
		return KindMalformed
	}
	neg := len(rest) > 0 && rest[0] == '-'
	if neg {
		rest = rest[1:]
	}
	diff, i, ok := number(rest, 0)
	rest, ok2 = bytes.CutPrefix(rest[i:], []byte(" clicks of "))
	if !ok || !ok2 {
		return KindMalformed
	}
	tmms, i, ok := number(rest, 0)
	if !ok || string(rest[i:]) != " total TMMs)" {
		return KindMalformed
	}
	if neg {
		diff = -diff
	}
	l.Subtable, l.Tries, l.Clicks, l.TMMs = name, tries, diff, tmms
	return KindDiscovery
}

// parseWarning parses "WARNING could not find local subtable after 200 probes;
// using localdb_tmm_1_4711 (last diff=5210)".
func parseWarning(b []byte, i, core int, l *Line) Kind {
	rest, ok := bytes.CutPrefix(b[i:], []byte("WARNING could not find local subtable after "))
	if !ok {
		return KindOther
	}
	tries, i, ok := number(rest, 0)
	rest, ok2 := bytes.CutPrefix(rest[i:], []byte(" probes; using "))
	if !ok || !ok2 {
		return KindOther
	}
	i = tokenEnd(rest, 0)
	l.Core, l.Warning, l.Tries, l.Subtable = core, true, tries, rest[:i]
	if rest, ok = bytes.CutPrefix(rest[i:], []byte(" (last diff=")); ok {
		neg := len(rest) > 0 && rest[0] == '-'
		if neg {
			rest = rest[1:]
		}
		if l.Clicks, _, ok = number(rest, 0); ok && neg {
			l.Clicks = -l.Clicks
		}
	}
	return KindDiscovery
}

// parseProbe parses "PROBE tmm=3 subtable=NAME clicks=2104 entries=4 NON_OWNER".
// NAME is user input.
func parseProbe(b []byte, l *Line) Kind {
	if len(b) < 20 || load32(b, 6) != wTMM {
		return KindOther
	}
	core, i, ok := number(b, 10)
	if !ok || core >= maxCore || !bytes.HasPrefix(b[i:], []byte(" subtable=")) {
		return KindOther
	}
	i += 10
	rest, owner := b, false
	if r, ok := bytes.CutSuffix(b, []byte(" NON_OWNER")); ok {
		rest = r
	} else if r, ok := bytes.CutSuffix(b, []byte(" OWNER")); ok {
		rest, owner = r, true
	} else {
		return KindOther
	}
	entries, e, ok := numberBack(rest, len(rest), i)
	if !ok || !bytes.HasSuffix(rest[:e], []byte(" entries=")) {
		return KindOther
	}
	clicks, e, ok := numberBack(rest, e-9, i)
	if !ok {
		return KindOther
	}
	if rest[e-1] == '-' {
		clicks = -clicks
		e--
	}
	if e-8 < i || !bytes.HasSuffix(rest[:e], []byte(" clicks=")) {
		return KindOther
	}
	l.Core, l.Subtable = int(core), b[i:e-8]
	l.Clicks, l.Entries, l.Fast, l.Rate, l.Writes = clicks, entries, owner, 1, -1
	if clicks < 0 || clicks >= wrapAt {
		return KindWrapped
	}
	return KindProbe
}

// heldNotice tells the lines by which syslog, its relays and the source itself say
// that lines were left out. msg starts after the host, or after the process.
func heldNotice(msg []byte, l *Line) Kind {
	n := len(msg)
	if n < 20 {
		return KindOther
	}
	switch msg[n-1] {
	case '.':
		if rest, ok := bytes.CutSuffix(msg, []byte(" messages.")); ok {
			held, i, ok := numberBack(rest, len(rest), 0)
			if ok && bytes.HasSuffix(rest[:i], []byte("Re-enabling general logging; held ")) {
				l.Held = held
				return KindHeld
			}
		} else if bytes.HasSuffix(msg, []byte("Per-invocation log rate exceeded; throttling.")) {
			return KindHeld
		}
	case 's':
		if rest, ok := bytes.CutSuffix(msg, []byte(" times")); ok {
			if held, i, ok := numberBack(rest, len(rest), 0); ok &&
				bytes.HasSuffix(rest[:i], []byte("last message repeated ")) && len(text(rest[:i])) == 22 {
				l.Held = held
				return KindHeld
			}
		}
	}
	switch msg[0] {
	case 'S', 'm', 's', 'j', 'r': // the message itself, systemd-journald, journal, rsyslogd
		t := text(msg)
		if rest, ok := bytes.CutPrefix(t, []byte("Suppressed ")); ok {
			held, i, ok := number(rest, 0)
			if ok && bytes.HasPrefix(rest[i:], []byte(" messages from ")) {
				l.Held = held
				return KindHeld
			}
		} else if rest, ok := bytes.CutPrefix(t, []byte("message repeated ")); ok {
			held, i, ok := number(rest, 0)
			if ok && bytes.HasPrefix(rest[i:], []byte(" times: [")) {
				l.Held = held
				return KindHeld
			}
		}
	}
	return KindOther
}

// text is msg without a process name in front.
func text(msg []byte) []byte {
	for i := 0; i+1 < len(msg) && i < 64; i++ {
		switch msg[i] {
		case ' ':
			return msg
		case ':':
			if msg[i+1] == ' ' {
				return msg[i+2:]
			}
		}
	}
	return msg
}
