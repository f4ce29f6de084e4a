//go:build !linux

package input

import (
	"context"
	"os"
	"time"
)

func widenPipe(*os.File) {}

// waitReadable can't wait here: the read will.
func waitReadable(*os.File, time.Duration) (bool, error) { return true, nil }

// pipeReader reads a pipe. A cancelled ctx is noticed with the next read.
type pipeReader struct {
	ctx context.Context
	f   *os.File
}

func (p *pipeReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.f.Read(b)
}
