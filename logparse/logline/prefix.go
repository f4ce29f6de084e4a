package logline

import (
	"bytes"
	"encoding/binary"
)

// Parser parses single lines. It remembers what neighbouring lines share, so
// each goroutine needs its own. The zero value is ready.
type Parser struct {
	host  []byte // last host field, "slot1/bigip1 " with its space
	hostN int    // where the host begins in it
	slot  int
	rule  []byte // last "Rule /Common/NAME <EVENT>: "
	cal   calendar

	common     []byte // of the last samples, from behind the time: "bigip1 info tmm"
	commonHost [2]int // where the host is in it
	commonSlot int
	known      []known      // by the number in the process name
	stamp      [2]uint64    // the last time without a fraction: its first and its last eight bytes
	tails      [2]knownTail // the last two
	nextTail   int
}

// Words of eight bytes, little endian, for comparing at once.
const (
	wSubtable = 'u' | 'b'<<8 | 't'<<16 | 'a'<<24 | 'b'<<32 | 'l'<<40 | 'e'<<48 | '='<<56
	wSampled  = 's' | 'a'<<8 | 'm'<<16 | 'p'<<24 | 'l'<<32 | 'e'<<40 | 'd'<<48 | ' '<<56
	wUnique   = 'u' | 'n'<<8 | 'i'<<16 | 'q'<<24 | 'u'<<32 | 'e'<<40 | ','<<48 | ' '<<56
	wClicks   = ' ' | 'c'<<8 | 'l'<<16 | 'i'<<24 | 'c'<<32 | 'k'<<40 | 's'<<48 | '='<<56
	wSTLocal  = 'S' | 'T'<<8 | '_'<<16 | 'L'<<24 | 'O'<<32 | 'C'<<40 | 'A'<<48 | 'L'<<56

	wTMM  = 't' | 'm'<<8 | 'm'<<16 | '='<<24
	wKey  = 'k' | 'e'<<8 | 'y'<<16 | '='<<24
	wSlow = 'S' | 'L'<<8 | 'O'<<16 | 'W'<<24
	wSupp = 'S' | 'u'<<8 | 'p'<<16 | 'p'<<24

	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i : i+4]) }

// tokenEnd is the index of the first space at or after i, len(b) when there is none.
func tokenEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		if b[i] == ' ' {
			return i
		}
	}
	return i
}

// isLevel tells the names that syslog gives its levels.
func isLevel(tok []byte) bool {
	switch string(tok) {
	case "info", "notice", "warning", "err", "error", "debug", "crit", "alert", "emerg", "warn", "panic":
		return true
	}
	return false
}

func isDigit(c byte) bool { return c-'0' < 10 }

// stampEnd returns the end of the time that starts at b[i], or i when there is none.
func stampEnd(b []byte, i int) int {
	if len(b)-i < 15 {
		return i
	}
	s := b[i:]
	switch {
	case s[3] == ' ' && s[6] == ' ' && s[9] == ':' && s[12] == ':' && s[0]|0x20-'a' < 26 && isDigit(s[5]):
		return fractionEnd(b, i+15) // May  6 16:02:11
	case s[4] == '-' && s[7] == '-' && len(s) >= 19 && (s[10] == 'T' || s[10] == ' ') && s[13] == ':' && s[16] == ':' && isDigit(s[0]):
		e := fractionEnd(b, i+19) // 2026-05-06T16:02:11
		if e < len(b) && b[e] == 'Z' {
			return e + 1
		}
		if e+6 <= len(b) && (b[e] == '+' || b[e] == '-') && b[e+3] == ':' {
			return e + 6
		}
		if e+5 <= len(b) && (b[e] == '+' || b[e] == '-') && isDigit(b[e+4]) {
			return e + 5
		}
		return e
	case s[2] == '-' && s[5] == ' ' && s[8] == ':' && s[11] == ':' && isDigit(s[0]):
		return fractionEnd(b, i+14) // 05-06 16:02:11
	case s[3] == ' ' && s[6] == ' ' && s[11] == ' ' && len(s) >= 20 && s[14] == ':' && s[17] == ':' && s[0]|0x20-'a' < 26:
		return fractionEnd(b, i+20) // May  6 2026 16:02:11
	}
	return i
}

// fractionEnd skips the fraction of a second at b[i].
func fractionEnd(b []byte, i int) int {
	if i < len(b) && (b[i] == '.' || b[i] == ',') {
		for i++; i < len(b) && isDigit(b[i]); i++ {
		}
	}
	return i
}

// prefix reads what stands before the message into l and returns where the message
// starts. process says that a process other than a tmm wrote the line: nothing
// but a suppression notice is of interest in it.
func (p *Parser) prefix(b []byte, l *Line) (msg int, process bool) {
	i := 0
	for i < len(b) && b[i] == 0 { // a crash leaves blocks of NULs before the next line
		i++
	}
	if len(b)-i >= 3 && b[i] == 0xEF && b[i+1] == 0xBB && b[i+2] == 0xBF {
		i += 3
	}
	if i < len(b) && b[i] == '<' { // <PRI>
		j := i + 1
		for j < len(b) && isDigit(b[j]) {
			j++
		}
		if j > i+1 && j < len(b) && b[j] == '>' {
			i = j + 1
			if i+2 < len(b) && b[i] == '1' && b[i+1] == ' ' {
				return p.rfc5424(b, i+2, l), false
			}
		}
	}
	e := stampEnd(b, i)
	if e == i || e >= len(b) || b[e] != ' ' {
		return p.unprefixed(b, i, l), false
	}
	l.Stamp = b[i:e]
	i = e + 1
	if n := len(p.host); n > 0 && len(b)-i > n && b[i] == p.host[0] && bytes.Equal(b[i:i+n], p.host) {
		l.Host = b[i+p.hostN : i+n-1]
		l.Slot = p.slot
		i += n
		// The level is the next word, if there is one: at most seven letters.
		if len(b)-i >= 8 {
			x := load64(b, i) ^ (ones * ' ')
			if m := (x - ones) &^ x & highs; m != 0 {
				k := bitTrailing(m) >> 3
				if isLevel(b[i : i+k]) {
					i += k + 1
				}
			}
		}
		return p.process(b, i, l)
	}
	// Words up to the process: host and level in either order, either absent.
	for range 4 {
		j := tokenEnd(b, i)
		if j == len(b) || isProcess(b[i:j]) || startsMessage(b[i:j]) {
			break
		}
		if l.Host != nil && !isLevel(b[i:j]) {
			break
		}
		if isLevel(b[i:j]) {
			i = j + 1
			continue
		}
		p.setHost(b[i:j], l)
		i = j + 1
	}
	return p.process(b, i, l)
}

// startsMessage tells the first word of a message from a host, for lines that
// have a time only.
func startsMessage(tok []byte) bool {
	switch string(tok) {
	case "PROBE", "Rule", "last":
		return true
	}
	return len(tok) > 4 && string(tok[:4]) == "tmm="
}

// isProcess tells "tmm2[16963]:" and "logger:" from a host or a level.
func isProcess(tok []byte) bool {
	n := len(tok)
	if n == 0 {
		return true
	}
	if tok[n-1] == ':' {
		return n < 2 || !isIPv6(tok)
	}
	return tok[n-1] == ']' && bytes.IndexByte(tok, '[') > 0
}

// isIPv6 tells an address that ends in "::" from a process name.
func isIPv6(tok []byte) bool { return len(tok) > 2 && tok[len(tok)-2] == ':' }

// setHost takes a host field apart and remembers it for the next line.
func (p *Parser) setHost(tok []byte, l *Line) {
	slot, n := 0, 0
	if len(tok) > 5 && string(tok[:4]) == "slot" {
		j := 4
		for j < len(tok) && isDigit(tok[j]) && j < 8 {
			slot = slot*10 + int(tok[j]-'0')
			j++
		}
		if j > 4 && j < len(tok)-1 && tok[j] == '/' {
			n = j + 1
		} else {
			slot = 0
		}
	}
	l.Host, l.Slot = tok[n:], slot
	p.host = append(append(p.host[:0], tok...), ' ')
	p.hostN, p.slot = n, slot
}

// process reads "tmm2[16963]: Rule /Common/NAME <EVENT>: " from b[i:].
func (p *Parser) process(b []byte, i int, l *Line) (msg int, other bool) {
	if len(b)-i < 5 || b[i] != 't' || b[i+1] != 'm' || b[i+2] != 'm' {
		if len(b)-i > 5 && (b[i] == 'P' || b[i] == 'R') && startsMessage(b[i:tokenEnd(b, i)]) {
			return p.ruleEnd(b, i), false
		}
		return i, true
	}
	j := i + 3
	core := 0
	for j < len(b) && isDigit(b[j]) && j < i+10 {
		core = core*10 + int(b[j]-'0')
		j++
	}
	if j < len(b) && b[j] == '=' { // no process name: the message starts here
		return i, false
	}
	var pid int64
	if j < len(b) && b[j] == '[' {
		for j++; j < len(b) && isDigit(b[j]); j++ {
			pid = pid*10 + int64(b[j]-'0')
		}
		if j == len(b) || b[j] != ']' {
			return i, true
		}
		j++
	}
	if j+1 >= len(b) || b[j] != ':' || b[j+1] != ' ' {
		return i, true
	}
	l.ProcCore, l.PID = core, pid
	return p.ruleEnd(b, j+2), false
}

// ruleEnd skips "Rule /Common/NAME <EVENT>: ", with or without its colon, where it stands at b[i:].
func (p *Parser) ruleEnd(b []byte, i int) int {
	if n := len(p.rule); n > 0 && len(b)-i > n && bytes.Equal(b[i:i+n], p.rule) {
		return i + n
	}
	if len(b)-i < 10 || string(b[i:i+5]) != "Rule " {
		return i
	}
	for j := i + 5; ; {
		k := bytes.IndexByte(b[j:], '<')
		if k < 0 {
			return i
		}
		j += k + 1
		k = j
		for k < len(b) && (b[k]-'A' < 26 || b[k] == '_' || isDigit(b[k])) {
			k++
		}
		if b[j-2] != ' ' || k == j || k == len(b) || b[k] != '>' {
			continue
		}
		k++
		if k < len(b) && b[k] == ':' {
			k++
		}
		if k < len(b) && b[k] == ' ' {
			k++
			if k-i <= 512 {
				p.rule = append(p.rule[:0], b[i:k]...)
			}
			return k
		}
		return i
	}
}

// rfc5424 reads "STAMP HOST APP PROCID MSGID SD MSG" from b[i:]. Its app name
// carries no core.
func (p *Parser) rfc5424(b []byte, i int, l *Line) int {
	e := tokenEnd(b, i)
	if s := stampEnd(b, i); s == e && s > i {
		l.Stamp = b[i:e]
	}
	i = min(e+1, len(b))
	for f := range 4 {
		e = tokenEnd(b, i)
		tok := b[i:e]
		switch {
		case f == 0 && string(tok) != "-" && len(tok) > 0:
			p.setHost(tok, l)
		case f == 2:
			var pid int64
			for _, c := range tok {
				if !isDigit(c) || pid > 1<<40 {
					pid = 0
					break
				}
				pid = pid*10 + int64(c-'0')
			}
			l.PID = pid
		}
		i = min(e+1, len(b))
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	for i < len(b) && b[i] == '[' { // structured data: ']' in a value is escaped
		quoted := false
		for i++; i < len(b); i++ {
			switch c := b[i]; {
			case c == '\\' && quoted:
				i++
			case c == '"':
				quoted = !quoted
			case c == ']' && !quoted:
				i++
				goto element
			}
		}
	element:
		i = min(i, len(b))
	}
	if i < len(b) && b[i] == ' ' {
		i++
	}
	if len(b)-i >= 3 && b[i] == 0xEF && b[i+1] == 0xBB && b[i+2] == 0xBF {
		i += 3
	}
	return p.ruleEnd(b, i)
}

// unprefixed finds the message of a line that starts with no time: at its
// start, or behind a "tmm2[16963]: " that something unknown (grep's file name, a
// container's log) was put before.
func (p *Parser) unprefixed(b []byte, i int, l *Line) int {
	if len(b)-i < 5 {
		return i
	}
	if load32(b, i) == wTMM || string(b[i:i+5]) == "PROBE" || string(b[i:i+5]) == "Rule " {
		return p.ruleEnd(b, i)
	}
	if b[i] == 't' {
		if m, other := p.process(b, i, l); !other {
			return m
		}
	}
	// Only near the start: further in, it would be somebody's text.
	s := b[i:min(len(b), i+200)]
	for j := 0; ; {
		k := bytes.Index(s[j:], []byte(" tmm"))
		if k < 0 {
			return i
		}
		j += k + 1
		if m, other := p.process(b, i+j, l); !other && l.PID != 0 {
			return m
		}
		l.ProcCore, l.PID = -1, 0
	}
}
