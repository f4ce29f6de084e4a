package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestRelease builds one target of a release twice, in two directories: the
// bytes are the same, and all that is made of the commands is there. The
// script does the same for all targets with --verify.
func TestRelease(t *testing.T) {
	if raceEnabled {
		t.Skip("it runs no code of ours for long, and builds much")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	const platform = "linux/amd64"
	build := func(dir string) string {
		t.Helper()
		copySource(t, dir)
		cmd := exec.Command("bash", "scripts/release.sh")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123456789abcdef0123", "SOURCE_DATE_EPOCH=1700000000", "TARGETS="+platform, "OUT=dist", "IMAGE=none")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return filepath.Join(dir, "dist")
	}
	one := build(filepath.Join(t.TempDir(), "a"))
	two := build(filepath.Join(t.TempDir(), "another", "directory"))
	sums, err := os.ReadFile(filepath.Join(one, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(two, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sums, again) {
		t.Errorf("two builds differ:\n%s\n%s", sums, again)
	}
	for _, file := range []string{"tbl_linux_amd64", "tbl.1", "completions/tbl.bash", "completions/_tbl", "completions/tbl.fish", "completions/tbl.ps1"} {
		a, err := os.ReadFile(filepath.Join(one, file))
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := os.ReadFile(filepath.Join(two, file))
		if err != nil || !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %d and %d bytes, %v; want the same", file, len(a), len(b), err)
		}
		if !strings.Contains(string(sums), "  "+file+"\n") {
			t.Errorf("SHA256SUMS misses %s", file)
		}
	}
	if runtime.GOOS+"/"+runtime.GOARCH != platform {
		return
	}
	bin := filepath.Join(one, "tbl_linux_amd64")
	for args, want := range map[string]string{
		"version":               "tbl v1.2.3 (commit 0123456789ab, ",
		"version --format json": `"time": "2023-11-14T22:13:20Z"`,
		"man":                   `.TH TBL 1 "2023-11-14" "tbl v1.2.3"`,
	} {
		out, err := exec.Command(bin, strings.Fields(args)...).Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("tbl %s: %v, want %q in it:\n%.200s", args, err, want, out)
		}
	}
	raw, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(one), module} {
		if bytes.Contains(raw, []byte(path)) {
			t.Errorf("the binary names %s", path)
		}
	}
}

// copySource copies what a build needs.
func copySource(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case rel == ".git" || rel == "dist" || rel == "testdata":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // of a worktree, .git is a file
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
}
