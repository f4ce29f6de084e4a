// Package bench runs iRules without a BIG-IP: a tclsh 8.6 process that
// emulates their environment, one interpreter per TMM, behind a real socket
// on 127.0.0.1.
//
// It is for tests. What it emulates and what it doesn't is written at the
// top of bench.tcl.
package bench

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed *.tcl
var scripts embed.FS

// Config says what to run. The zero value of every field but Rules is usable.
type Config struct {
	// Rules are loaded in their order; each name is the rule's on the BIG-IP.
	Rules []Rule
	// TMMs is the number of TMMs. 0: 4.
	TMMs int
	// Seed decides who owns which name, which connection reaches which TMM,
	// and the costs. 0 is a seed like any other.
	Seed int64
	// Tclsh is the interpreter. Empty: "tclsh" on the PATH.
	Tclsh string
}

// Rule is an iRule as it would be deployed.
type Rule struct {
	Name, Text string
}

// ErrNoTclsh says that there is no Tcl interpreter on this machine.
var ErrNoTclsh = errors.New("no tclsh found")

// startTimeout bounds the start, and the answer to a command.
const startTimeout = 30 * time.Second

// Bench is a running emulation. Its methods are safe for concurrent use.
type Bench struct {
	cfg   Config
	dir   string
	addr  string
	cmd   *exec.Cmd
	stdin io.WriteCloser

	commands sync.Mutex  // one command at a time
	replies  chan string // "OK …" and "ERR …"
	done     chan struct{}

	mu     sync.Mutex
	log    []string
	stray  []string
	stderr strings.Builder

	closing  sync.Once
	closeErr error
}

// Start starts one and waits until it listens. The end of ctx kills it.
func Start(ctx context.Context, cfg Config) (*Bench, error) {
	if cfg.TMMs == 0 {
		cfg.TMMs = 4
	}
	if cfg.Tclsh == "" {
		cfg.Tclsh = "tclsh"
	}
	tclsh, err := exec.LookPath(cfg.Tclsh)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTclsh, err)
	}
	dir, err := os.MkdirTemp("", "tbl-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	b := &Bench{cfg: cfg, dir: dir, replies: make(chan string, 1), done: make(chan struct{})}
	if err := b.start(ctx, tclsh); err != nil {
		b.Close()
		return nil, fmt.Errorf("bench: %w", err)
	}
	return b, nil
}

func (b *Bench) start(ctx context.Context, tclsh string) error {
	if err := os.CopyFS(b.dir, scripts); err != nil {
		close(b.done)
		return err
	}
	args := []string{filepath.Join(b.dir, "bench.tcl"), strconv.Itoa(b.cfg.TMMs), strconv.FormatInt(b.cfg.Seed&0x7fffffff, 10)}
	for _, r := range b.cfg.Rules {
		file, err := b.writeRule(r)
		if err != nil {
			close(b.done)
			return err
		}
		args = append(args, r.Name+"="+file)
	}
	b.cmd = exec.CommandContext(ctx, tclsh, args...)
	b.cmd.Stderr = &lockedWriter{b: b}
	b.cmd.WaitDelay = time.Second
	stdout, err := b.cmd.StdoutPipe()
	if err == nil {
		b.stdin, err = b.cmd.StdinPipe()
	}
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		b.cmd = nil
		close(b.done)
		return err
	}
	listening := make(chan string, 1)
	go b.read(stdout, listening)
	select {
	case port := <-listening:
		b.addr = "127.0.0.1:" + port
		return nil
	case <-b.done:
		return b.ended()
	case <-time.After(startTimeout):
		return fmt.Errorf("tclsh does not listen after %v", startTimeout)
	}
}

func (b *Bench) writeRule(r Rule) (string, error) {
	f, err := os.CreateTemp(b.dir, "rule-*.tcl")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(r.Text)
	return f.Name(), errors.Join(err, f.Close())
}

// read sorts what the process prints.
func (b *Bench) read(stdout io.Reader, listening chan<- string) {
	defer close(b.done)
	sc := bufio.NewScanner(stdout)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		kind, rest, _ := strings.Cut(sc.Text(), " ")
		switch kind {
		case "LISTEN":
			listening <- rest
		case "OK", "ERR":
			b.replies <- sc.Text()
		case "LOG":
			b.mu.Lock()
			b.log = append(b.log, rest)
			b.mu.Unlock()
		default:
			b.mu.Lock()
			b.stray = append(b.stray, sc.Text())
			b.mu.Unlock()
		}
	}
}

type lockedWriter struct{ b *Bench }

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.stderr.Write(p)
}

func (b *Bench) errors() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.stderr.String())
}

// Addr is the address it listens on, host:port.
func (b *Bench) Addr() string { return b.addr }

// URL is the base URL of its virtual server.
func (b *Bench) URL() string { return "http://" + b.addr }

// Log returns the lines logged so far, as a syslog would keep them: all of
// them from requests that have been answered.
func (b *Bench) Log() []string {
	// The answer to a command comes behind the lines logged before it. When
	// the process has ended, everything has been read anyway.
	_, _ = b.State()
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.log...)
}

// Stray returns what came out that is neither a log line nor a reply: the
// second half of a line that something in it ended early.
func (b *Bench) Stray() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.stray...)
}

// Stderr returns what the interpreter itself complained about.
func (b *Bench) Stderr() string { return b.errors() }

// Reload loads a rule anew: statics as its RULE_INIT leaves them, entries
// stay. A rule not loaded before is added.
func (b *Bench) Reload(r Rule) error {
	file, err := b.writeRule(r)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	_, err = b.command("reload " + r.Name + " " + file)
	return err
}

// Unload takes a rule away and cuts the connections being served.
func (b *Bench) Unload(name string) error {
	_, err := b.command("unload " + name)
	return err
}

// Restart starts a TMM anew: its statics and its subtables are gone.
func (b *Bench) Restart(tmm int) error {
	_, err := b.command("restart " + strconv.Itoa(tmm))
	return err
}

// Advance lets whole seconds pass for the rules' clock and the table's
// timers.
func (b *Bench) Advance(d time.Duration) error {
	_, err := b.command("advance " + strconv.Itoa(int(d/time.Second)))
	return err
}

// Owner is the TMM that holds a subtable, which no rule can ask. The name
// must be one word.
func (b *Bench) Owner(subtable string) (int, error) {
	s, err := b.command("owner " + subtable)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(s)
}

// State is a line of counters: tmms, subtables, entries, connections.
func (b *Bench) State() (string, error) { return b.command("state") }

func (b *Bench) command(line string) (string, error) {
	b.commands.Lock()
	defer b.commands.Unlock()
	if _, err := io.WriteString(b.stdin, line+"\n"); err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	select {
	case reply := <-b.replies:
		kind, rest, _ := strings.Cut(reply, " ")
		if kind == "ERR" {
			return "", fmt.Errorf("bench: %s: %s", line, rest)
		}
		return rest, nil
	case <-b.done:
		return "", fmt.Errorf("bench: %w", b.ended())
	case <-time.After(startTimeout):
		return "", fmt.Errorf("bench: no answer to %q", line)
	}
}

// ended is the error of a process that went by itself. What it complained about
// may come behind the end of its output: Close waits for it.
func (b *Bench) ended() error {
	_ = b.Close()
	return fmt.Errorf("tclsh ended: %s", b.errors())
}

// Close ends the process and removes its files. The second call returns what
// the first did.
func (b *Bench) Close() error {
	b.closing.Do(func() {
		if b.cmd != nil {
			b.stdin.Close()
			select {
			case <-b.done:
			case <-time.After(5 * time.Second):
				b.cmd.Process.Kill()
				<-b.done
			}
			b.closeErr = b.cmd.Wait()
		}
		b.closeErr = errors.Join(b.closeErr, os.RemoveAll(b.dir))
	})
	return b.closeErr
}
