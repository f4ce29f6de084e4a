package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tbl/prober"
)

// TestResetListsFewNames: a text lists the first 20 names that were cleared and
// says how many more there are.
func TestResetListsFewNames(t *testing.T) {
	for _, c := range []struct {
		names, lines int
		more         string
	}{{0, 0, ""}, {20, 20, ""}, {21, 20, "… and under 1 more,"}, {70_000, 20, "… and under 69,980 more,"}} {
		r := &prober.ResetResult{}
		for i := range c.names {
			r.Orphans = append(r.Orphans, prober.Orphan{Subtable: fmt.Sprintf("app_%d", i), Deleted: 1})
		}
		var out bytes.Buffer
		if err := writeText(&out, Reset(r)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "no core calls its own"); n != c.lines {
			t.Errorf("%d names: %d lines, want %d", c.names, n, c.lines)
		}
		if strings.Contains(out.String(), " more,") != (c.more != "") || !strings.Contains(out.String(), c.more) {
			t.Errorf("%d names: %q is not said:\n%s", c.names, c.more, out.String())
		}
	}
}
