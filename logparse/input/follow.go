package input

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// keepOld is how long a rotated file is looked at after it last grew: its
	// writer goes on until it is told, which logrotate does when all files are rotated.
	keepOld = time.Minute
	// maxRotations is how many rotations between two looks are followed, by NAME.1, NAME.2, ….
	maxRotations = 32
	// knownBytes before the place that was read to tell whether a file is still the same.
	knownBytes = 256
)

// packedNames end the names of compressed files, which have the time of the
// change of what was compressed.
var packedNames = [...]string{".gz", ".zst", ".xz", ".bz2"}

// follower reads a file that grows, is rotated (renamed, and made anew; or
// copied, and cut down), or is cut down. What was rotated is read on for a while. It
// delivers whole lines, so that those of several files don't mix.
type follower struct {
	path  string
	files []*tailed // oldest first; the last one is the one that path led to
	mid   *tailed   // delivered the beginning of a line that is longer than p
	now   func() time.Time

	rotated, gaps int // gaps: rotations between which there may have been others
	cut, copied   int // copied: cuts after a copy was made, which was read
}

// tailed is a file of which everything before at was delivered.
type tailed struct {
	f     *os.File
	at    int64
	known []byte    // what stands before at
	grew  time.Time // or was opened
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
	if err == nil {
		var magic [6]byte
		n, _ := f.ReadAt(magic[:], 0)
		err = uncompressed(magic[:n])
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	fl := &follower{path: path, files: []*tailed{{f: f}}, now: time.Now}
	fl.files[0].grew = fl.now()
	if fromEnd {
		fl.files[0].seek(st.Size())
	}
	return fl, nil
}

// seek goes to a place in the file.
func (t *tailed) seek(at int64) {
	t.at = at
	b := make([]byte, min(at, knownBytes))
	n, _ := t.f.ReadAt(b, at-int64(len(b)))
	t.known = b[:n]
}

// same says that the file still holds what was read last.
func (t *tailed) same(f *os.File) bool {
	var b [knownBytes]byte
	n, _ := f.ReadAt(b[:len(t.known)], t.at-int64(len(t.known)))
	return bytes.Equal(b[:n], t.known)
}

// took moves on behind what was delivered.
func (t *tailed) took(p []byte) {
	t.at += int64(len(p))
	if len(p) >= knownBytes {
		t.known = append(t.known[:0], p[len(p)-knownBytes:]...)
		return
	}
	t.known = append(t.known, p...)
	t.known = append(t.known[:0], t.known[max(0, len(t.known)-knownBytes):]...)
}

// next delivers what the oldest file has that has something.
func (fl *follower) next(ctx context.Context, p []byte, wait time.Duration) (int, error) {
	// A writer goes from the old file to the new one. Of the new one only what
	// stood there before the old one was looked at is delivered, so that nothing
	// comes before what was written earlier.
	ends := make([]int64, len(fl.files))
	for i := len(fl.files) - 1; i >= 0; i-- {
		st, err := fl.files[i].f.Stat()
		if err != nil {
			return 0, err
		}
		ends[i] = st.Size()
	}
	for i, t := range fl.files {
		if fl.mid != nil && fl.mid != t {
			continue
		}
		if n, err := fl.read(t, p[:min(int64(len(p)), max(0, ends[i]-t.at))], p); n > 0 || err != nil {
			return n, err
		}
		if old := len(fl.files) - 1 - i; old > maxRotations || old > 0 && fl.now().Sub(t.grew) > keepOld {
			return fl.drop(i, p), ErrBoundary
		}
	}
	if found, err := fl.rotation(); found || err != nil {
		return 0, err
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return 0, nil
}

// read delivers the whole lines that follow in t and fit into p, which is a
// part of all.
func (fl *follower) read(t *tailed, p, all []byte) (int, error) {
	n, err := t.f.ReadAt(p, t.at)
	if err != nil && err != io.EOF {
		return 0, err
	}
	// Looked at after reading: what was read is good if the file is the same still.
	if !t.same(t.f) {
		return 0, fl.rewritten(t)
	}
	if k := bytes.LastIndexByte(p[:n], '\n') + 1; k > 0 || n < len(all) && fl.mid != t {
		n = k
	}
	if n == 0 {
		return 0, nil
	}
	fl.mid = nil
	if p[n-1] != '\n' { // a line longer than p: no other may come in between
		fl.mid = t
	}
	t.took(p[:n])
	t.grew = fl.now()
	return n, nil
}

// rewritten begins again with a file that was cut down. Where it was copied
// before, the copy has what was not yet read.
func (fl *follower) rewritten(t *tailed) error {
	fl.cut++
	if f, err := os.Open(fl.path + ".1"); err == nil && t.same(f) {
		old := &tailed{f: f, at: t.at, known: bytes.Clone(t.known), grew: fl.now()}
		fl.files = slices.Insert(fl.files, len(fl.files)-1, old)
		fl.copied++
	} else if err == nil {
		f.Close()
	}
	t.at, t.known = 0, t.known[:0]
	if fl.mid == t {
		fl.mid = nil
	}
	return ErrBoundary
}

// rotation finds out whether the path leads to another file, and opens it and
// those that came and went since the last look.
func (fl *follower) rotation() (found bool, err error) {
	cur, err := fl.files[len(fl.files)-1].f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(fl.path)
	if err != nil || os.SameFile(cur, named) {
		return false, nil // not there: in the midst of a rotation
	}
	between, complete := fl.between(cur)
	var opened []*tailed
	for _, path := range append(between, fl.path) {
		if f, err := os.Open(path); err == nil {
			opened = append(opened, &tailed{f: f, grew: fl.now()})
		}
	}
	if again, _ := fl.between(cur); len(again) != len(between) || len(opened) != len(between)+1 {
		// Rotated again just now: what was opened is not what it was to be.
		for _, t := range opened {
			t.f.Close()
		}
		return false, nil
	}
	fl.files = append(fl.files, opened...)
	fl.rotated += len(opened)
	if !complete {
		fl.gaps++
	}
	return true, nil
}

// between are the files, oldest first, that were written after the one that
// is cur and before the one that the path leads to. complete: there are no others.
func (fl *follower) between(cur os.FileInfo) (paths []string, complete bool) {
	complete = true
	for k := 1; k <= maxRotations; k++ {
		path := fmt.Sprintf("%s.%d", fl.path, k)
		if st, err := os.Stat(path); err == nil {
			if os.SameFile(st, cur) {
				return paths, complete
			}
			paths = slices.Insert(paths, 0, path)
			continue
		}
		for _, packed := range packedNames {
			if st, err := os.Stat(path + packed); err == nil && st.ModTime().Equal(cur.ModTime()) {
				return paths, complete
			}
		}
		complete = false
	}
	// Under a name with a date, which two rotations would share, there was one.
	all, _ := os.ReadDir(filepath.Dir(fl.path))
	for _, entry := range all {
		st, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), filepath.Base(fl.path)) {
			continue
		}
		packed := slices.Contains(packedNames[:], filepath.Ext(entry.Name())) && st.ModTime().Equal(cur.ModTime())
		if packed || os.SameFile(st, cur) {
			return nil, true
		}
	}
	return nil, false
}

// drop gives up a file, and delivers what its last line has without an end.
func (fl *follower) drop(i int, p []byte) int {
	t := fl.files[i]
	n := 0
	if fl.mid != t {
		n, _ = t.f.ReadAt(p, t.at)
		if n == len(p) {
			n = bytes.LastIndexByte(p, '\n') + 1
		}
	} else {
		fl.mid = nil
	}
	t.f.Close()
	fl.files = slices.Delete(fl.files, i, i+1)
	return n
}

// rest gives up one file after the other.
func (fl *follower) rest(p []byte) int {
	for len(fl.files) > 0 {
		if n := fl.drop(0, p); n > 0 {
			return n
		}
	}
	return 0
}

func (fl *follower) warnings() []string {
	var out []string
	warn := func(n int, format string) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, fl.path, n))
		}
	}
	warn(fl.rotated, "%s was rotated while it was read (%d×)")
	warn(fl.gaps, "%s was rotated and what was read before is not found any more (%d×): there may have been another file in between, whose samples are missing")
	warn(fl.copied, "%s was copied and truncated while it was read (%d×): what was not yet read then was taken from the copy")
	warn(fl.cut-fl.copied, "%s was truncated while it was read (%d×): what was not yet read then is lost")
	return out
}

// Close ends it.
func (fl *follower) Close() error {
	for _, t := range fl.files {
		t.f.Close()
	}
	fl.files = nil
	return nil
}

// pipeSource reads an open pipe as a live input.
type pipeSource struct{ f *os.File }

func (p *pipeSource) next(ctx context.Context, b []byte, wait time.Duration) (int, error) {
	ready, err := waitReadable(p.f, wait)
	if err != nil || !ready {
		return 0, err
	}
	return p.f.Read(b)
}

func (p *pipeSource) rest([]byte) int    { return 0 }
func (p *pipeSource) warnings() []string { return nil }
func (p *pipeSource) Close() error       { return nil }
