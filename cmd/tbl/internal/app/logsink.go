package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// logGrace is how long an interrupted run waits for the reader of its log.
const logGrace = time.Second

// errLogUnread is what an interrupted run owns up to when it ends.
var errLogUnread = errors.New("nobody reads it, the lines that were pending are lost")

// errLogLost is in the chain of errors about lines that could not be written.
var errLogLost = errors.New("lines are lost")

// logSink is where --log writes to. A reader that never reads, of a named pipe
// or of stdout, blocks a write for ever: once the run is interrupted, the sink
// gives such a write up, and everything after it. It is used by one goroutine.
type logSink struct {
	ctx  context.Context
	path string
	w    io.Writer
	err  error // why nothing is written any more
}

// openLog opens what --log names; nil for nothing. A file is appended to, as a
// log is: what an earlier run wrote, or a server before it was started anew,
// stays. The function closes it.
func (a *app) openLog(ctx context.Context, path string) (io.Writer, func() error, error) {
	switch path {
	case "":
		return nil, nil, nil
	case "-":
		return &logSink{ctx: ctx, path: "stdout", w: a.stdout}, func() error { return nil }, nil
	}
	var f *os.File
	var err error
	opened := make(chan struct{})
	go func() { // a named pipe opens when a reader comes
		f, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		close(opened)
	}()
	select {
	case <-opened:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("--log %s: nobody opened it for reading: %w", path, ctx.Err())
	}
	if err != nil {
		return nil, nil, usagef("--log: %w", err)
	}
	l := &logSink{ctx: ctx, path: path, w: f}
	return l, func() error { return l.lost(f.Close()) }, nil
}

// lost says of an error that a log is not whole.
func (l *logSink) lost(err error) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("--log %s: %w: %w", l.path, errLogLost, err)
}

// Write writes b. After an error b may still be held by the write that was
// given up: it must not be changed any more.
func (l *logSink) Write(b []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	var n int
	var err error
	done := make(chan struct{})
	go func() {
		n, err = l.w.Write(b)
		close(done)
	}()
	select {
	case <-done:
		return n, l.lost(err)
	case <-l.ctx.Done():
	}
	select {
	case <-done:
		return n, l.lost(err)
	case <-time.After(logGrace):
		l.err = fmt.Errorf("--log %s: %w: %w", l.path, errLogUnread, l.ctx.Err())
		return 0, l.err
	}
}
