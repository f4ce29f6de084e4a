package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogLost: a log that can't be written makes the run incomplete, in the
// result, its JSON and the exit code alike; a verdict that fails goes before it.
func TestLogLost(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"load", "--count", "2000"}, exitIncomplete},
		{[]string{"load", "--count", "2000", "--assert", "rate<1"}, exitFail},
		{[]string{"load", "--count", "2000", "--fault", "chatty-log"}, exitIncomplete},
		{[]string{"validate"}, exitIncomplete},
		{[]string{"session", "--sessions", "50"}, exitIncomplete},
	} {
		args := append(c.args, "--clock", "model", "--seed", "1", "--log-sample", "1", "--log", "/dev/full", "--format", "json", "--quiet")
		code, stdout, stderr := run(t, "", args...)
		var r struct {
			Exit     int
			Verdicts []struct{ Name, State, Line string }
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != c.code || r.Exit != c.code {
			t.Errorf("%v: exit %d, in JSON %d, want %d: %v", c.args, code, r.Exit, c.code, err)
		}
		n := 0
		for _, v := range r.Verdicts {
			if v.Name == "LOG BUDGET" && v.State == "incomplete" && strings.Contains(v.Line, "--log /dev/full: lines are lost: no space left") {
				n++
			} else if v.Name == "LOG BUDGET" {
				t.Errorf("%v: %+v", c.args, v)
			}
		}
		if n != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "lines are lost") {
			t.Errorf("%v: %d verdicts on the log; stderr %q", c.args, n, stderr)
		}
	}
}

// lateFailure is a stdout at whose first write something else has gone wrong, or
// that fails itself.
type lateFailure struct {
	before func()
	bytes.Buffer
	err error
}

func (f *lateFailure) Write(b []byte) (int, error) {
	if f.before != nil {
		f.before()
	}
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(b)
}

// TestWrittenTooLate: what fails when the run was made is no wrong use, whose
// stdout is empty: it is exit 3, or what the verdicts say where that is worse.
func TestWrittenTooLate(t *testing.T) {
	load := []string{"load", "--count", "200", "--clock", "model", "--seed", "1", "--quiet"}
	for _, c := range []struct {
		name   string
		stdout *lateFailure
		args   []string
		code   int
		says   string
	}{
		{"stdout", &lateFailure{err: os.ErrInvalid}, nil, exitIncomplete, "writing the result"},
		{"stdout, and a verdict fails", &lateFailure{err: os.ErrInvalid}, []string{"--assert", "rate<1"}, exitFail, "writing the result"},
		{"an export", &lateFailure{}, nil, exitIncomplete, "run.json"},
		{"an export, and a verdict fails", &lateFailure{}, []string{"--assert", "rate<1"}, exitFail, "run.json"},
	} {
		dir := filepath.Join(t.TempDir(), "dir")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c.stdout.before = func() { os.RemoveAll(dir) }
		var errs bytes.Buffer
		args := append(append(load, "--export", filepath.Join(dir, "run.json")), c.args...)
		code := Run(context.Background(), Env{Stdin: strings.NewReader(""), Stdout: c.stdout, Stderr: &errs, Getenv: func(string) string { return "" }}, args)
		if code != c.code || !strings.Contains(errs.String(), c.says) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, want %d; %q", c.name, code, c.code, &errs)
		}
	}
}

// TestWrittenInTime: what can be known before a run is known before it.
func TestWrittenInTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir.json")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, summary string
	}{
		{dir, ""}, {filepath.Join(dir, "none", "run.json"), ""}, {filepath.Join(dir, "run.json"), dir},
	} {
		var out, errs bytes.Buffer
		env := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": c.summary}
		code := Run(context.Background(), Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(k string) string { return env[k] }},
			[]string{"load", "--count", "200", "--clock", "model", "--quiet", "--export", c.path})
		if code != exitUsage || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "director") {
			t.Errorf("%+v: exit %d, %q, %q", c, code, &out, &errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
