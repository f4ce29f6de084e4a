package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"
)

// Source is an opened input. A regular file may be read by several goroutines at
// a time, any other by one.
type Source struct {
	// Name is the input's.
	Name string
	// Compression is "gzip", "zstd", "bzip2" or "xz", empty for none. Of a source
	// that is not regular it is known once Stream has been called.
	Compression string
	// Regular says that ReadAt and Mapped can read any place of a file between
	// the offsets From and To. Changed is its time of change.
	Regular  bool
	From, To int64
	Changed  time.Time
	// Room is shared with the sources that are read at the same time. Nil: what
	// decompression takes is not limited.
	Room *Room

	kind  inputKind
	file  *os.File  // nil for a reader
	close bool      // file is ours to close
	r     io.Reader // not regular: what to read, after sniffing
	live  liveSource
	begun bool // Next has delivered something
}

// Open opens an input and looks at its content. Of a live one the port is bound
// then, the command runs, the end of a file is noted. Close ends it.
func (in Input) Open() (*Source, error) {
	s := &Source{Name: in.name, kind: in.kind}
	var err error
	switch in.kind {
	case inputFile:
		if s.file, err = os.Open(in.name); err != nil {
			return nil, s.Named(err)
		}
		s.close = true
	case inputStdin:
		s.file = in.file
	case inputReader:
		s.r = in.reader
	default:
		s.live, err = in.openLive()
		if err != nil {
			return nil, s.Named(err)
		}
		return s, nil
	}
	if s.file != nil {
		st, err := s.file.Stat()
		switch {
		case err != nil:
			s.Close()
			return nil, s.Named(err)
		case st.IsDir():
			s.Close()
			return nil, s.Named(ErrDirectory)
		case st.Mode().IsRegular():
			s.Changed = st.ModTime()
			if st.Size() == 0 && in.kind == inputFile {
				// Empty, or of a file system that states no sizes, as /proc.
				if n, _ := s.file.ReadAt(make([]byte, 1), 0); n > 0 {
					s.r = s.file
					break
				}
			}
			s.Regular, s.To = true, st.Size()
			if in.kind == inputStdin {
				if s.From, err = s.file.Seek(0, io.SeekCurrent); err != nil {
					return nil, s.Named(err)
				}
				s.From = min(s.From, s.To)
			}
		default:
			widenPipe(s.file)
			s.r = s.file
		}
	}
	if s.Regular {
		var magic [6]byte
		n, err := s.file.ReadAt(magic[:min(int64(len(magic)), s.To-s.From)], s.From)
		if err != nil && err != io.EOF {
			s.Close()
			return nil, s.Named(err)
		}
		s.Compression = compression(magic[:n])
	}
	return s, nil
}

// Live says that the source has no end of its own: Next reads it.
func (s *Source) Live() bool { return s.live != nil }

// Messages says that the source is messages from anybody, not one stream: what
// one of them begins with says nothing of the others.
func (s *Source) Messages() bool { return s.kind == inputSyslog }

// Watch is Live, and makes an open pipe (of Stdin) live where it is one.
func (s *Source) Watch() bool {
	if s.kind == inputStdin && !s.Regular && s.live == nil {
		s.live = &pipeSource{f: s.file}
	}
	return s.Live()
}

// Next reads a live source into p, at least 64 KiB long, and waits for data for
// about wait. No data: 0 and no error. ErrBoundary ends the line that was being
// read, io.EOF says that the source ended by itself.
func (s *Source) Next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	n, err := s.live.next(ctx, p, wait)
	if n > 0 && !s.begun && !s.Messages() {
		s.begun = true
		if err := uncompressed(p[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Rest gives what a live source holds of lines without an end, one at a call,
// when nobody waits for their end any more. 0: no more; Next must not be called after it.
func (s *Source) Rest(p []byte) int { return s.live.rest(p) }

// uncompressed is the error of a live source that begins with b.
func uncompressed(b []byte) error {
	if format := compression(b); format != "" {
		return fmt.Errorf("%w (%s)", ErrCompressed, format)
	}
	return nil
}

// Failure says how a command failed that ended by itself; nil for every other source.
func (s *Source) Failure() error {
	if c, ok := s.live.(*command); ok {
		return c.failure()
	}
	return nil
}

// Warnings are the doubts that a live source has so far.
func (s *Source) Warnings() []string { return s.live.warnings() }

// Addr is where a syslog source listens, nil for others.
func (s *Source) Addr() net.Addr {
	if l, ok := s.live.(*listener); ok {
		return l.addr()
	}
	return nil
}

// Stream reads a source that is not live from its start to its end, decompressed;
// beside: in a goroutine of its own. One that is not regular can be read once, may
// hold compressed files in its midst, and is given up when ctx is done. Its errors
// have no name yet.
func (s *Source) Stream(ctx context.Context, beside bool) (io.ReadCloser, error) {
	var r io.Reader
	if s.Regular {
		r = io.NewSectionReader(s.file, s.From, s.To-s.From)
	} else {
		if s.file != nil {
			s.r = &pipeReader{ctx: ctx, f: s.file}
		}
		s.sniff()
		r = s.r
	}
	var d io.ReadCloser
	var err error
	switch {
	case s.Compression == "" && s.Regular:
		return io.NopCloser(r), nil
	case s.Compression == "":
		return io.NopCloser(newMixed(r)), nil
	case s.Compression == "gzip" && !s.Regular:
		d = io.NopCloser(newMixed(r)) // text may follow, as in `cat ltm.1.gz ltm`
	default:
		d, err = decoder(ctx, s.Room, s.Compression, r)
	}
	if err == nil && beside {
		d = newReadAhead(d)
	}
	return d, err
}

// ReadAt reads a regular file, without regard to its compression.
func (s *Source) ReadAt(p []byte, at int64) (int, error) { return s.file.ReadAt(p, at) }

// Mapped calls fn with the bytes [from, to) of a regular file, mapped: reading
// them copies nothing. ok is false when the file can't be mapped, and fn was not called.
//
// A file that is cut short meanwhile faults; the error, ErrChanged, says so, and
// what fn did until then must be thrown away.
func (s *Source) Mapped(from, to int64, fn func([]byte) error) (ok bool, err error) {
	return mapped(s.file, from, to, fn)
}

// sniff finds out whether a stream is compressed. It may wait for its first bytes.
func (s *Source) sniff() {
	if s.Regular || s.live != nil || s.Compression != "" {
		return
	}
	// Only the first bytes go through the small buffer.
	var first [6]byte
	n, err := io.ReadFull(s.r, first[:])
	s.Compression = compression(first[:n])
	head := bytes.NewReader(first[:n])
	if err == nil {
		s.r = &headReader{head: head, r: s.r}
	} else {
		s.r = head
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			s.r = io.MultiReader(head, errReader{err})
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

// Close ends a live source and closes a file that Open opened.
func (s *Source) Close() {
	if s.close && s.file != nil {
		s.file.Close()
	}
	if s.live != nil {
		s.live.Close()
	}
}

// Named gives err the source's name, once.
func (s *Source) Named(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}
