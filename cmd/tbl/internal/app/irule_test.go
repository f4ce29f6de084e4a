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
			var rules []bench.Rule
			for _, name := range []string{"localdb", "harness"} {
				code, text, _ := run(t, "", append([]string{"irule", name}, tc.extra...)...)
				if code != 0 {
					t.Fatalf("irule %s: exit %d", name, code)
				}
				if code, out, _ := run(t, text, "lint", "--strict", "-"); code != 0 {
					t.Errorf("lint of %s: %s", name, out)
				}
				rules = append(rules, bench.Rule{Name: map[string]string{"localdb": "LOCALDB", "harness": "LOCALDB_HARNESS"}[name], Text: text})
			}
			b, err := bench.Start(context.Background(), bench.Config{TMMs: tc.tmms, Seed: 21, Rules: rules})
			if errors.Is(err, bench.ErrNoTclsh) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			host, port, err := net.SplitHostPort(b.Addr())
			if err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := run(t, "", "validate", "--host", host, "--port", port, "--count", fmt.Sprint(300*tc.tmms), "--workers", "16", "--quiet")
			if code != tc.code || !strings.Contains(stdout, tc.want) {
				t.Errorf("exit %d, want %d and %q\n%s\n%s", code, tc.code, tc.want, stdout, stderr)
			}
		})
	}
}
