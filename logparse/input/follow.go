package input

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// follower reads a file that grows, is rotated (renamed, and made anew), or
// is cut down to nothing.
type follower struct {
	path    string
	f       *os.File
	at      int64
	moved   bool // the path led to another file at the last look
	rotated int
	cut     int
}

func openFollow(path string, fromEnd bool) (*follower, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = ErrDirectory
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	fl := &follower{path: path, f: f}
	if fromEnd {
		fl.at = st.Size()
	}
	return fl, nil
}

func (fl *follower) next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	n, err := fl.f.ReadAt(p, fl.at)
	fl.at += int64(n)
	if n > 0 {
		fl.moved = false
		return n, nil
	}
	if err != nil && err != io.EOF {
		return 0, err
	}
	cur, err := fl.f.Stat()
	if err != nil {
		return 0, err
	}
	if cur.Size() < fl.at {
		fl.at = 0
		fl.cut++
		return 0, ErrBoundary
	}
	if named, err := os.Stat(fl.path); err == nil && !os.SameFile(cur, named) {
		// The writer may still write to the old file: one more look at it.
		if fl.moved {
			f, err := os.Open(fl.path)
			if err == nil {
				fl.f.Close()
				fl.f, fl.at, fl.moved = f, 0, false
				fl.rotated++
				return 0, ErrBoundary
			}
		}
		fl.moved = true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return 0, nil
}

func (fl *follower) warnings() []string {
	var out []string
	if fl.rotated > 0 {
		out = append(out, fmt.Sprintf("%s was rotated while it was read (%d×)", fl.path, fl.rotated))
	}
	if fl.cut > 0 {
		out = append(out, fmt.Sprintf("%s was truncated while it was read (%d×): what was not yet read then is lost", fl.path, fl.cut))
	}
	return out
}

func (fl *follower) Close() error { return fl.f.Close() }

// pipeSource reads an open pipe as a live input.
type pipeSource struct{ f *os.File }

func (p *pipeSource) next(ctx context.Context, b []byte, wait time.Duration) (int, error) {
	ready, err := waitReadable(p.f, wait)
	if err != nil || !ready {
		return 0, err
	}
	return p.f.Read(b)
}

func (p *pipeSource) warnings() []string { return nil }
func (p *pipeSource) Close() error       { return nil }
