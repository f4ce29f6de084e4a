package source

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// CSVError is a line that is no key and value. Line counts from 1.
type CSVError struct {
	Name string
	Line int64
	Msg  string
}

// Error names the file and the line.
func (e *CSVError) Error() string { return fmt.Sprintf("%s: line %d: %s", e.Name, e.Line, e.Msg) }

// CSV gives out rows of key and value. See OpenCSV.
//
// Next may be called from many workers, Close when they are done.
type CSV struct {
	rows   int64
	maxKey int

	mu   sync.Mutex
	rd   *rowReader
	dead error    // what Next goes on to return
	tmp  *os.File // nil when the input could be rewound
	gz   *gzip.Reader
}

// CSVOptions says how OpenCSV reads. The zero value reads key,value.
type CSVOptions struct {
	// Name names the input in errors. Empty: "stdin".
	Name string
	// KeyOnly takes the first column as the key, lets the second be missing,
	// and refuses keys that a bulk body can't carry.
	KeyOnly bool
}

const (
	maxField  = 1 << 20 // bytes of a key or a value
	csvBuffer = 64 << 10
	spoolMem  = 1 << 20 // input up to that size stays in memory
)

// OpenCSV reads r once to its end and checks every row, so that a bad line is
// known before anything is sent; what it returns then gives the rows out. It
// never holds the input whole in memory: what can be rewound (a regular file,
// also as standard input) is read twice, what can't be is kept in a temporary
// file, which has no name and is gone after Close.
//
// The format is RFC 4180, with LF or CRLF: key,value; a field in double quotes
// may hold commas, line ends and doubled quotes. Bytes are taken as they are.
// A first row "key,value" or "key" is a header. Lines that are empty or begin
// with '#' are comments. Input that begins as gzip is decompressed.
//
// Errors are a *CSVError, or of reading.
func OpenCSV(r io.Reader, opt CSVOptions) (*CSV, error) {
	if opt.Name == "" {
		opt.Name = "stdin"
	}
	c := &CSV{}
	start, seekable := int64(0), false
	seeker, ok := r.(io.Seeker)
	if ok {
		var err error
		start, err = seeker.Seek(0, io.SeekCurrent)
		seekable = err == nil
	}
	in := r
	var sp *spool
	if !seekable {
		sp = &spool{}
		in = io.TeeReader(r, sp)
	}
	fail := func(err error) (*CSV, error) {
		if sp != nil && sp.file != nil {
			sp.file.Close()
		}
		return nil, err
	}
	rd, err := c.open(in, opt)
	if err != nil {
		return fail(err)
	}
	var key, value []byte
	for {
		if key, value, err = rd.next(key[:0], value[:0]); err != nil {
			break
		}
		c.rows++
		c.maxKey = max(c.maxKey, len(key))
	}
	if err != io.EOF {
		return fail(err)
	}
	if seekable {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return fail(fmt.Errorf("%s: read again: %w", opt.Name, err))
		}
		in = r
	} else {
		if in, err = sp.rewind(); err != nil {
			return fail(fmt.Errorf("%s: keep for reading again: %w", opt.Name, err))
		}
		c.tmp = sp.file
	}
	if c.rd, err = c.open(in, opt); err != nil {
		return fail(err)
	}
	return c, nil
}

// open looks for gzip and returns a reader of in's rows.
func (c *CSV) open(in io.Reader, opt CSVOptions) (*rowReader, error) {
	br := bufio.NewReaderSize(in, csvBuffer)
	magic, _ := br.Peek(2)
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		var err error
		if c.gz == nil {
			c.gz, err = gzip.NewReader(br)
		} else {
			err = c.gz.Reset(br)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: gzip: %w", opt.Name, err)
		}
		br = bufio.NewReaderSize(c.gz, csvBuffer)
	}
	return newRowReader(br, opt), nil
}

// Rows is how many rows there are.
func (c *CSV) Rows() int64 { return c.rows }

// MaxKey is the length of the longest key in bytes.
func (c *CSV) MaxKey() int { return c.maxKey }

// Next gives out the next row. Its error is io.EOF after the last.
func (c *CSV) Next(key, value []byte) (k, v []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return key[:0], value[:0], c.dead
	}
	k, v, err = c.rd.next(key[:0], value[:0])
	c.dead = err
	return k, v, err
}

// Close removes what was kept of the input. The reader is the caller's.
func (c *CSV) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = os.ErrClosed
	if c.tmp == nil {
		return nil
	}
	f := c.tmp
	c.tmp = nil
	return f.Close()
}

// spool keeps what is written to it: in memory first, in a file then.
type spool struct {
	mem  []byte
	file *os.File
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil {
		if len(s.mem)+len(p) <= spoolMem {
			s.mem = append(s.mem, p...)
			return len(p), nil
		}
		f, err := os.CreateTemp("", "tbl-csv-")
		if err != nil {
			return 0, err
		}
		s.file = f
		// Where an open file can't lose its name, it stays until the system
		// cleans up.
		os.Remove(f.Name())
		if _, err := f.Write(s.mem); err != nil {
			return 0, err
		}
		s.mem = nil
	}
	return s.file.Write(p)
}

func (s *spool) rewind() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.mem), nil
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// rowReader splits a stream into rows.
type rowReader struct {
	br      *bufio.Reader
	name    string
	keyOnly bool
	line    int64 // of the row being read
	lines   int64 // lines finished
	first   bool
}

func newRowReader(br *bufio.Reader, opt CSVOptions) *rowReader {
	if bom, _ := br.Peek(3); string(bom) == "\xef\xbb\xbf" {
		br.Discard(3)
	}
	return &rowReader{br: br, name: opt.Name, keyOnly: opt.KeyOnly, first: true}
}

func (r *rowReader) bad(format string, args ...any) error {
	return &CSVError{Name: r.name, Line: r.line, Msg: fmt.Sprintf(format, args...)}
}

// next appends the next row to key and value.
func (r *rowReader) next(key, value []byte) (k, v []byte, err error) {
	for {
		k, v, n, err := r.row(key, value)
		if err != nil {
			return k, v, err
		}
		first := r.first
		r.first = false
		header := first && bytes.EqualFold(k, []byte("key"))
		switch {
		case n == 1 && header && r.keyOnly:
			continue
		case n == 2 && header && (bytes.EqualFold(v, []byte("value")) || bytes.EqualFold(v, []byte("val"))):
			continue
		case n == 1 && !r.keyOnly:
			return k, v, r.bad("one column, want key,value")
		case n > 2:
			return k, v, r.bad("%d columns, want key,value", n)
		case len(k) == 0:
			return k, v, r.bad("empty key")
		case r.keyOnly && bytes.IndexByte(k, '\n') >= 0, r.keyOnly && bytes.IndexByte(k, '\r') >= 0:
			return k, v, r.bad("key holds a line end, which a bulk body can't carry")
		}
		return k, v, nil
	}
}

// row appends the first two fields of the next row that is no comment and
// counts its fields.
func (r *rowReader) row(key, value []byte) (k, v []byte, fields int, err error) {
	k, v = key, value
	c, err := r.skipComments()
	if err != nil {
		return k, v, 0, err
	}
	for {
		var sink []byte
		switch fields {
		case 0:
			sink = k
		case 1:
			sink = v
		}
		var end byte
		sink, end, err = r.field(sink, c)
		switch fields {
		case 0:
			k = sink
		case 1:
			v = sink
		}
		fields++
		if err != nil {
			return k, v, fields, err
		}
		if end != ',' {
			return k, v, fields, nil
		}
		if c, err = r.br.ReadByte(); err == io.EOF {
			return k, v, fields + 1, nil // an empty last field, without a line end
		} else if err != nil {
			return k, v, fields, r.readErr(err)
		}
	}
}

// skipComments returns the first byte of the next row.
func (r *rowReader) skipComments() (byte, error) {
	for {
		r.line = r.lines + 1
		c, err := r.br.ReadByte()
		if err == io.EOF {
			return 0, io.EOF
		} else if err != nil {
			return 0, r.readErr(err)
		}
		switch c {
		case '\n':
			r.lines++
			continue
		case '\r':
			if next, _ := r.br.Peek(1); len(next) == 1 && next[0] == '\n' {
				continue
			}
		case '#':
			for {
				_, err := r.br.ReadSlice('\n')
				if err == bufio.ErrBufferFull {
					continue
				}
				if err == io.EOF {
					return 0, io.EOF
				} else if err != nil {
					return 0, r.readErr(err)
				}
				break
			}
			r.lines++
			continue
		}
		return c, nil
	}
}

func (r *rowReader) readErr(err error) error {
	return fmt.Errorf("%s: line %d: read: %w", r.name, r.lines+1, err)
}

// field appends the field that begins with c to dst and returns what ended
// it: ',' or '\n' (also for the end of input).
func (r *rowReader) field(dst []byte, c byte) (_ []byte, end byte, err error) {
	start := len(dst)
	if c == '"' {
		return r.quoted(dst)
	}
	for {
		switch c {
		case ',':
			return dst, ',', nil
		case '\n':
			r.lines++
			return trimCR(dst, start), '\n', nil
		case '"':
			return dst, 0, r.bad("a quote inside an unquoted field")
		}
		if len(dst)-start >= maxField {
			return dst, 0, r.bad("field over %d bytes", maxField)
		}
		dst = append(dst, c)
		if c, err = r.br.ReadByte(); err == io.EOF {
			return trimCR(dst, start), '\n', nil
		} else if err != nil {
			return dst, 0, r.readErr(err)
		}
	}
}

func trimCR(b []byte, start int) []byte {
	if n := len(b); n > start && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}

// quoted appends a field whose opening quote has been read.
func (r *rowReader) quoted(dst []byte) (_ []byte, end byte, err error) {
	start := len(dst)
	for {
		c, err := r.br.ReadByte()
		if err == io.EOF {
			return dst, 0, r.bad("a quote is not closed")
		} else if err != nil {
			return dst, 0, r.readErr(err)
		}
		if c == '"' {
			c, err = r.br.ReadByte()
			if err == nil && c == '\r' {
				if c, err = r.br.ReadByte(); err == nil && c != '\n' {
					return dst, 0, r.bad("a carriage return after a closing quote")
				}
			}
			switch {
			case err == io.EOF:
				return dst, '\n', nil
			case err != nil:
				return dst, 0, r.readErr(err)
			case c == ',':
				return dst, ',', nil
			case c == '\n':
				r.lines++
				return dst, '\n', nil
			case c != '"':
				return dst, 0, r.bad("text after a closing quote")
			}
		}
		if c == '\n' {
			r.lines++
		}
		if len(dst)-start >= maxField {
			return dst, 0, r.bad("field over %d bytes", maxField)
		}
		dst = append(dst, c)
	}
}
