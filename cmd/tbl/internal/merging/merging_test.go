package merging

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
)

// file is a saved run of load with these settings, in pairs.
func file(path string, settings ...string) *runfile.File {
	f := &runfile.File{Path: path, Fields: map[string]json.RawMessage{}}
	f.Header.Command, f.Header.Version = "load", 2
	f.Header.Settings = map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		f.Header.Settings[settings[i]] = settings[i+1]
	}
	return f
}

// TestPartNames: files of one name are told apart by their paths.
func TestPartNames(t *testing.T) {
	a, b, c := filepath.Join("one", "run.json"), filepath.Join("two", "run.json"), filepath.Join("two", "other.json")
	ps, err := parts[loader.LoadResult]([]*runfile.File{file(a), file(b), file(c)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range ps {
		got = append(got, p.Name)
	}
	if want := []string{a, b, "other.json"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDoubts: what is said of clients that may have written the same keys.
func TestDoubts(t *testing.T) {
	for name, c := range map[string]struct {
		files []*runfile.File
		want  string // empty: nothing
	}{
		"own prefixes": {[]*runfile.File{file("a", "keys", "seq", "key-prefix", "a"), file("b", "keys", "seq", "key-prefix", "b")}, ""},
		"one prefix":   {[]*runfile.File{file("a", "keys", "seq", "key-prefix", "k"), file("b", "keys", "seq", "key-prefix", "k")}, "the same keys, k_…"},
		"one seed":     {[]*runfile.File{file("a", "keys", "uuid", "seed", "7"), file("b", "keys", "uuid", "seed", "7")}, "those of seed 7"},
		"no seed":      {[]*runfile.File{file("a", "keys", "uuid", "seed", "0"), file("b", "keys", "uuid", "seed", "0")}, ""},
		"own seeds":    {[]*runfile.File{file("a", "keys", "uuid", "seed", "7"), file("b", "keys", "uuid", "seed", "8")}, ""},
		"one file":     {[]*runfile.File{file("a", "file", "keys.csv"), file("b", "file", "keys.csv")}, "the keys of a file keys.csv"},
		"own files":    {[]*runfile.File{file("a", "file", "1.csv", "seed", "7"), file("b", "file", "2.csv", "seed", "7")}, ""},
	} {
		got := strings.Join(doubts(c.files), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	files := []*runfile.File{file("a"), file("b")}
	files[0].Header.Target = "embedded"
	if got := strings.Join(doubts(files), "\n"); !strings.Contains(got, "2 dataplanes together") {
		t.Errorf("embedded: %q", got)
	}
}

// TestUnknownFields: what a newer program saved stays where all agree, and goes
// where they don't; what is known comes from the merged result.
func TestUnknownFields(t *testing.T) {
	a, b := file("a"), file("b")
	for f, own := range map[*runfile.File]string{a: "1", b: "2"} {
		f.Fields["alike"] = json.RawMessage(`"x"`)
		f.Fields["unlike"] = json.RawMessage(own)
		f.Fields["sent"] = json.RawMessage("5")
		f.Fields["exit"] = json.RawMessage("0")
	}
	a.Fields["only"] = json.RawMessage("1")
	got, err := unknownInAll([]*runfile.File{a, b}, &render.Document{Data: map[string]any{"sent": 10}})
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := got["alike"].(json.RawMessage); len(got) != 1 || string(raw) != `"x"` {
		t.Errorf("%v", got)
	}
}
