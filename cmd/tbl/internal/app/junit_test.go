package app

import (
	"bytes"
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// caseNames are the names of a JUnit file's test cases.
func caseNames(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Cases []struct {
			Name string `xml:"name,attr"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range doc.Cases {
		out = append(out, c.Name)
	}
	return out
}

// TestJUnitNames: each test case's name says what it is about, so that no two
// share one.
func TestJUnitNames(t *testing.T) {
	logs := "../../../../testdata/logs/"
	probes := filepath.Join(t.TempDir(), "probes.log")
	var lines strings.Builder
	for _, host := range []string{"bigip1", "bigip2"} {
		for _, name := range []string{"a", "b"} {
			for _, process := range []string{"tmm", "tmm1"} {
				core := strings.TrimPrefix(process, "tmm")
				if core == "" {
					core = "0"
				}
				for range 8 {
					clicks := " clicks=5 entries=1 OWNER\n"
					if core == "1" {
						clicks = " clicks=70000 entries=1 NON_OWNER\n"
					}
					lines.WriteString("May  6 16:02:11 " + host + " info " + process + "[1]: Rule /Common/LOCALDB <HTTP_REQUEST>: PROBE tmm=" + core + " subtable=" + name + clicks)
				}
			}
		}
	}
	if err := os.WriteFile(probes, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"ASSERT p99<50":                    {logs + "healthy.log", "--assert", "p99<50", "--assert", "slow<0.1%"},
		"LOCALITY TMM 0":                   {logs + "healthy.log"},
		"LOCALITY TMM 1/0, device viprion": {logs + "chassis.log", logs + "healthy.log"},
		"LOCALITY device bigip1":           {logs + "chassis.log", logs + "healthy.log"},
		"ASSERT slow<0.1%, device viprion": {logs + "chassis.log", logs + "healthy.log", "--assert", "p99<50", "--assert", "slow<0.1%"},
		"ASSERT p99<50 (2)":                {logs + "healthy.log", "--assert", "p99<50", "--assert", "p99<50"},
		"OWNERSHIP b, device bigip2":       {probes, "--probes"},
		"OWNERSHIP a, device bigip1":       {probes, "--probes", "--cores", "2"},
		"LOCALITY TMM 3":                   {logs + "missing-core.log"},
		"LOCALITY":                         {logs + "two-runs.log", "--run", "all"},
		"ASSERT cores.2.p99<50":            {logs + "healthy.log", "--assert", "cores.2.p99<50", "--warn", "cores.3.p99<50"},
		"ASSERT p50<9, device viprion":     {logs + "chassis.log", logs + "broken.log", "--warn", "p50<9"},
		"LOCALITY TMM 2, device bigip1":    {logs + "chassis.log", logs + "broken.log"},
		"LOCALITY TMM 2/1, device viprion": {logs + "chassis.log", logs + "broken.log", "--run", "all"},
		"OWNERSHIP a":                      {probes, "--probes", "--host", "bigip1"},
		"ASSERT absent<1, device viprion":  {logs + "chassis.log", logs + "broken.log", "--assert", "absent<1"},
		"ASSERT absent<1, device bigip1":   {logs + "chassis.log", logs + "broken.log", "--assert", "absent<1"},
		"ASSERT p99_clicks>1":              {logs + "broken.log", "--assert", "p99_clicks>1", "--assert", "p99>1"},
	} {
		path := filepath.Join(t.TempDir(), "r.xml")
		if code, _, stderr := run(t, "", append(append([]string{"stats"}, args...), "--export", path)...); code == exitUsage {
			t.Errorf("%v: %s", args, stderr)
			continue
		}
		names := caseNames(t, path)
		seen := map[string]bool{}
		for _, n := range names {
			if seen[n] {
				t.Errorf("%v: two cases are called %q", args, n)
			}
			seen[n] = true
		}
		if !seen[want] {
			t.Errorf("%v: no case is called %q: %q", args, want, names)
		}
	}
}

// TestAnnotations: every verdict that fails becomes an annotation, up to as many
// as are shown, and the last one says how many more there are.
func TestAnnotations(t *testing.T) {
	annotated := func(args ...string) []string {
		var stderr bytes.Buffer
		env := Env{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &stderr, Getenv: func(name string) string {
			if name == "GITHUB_ACTIONS" {
				return "true"
			}
			return ""
		}}
		Run(context.Background(), env, append([]string{"stats", "../../../../testdata/logs/healthy.log"}, args...))
		var out []string
		for line := range strings.Lines(stderr.String()) {
			if strings.HasPrefix(line, "::error ") {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return out
	}
	var thirteen []string
	for _, figure := range strings.Fields("p99 p95 p50 avg max min n fast slow_share estimated_writes n_eff at_threshold absent") {
		thirteen = append(thirteen, "--assert", figure+"<-1")
	}
	for _, c := range []struct {
		args []string
		n    int
		last string
	}{
		{nil, 0, ""},
		{[]string{"--assert", "p99<50", "--assert", "p99<12", "--assert", "slow>1%", "--warn", "p99<1"}, 2, "::error title=tbl stats::ASSERT FAILED: slow>1%25"},
		{[]string{"--strict", "--warn", "p99<12"}, 1, "::error title=tbl stats::ASSERT FAILED: p99<12"},
		{thirteen[:20], 10, "::error title=tbl stats::ASSERT FAILED: estimated_writes"},
		{thirteen, 10, "::error title=tbl stats::4 more verdicts"},
	} {
		got := annotated(c.args...)
		if len(got) != c.n || c.n > 0 && !strings.HasPrefix(got[c.n-1], c.last) {
			t.Errorf("%v: want %d annotations, the last %q…, got %q", c.args, c.n, c.last, got)
		}
	}
}
