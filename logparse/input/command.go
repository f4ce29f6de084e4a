package input

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// command reads the standard output of a shell command.
type command struct {
	*feeder
	cmd    *exec.Cmd
	stderr tail
	mu     sync.Mutex
	ended  error // how the command ended by itself; nil: well, or by us
	closed bool
}

func startCommand(shell string) (*command, error) {
	c := &command{feeder: newFeeder(), cmd: exec.Command("sh", "-c", shell)}
	ownGroup(c.cmd)
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = time.Second
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.wg.Go(func() {
		defer close(c.data)
		for {
			buf := make([]byte, 64<<10)
			n, err := out.Read(buf)
			if n > 0 && !c.send(buf[:n]) {
				break
			}
			if err != nil {
				break
			}
		}
		err := c.cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil && !c.closed {
			c.ended = err
		}
	})
	return c, nil
}

// failure says how the command ended by itself, nil when well, or by us.
func (c *command) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		return nil
	}
	if s := c.stderr.lastLine(); s != "" {
		return fmt.Errorf("log command %q: %w: %s", c.cmd.Args[2], c.ended, s)
	}
	return fmt.Errorf("log command %q: %w", c.cmd.Args[2], c.ended)
}

func (c *command) warnings() []string { return nil }

// Close ends the command and all that it started.
func (c *command) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	endGroup(c.cmd)
	c.end()
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2048 {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-2048:]...)
	}
	return len(p), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := bytes.TrimSpace(t.buf)
	return strings.ToValidUTF8(string(b[bytes.LastIndexByte(b, '\n')+1:]), "?")
}
