package logline

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// calendar turns stamps into times. It remembers the last one: neighbouring
// lines mostly share theirs.
type calendar struct {
	ref time.Time      // no line without a year is later than a day after it; zero: time.Now() at first use
	loc *time.Location // of stamps without a zone; nil: time.Local

	last [40]byte
	n    int
	at   time.Time
}

// Time is the line's time, zero when it has none. A year that is not written
// is inferred as Parser.SetReference says.
func (l *Line) Time() time.Time {
	if len(l.Stamp) == 0 {
		return time.Time{}
	}
	c := l.cal
	if c == nil {
		c = &calendar{}
	}
	return c.time(l.Stamp)
}

// SetReference sets the time ref that no line without a year is later than by
// more than a day, zero: time.Now(), and the zone of times without one, nil:
// time.Local.
func (p *Parser) SetReference(ref time.Time, loc *time.Location) {
	p.cal = calendar{ref: ref, loc: loc}
}

// Time is what a stamp of a line that p parsed says, as Line.Time.
func (p *Parser) Time(stamp []byte) time.Time {
	return (&Line{Stamp: stamp, cal: &p.cal}).Time()
}

func (c *calendar) time(stamp []byte) time.Time {
	if c.n > 0 && c.n == len(stamp) && bytes.Equal(stamp, c.last[:c.n]) {
		return c.at
	}
	if c.ref.IsZero() {
		c.ref = time.Now()
	}
	if c.loc == nil {
		c.loc = time.Local
	}
	t := parseStamp(stamp, c.ref.Add(day), c.loc)
	c.n = 0
	if len(stamp) <= len(c.last) {
		c.n = copy(c.last[:], stamp)
		c.at = t
	}
	return t
}

// day is how far clocks may be apart: no line is later than the reference and it.
const day = 24 * time.Hour

// parseStamp reads what stampEnd found; without a year it is the last such time
// that is not after limit. What is no date gives the zero time.
func parseStamp(s []byte, limit time.Time, loc *time.Location) time.Time {
	var year, day, clock int
	var month time.Month
	switch {
	case len(s) < 14:
		return time.Time{}
	case isDigit(s[0]) && s[4] == '-' && len(s) >= 19: // 2026-05-06T16:02:11
		year, month, day, clock = digits(s[0:4]), time.Month(digits(s[5:7])), digits(s[8:10]), 11
	case isDigit(s[0]): // 05-06 16:02:11
		month, day, clock = time.Month(digits(s[0:2])), digits(s[3:5]), 6
	default: // May  6 16:02:11, May  6 2026 16:02:11
		month, day, clock = monthOf(s), digits(s[4:6]), 7
		if len(s) >= 20 && s[11] == ' ' {
			year, clock = digits(s[7:11]), 12
		}
	}
	if len(s) < clock+8 || month < 1 || month > 12 || day < 1 || day > 31 {
		return time.Time{}
	}
	h, m, sec := digits(s[clock:clock+2]), digits(s[clock+3:clock+5]), digits(s[clock+6:clock+8])
	if h > 23 || m > 59 || sec > 60 || h < 0 || m < 0 || sec < 0 {
		return time.Time{}
	}
	rest, nano := s[clock+8:], 0
	if len(rest) > 0 && (rest[0] == '.' || rest[0] == ',') {
		scale := 100_000_000
		i := 1
		for ; i < len(rest) && isDigit(rest[i]); i++ {
			nano += int(rest[i]-'0') * scale
			scale /= 10
		}
		rest = rest[i:]
	}
	if len(rest) > 0 && year > 0 { // a zone: Z, +03:00 or +0300
		off := 0
		if len(rest) >= 5 {
			off = (digits(rest[1:3])*60 + digits(rest[len(rest)-2:])) * 60
			if rest[0] == '-' {
				off = -off
			}
		}
		utc := time.Date(year, month, day, h, m, sec, nano, time.UTC)
		return utc.Add(-time.Duration(off) * time.Second).In(loc)
	}
	if year > 0 {
		return time.Date(year, month, day, h, m, sec, nano, loc)
	}
	// From the latest year that fits; four steps more for the 29th of February.
	for y := limit.In(loc).Year(); y > limit.Year()-10; y-- {
		if t := time.Date(y, month, day, h, m, sec, nano, loc); !t.After(limit) && t.Day() == day {
			return t
		}
	}
	return time.Time{}
}

// digits reads decimal digits, a leading blank as 0; -1 when others are in it.
func digits(b []byte) int {
	v := 0
	for i, c := range b {
		switch {
		case isDigit(c):
			v = v*10 + int(c-'0')
		case c != ' ' || i > 0:
			return -1
		}
	}
	return v
}

const monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"

func monthOf(s []byte) time.Month {
	i := strings.Index(monthNames, string(s[:3]))
	if i < 0 || i%3 != 0 {
		return 0
	}
	return time.Month(i/3 + 1)
}

// Moment is a time as users give it. The zero value is none. One without a year
// gets it from the log that it limits: see Window.
type Moment struct {
	at    time.Time
	stamp string // without a year; else empty
	loc   *time.Location
}

// MomentOf is t, with its year.
func MomentOf(t time.Time) Moment { return Moment{at: t} }

// IsZero says that there is none.
func (m Moment) IsZero() bool { return m.stamp == "" && m.at.IsZero() }

// last is the last such time that is not after limit, or the one with its year.
func (m Moment) last(limit time.Time) time.Time {
	if m.stamp == "" {
		return m.at
	}
	return parseStamp([]byte(m.stamp), limit, m.loc)
}

// first is the first such time from at on. m has no year.
func (m Moment) first(at time.Time) time.Time {
	y := at.In(m.loc).Year()
	for range 9 { // the 29th of February may be eight years away
		y++
		if t := m.last(time.Date(y, 1, 1, 0, 0, 0, -1, m.loc)); !t.Before(at) {
			return t
		}
	}
	return time.Time{}
}

// ahead is how long after a log's end a time may lie that limits it.
const ahead = 30 * day

// Window is since and until, zero: none, with their years, in a log that was last
// written to at end, read at now. Without a year, since is the last such time
// that is not over a month after end, over a day after now, or after an until
// with a year; until is the first such time from since on, and without since it
// is found as since is. Limits that are swapped, both with their years or less
// than a month apart, stay so.
func Window(since, until Moment, end, now time.Time) (from, to time.Time) {
	// A limit may lie behind the end, to leave out everything or nothing. But
	// what lies ahead of all lines is of the year before, as those lines are.
	limit := end.Add(ahead)
	if latest := now.Add(day); latest.Before(limit) {
		limit = latest
	}
	from, to = since.last(limit), until.last(limit)
	switch {
	case since.IsZero() || until.IsZero():
	case until.stamp == "":
		if from.After(to) {
			from = since.last(to)
		}
	default:
		to = until.last(from)
		if to.Year() != from.In(until.loc).Year() || from.Sub(to) >= ahead {
			to = until.first(from)
		}
	}
	return from, to
}

// ParseMoment reads a time as users give it to --since and --until: any form
// that occurs in a log ("May  6 16:02", "05-06 16:02:11", RFC 3339), a date
// ("2026-05-06"), a time of today ("16:02"), or a span before now ("90m",
// "2h30m", "3d"). What has no zone is in now's.
func ParseMoment(s string, now time.Time) (Moment, error) {
	loc := now.Location()
	in := strings.Join(strings.Fields(s), " ")
	if d, err := time.ParseDuration(strings.TrimPrefix(in, "-")); err == nil && d >= 0 {
		return MomentOf(now.Add(-d)), nil
	}
	if n, ok := strings.CutSuffix(in, "d"); ok {
		if d, err := strconv.ParseUint(strings.TrimPrefix(n, "-"), 10, 16); err == nil {
			return MomentOf(now.AddDate(0, 0, -int(d))), nil
		}
	}
	for _, f := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "Jan 2 2006 15:04:05"} {
		if t, err := time.ParseInLocation(f, in, loc); err == nil {
			return MomentOf(t), nil
		}
	}
	for _, f := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(f, in, loc); err == nil {
			return MomentOf(time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc)), nil
		}
	}
	for _, f := range []string{"Jan 2 15:04:05", "Jan 2 15:04", "Jan 2", "01-02 15:04:05", "01-02 15:04"} {
		// With a leap year, for the 29th of February.
		if t, err := time.ParseInLocation("2006 "+f, "2024 "+in, loc); err == nil {
			return Moment{stamp: t.Format("01-02 15:04:05.999999999"), loc: loc}, nil
		}
	}
	return Moment{}, fmt.Errorf("time %q: want a form like \"May 6 16:02\", \"2026-05-06T16:02:11Z\", \"16:02\" or \"90m\"", s)
}
