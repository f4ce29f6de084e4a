package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// run runs a command line in process.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(context.Background(), Env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &err, Getenv: func(string) string { return "" }}, args)
	return code, out.String(), err.String()
}

// TestCases reproduces every figure of every case, from the file and from
// standard input.
func TestCases(t *testing.T) {
	expects, err := filepath.Glob("../../../../testdata/logs/*.expect.json")
	if err != nil || len(expects) < 9 {
		t.Fatalf("found %d cases, want at least 9: %v", len(expects), err)
	}
	for _, path := range expects {
		log := strings.TrimSuffix(path, ".expect.json") + ".log"
		t.Run(filepath.Base(log), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			input, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			code, out, stderr := run(t, "", "stats", "--format", "json", log)
			checkCase(t, want, code, out, stderr)
			code, out, stderr = run(t, string(input), "stats", "--format", "json", "-")
			checkCase(t, want, code, out, stderr)
		})
	}
}

func checkCase(t *testing.T, want map[string]any, code int, out, stderr string) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q, stderr %q", err, out, stderr)
	}
	if float64(code) != want["exit"] {
		t.Errorf("exit %d, want %v", code, want["exit"])
	}
	checked := 0
	for name, w := range want {
		switch name {
		case "note":
		case "cores":
			cores, _ := got["cores"].(map[string]any)
			for id, fields := range w.(map[string]any) {
				for field, w := range fields.(map[string]any) {
					g, _ := cores[id].(map[string]any)
					switch field {
					case "n", "fast", "slow":
					default:
						field += "_clicks"
					}
					if checked++; g[field] != w {
						t.Errorf("core %s: %s is %v, want %v", id, field, g[field], w)
					}
				}
			}
			if len(cores) != len(w.(map[string]any)) {
				t.Errorf("%d cores, want %d", len(cores), len(w.(map[string]any)))
			}
		default:
			if checked++; !reflect.DeepEqual(got[name], w) {
				t.Errorf("%s is %v, want %v", name, got[name], w)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d figures were checked", checked)
	}
}

// TestRuleMean is the note of the outlier's case.
func TestRuleMean(t *testing.T) {
	code, out, _ := run(t, "", "stats", "--rule", "mean", "../../../../testdata/logs/one-outlier.log")
	if code != 1 || !strings.Contains(out, "LOCALITY ISSUE: TMM 1 ") || strings.Contains(out, "TMM 0 REMOTE") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 5, 6, 16, 2, 11, 0, time.Local)
	for in, want := range map[string]time.Time{
		"":                    {},
		"90m":                 now.Add(-90 * time.Minute),
		"2026-05-06":          time.Date(2026, 5, 6, 0, 0, 0, 0, time.Local),
		"2026-05-06T01:02:03": time.Date(2026, 5, 6, 1, 2, 3, 0, time.Local),
		"2026-05-06 01:02":    time.Date(2026, 5, 6, 1, 2, 0, 0, time.Local),
		"01:02:03":            time.Date(2026, 5, 6, 1, 2, 3, 0, time.Local),
	} {
		if got, err := parseMoment(in, now); err != nil || !got.Equal(want) {
			t.Errorf("parseMoment(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, bad := range []string{"yesterday", "-5m", "25:00", "2026-13-01"} {
		if _, err := parseMoment(bad, now); err == nil {
			t.Errorf("parseMoment(%q) succeeds", bad)
		}
	}
}

func TestFlagsFirst(t *testing.T) {
	flags := commandFlags(boolFlag("", "b", ""), stringFlag("", "s", "", ""))
	for _, c := range []struct{ in, want string }{
		{"a --b", "--b -- a"},
		{"a --s x c", "--s x -- a c"},
		{"a --s=x c", "--s=x -- a c"},
		{"--s - -", "--s - -- -"},
		{"a -- --b", "-- a --b"},
		{"--b", "--b"},
		{"a --s", "--s -- a"},
	} {
		got := strings.Join(flagsFirst(flags, strings.Fields(c.in)), " ")
		if got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}
