package logparse

import (
	"bytes"
	"context"
	"io"

	"tbl/logparse/input"
)

// block is the buffer that lines are cut from. The line that the last read
// broke off stays at its start.
type block struct {
	buf     []byte
	n       int
	shorter bool // the line at the start has lost its middle
}

// feeder takes what a block holds: an engine, or several in turn.
type feeder interface {
	// feed takes the whole lines of buf and returns the number of bytes taken.
	feed(buf []byte) int
	// finish takes the last line of an input, which no newline ends.
	finish(rest []byte)
	// tally is where bytes that are not fed are counted.
	tally() *Counts
}

// room is where the next read goes.
func (b *block) room(e feeder) []byte {
	if b.buf == nil {
		b.buf = make([]byte, readBytes)
	}
	if b.n == len(b.buf) {
		if len(b.buf) < maxLineBytes {
			b.buf = append(b.buf, make([]byte, len(b.buf))...)
		} else {
			if !b.shorter {
				b.shorter = true
				e.tally().Shortened++
			}
			copy(b.buf[edgeBytes:], b.buf[b.n-edgeBytes:b.n])
			e.tally().Bytes += int64(b.n - 2*edgeBytes)
			b.n = 2 * edgeBytes
		}
	}
	return b.buf[b.n:min(len(b.buf), max(readBytes, 2*b.n))]
}

// fed takes the n bytes just read.
func (b *block) fed(n int, e feeder) {
	if b.shorter {
		k := bytes.IndexByte(b.buf[b.n:b.n+n], '\n')
		b.n += n
		if k < 0 {
			return
		}
		b.shorten(b.n-n+k, e)
	} else {
		b.n += n
	}
	k := e.feed(b.buf[:b.n])
	if k > 0 {
		b.n = copy(b.buf, b.buf[k:b.n])
	}
}

// shorten leaves the edges of the line that ends at end.
func (b *block) shorten(end int, e feeder) {
	b.shorter = false
	cut := end - 2*edgeBytes
	copy(b.buf[edgeBytes:], b.buf[end-edgeBytes:b.n])
	b.n -= cut
	e.tally().Bytes += int64(cut)
}

// end takes what no newline ended.
func (b *block) end(e feeder) {
	if b.shorter {
		b.shorten(b.n, e)
	}
	e.finish(b.buf[:b.n])
	b.n = 0
}

// stream reads r to its end.
func (b *block) stream(ctx context.Context, r io.Reader, e feeder) error {
	b.n, b.shorter = 0, false
	for empty := 0; ; {
		n, err := r.Read(b.room(e))
		if n > 0 {
			empty = 0
			b.fed(n, e)
		} else if empty++; err == nil && empty > 100 {
			err = io.ErrNoProgress
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			b.end(e)
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// lines reads the lines that start in [from, to) of a regular file.
func (b *block) lines(ctx context.Context, it *input.Source, from, to int64, e *engine) error {
	b.n, b.shorter = 0, false
	at := from
	skip := from > it.From
	if skip {
		at-- // a newline there means that a line starts at from
	}
	// What is read ahead can be thrown away, so it may come from a mapping.
	for window := e.opt.window(); e.speculative && at < to; {
		end, was := min(at+window, to), at
		ok, err := it.Mapped(at, end, func(mem []byte) error {
			if skip {
				k := bytes.IndexByte(mem, '\n') + 1
				if k == 0 { // no line starts here
					k = len(mem)
				} else {
					skip = false
				}
				mem = mem[k:]
				at += int64(k)
			}
			at += int64(e.feed(mem))
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if at == was {
			if end == to { // the last line goes on behind to
				break
			}
			window *= 2
		}
	}
	if skip && at == to {
		return nil
	}
	for at < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		room := b.room(e)
		n, err := it.ReadAt(room[:min(int64(len(room)), to-at)], at)
		if n == 0 {
			if err == io.EOF {
				err = input.ErrChanged
			}
			return it.Named(err)
		}
		at += int64(n)
		if skip {
			k := bytes.IndexByte(b.buf[:n], '\n')
			if k < 0 {
				continue
			}
			skip = false
			n = copy(b.buf, b.buf[k+1:n])
			if n == 0 {
				continue
			}
		}
		b.fed(n, e)
	}
	// The last line goes on behind to.
	for b.n > 0 && at < it.To {
		room := b.room(e)
		n, err := it.ReadAt(room[:min(int64(len(room)), it.To-at, max(4096, int64(b.n)))], at)
		if n == 0 {
			if err == io.EOF {
				err = input.ErrChanged
			}
			return it.Named(err)
		}
		at += int64(n)
		if k := bytes.IndexByte(room[:n], '\n'); k >= 0 {
			b.fed(k+1, e)
			b.n = 0
			return nil
		}
		b.n += n
	}
	b.end(e)
	return nil
}
