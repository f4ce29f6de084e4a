package runfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

func sample() *File {
	return &File{
		Header: Header{
			Schema: Schema, Version: Version, Command: "load", Args: []string{"load"}, Settings: map[string]string{"count": "5"},
			Target: "embedded", Seed: 1<<64 - 1, Started: time.Unix(1, 5).UTC(), DurationNS: 7, Environment: Here("devel"),
		},
		Fields: map[string]json.RawMessage{"writes_per_s": json.RawMessage("12.5"), "of_the_future": json.RawMessage(`{"a":[1]}`)},
	}
}

// TestRoundTrip also shows that unknown fields are kept.
func TestRoundTrip(t *testing.T) {
	raw, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(raw)
	w.Close()
	for name, b := range map[string][]byte{"plain": raw, "gzip": z.Bytes()} {
		path := filepath.Join(t.TempDir(), "run.json")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Read(path)
		if err != nil {
			t.Fatal(name, err)
		}
		got.Path, got.head = "", nil
		if !reflect.DeepEqual(got, sample()) {
			t.Errorf("%s: got %+v", name, got)
		}
		var r struct {
			Rate float64 `json:"writes_per_s"`
		}
		if err := got.Decode(&r); err != nil || r.Rate != 12.5 {
			t.Errorf("%s: decoded %v, %v", name, r, err)
		}
	}
}

// TestUnknownKept: what a newer program added comes out again as it was, at the
// top, in the header and within it; what this one knows is its own.
func TestUnknownKept(t *testing.T) {
	const file = `{"of_the_future":{"a":[1]},"run":{"schema":"tbl.run","version":2,"command":"load","args":["load"],"settings":{},
		"target":"embedded","seed":3,"started":"2026-01-01T00:00:00Z","duration_ns":5,"virtual_clock":false,"cluster":"blue",
		"environment":{"os":"linux","arch":"amd64","cores":2,"go":"go1.26","tbl":"devel","memory_bytes":1024}}}`
	f, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	f.Header.DurationNS = 6
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(file, `"duration_ns":5`, `"duration_ns":6`, 1)), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", raw, file)
	}
}

// TestOlder reads files that older versions wrote.
func TestOlder(t *testing.T) {
	for name, want := range map[string]Header{
		"load-version1":      {Command: "load", Target: "embedded", Seed: 3, DurationNS: 3001277873},
		"bulk-post-version1": {Command: "bulk-post", Target: "embedded", Seed: 3, DurationNS: 3502599},
	} {
		f, err := Read(filepath.Join("../../../../testdata/runs", name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		h := f.Header
		if h.Version != 1 || h.Command != want.Command || h.Target != want.Target || h.Seed != want.Seed || h.DurationNS != want.DurationNS || !h.VirtualClock {
			t.Errorf("%s: read as %+v", name, h)
		}
		var r struct {
			Verdicts []json.RawMessage `json:"verdicts"`
		}
		if err := f.Decode(&r); err != nil || len(r.Verdicts) == 0 {
			t.Errorf("%s: %d verdicts, %v", name, len(r.Verdicts), err)
		}
	}
}

func TestForeign(t *testing.T) {
	raw, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(raw, []byte(`"version":2`), []byte(`"version":99`), 1)
	for name, b := range map[string]string{
		"empty": "", "text": "hello", "other JSON": `{"a":1}`, "array": "[]", "cut short": string(raw[:len(raw)-9]),
		"newer": string(newer), "other run": `{"run":{"schema":"x","version":1}}`, "gzip of nothing": "\x1f\x8b",
	} {
		if _, err := Parse([]byte(b)); !errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := range raw {
		if _, err := Parse(raw[:cut]); !errors.Is(err, ErrForeign) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

func TestRedact(t *testing.T) {
	got := Redact([]string{"load", "--token", "s3cret", "--header=Authorization: x", "--count", "5", "--secret"})
	want := []string{"load", "--token", "***", "--header=***", "--count", "5", "--secret"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}
