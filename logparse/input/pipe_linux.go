package input

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// widenPipe gives a pipe a buffer of 1 MiB, for fewer changes between writer and reader.
// Where it is refused the pipe stays as it is.
func widenPipe(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20)
	})
}

// waitReadable waits until f can be read, or ended, or wait has passed.
func waitReadable(f *os.File, wait time.Duration) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	n := 0
	var perr error
	err = conn.Control(func(fd uintptr) {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, perr = unix.Poll(fds[:], int(wait.Milliseconds()))
	})
	if err == nil && perr != unix.EINTR {
		err = perr
	}
	return n > 0, err
}

// pipeReader reads a pipe or a terminal and gives up when ctx is done: a plain
// read would wait for a writer that may never write.
type pipeReader struct {
	ctx context.Context
	f   *os.File
}

func (p *pipeReader) Read(b []byte) (int, error) {
	for {
		if err := p.ctx.Err(); err != nil {
			return 0, err
		}
		ready, err := waitReadable(p.f, 50*time.Millisecond)
		if err != nil {
			return 0, err
		}
		if ready {
			return p.f.Read(b)
		}
	}
}
