package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// TestLogAppends: --log keeps what a file holds, and says so; simulated runs in
// one file, which all begin at the same date, are told what is the matter.
func TestLogAppends(t *testing.T) {
	log := filepath.Join(t.TempDir(), "m.log")
	for range 2 {
		if code, _, stderr := run(t, "", "load", "--count", "200000", "--log", log, "--clock", "model", "--seed", "1", "--quiet"); code != exitOK {
			t.Fatal(stderr)
		}
	}
	if code, out, _ := run(t, "", "stats", log); code != exitIncomplete || !strings.Contains(out, "Simulated runs all begin at the same date") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	for _, n := range []string{"1", "2"} {
		if code, out, _ := run(t, "", "stats", "--run", n, log); code != exitOK || !strings.Contains(out, "run "+n+" of 2") {
			t.Errorf("run %s: exit %d:\n%s", n, code, out)
		}
	}
	for _, command := range []string{"load", "serve", "validate"} {
		if _, out, _ := run(t, "", command, "--help"); !strings.Contains(out, "append sampled timings") {
			t.Errorf("the help of %s doesn't say that --log appends:\n%s", command, out)
		}
	}
}

// TestSinceAndUntil: times as the log writes them, and what is none.
func TestSinceAndUntil(t *testing.T) {
	log := ""
	for i := range 40 {
		log += fmt.Sprintf("2026-05-06T16:02:%02d+00:00 b info tmm1[9]: Rule /Common/L <HTTP_REQUEST>: tmm=1 subtable=s writes=%d key=k clicks=2 FAST_LOCAL (sampled 1/1)\n", i, i+1)
	}
	for _, c := range []struct {
		args []string
		want int64 // samples
	}{
		{nil, 40},
		{[]string{"--since", "2026-05-06T16:02:30Z"}, 10},
		{[]string{"--since", "2026-05-06T16:02:10Z", "--until", "2026-05-06T16:02:19Z"}, 10},
	} {
		code, out, errs := run(t, log, append([]string{"stats", "--format", "json"}, c.args...)...)
		var doc struct {
			Samples int64 `json:"samples"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code == 2 || doc.Samples != c.want {
			t.Errorf("%q: exit %d, %d samples, want %d; %v %s", c.args, code, doc.Samples, c.want, err, errs)
		}
	}
	// Without years, in a file of an earlier one, read in one piece and in many.
	file := filepath.Join(t.TempDir(), "old.log")
	old := strings.ReplaceAll(log, "2026-05-06T16:02:", "May  6 16:02:")
	old = strings.ReplaceAll(old, "+00:00", "")
	last := time.Date(2024, 5, 7, 0, 0, 0, 0, time.Local)
	if err := errors.Join(os.WriteFile(file, []byte(old), 0o600), os.Chtimes(file, last, last)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--since", "May 6 16:02:30"}, " 10 samples,"},
		{[]string{"--until", "May  6 16:02:04"}, " 5 samples,"},
		{[]string{"--since", "May 1", "--until", "May 20"}, " 40 samples,"},
		{[]string{"--since", "2026-05-01"}, " 0 samples,"},
	} {
		if code, out, errs := run(t, "", append([]string{"stats", file}, c.args...)...); code == 2 || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit %d, want%s\n%s%s", c.args, code, c.want, out, errs)
		}
	}
	for _, c := range []struct {
		since, until string
		swapped      bool
	}{
		{"2026-05-07", "2026-05-06", true},
		{"May 6 16:05", "May 6 16:02", true},
		{"1h", "2h", true},
		{"Dec 20", "Jan 5", false},
		{"May 6 16:02", "May 6 16:05", false},
	} {
		code, out, errs := run(t, log, "stats", "--since", c.since, "--until", c.until)
		if swapped := code == 2 && out == "" && errs == "tbl: --since is after --until\n"; swapped != c.swapped || code == 2 != c.swapped {
			t.Errorf("--since %s --until %s: exit %d, %q, %q", c.since, c.until, code, out, errs)
		}
	}
	for _, in := range []string{"yesterday", "25:00", "2026-13-01", "May 40"} {
		if code, out, errs := run(t, log, "stats", "--since", in); code != 2 || out != "" || !strings.Contains(errs, "--since: time") {
			t.Errorf("--since %s: exit %d, %q, %q", in, code, out, errs)
		}
	}
	for _, in := range []string{"May  6 16:02", "05-06 16:02:11", "16:02", "90m", "3d"} {
		if code, _, errs := run(t, log, "stats", "--until", in); code == 2 {
			t.Errorf("--until %s: exit 2, %s", in, errs)
		}
	}
}

// The library's own words about a flag become ours.
func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ env, args, want string }{
		{"", "load --count x", `tbl: invalid value "x" for flag --count: want a whole decimal number`},
		{"", "load --destroy=x", `tbl: invalid boolean value "x" for flag --destroy`},
		{"", "load --help=x", `tbl: invalid boolean value "x" for flag --help`},
		{"", "load --count", "tbl: flag --count needs a value"},
		{"", "load --nope", "tbl: unknown flag --nope"},
		{"TBL_CORES", "load", `tbl: could not parse "x" as int value from environment variable "TBL_CORES" for flag --cores`},
	} {
		if c.env != "" {
			t.Setenv(c.env, "x")
		}
		if code, out, errs := run(t, "", strings.Fields(c.args)...); code != 2 || out != "" || errs != c.want+"\n" {
			t.Errorf("%s %s: exit %d, %q, %q", c.env, c.args, code, out, errs)
		}
	}
	for _, args := range []string{"help irule localdb", "stats file --help", "compare a b -h"} {
		if code, out, errs := run(t, "", strings.Fields(args)...); code != 0 || !strings.Contains(out, "USAGE:") {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, errs)
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
		{"a --b --help", "--help"},
		{"-h a", "--help"},
		{"a --s --help", "--s --help -- a"},
		{"a -- --help", "-- a --help"},
	} {
		got := strings.Join(flagsFirst(flags, strings.Fields(c.in)), " ")
		if got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}
