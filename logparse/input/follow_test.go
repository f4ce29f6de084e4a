package input

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// followed is a file that is followed, on a clock of its own.
type followed struct {
	t    *testing.T
	path string
	fl   *follower
	at   time.Time
}

func follow(t *testing.T, text string) *followed {
	t.Helper()
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "ltm"), at: time.Unix(0, 0)}
	f.add("", text)
	fl, err := openFollow(f.path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fl.Close() })
	fl.now = func() time.Time { return f.at }
	f.fl = fl
	return f
}

// add appends to the file with that ending.
func (f *followed) add(ending, text string) {
	f.t.Helper()
	w, err := os.OpenFile(f.path+ending, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = w.WriteString(text)
		w.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) rename(from, to string) {
	f.t.Helper()
	if err := os.Rename(f.path+from, f.path+to); err != nil {
		f.t.Fatal(err)
	}
}

// read is what is delivered until nothing comes; a boundary is a "|" where it ends a line.
func (f *followed) read(size int) string {
	f.t.Helper()
	var out strings.Builder
	p := make([]byte, size)
	for quiet := 0; quiet < 3; quiet++ {
		n, err := f.fl.next(f.t.Context(), p, 0)
		if err != nil && !errors.Is(err, ErrBoundary) {
			f.t.Fatal(err)
		}
		out.Write(p[:n])
		if s := out.String(); err != nil && s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteString("|\n")
		}
		if n > 0 || err != nil {
			quiet = 0
		}
	}
	return out.String()
}

func (f *followed) want(text string) {
	f.t.Helper()
	if got := f.read(64 << 10); got != text {
		f.t.Errorf("delivered %q, want %q", got, text)
	}
}

// warned says which of these the warnings are, in this order.
func (f *followed) warned(words ...string) {
	f.t.Helper()
	got := f.fl.warnings()
	if len(got) != len(words) {
		f.t.Fatalf("warnings %q, want %q", got, words)
	}
	for i, w := range words {
		if !strings.Contains(got[i], w) {
			f.t.Errorf("warning %q, want %q", got[i], w)
		}
	}
}

func TestWritersThatLearnLateOfARotation(t *testing.T) {
	f := follow(t, "1\n")
	f.want("1\n")
	f.rename("", ".1")
	f.add("", "")
	f.want("")
	f.add(".1", "2\n3 h")
	f.want("2\n")
	f.add("", "4\n5 h")
	f.want("4\n")
	f.at = f.at.Add(keepOld)
	f.add(".1", "alf\n") // its minute begins anew
	f.want("3 half\n")
	f.at = f.at.Add(keepOld)
	f.add(".1", "6\n7 cut off")
	f.add("", "alf\n8\n")
	f.want("6\n5 half\n8\n")
	f.at = f.at.Add(keepOld + 1)
	f.want("7 cut off|\n")
	if len(f.fl.files) != 1 {
		t.Errorf("%d files are still open", len(f.fl.files))
	}
	f.warned("rotated while it was read (1×)")
}

func TestSeveralRotationsBetweenTwoLooks(t *testing.T) {
	f := follow(t, "1\n")
	f.want("1\n")
	rotate := func(text string) {
		for k := 8; k > 0; k-- {
			if _, err := os.Stat(fmt.Sprintf("%s.%d", f.path, k)); err == nil {
				f.rename(fmt.Sprint(".", k), fmt.Sprint(".", k+1))
			}
		}
		f.rename("", ".1")
		f.add("", text)
	}
	f.add("", "2\n")
	rotate("3\n")
	rotate("4\n")
	rotate("5\n")
	f.want("2\n3\n4\n5\n")
	f.warned("rotated while it was read (3×)")
	// One in between is not there.
	rotate("6\n")
	rotate("7\n")
	f.rename(".1", ".gone")
	f.want("7\n")
	f.warned("rotated while it was read (4×)", "another file in between")
}

func TestRotationToOtherNames(t *testing.T) {
	f := follow(t, "1\n")
	f.rename("", "-20261130")
	f.add("", "2\n")
	f.want("1\n2\n")
	f.warned("rotated while it was read (1×)")
	// Compressed at once.
	st, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.add(".1.gz", "packed")
	if err := os.Chtimes(f.path+".1.gz", st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.add("", "2b\n")
	f.want("2b\n")
	f.warned("rotated while it was read (2×)")
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	f.want("")
	f.add("", "3\n")
	f.want("3\n")
	f.warned("rotated while it was read (3×)", "another file in between")
}

func TestFileCutDownAndGrownAgain(t *testing.T) {
	f := follow(t, "1 first\n2\n")
	f.want("1 first\n2\n")
	rewrite := func(text string) {
		t.Helper()
		if err := os.Truncate(f.path, 0); err != nil {
			t.Fatal(err)
		}
		f.add("", text)
	}
	rewrite("3 other\n4 of more\n") // longer than what was read
	f.want("3 other\n4 of more\n")
	rewrite("5 other\n6 of more\n") // as long
	f.want("5 other\n6 of more\n")
	rewrite("7\n")
	f.want("7\n")
	f.warned("truncated while it was read (3×)")
	// Copied before: nothing is lost.
	f.add("", "8\n9\n")
	data, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.add(".1", string(data))
	rewrite("10\n11\n12\n13\n14\n")
	f.want("8\n9\n10\n11\n12\n13\n14\n")
	f.warned("copied and truncated while it was read (1×)", "truncated while it was read (3×)")
}

// What is longer than the reader's buffer is delivered in pieces, with nothing in between.
func TestFollowedLinesLongerThanTheBuffer(t *testing.T) {
	long := strings.Repeat("x", 1000)
	f := follow(t, "a\n"+long)
	if got := f.read(64); got != "a\n"+long {
		t.Errorf("delivered %q", got)
	}
	f.rename("", ".1")
	f.add("", "b\n")
	f.add(".1", "y\nc\n")
	if got := f.read(64); got != "y\nc\nb\n" {
		t.Errorf("delivered %q", got)
	}
}

func TestRestOfFollowedFiles(t *testing.T) {
	f := follow(t, "1\n2")
	f.want("1\n")
	f.rename("", ".1")
	f.add("", "3\n4")
	f.want("3\n")
	var got []string
	p := make([]byte, 64<<10)
	for n := f.fl.rest(p); n > 0; n = f.fl.rest(p) {
		got = append(got, string(p[:n]))
	}
	if !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("rest %q", got)
	}
}

func TestCompressedIsNotFollowed(t *testing.T) {
	packed := "\x1f\x8b\x08rest\n"
	path := filepath.Join(t.TempDir(), "ltm")
	if err := os.WriteFile(path, []byte(packed), 0o644); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.WriteString(packed)
	w.Close()
	for _, in := range []Input{Follow(path, false), Command("cat " + path), Stdin(r)} {
		s, err := in.Open()
		if err == nil {
			s.Watch()
			for n := 0; n == 0 && err == nil; {
				n, err = s.Next(t.Context(), make([]byte, 64<<10), time.Millisecond)
			}
			s.Close()
		}
		if !errors.Is(err, ErrCompressed) || !strings.Contains(err.Error(), "gzip") {
			t.Errorf("%s: %v", in.Name(), err)
		}
	}
}
