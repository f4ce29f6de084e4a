package logparse

import (
	"context"
	"io"
	"os"
	"time"
)

// Scan reads inputs to their end and returns what they held. Files are opened
// first, all of them, and read in the order of their first times. On an error
// or a cancelled ctx the result holds what was read until then.
func Scan(ctx context.Context, inputs []Input, opt Options) (*Result, error) { panic("not yet") }

// Read reads one uncompressed reader to its end and gives every sample, wrapped ones
// not, to fn: the short form for a window of a log.
func Read(r io.Reader, fn func(*Line)) (Counts, error) { panic("not yet") }

// Input is something to read: see File, Stdin, Reader, Follow, Command, Syslog.
type Input struct {
	name string
	kind inputKind
}
type inputKind uint8

// File is the file at path, compressed or not (by content).
func File(path string) Input { panic("not yet") }

// Stdin is an open file: a regular one is read in parallel from its current offset, a pipe as
// it comes.
func Stdin(f *os.File) Input { panic("not yet") }

// Reader is any reader, compressed or not.
func Reader(name string, r io.Reader) Input { panic("not yet") }

// Follow is a live file: what it holds (or, with fromEnd, only what is
// appended after Start), then what is appended, across rotation and truncation.
func Follow(path string, fromEnd bool) Input { panic("not yet") }

// Command is the standard output of a shell command such as "ssh bigip tail -F /var/log/ltm"; it is killed when the scan ends.
func Command(shell string) Input { panic("not yet") }

// Syslog listens on "udp://host:port" or "tcp://host:port" for syslog messages.
func Syslog(url string) Input { panic("not yet") }

// Watcher reads live inputs in the background.
type Watcher struct{}

// Start opens inputs (the port is bound, the command runs, the file's end is noted when it
// returns) and reads them until Stop or until ctx is done.
func Start(ctx context.Context, inputs []Input, opt Options) (*Watcher, error) { panic("not yet") }

// Samples is the number of samples so far. Safe for concurrent use.
func (w *Watcher) Samples() int64 { panic("not yet") }

// Stop ends the reading after quiet has passed without a new line, at most after limit, and returns what was read.
func (w *Watcher) Stop(quiet, limit time.Duration) (*Result, error) { panic("not yet") }

// Parser parses single lines. It caches what neighbouring lines share, so each
// goroutine needs its own. The zero value is ready.
type Parser struct {
}

// Parse fills l from line, which may end in CR, LF or both, and returns l.Kind.
func (p *Parser) Parse(line []byte, l *Line) Kind { panic("not yet") }

// Time is the line's time, zero when it has none.
func (l *Line) Time() time.Time { panic("not yet") }

type calendar struct{}
