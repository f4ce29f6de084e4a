package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tbl/irule/bench"
)

func TestIrule(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		stdout string // part of it
		stderr string // part of it, empty: nothing
	}{
		{[]string{"irule", "localdb"}, "set static::localdb_sample 1000\n", ""},
		{[]string{"irule", "localdb", "--sample", "10", "--threshold=50", "--max-tries", "99"}, "set static::localdb_max_tries 99\n", ""},
		{[]string{"irule", "--sample", "0", "localdb"}, "set static::localdb_sample 0\n", ""},
		{[]string{"irule", "harness"}, "set static::harness_allow \"127.0.0.0/8 10.0.0.0/8", "private"},
		{[]string{"irule", "harness", "--secret", "s3cret"}, "set static::harness_secret \"s3cret\"\n", ""},
		{[]string{"irule", "harness", "--allow", "10.1.2.3", "--allow", "2001:db8::/32"}, "\"10.1.2.3/32 2001:db8::/32\"\n", ""},
		{[]string{"irule", "harness", "--allow", "0.0.0.0/0", "--body-timeout", "2s"}, "set static::harness_body_ms 2000\n", ""},
		{[]string{"irule", "tmsh", "--secret", "s"}, "ltm virtual /Common/tbl_localdb {\n    rules {", ""},
		{[]string{"irule", "tmsh", "--secret", "s", "--virtual", "vs", "--destination", "192.0.2.10:80"}, "ltm virtual /Common/vs {\n    destination 192.0.2.10:80\n", ""},
	} {
		code, stdout, stderr := run(t, "", tc.args...)
		if code != 0 || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) || tc.stderr == "" && stderr != "" {
			t.Errorf("%q: exit %d, stdout of %d bytes with %q: %v, stderr %q", tc.args, code, len(stdout), tc.stdout, strings.Contains(stdout, tc.stdout), stderr)
		}
	}
}

func TestIruleAndLintWrongUse(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.tcl")
	if err := os.WriteFile(big, make([]byte, maxRule+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"irule"}, {"irule", "other"}, {"irule", "localdb", "harness"}, {"irule", "localdb", "--sample", "-1"}, {"irule", "localdb", "--threshold", "0"},
		{"irule", "localdb", "--max-tries", "x"}, {"irule", "localdb", "--candidates", "0"}, {"irule", "harness", "--secret", "a\"b"},
		{"irule", "harness", "--allow", "nowhere"}, {"irule", "harness", "--max-body", "0"}, {"irule", "harness", "--body-timeout", "0s"},
		{"irule", "harness", "--virtual", "vs"}, {"irule", "tmsh", "--destination", "192.0.2.1"}, {"irule", "tmsh", "--virtual", "a b"}, {"irule", "tmsh", "--unknown"},
		{"lint"}, {"lint", filepath.Join(dir, "none.tcl")}, {"lint", dir}, {"lint", big}, {"lint", "--format", "xml", "-"}, {"lint", "-", "-"}, {"lint", "--rules", "x"},
	} {
		code, stdout, stderr := run(t, "", args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "tbl: ") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestLint(t *testing.T) {
	dir := "../../../../testdata/irule/lint/"
	for _, tc := range []struct {
		args  []string
		stdin string
		code  int
		wants []string
	}{
		{[]string{"lint", dir + "fixed-name.bad.tcl"}, "", 1, []string{"fixed-name.bad.tcl:3:", ": error: ", "[fixed-name]", "    costs: ", "    instead: ", "\n3 errors, 0 warnings\n"}},
		{[]string{"lint", dir + "fixed-name.good.tcl"}, "", 0, []string{"0 errors, 0 warnings\n"}},
		{[]string{"lint", dir + "hot-key.bad.tcl"}, "", 0, []string{"0 errors, 2 warnings\n"}},
		{[]string{"lint", "--strict", dir + "hot-key.bad.tcl"}, "", 1, []string{"0 errors, 2 warnings\n"}},
		{[]string{"lint", dir + "hot-key.bad.tcl", "--strict"}, "", 1, []string{"0 errors, 2 warnings\n"}},
		{[]string{"lint", dir + "hot-key.bad.tcl", dir + "fixed-name.bad.tcl"}, "", 1, []string{"hot-key.bad.tcl:3", "fixed-name.bad.tcl:3"}},
		{[]string{"lint", "-"}, "when HTTP_REQUEST {\n  set ::x 1\n}\n", 1, []string{"-:2:7: error: ::x is global [global-variable]"}},
		{[]string{"lint", "-"}, "", 0, []string{"0 errors"}},
		{[]string{"lint", "--rules"}, "", 0, []string{"| fixed-name | error |", "| syntax | error |"}},
		{[]string{"lint", "--format", "sarif", dir + "tcl85.bad.tcl"}, "", 1, []string{`"version": "2.1.0"`, `"ruleId": "tcl85"`}},
	} {
		code, stdout, stderr := run(t, tc.stdin, tc.args...)
		if code != tc.code || stderr != "" {
			t.Errorf("%q: exit %d, want %d, stderr %q", tc.args, code, tc.code, stderr)
		}
		for _, want := range tc.wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: no %q in\n%s", tc.args, want, stdout)
			}
		}
	}
	code, stdout, _ := run(t, "", "lint", "--format", "json", dir+"fixed-name.bad.tcl")
	var got struct{ Errors, Warnings int }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Errors != 3 || got.Warnings != 0 {
		t.Errorf("json: exit %d, %+v, %v", code, got, err)
	}
}

// The rules as they are printed hold the proof, and with fixed names they
// don't; nothing is found in them.
func TestValidateTheRules(t *testing.T) {
	for _, tc := range []struct {
		tmms  int
		extra []string
		code  int
		want  string
	}{
		{4, nil, 0, "OK:"},
		{8, nil, 0, "OK:"},
		{16, nil, 0, "OK:"},
		{4, []string{"--candidates", "1", "--max-tries", "1"}, 1, "LOCALITY ISSUE"},
	} {
		t.Run(fmt.Sprint(tc.tmms, tc.extra), func(t *testing.T) {
			for _, name := range iruleNames()[:2] {
				_, text, _ := run(t, "", append([]string{"irule", name}, tc.extra...)...)
				if code, out, _ := run(t, text, "lint", "--strict", "-"); code != 0 {
					t.Errorf("lint of %s: %s", name, out)
				}
			}
			_, at := benchOf(t, tc.tmms, 21, tc.extra...)
			args := append([]string{"validate", "--count", fmt.Sprint(300 * tc.tmms), "--workers", "16", "--quiet"}, at...)
			code, stdout, stderr := run(t, "", args...)
			if code != tc.code || !strings.Contains(stdout, tc.want) {
				t.Errorf("exit %d, want %d and %q\n%s\n%s", code, tc.code, tc.want, stdout, stderr)
			}
		})
	}
}

// benchOf runs the rules as `tbl irule` prints them, and returns the flags
// that lead to it.
func benchOf(t *testing.T, tmms int, seed int64, extra ...string) (*bench.Bench, []string) {
	t.Helper()
	var rules []bench.Rule
	for _, r := range []struct{ form, name string }{{"localdb", "LOCALDB"}, {"harness", "LOCALDB_HARNESS"}} {
		code, text, stderr := run(t, "", append([]string{"irule", r.form}, extra...)...)
		if code != 0 {
			t.Fatalf("irule %s: exit %d, %s", r.form, code, stderr)
		}
		rules = append(rules, bench.Rule{Name: r.name, Text: text})
	}
	b, err := bench.Start(context.Background(), bench.Config{TMMs: tmms, Seed: seed, Rules: rules})
	if errors.Is(err, bench.ErrNoTclsh) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	host, port, err := net.SplitHostPort(b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return b, []string{"--host", host, "--port", port}
}

// What the rules log is what the log report reads.
func TestRulesLogIsRead(t *testing.T) {
	b, at := benchOf(t, 4, 22, "--sample", "5")
	if code, _, stderr := run(t, "", append([]string{"load", "--count", "800", "--quiet"}, at...)...); code != 0 {
		t.Fatalf("load: exit %d, %s", code, stderr)
	}
	code, stdout, stderr := run(t, strings.Join(b.Log(), "\n")+"\n", "stats", "--cores", "4", "--format", "json")
	var got struct {
		Rate      string `json:"sample_rate"`
		Malformed int
		Cores     map[string]struct{ N, Slow int }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || got.Rate != "1/5" || got.Malformed != 0 || len(got.Cores) != 4 {
		t.Fatalf("exit %d, %+v, %v, %s\n%s", code, got, err, stderr, stdout)
	}
	n := 0
	for id, c := range got.Cores {
		n += c.N
		if c.Slow > 0 {
			t.Errorf("core %s: %d slow samples", id, c.Slow)
		}
	}
	if n < 800/5-4 || n > 800/5 {
		t.Errorf("%d samples of 800 writes, 1 in 5", n)
	}
}

// Entries that a reload leaves behind are found and cleared.
func TestResetClearsOrphansOfTheRules(t *testing.T) {
	b, at := benchOf(t, 4, 23)
	load := append([]string{"load", "--count", "300", "--quiet"}, at...)
	if code, _, stderr := run(t, "", load...); code != 0 {
		t.Fatalf("load: exit %d, %s", code, stderr)
	}
	_, text, _ := run(t, "", "irule", "localdb")
	if err := b.Reload(bench.Rule{Name: "LOCALDB", Text: text}); err != nil {
		t.Fatal(err)
	}
	entries := func() (n int) {
		t.Helper()
		s, err := b.State()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(s[strings.Index(s, "entries="):], "entries=%d", &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := entries(); n < 300 {
		t.Fatalf("%d entries after the reload of 300", n)
	}
	if code, stdout, stderr := run(t, "", append([]string{"reset", "--all-names", "--quiet"}, at...)...); code != 0 {
		t.Errorf("reset: exit %d\n%s%s", code, stdout, stderr)
	}
	// The inventory itself stays: a name per TMM, and which it is.
	if n := entries(); n > 8 {
		t.Errorf("%d entries are left", n)
	}
}
