package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// ErrBoundary ends the line that a live source is in: what follows is another file.
var ErrBoundary = errors.New("boundary between files")

// liveSource is an opened live input.
type liveSource interface {
	// next is Source.Next.
	next(ctx context.Context, p []byte, wait time.Duration) (int, error)
	// rest is Source.Rest.
	rest(p []byte) int
	// warnings are doubts so far.
	warnings() []string
	io.Closer
}

// openLive opens a live input.
func (in Input) openLive() (liveSource, error) {
	switch in.kind {
	case inputFollow:
		return openFollow(in.name, in.fromEnd)
	case inputCommand:
		return startCommand(in.name)
	case inputSyslog:
		return listenSyslog(in.name)
	}
	return nil, fmt.Errorf("input kind %d is not live", in.kind)
}

// feeder is the common part of sources that read in goroutines: whole lines come over a channel.
type feeder struct {
	data   chan []byte
	unread []byte
	quit   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once
}

func newFeeder() *feeder {
	return &feeder{data: make(chan []byte, 256), quit: make(chan struct{})}
}

// send hands data over; false when the source was closed.
func (f *feeder) send(data []byte) bool {
	select {
	case f.data <- data:
		return true
	case <-f.quit:
		return false
	}
}

func (f *feeder) next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	n := 0
	if len(f.unread) == 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case d, ok := <-f.data:
			if !ok {
				return 0, io.EOF
			}
			f.unread = d
		case <-ctx.Done():
			return 0, nil
		case <-t.C:
			return 0, nil
		}
	}
	for {
		k := copy(p[n:], f.unread)
		n += k
		f.unread = f.unread[k:]
		if len(f.unread) > 0 {
			return n, nil
		}
		select {
		case d, ok := <-f.data:
			if !ok {
				return n, nil
			}
			f.unread = d
		default:
			return n, nil
		}
	}
}

func (f *feeder) rest([]byte) int { return 0 }

// end stops the goroutines once they have been unblocked.
func (f *feeder) end() {
	f.once.Do(func() { close(f.quit) })
	f.wg.Wait()
}
