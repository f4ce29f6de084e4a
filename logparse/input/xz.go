package input

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads the .xz format, version 1.2.0: streams of blocks, each of them
// one LZMA2 sequence. The library has a reader of it too, but that one takes a
// file that was cut between two blocks for a whole one, and gives each block as
// much memory as its header asks for.
type xzReader struct {
	src  counted
	room func(history uint64) error // called before a block's history is made

	inStream bool
	check    byte // the stream's kind of check
	block    *xzBlock
	index    xzIndex // of the stream's blocks so far
}

// xzBlock is the block being read.
type xzBlock struct {
	r            *lzma.Reader2
	header, from int64 // length of its header, and where its data begins
	// compressed and uncompressed are the sizes that its header states, -1: none.
	compressed, uncompressed int64
	size                     int64 // what came out so far
	sum                      hash.Hash
}

// xzIndex sums up the sizes of a stream's blocks, as the index at its end lists them.
type xzIndex struct{ blocks, sum uint64 }

func (x *xzIndex) add(unpadded, uncompressed uint64) {
	b := binary.AppendUvarint(nil, unpadded)
	x.sum = crc64.Update(x.sum, crc64.MakeTable(crc64.ECMA), binary.AppendUvarint(b, uncompressed))
	x.blocks++
}

// counted counts what was read.
type counted struct {
	*bufio.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzFooterMagic = "YZ"
	xzLZMA2       = 0x21
)

// xzSum is the check of that number, nil: none.
func xzSum(check byte) (sum hash.Hash, known bool) {
	switch check {
	case 0:
		return nil, true
	case 1:
		return littleEndian{crc32.NewIEEE()}, true
	case 4:
		return littleEndian{crc64.New(crc64.MakeTable(crc64.ECMA))}, true
	case 10:
		return sha256.New(), true
	}
	return nil, false
}

// littleEndian turns the sum round: hash/crc32 and hash/crc64 give big-endian ones.
type littleEndian struct{ hash.Hash }

func (l littleEndian) Sum(b []byte) []byte {
	s := l.Hash.Sum(nil)
	for i := len(s) - 1; i >= 0; i-- {
		b = append(b, s[i])
	}
	return b
}

func newXZ(src *bufio.Reader, room func(uint64) error) *xzReader {
	return &xzReader{src: counted{Reader: src}, room: room}
}

// Read returns io.EOF behind a whole stream only.
func (x *xzReader) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if x.block == nil {
			if err := x.next(); err != nil {
				return 0, err
			}
			continue
		}
		b := x.block
		n, err := b.r.Read(p)
		b.size += int64(n)
		if b.sum != nil {
			b.sum.Write(p[:n])
		}
		switch {
		case err == io.EOF && !b.r.EOS(): // the library's word for any end
			err = io.ErrUnexpectedEOF
		case err == io.EOF:
			err = within(x.endBlock())
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// within is an error in the midst of a stream, where no end may be.
func within(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next goes on to the next block. io.EOF: there is none.
func (x *xzReader) next() error {
	if !x.inStream {
		var head [12]byte
		if _, err := io.ReadFull(&x.src, head[:4]); err != nil {
			return err // io.EOF when there is nothing
		}
		if head[0] == 0 && [4]byte(head[:4]) == [4]byte{} { // padding
			return nil
		}
		if _, err := io.ReadFull(&x.src, head[4:]); err != nil {
			return within(err)
		}
		if string(head[:6]) != xzMagic || crc32.ChecksumIEEE(head[6:8]) != binary.LittleEndian.Uint32(head[8:]) {
			return errors.New("xz: what follows is no stream")
		}
		x.check = head[7]
		if _, known := xzSum(x.check); head[6] != 0 || !known {
			return fmt.Errorf("xz: unknown check %d", x.check)
		}
		x.inStream, x.index = true, xzIndex{}
	}
	size, err := x.src.ReadByte()
	if err == nil && size == 0 {
		x.inStream = false
		return within(x.endStream())
	}
	if err == nil {
		err = x.startBlock(size)
	}
	return within(err)
}

// startBlock reads the header of a block, whose first byte is its length.
func (x *xzReader) startBlock(size byte) error {
	head := make([]byte, 4*(int(size)+1))
	head[0] = size
	if _, err := io.ReadFull(&x.src, head[1:]); err != nil {
		return err
	}
	end := len(head) - 4
	if crc32.ChecksumIEEE(head[:end]) != binary.LittleEndian.Uint32(head[end:]) {
		return errors.New("xz: damaged block header")
	}
	b := &xzBlock{header: int64(len(head)), from: x.src.n, compressed: -1, uncompressed: -1}
	flags, rest := head[1], head[2:end]
	for _, s := range []struct {
		bit byte
		to  *int64
	}{{0x40, &b.compressed}, {0x80, &b.uncompressed}} {
		if flags&s.bit != 0 {
			v, n := binary.Uvarint(rest)
			if n <= 0 || v>>63 != 0 {
				return errors.New("xz: block header states no size")
			}
			*s.to, rest = int64(v), rest[n:]
		}
	}
	if flags&0x3f != 0 || len(rest) < 3 || rest[0] != xzLZMA2 || rest[1] != 1 || rest[2] > 40 {
		return errors.New("xz: not compressed with LZMA2 alone")
	}
	history := uint64(1)<<32 - 1
	if bits := rest[2]; bits < 40 {
		history = uint64(2|bits&1) << (bits/2 + 11)
	}
	if b.uncompressed >= 0 { // no block looks back farther than to its start
		history = min(history, uint64(b.uncompressed))
	}
	if err := x.room(history); err != nil {
		return err
	}
	var err error
	if b.r, err = (lzma.Reader2Config{DictCap: int(max(history, lzma.MinDictCap))}).NewReader2(&x.src); err != nil {
		return err
	}
	b.sum, _ = xzSum(x.check)
	x.block = b
	return nil
}

// endBlock reads what follows a block's data.
func (x *xzReader) endBlock() error {
	b := x.block
	x.block = nil
	compressed := x.src.n - b.from
	if b.compressed >= 0 && b.compressed != compressed || b.uncompressed >= 0 && b.uncompressed != b.size {
		return errors.New("xz: a block's size is not what its header states")
	}
	var want []byte
	if b.sum != nil {
		want = b.sum.Sum(nil)
	}
	pad := int(-compressed & 3)
	tail := make([]byte, pad+len(want))
	if _, err := io.ReadFull(&x.src, tail); err != nil {
		return err
	}
	if string(tail) != string(append(make([]byte, pad), want...)) {
		return errors.New("xz: a block's check does not match")
	}
	x.index.add(uint64(b.header+compressed+int64(len(want))), uint64(b.size))
	return nil
}

// endStream reads the index, whose first byte has been read, and the footer.
func (x *xzReader) endStream() error {
	start := x.src.n - 1
	in := &summed{src: &x.src, crc: crc32.ChecksumIEEE([]byte{0})}
	blocks, err := binary.ReadUvarint(in)
	if err != nil {
		return err
	}
	var index xzIndex
	for index.blocks < blocks {
		unpadded, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		uncompressed, err := binary.ReadUvarint(in)
		if err != nil {
			return err
		}
		index.add(unpadded, uncompressed)
	}
	for (x.src.n-start)%4 != 0 {
		if b, err := in.ReadByte(); err != nil {
			return err
		} else if b != 0 {
			return errors.New("xz: damaged index")
		}
	}
	var tail [16]byte // the index's check, and the footer
	if _, err := io.ReadFull(&x.src, tail[:]); err != nil {
		return err
	}
	footer := tail[4:]
	switch {
	case binary.LittleEndian.Uint32(tail[:]) != in.crc, index != x.index:
		return errors.New("xz: the index is not that of the blocks")
	case string(footer[10:]) != xzFooterMagic, binary.LittleEndian.Uint32(footer) != crc32.ChecksumIEEE(footer[4:10]),
		footer[8] != 0, footer[9] != x.check, 4*(int64(binary.LittleEndian.Uint32(footer[4:]))+1) != x.src.n-int64(len(footer))-start:
		return errors.New("xz: damaged stream footer")
	}
	return nil
}

// summed sums what is read byte by byte.
type summed struct {
	src io.ByteReader
	crc uint32
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.src.ReadByte()
	if err == nil {
		s.crc = crc32.Update(s.crc, crc32.IEEETable, []byte{b})
	}
	return b, err
}
