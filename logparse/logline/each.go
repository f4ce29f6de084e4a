package logline

import "bytes"

// Each parses the lines of buf, each ended by a newline, and calls take with
// every one that is not KindOther, and its fields in l. It returns the number of
// lines. What take is given is valid until it returns.
//
// Line by line where lines are ours; otherwise it hunts for the next one that may be.
func (p *Parser) Each(buf []byte, l *Line, take func(raw []byte)) (lines int64) {
	// line is where the line begins that at is in.
	at, line, end := 0, 0, len(buf)
	hunting, last := false, !canHunt
	for at < end {
		if hunting && !last {
			pos, skipped, start, hit := hunt(buf[at:])
			if skipped > 0 {
				lines += int64(skipped)
				line = at + start
			}
			at += pos
			switch {
			case !hit: // what is left is parsed line by line
				last = true
			case !promising(buf, at):
				at++
				continue
			}
		}
		prefetch(&buf[at])
		k := at + bytes.IndexByte(buf[at:], '\n')
		lines++
		if p.Parse(buf[line:k], l) != KindOther {
			take(buf[line:k])
			hunting = false
		} else {
			hunting = true
		}
		at, line = k+1, k+1
	}
	return lines
}

// promising looks closer at a place that hunt found, before its line is parsed.
func promising(b []byte, i int) bool {
	if len(b)-i < 12 {
		return true
	}
	switch b[i] {
	case 'm': // "tmm=2 subtable=", "tmm=2 WARNING"
		if i < 2 || b[i-1] != 'm' || b[i-2] != 't' {
			return false
		}
		for j := i + 2; j < i+10; j++ {
			if b[j] == ' ' {
				return b[j+1] == 's' || b[j+1] == 'W'
			}
		}
		return true
	case ';': // "logging; held", "exceeded; throttling"
		return b[i+2] == 'h' || b[i+2] == 't'
	case 'p': // "repeated"
		return b[i+3] == 't' && b[i+4] == 'e'
	case gzipMagic[0]:
		return i == 0 || b[i-1] == '\n'
	default: // "Suppressed"
		return b[i+3] == 'p' && b[i+4] == 'r'
	}
}
