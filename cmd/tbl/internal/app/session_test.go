package app

import (
	"strings"
	"testing"
)

// Zero is none, not the default.
func TestSessionZero(t *testing.T) {
	args := []string{"session", "--clock", "model", "--seed", "1", "--sessions", "20", "--design", "shared"}
	for _, c := range []struct {
		flags    string
		has, not string
	}{
		{"", "lookup", ", 0 ns between"},
		{"--lookups 0", "enumerate", "lookup "},
		{"--think 0s", "3, 0 ns between", "30"},
		{"--visits 0", "after the first: 0", "lookup "},
	} {
		code, out, stderr := run(t, "", append(args, strings.Fields(c.flags)...)...)
		head, _, _ := strings.Cut(out, "Table memory")
		if c.flags == "--think 0s" {
			head, _, _ = strings.Cut(out, "\n")
		}
		if code != exitOK || !strings.Contains(head, c.has) || strings.Contains(head, c.not) {
			t.Errorf("%s: exit %d, want %q and not %q in\n%s%s", c.flags, code, c.has, c.not, head, stderr)
		}
	}
	for _, flags := range []string{"--lookups -1", "--think -1s", "--visits -1"} {
		if code, _, stderr := run(t, "", append(args, strings.Fields(flags)...)...); code != exitUsage || !strings.Contains(stderr, "want at least 0") && !strings.Contains(stderr, "want 0 or more") {
			t.Errorf("%s: exit %d, %s", flags, code, stderr)
		}
	}
}
