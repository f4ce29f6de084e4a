package figures

import (
	"testing"

	"tbl/cmd/tbl/internal/runfile"
)

// TestSeedSet: a seed that was drawn is no setting, however old the file.
func TestSeedSet(t *testing.T) {
	for _, c := range []struct {
		settings map[string]string
		args     []string
		want     string
	}{
		{map[string]string{"seed": "7"}, []string{"load", "--seed", "7"}, "7"},
		{map[string]string{"seed": "7"}, []string{"load"}, "7"}, // from the environment
		{map[string]string{"seed": "0"}, []string{"load"}, "drawn"},
		{nil, []string{"load"}, "drawn"},
		{nil, []string{"load", "--seed", "8"}, "8"},
		{nil, []string{"load", "-seed=9", "--count", "5"}, "9"},
		{nil, []string{"load", "seed"}, "drawn"},
		{nil, []string{"load", "--seed"}, "drawn"},
	} {
		f := &runfile.File{Header: runfile.Header{Seed: 123, Settings: c.settings, Args: c.args}}
		if got := seedSet(f); got != c.want {
			t.Errorf("settings %v, args %q: %q, want %q", c.settings, c.args, got, c.want)
		}
	}
}
