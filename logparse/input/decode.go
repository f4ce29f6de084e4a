package input

import (
	"bufio"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// compression tells a format by its first bytes, "" for none that is known.
func compression(b []byte) string {
	switch {
	case len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b:
		return "gzip"
	case len(b) >= 4 && string(b[:4]) == "\x28\xb5\x2f\xfd":
		return "zstd"
	case len(b) >= 4 && string(b[:3]) == "BZh" && b[3] >= '1' && b[3] <= '9':
		return "bzip2"
	case len(b) >= 6 && string(b[:6]) == xzMagic:
		return "xz"
	}
	return ""
}

// bzip2History is what decoding bzip2 takes: four bytes for each byte of a block.
const bzip2History = 4 * 900_000

// decoder reads what r holds compressed. Its memory is part of room; a nil room
// is not limited. A stream that does not decode is an ErrTruncated, an
// ErrCorrupt or an ErrHistory.
func decoder(ctx context.Context, room *Room, format string, r io.Reader) (io.ReadCloser, error) {
	d := &decoding{src: bufio.NewReaderSize(r, 128<<10), room: tenant{ctx: ctx, r: room}}
	var err error
	switch format {
	case "gzip":
		d.r, err = gzip.NewReader(d.src)
	case "zstd":
		var z *zstd.Decoder
		frames := &zstdFrames{src: d.src, room: d.room.take}
		// One goroutine beside the scanning one is the fastest on few cores.
		if z, err = zstd.NewReader(frames, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxHistory)); err == nil {
			d.r, d.close = z, z.Close
		}
	case "bzip2":
		err = d.room.take(bzip2History)
		d.r = bzip2.NewReader(d.src)
	case "xz":
		d.r = newXZ(d.src, d.room.take)
	default:
		return nil, fmt.Errorf("unknown compression %q", format)
	}
	if err != nil {
		d.room.leave()
		return nil, d.typed(err)
	}
	return d, nil
}

type decoding struct {
	src   *bufio.Reader
	r     io.Reader
	close func()
	room  tenant
	any   bool // something came out
}

func (d *decoding) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.any = d.any || n > 0
	if err != nil && err != io.EOF {
		err = d.typed(err)
	}
	return n, err
}

// typed tells a stream that ends too early from a damaged one.
func (d *decoding) typed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	var pe *fs.PathError
	if errors.As(err, &pe) || errors.Is(err, ErrHistory) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err // decoding did not fail
	}
	if _, e := d.src.Peek(1); e == io.EOF && d.any && strings.Contains(err.Error(), "EOF") {
		return ErrTruncated
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

func (d *decoding) Close() error {
	if d.close != nil {
		d.close()
	}
	d.r = nil // what follows may need the memory
	d.room.leave()
	return nil
}

// readAhead decodes in a goroutine of its own, into two buffers in turn.
type readAhead struct {
	full, free chan []byte
	cur        []byte // what is left of the buffer being read
	whole      []byte
	err        error
	quit       chan struct{}
	src        io.ReadCloser
}

func newReadAhead(src io.ReadCloser) *readAhead {
	a := &readAhead{full: make(chan []byte, 4), free: make(chan []byte, 4), quit: make(chan struct{}), src: src}
	for range 4 {
		a.free <- make([]byte, 128<<10)
	}
	go a.run()
	return a
}

func (a *readAhead) run() {
	defer close(a.full)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.quit:
			return
		}
		n, err := io.ReadAtLeast(a.src, buf, len(buf)/2)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // ours: the source's own is typed
		}
		if n > 0 {
			select {
			case a.full <- buf[:n]:
			case <-a.quit:
				return
			}
		}
		if err != nil {
			a.err = err // read after full is closed
			return
		}
	}
}

func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.cur) == 0 {
		if a.whole != nil {
			a.free <- a.whole[:cap(a.whole)]
			a.whole = nil
		}
		buf, ok := <-a.full
		if !ok {
			return 0, a.err
		}
		a.cur, a.whole = buf, buf
	}
	n := copy(p, a.cur)
	a.cur = a.cur[n:]
	return n, nil
}

// Close ends the goroutine and closes the source.
func (a *readAhead) Close() error {
	close(a.quit)
	for range a.full {
	}
	return a.src.Close()
}
