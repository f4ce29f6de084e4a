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
		Header: Header{Schema: Schema, Version: Version, Command: "load", Args: []string{"load"}, Started: time.Unix(1, 5).UTC(), DurationNS: 7, Environment: Here("devel")},
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
		got.Path = ""
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

func TestForeign(t *testing.T) {
	raw, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(raw, []byte(`"version":1`), []byte(`"version":99`), 1)
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
