package logparse

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// Errors of inputs, wrapped with the input's name. A missing or unreadable
// file is an fs.ErrNotExist or fs.ErrPermission.
var (
	ErrDirectory = errors.New("is a directory")
	ErrTruncated = errors.New("compressed data is cut short")
	ErrCorrupt   = errors.New("compressed data is corrupt")
)

// Input is something to read: see File, Stdin, Reader, Follow, Command, Syslog.
type Input struct {
	name    string
	kind    inputKind
	file    *os.File
	reader  io.Reader
	fromEnd bool
}

type inputKind uint8

const (
	inputFile inputKind = iota
	inputStdin
	inputReader
	inputFollow
	inputCommand
	inputSyslog
)

// Name is the input's name as results show it.
func (in Input) Name() string { return in.name }

// Live says that the input has no end of its own.
func (in Input) Live() bool { return in.kind >= inputFollow }

// File is the file at path, compressed or not (by content). A pipe or a device
// is read as it comes.
func File(path string) Input { return Input{name: path, kind: inputFile} }

// Stdin is an open file: a regular one is read in parallel from its current
// offset, a pipe as it comes. It is not closed.
func Stdin(f *os.File) Input { return Input{name: "-", kind: inputStdin, file: f} }

// Reader is any reader, compressed or not.
func Reader(name string, r io.Reader) Input {
	return Input{name: name, kind: inputReader, reader: r}
}

// Follow is a live file: what it holds (or, with fromEnd, only what is
// appended after Start), then what is appended, across rotation and truncation.
func Follow(path string, fromEnd bool) Input {
	return Input{name: path, kind: inputFollow, fromEnd: fromEnd}
}

// Command is the standard output of a shell command such as "ssh bigip tail -F
// /var/log/ltm". It is ended when the scan ends; ending by itself is no error.
func Command(shell string) Input { return Input{name: shell, kind: inputCommand} }

// Syslog listens on "udp://host:port" or "tcp://host:port" for syslog messages.
func Syslog(url string) Input { return Input{name: url, kind: inputSyslog} }

// item is an opened input.
type item struct {
	in      Input
	info    InputInfo
	file    *os.File  // nil for a reader
	close   bool      // file is ours to close
	regular bool      // file can be read at any offset between from and to
	from    int64     //
	to      int64     //
	changed time.Time // of a regular file, else zero
	r       io.Reader // not regular: what to read, after sniffing
	live    liveSource
}

// open opens one input and looks at its content.
func (in Input) open(opt *Options) (*item, error) {
	it := &item{in: in, info: InputInfo{Name: in.name}}
	var err error
	switch in.kind {
	case inputFile:
		if it.file, err = os.Open(in.name); err != nil {
			return nil, pathError(in.name, err)
		}
		it.close = true
	case inputStdin:
		it.file = in.file
	case inputReader:
		it.r = in.reader
	default:
		it.live, err = in.openLive()
		if err != nil {
			return nil, pathError(in.name, err)
		}
		return it, nil
	}
	if it.file != nil {
		st, err := it.file.Stat()
		switch {
		case err != nil:
			it.shut()
			return nil, pathError(in.name, err)
		case st.IsDir():
			it.shut()
			return nil, fmt.Errorf("%s: %w", in.name, ErrDirectory)
		case st.Mode().IsRegular():
			it.regular, it.to, it.changed = true, st.Size(), st.ModTime()
			if in.kind == inputStdin {
				if it.from, err = it.file.Seek(0, io.SeekCurrent); err != nil {
					return nil, pathError(in.name, err)
				}
				it.from = min(it.from, it.to)
			}
		default:
			widenPipe(it.file)
			it.r = it.file
		}
	}
	if it.regular {
		var magic [6]byte
		n, err := it.file.ReadAt(magic[:min(int64(len(magic)), it.to-it.from)], it.from)
		if err != nil && err != io.EOF {
			it.shut()
			return nil, pathError(in.name, err)
		}
		it.info.Compression = compression(magic[:n])
	}
	return it, nil
}

// sniff finds out whether a stream is compressed. It may wait for its first bytes.
func (it *item) sniff() {
	if it.regular || it.live != nil || it.info.Compression != "" {
		return
	}
	// Only the first bytes go through the small buffer.
	var first [6]byte
	n, err := io.ReadFull(it.r, first[:])
	it.info.Compression = compression(first[:n])
	head := bytes.NewReader(first[:n])
	if err == nil {
		it.r = &headReader{head: head, r: it.r}
	} else {
		it.r = head
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			it.r = io.MultiReader(head, errReader{err})
		}
	}
}

// headReader reads head, then r with the caller's own buffer.
type headReader struct {
	head *bytes.Reader
	r    io.Reader
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.head.Len() > 0 {
		return h.head.Read(p)
	}
	return h.r.Read(p)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func (it *item) shut() {
	if it.close && it.file != nil {
		it.file.Close()
	}
	if it.live != nil {
		it.live.Close()
	}
}

// pathError gives err the input's name once.
func pathError(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// compression tells a format by its first bytes, "" for none that is known.
func compression(b []byte) string {
	switch {
	case len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b:
		return "gzip"
	case len(b) >= 4 && string(b[:4]) == "\x28\xb5\x2f\xfd":
		return "zstd"
	case len(b) >= 4 && string(b[:3]) == "BZh" && b[3] >= '1' && b[3] <= '9':
		return "bzip2"
	case len(b) >= 6 && string(b[:6]) == "\xfd7zXZ\x00":
		return "xz"
	}
	return ""
}

// maxWindow is the largest history that a zstd or xz stream may ask for.
const maxWindow = 128 << 20

// decoder reads what r holds compressed. What it reads is turned into the errors above.
func decoder(format string, r io.Reader) (io.ReadCloser, error) {
	d := &decoding{src: bufio.NewReaderSize(r, 128<<10)}
	var err error
	switch format {
	case "gzip":
		d.r, err = gzip.NewReader(d.src)
	case "zstd":
		var z *zstd.Decoder
		// One goroutine beside the scanning one is the fastest on few cores.
		if z, err = zstd.NewReader(d.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow)); err == nil {
			d.r, d.close = z, z.Close
		}
	case "bzip2":
		d.r = bzip2.NewReader(d.src)
	case "xz":
		d.r, err = xz.ReaderConfig{DictCap: 8 << 20}.NewReader(d.src)
	default:
		return nil, fmt.Errorf("unknown compression %q", format)
	}
	if err != nil {
		return nil, d.typed(err)
	}
	return d, nil
}

type decoding struct {
	src   *bufio.Reader
	r     io.Reader
	close func()
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
	if errors.As(err, &pe) { // reading failed, not decoding
		return err
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
	return nil
}

// inTimeOrder sorts regular files by the time of their first line, as a rotated
// set wants it: ltm.2.gz, ltm.1, ltm. Files without a time, and
// everything when a stream is among the inputs, stay as given, except that rotated
// files of one name go from the highest number down.
func inTimeOrder(items []*item, opt *Options) {
	type keyed struct {
		it   *item
		at   time.Time
		base string
		gen  int
	}
	ks := make([]keyed, len(items))
	timed := true
	for i, it := range items {
		if !it.regular {
			return
		}
		ks[i] = keyed{it: it, at: it.firstTime(opt)}
		ks[i].base, ks[i].gen = rotation(it.in.name)
		timed = timed && (!ks[i].at.IsZero() || it.from == it.to)
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
func (it *item) firstTime(opt *Options) time.Time {
	var r io.Reader = io.NewSectionReader(it.file, it.from, it.to-it.from)
	if it.info.Compression != "" {
		d, err := decoder(it.info.Compression, r)
		if err != nil {
			return time.Time{}
		}
		defer d.Close()
		r = d
	}
	buf := make([]byte, 64<<10)
	n, _ := io.ReadFull(r, buf)
	ref := opt.Now
	if it.changed.Before(ref) {
		ref = it.changed
	}
	p := Parser{cal: calendar{ref: ref, loc: opt.Location}}
	var l Line
	for line := range bytes.Lines(buf[:n]) {
		p.Parse(line, &l)
		if t := l.Time(); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
