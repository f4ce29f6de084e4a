// Package runfile reads and writes saved runs: a command's result as JSON,
// with a header that says what ran where and when.
//
// A file is one JSON object. The header stands in "run"; all other fields are
// the result's own, as documented by each command. Fields that a reader does
// not know are kept.
package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	// Schema names the format.
	Schema = "tbl.run"
	// Version is the newest one, which is written. All older ones are read.
	Version = 2
	// MaxBytes bounds a file; the longest runs with the most cores stay far
	// below it.
	MaxBytes = 256 << 20
)

// ErrForeign says that a file is no saved run: other JSON, cut short, or no
// JSON at all.
var ErrForeign = errors.New("not a saved run")

// Header says what ran.
type Header struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
	Command string `json:"command"`
	// Args is the command line behind the program's name, secrets blotted out.
	Args []string `json:"args"`
	// Settings are the values of the command's flags by their names, defaults
	// and those from the environment included; without secrets and without
	// what only says where the result goes. Nil in files of version 1.
	Settings map[string]string `json:"settings"`
	// Variables are the environment variables that settings were taken from, by
	// their names; those of secrets are blotted out. Nil: none, or not known, or
	// the run is merged.
	Variables map[string]string `json:"variables,omitempty"`
	// Target is what was measured, as the result names it; several are joined
	// by commas. Empty: nothing was (logs were read, or other runs).
	Target string `json:"target"`
	// Seed is the one that the run used, 0: none, or drawn and not known.
	Seed uint64 `json:"seed"`
	// Started is the run's start on the target's clock, DurationNS its length.
	Started    time.Time `json:"started"`
	DurationNS int64     `json:"duration_ns"`
	// VirtualClock says that the run was simulated: its times are the model's,
	// and nothing of it depends on the machine.
	VirtualClock bool `json:"virtual_clock"`
	// Environment is nil for simulated runs, which depend on none, and where the
	// parts of a merged run had different ones.
	Environment *Environment `json:"environment,omitempty"`
}

// Environment is the machine that the client ran on.
type Environment struct {
	Host    string `json:"host,omitempty"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Kernel  string `json:"kernel,omitempty"`
	CPU     string `json:"cpu,omitempty"`
	Cores   int    `json:"cores"`
	Go      string `json:"go"`
	Version string `json:"tbl"`
}

// File is a saved run.
type File struct {
	// Path is where it was read from; it is not written.
	Path   string
	Header Header
	// Fields are the result's own, "run" left out.
	Fields map[string]json.RawMessage

	head json.RawMessage // the header as it was read, for what is unknown in it
}

// MarshalJSON writes the header and all fields, the known and the unknown.
func (f *File) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(f.Header)
	if err == nil && f.head != nil {
		head, err = overlay(f.head, head)
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(f.Fields)+1)
	for k, v := range f.Fields {
		all[k] = v
	}
	all["run"] = head
	return json.Marshal(all)
}

// overlay is the JSON object old with the fields of the object now in their
// places; objects within are laid over each other in the same way.
func overlay(old, now json.RawMessage) (json.RawMessage, error) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(now, &b) != nil || a == nil || b == nil {
		return now, nil
	}
	for name, v := range b {
		merged, err := overlay(a[name], v)
		if err != nil {
			return nil, err
		}
		a[name] = merged
	}
	return json.Marshal(a)
}

// Decode fills v, a pointer to a result, from the file's fields.
func (f *File) Decode(v any) error {
	raw, err := json.Marshal(f.Fields)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w: %w", f.Path, ErrForeign, err)
	}
	return nil
}

// Read reads the file at path, plain or gzip-compressed. Its errors wrap
// ErrForeign, or are of reading.
func Read(path string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, want a file", path)
	}
	raw, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.Path = path
	return f, nil
}

// Parse reads a file's bytes.
func Parse(raw []byte) (*File, error) {
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForeign, err)
		}
		if raw, err = io.ReadAll(io.LimitReader(z, MaxBytes+1)); err != nil {
			return nil, fmt.Errorf("%w: compressed data cut short or damaged: %w", ErrForeign, err)
		}
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("%w: over %d MiB", ErrForeign, MaxBytes>>20)
	}
	f := &File{}
	if err := json.Unmarshal(raw, &f.Fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && strings.Contains(err.Error(), "unexpected end") {
			return nil, fmt.Errorf("%w: the file is cut short", ErrForeign)
		}
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	head, ok := f.Fields["run"]
	if !ok || json.Unmarshal(head, &f.Header) != nil || f.Header.Schema != Schema {
		return nil, fmt.Errorf("%w: its JSON has no header of schema %s: save runs with --export FILE.json", ErrForeign, Schema)
	}
	if f.Header.Version < 1 || f.Header.Version > Version {
		return nil, fmt.Errorf("%w: version %d, this program reads up to %d: use a newer one", ErrForeign, f.Header.Version, Version)
	}
	delete(f.Fields, "run")
	f.head = head
	if f.Header.Version == 1 {
		f.upgrade()
	}
	return f, nil
}

// upgrade fills in what version 1 had in other places.
func (f *File) upgrade() {
	h := &f.Header
	h.VirtualClock = h.Environment == nil
	// Where they have another type they are something else's.
	_ = json.Unmarshal(f.Fields["target"], &h.Target)
	_ = json.Unmarshal(f.Fields["seed"], &h.Seed)
}

// secrets are the flags whose values are no part of a saved command line.
var secrets = [...]string{"token", "header", "secret"}

// Secret says that a flag's value is no part of a saved run.
func Secret(flag string) bool { return slices.Contains(secrets[:], flag) }

// Redact returns args with the values of secret flags blotted out.
func Redact(args []string) []string {
	out := append([]string{}, args...)
	for i, a := range out {
		name := strings.TrimLeft(a, "-")
		if name == a {
			continue
		}
		name, _, inline := strings.Cut(name, "=")
		for _, s := range secrets {
			switch {
			case name != s:
			case inline:
				out[i] = a[:strings.IndexByte(a, '=')+1] + "***"
			case i+1 < len(out):
				out[i+1] = "***"
			}
		}
	}
	return out
}
