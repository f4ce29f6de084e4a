package logparse

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tbl/logparse/input"
	"tbl/logparse/logline"
)

// reference is the time from which years are inferred in an input that was last
// changed at changed; zero: one that may go on.
func (o *Options) reference(changed time.Time) time.Time {
	now := o.Clock()
	if !changed.IsZero() && changed.Before(now) {
		return changed
	}
	return now
}

// limit finds the years of Since and Until: the same for all items, of which the
// newest has the end of the log.
func (o *Options) limit(items []*input.Source) {
	var end time.Time
	for _, it := range items {
		if ref := o.reference(it.Changed); ref.After(end) && !(it.Regular && it.From == it.To) {
			end = ref
		}
	}
	if end.IsZero() {
		end = o.Now
	}
	o.from, o.to = logline.Window(o.Since, o.Until, end, o.Now)
}

// inTimeOrder sorts regular files by the time of their first line, as a rotated
// set wants it: ltm.2.gz, ltm.1, ltm. Files without a time, and
// everything when a stream is among the inputs, stay as given, except that rotated
// files of one name go from the highest number down.
func inTimeOrder(items []*input.Source, opt *Options) {
	type keyed struct {
		it   *input.Source
		at   time.Time
		base string
		gen  int
	}
	ks := make([]keyed, len(items))
	timed := true
	for i, it := range items {
		if !it.Regular {
			return
		}
		ks[i] = keyed{it: it, at: firstTime(it, opt)}
		ks[i].base, ks[i].gen = rotation(it.Name)
		timed = timed && (!ks[i].at.IsZero() || it.From == it.To)
	}
	slices.SortStableFunc(ks, func(a, b keyed) int {
		if timed {
			if c := a.at.Compare(b.at); c != 0 {
				return c
			}
		}
		if a.base == b.base {
			return b.gen - a.gen
		}
		return 0
	})
	for i := range ks {
		items[i] = ks[i].it
	}
}

// rotation splits "/var/log/ltm.3.gz" into "/var/log/ltm" and 3.
func rotation(path string) (base string, generation int) {
	dir, name := filepath.Split(path)
	parts := strings.Split(name, ".")
	for i := len(parts) - 1; i > 0; i-- {
		if n, err := strconv.Atoi(parts[i]); err == nil && n >= 0 && n < 1e6 {
			return dir + strings.Join(parts[:i], "."), n
		}
	}
	return path, 0
}

// firstTime is the time of the first line that has one, within the first 64 KiB.
func firstTime(it *input.Source, opt *Options) time.Time {
	r, err := it.Stream(context.Background(), false)
	if err != nil {
		return time.Time{}
	}
	defer r.Close()
	buf := make([]byte, 64<<10)
	n, _ := io.ReadFull(r, buf)
	var p logline.Parser
	p.SetReference(opt.reference(it.Changed), opt.Location)
	var l logline.Line
	for line := range bytes.Lines(buf[:n]) {
		p.Parse(line, &l)
		if t := l.Time(); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
