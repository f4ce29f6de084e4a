package input

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/zstd"
)

// zstdFrames passes a zstd file on to the decoder and follows its frames: it
// asks for the room for each frame's history before the decoder meets it, and
// knows an end in the midst of a frame.
type zstdFrames struct {
	src     *bufio.Reader
	room    func(history uint64) error
	had     uint64 // the largest history so far: the decoder keeps it
	inFrame bool
	sum     bool  // the frame ends with a check
	left    int64 // to the next place to look at
	blind   bool  // what follows can't be followed: the decoder will say why
}

func (z *zstdFrames) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if z.left == 0 && !z.blind {
		if err := z.look(); err != nil {
			return 0, err
		}
	}
	if !z.blind {
		p = p[:min(int64(len(p)), z.left)]
	}
	n, err := z.src.Read(p)
	z.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // look would have seen the right one
	}
	return n, err
}

// look finds out how far it is to the next frame or block. io.EOF: there is none.
func (z *zstdFrames) look() error {
	if z.inFrame {
		b, err := z.src.Peek(3)
		if err != nil {
			z.blind = true
			return nil
		}
		head := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
		size := head >> 3
		if head>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		z.left = 3 + size
		if head&1 != 0 { // the last block
			z.inFrame = false
			if z.sum {
				z.left += 4
			}
		}
		return nil
	}
	b, err := z.src.Peek(zstd.HeaderMaxSize)
	if len(b) == 0 {
		return err
	}
	var h zstd.Header
	if h.Decode(b) != nil {
		z.blind = true
		return nil
	}
	z.left = int64(h.HeaderSize)
	if h.Skippable {
		z.left += int64(h.SkippableSize)
		return nil
	}
	z.inFrame, z.sum = true, h.HasCheckSum
	history := h.WindowSize
	if h.SingleSegment {
		history = h.FrameContentSize
	}
	if history <= z.had {
		return nil
	}
	z.had = history
	return z.room(history)
}
