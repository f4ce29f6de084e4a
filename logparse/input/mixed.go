package input

import (
	"bufio"
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
)

// mixed reads plain text in whose midst gzip files may stand, as
// `cat ltm ltm.1 ltm.2.gz` gives it, and delivers what they hold in their place.
// Other formats are told by the start of an input only: logrotate's is gzip.
type mixed struct {
	r    io.Reader
	src  *bufio.Reader // r, from the first byte on that a gzip file may begin with
	gz   io.Reader     // the compressed file being read, nil: plain text
	last byte          // delivered last: a file begins on a new line
	rest bool          // a compressed file has just ended
}

// gzipMagic is what a gzip file begins with: two bytes of its own, and deflate,
// the only method there is. Text has the first one nowhere, but a key may.
var gzipMagic = []byte{0x1f, 0x8b, 8}

func newMixed(r io.Reader) *mixed { return &mixed{r: r, last: '\n'} }

func (m *mixed) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		switch {
		case m.gz != nil:
			if n, err = m.gz.Read(p); err == io.EOF {
				m.gz, m.rest, err = nil, true, nil
			}
		case m.rest && m.last != '\n': // what follows is a file of its own
			p[0], n = '\n', 1
		case m.src == nil:
			n, err = m.text(p)
		default:
			n, err = m.buffered(p)
		}
	}
	if n > 0 {
		m.last = p[n-1]
	}
	return n, err
}

// text reads up to what may be the beginning of a gzip file, without a copy.
func (m *mixed) text(p []byte) (int, error) {
	n, err := m.r.Read(p)
	k := bytes.IndexByte(p[:n], gzipMagic[0])
	if k < 0 {
		return n, err
	}
	after := m.r
	if err != nil {
		after = errReader{err}
	}
	m.src = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(p[k:n])), after), 128<<10)
	return k, nil
}

// buffered reads text of which more than the next byte can be seen.
func (m *mixed) buffered(p []byte) (int, error) {
	b, err := m.src.Peek(len(gzipMagic))
	was := m.rest
	m.rest = false
	switch {
	case was && len(b) > 0 && len(b) < len(gzipMagic) && bytes.HasPrefix(gzipMagic, b):
		return 0, ErrTruncated
	case m.last == '\n' && bytes.Equal(b, gzipMagic):
		d := &decoding{src: m.src}
		z, err := gzip.NewReader(m.src)
		if err != nil {
			return 0, d.typed(err)
		}
		z.Multistream(false)
		d.r, m.gz = z, d
		return 0, nil
	case bytes.Equal(b, gzipMagic) && m.packed():
		return 0, ErrWithinLine
	case len(b) == 0:
		return 0, err
	}
	b, _ = m.src.Peek(min(m.src.Buffered(), len(p)))
	n := len(b)
	if k := bytes.IndexByte(b[1:], gzipMagic[0]); k >= 0 {
		n = 1 + k
	}
	copy(p, b[:n])
	m.src.Discard(n)
	return n, nil
}

// packed says that what is next does decompress: chance or a key's bytes don't.
func (m *mixed) packed() bool {
	b, _ := m.src.Peek(32 << 10)
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return false
	}
	z.Multistream(false)
	n, err := io.Copy(io.Discard, z)
	return err == nil || n >= 4096
}
