// Package input opens what a log can be read from: files, compressed or not,
// pipes, and live sources: a file that grows, a command's output, syslog
// messages. It knows nothing of what the lines say.
package input

import (
	"errors"
	"io"
	"os"
)

// Errors of inputs, wrapped with the input's name. A missing or unreadable
// file is an fs.ErrNotExist or fs.ErrPermission.
var (
	ErrDirectory = errors.New("is a directory")
	ErrTruncated = errors.New("compressed data is cut short")
	ErrCorrupt   = errors.New("compressed data is corrupt")
	// ErrWithinLine is a gzip file that follows an unfinished line.
	ErrWithinLine = errors.New("a gzip file begins within a line, as behind a file without its last newline: give the files by name")
	// ErrCompressed: a live source can't be compressed.
	ErrCompressed = errors.New("what can be followed is text, this is compressed")
	// ErrChanged: a file became shorter.
	ErrChanged = errors.New("file became shorter while it was read")
)

// Input is something to read: see File, Stdin, Reader, Follow, Command, Syslog.
type Input struct {
	name    string
	kind    inputKind
	file    *os.File
	reader  io.Reader
	fromEnd bool
}

type inputKind uint8

const (
	inputFile inputKind = iota
	inputStdin
	inputReader
	inputFollow
	inputCommand
	inputSyslog
)

// Name is the input's name as results show it.
func (in Input) Name() string { return in.name }

// Live says that the input has no end of its own.
func (in Input) Live() bool { return in.kind >= inputFollow }

// File is the file at path, compressed or not (by content). A pipe or a device
// is read as it comes.
func File(path string) Input { return Input{name: path, kind: inputFile} }

// Stdin is an open file: a regular one is read in parallel from its current
// offset, a pipe as it comes. It is not closed.
func Stdin(f *os.File) Input { return Input{name: "-", kind: inputStdin, file: f} }

// Reader is any reader, compressed or not.
func Reader(name string, r io.Reader) Input {
	return Input{name: name, kind: inputReader, reader: r}
}

// Follow is a live file: what it holds (or, with fromEnd, only what is
// appended after Start), then what is appended, across rotation and truncation.
func Follow(path string, fromEnd bool) Input {
	return Input{name: path, kind: inputFollow, fromEnd: fromEnd}
}

// Command is the standard output of a shell command such as "ssh bigip tail -F
// /var/log/ltm". It is ended when the scan ends; when it ends
// by itself and fails, what it printed before is a part only.
func Command(shell string) Input { return Input{name: shell, kind: inputCommand} }

// Syslog listens on "udp://host:port" or "tcp://host:port" for syslog messages.
func Syslog(url string) Input { return Input{name: url, kind: inputSyslog} }
