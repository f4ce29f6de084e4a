package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

func gz(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Text and compressed files in any order, read in pieces of any size, come out
// as their text; what begins within a line is that line's.
func TestMixed(t *testing.T) {
	long := strings.Repeat("a line of text\n", 30_000)
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"one\ntwo\n", "one\ntwo\n"},
		{"one\n" + gz(t, "two\n"), "one\ntwo\n"},
		{"one\n" + gz(t, "two\n") + gz(t, "three\n") + "four\n" + gz(t, "five\n"), "one\ntwo\nthree\nfour\nfive\n"},
		{"key=\x1f\x8b\x08\x00 and more\n", "key=\x1f\x8b\x08\x00 and more\n"},
		{"key=" + gz(t, "two\n")[:12] + "\n", "key=" + gz(t, "two\n")[:12] + "\n"},
		{long + gz(t, long) + long, long + long + long},
		{"\x1f odd \x1f\x1f\x8b\x09 bytes \x1f\x8b", "\x1f odd \x1f\x1f\x8b\x09 bytes \x1f\x8b"},
		{strings.Repeat("\x1f", 300_000), strings.Repeat("\x1f", 300_000)},
		{"one\n" + gz(t, ""), "one\n"},
		{gz(t, "one\n") + "two\n" + gz(t, "three\n"), "one\ntwo\nthree\n"},
		{gz(t, "one") + gz(t, "two") + "three", "one\ntwo\nthree"},
		{"one\n" + gz(t, "two") + gz(t, "three\n"), "one\ntwo\nthree\n"},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in)),
			"halves": iotest.HalfReader(strings.NewReader(c.in)), "with the error": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			got, err := io.ReadAll(newMixed(r))
			if err != nil || string(got) != c.want {
				t.Errorf("%.40q %s: %d bytes of %d, %v", c.in, name, len(got), len(c.want), err)
			}
		}
	}
	for _, cut := range []int{1, 9, 15} {
		if _, err := io.ReadAll(newMixed(strings.NewReader("one\n" + gz(t, "two\n")[:20-cut]))); !errors.Is(err, ErrTruncated) {
			t.Errorf("cut by %d: %v", cut, err)
		}
	}
	// A file without its last newline stands before a compressed one.
	if _, err := io.ReadAll(newMixed(strings.NewReader("one" + gz(t, "two\n")))); err != ErrWithinLine {
		t.Errorf("within a line: %v", err)
	}
	for cut := range gz(t, "two\n") {
		if _, err := io.ReadAll(newMixed(strings.NewReader(gz(t, "one\n") + gz(t, "two\n")[:cut]))); cut > 0 && !errors.Is(err, ErrTruncated) {
			t.Errorf("cut at %d of the second file: %v", cut, err)
		}
	}
	broken := []byte(gz(t, strings.Repeat("text ", 1000)))
	for range 5 {
		broken[20+rand.IntN(10)] ^= 0xff
	}
	if _, err := io.ReadAll(newMixed(io.MultiReader(strings.NewReader("x\n"), bytes.NewReader(broken)))); err == nil {
		t.Error("a damaged file passes")
	}
	boom := errors.New("boom")
	if _, err := io.ReadAll(newMixed(io.MultiReader(strings.NewReader("a\x1fb"), iotest.ErrReader(boom)))); err != boom {
		t.Errorf("the reader's error: %v", err)
	}
}
