package input

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrHistory: a compressed stream looks back farther than the memory allows.
var ErrHistory = errors.New("compressed data wants too much memory")

const (
	// roomParts MiB are the histories of all streams that share a Room together.
	roomParts = 16
	// maxHistory is the largest history that a stream may have. One that is
	// larger than all of the room has it to itself: no two such are decoded at a time.
	maxHistory = 128 << 20
)

// Room is the memory that compressed streams share for their histories, the
// data they look back to. A stream that finds none waits until others are done.
type Room struct {
	turn  chan struct{} // of one: who takes parts
	parts chan struct{}
}

// NewRoom is an empty room.
func NewRoom() *Room {
	return &Room{turn: make(chan struct{}, 1), parts: make(chan struct{}, roomParts)}
}

// tenant is a stream's part of a room, of none when r is nil.
type tenant struct {
	ctx   context.Context
	r     *Room
	parts int
}

// take makes room for a history of that many bytes in place of the one before.
func (t *tenant) take(history uint64) error {
	if history > maxHistory {
		return fmt.Errorf("%w: %d MiB to look back to, %d at most (a pipe can be read: zstd -dc --long=31 or xz -dc first)",
			ErrHistory, (history+1<<20-1)>>20, maxHistory>>20)
	}
	n := int((history + 1<<20 - 1) >> 20)
	if n > roomParts {
		n = roomParts
		defer debug.FreeOSMemory() // of histories that are over
	}
	if t.r == nil || n <= t.parts {
		return nil
	}
	t.leave() // who holds parts while he waits for more waits for ever
	select {
	case t.r.turn <- struct{}{}:
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
	defer func() { <-t.r.turn }()
	for t.parts < n {
		select {
		case t.r.parts <- struct{}{}:
			t.parts++
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
	return nil
}

// leave gives everything back.
func (t *tenant) leave() {
	for ; t.parts > 0; t.parts-- {
		<-t.r.parts
	}
}
