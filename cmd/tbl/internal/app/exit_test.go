package app

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestOneLine: an error is one line of bounded length, whatever is in it.
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"open\nx":          "open; x",
		"a\x1b[31m \u009b": `a\x1b[31m \x9b`,
		"short  µ":         "short µ",
	} {
		if got := oneLine(errors.New(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	got := oneLine(errors.New("what: " + strings.Repeat("µ", 100_000) + ": want less"))
	if n := utf8.RuneCountInString(got); n != longestLine || !strings.HasPrefix(got, "what: µ") || !strings.HasSuffix(got, "µ: want less") || !strings.Contains(got, "µ…µ") {
		t.Errorf("%d characters: %s", n, got)
	}
}
