//go:build unix

package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A log that nobody reads blocks its writer for ever; an interrupted run ends
// all the same, prints what was measured and owns up to the lines that are
// lost.
func TestInterruptedWithUnreadLog(t *testing.T) {
	for _, clock := range []string{"model", "wall"} {
		t.Run(clock, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Skip(err)
			}
			reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			// Nothing fits into the pipe from the beginning.
			filler, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(filler)
			for err == nil {
				_, err = unix.Write(filler, []byte{'\n'})
			}
			if err != unix.EAGAIN {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var out bytes.Buffer
			errs := &progress{seen: cancel}
			code := make(chan int, 1)
			go func() {
				code <- Run(ctx, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: errs, Getenv: func(string) string { return "" }},
					[]string{"load", "--clock", clock, "--seed", "1", "--count", "100000000", "--log-sample", "1", "--log", path})
			}()
			select {
			case c := <-code:
				if c != exitInterrupted {
					t.Errorf("exit %d, want %d", c, exitInterrupted)
				}
			case <-time.After(time.Minute):
				t.Fatal("the run did not end")
			}
			if !strings.Contains(out.String(), "INCOMPLETE") || !strings.Contains(errs.text.String(), "nobody reads it") {
				t.Errorf("printed %q\nand %q", &out, &errs.text)
			}
		})
	}
}

// progress is a stderr that calls seen at the first line about a run's
// progress, which comes after writes were made.
type progress struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen func()
}

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Contains(b, []byte("completed=")) {
		p.seen()
	}
	return p.text.Write(b)
}

// A named pipe whose reader never comes does not keep an interrupted run.
func TestInterruptedBeforeLogOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }},
		[]string{"load", "--clock", "model", "--count", "10", "--log", path})
	if code != exitInterrupted || !strings.Contains(errs.String(), "nobody opened it") {
		t.Errorf("exit %d, %q", code, &errs)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // lets the waiting open go
	if err == nil {
		reader.Close()
	}
}
