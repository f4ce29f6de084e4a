package main

import (
	"bytes"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestReleaseElsewhere makes a release of one target in two directories. All
// that is made of the commands is there, and where it was made does not reach
// the bytes. What the first compiled, the second takes from the cache: that
// compiling all again gives the same is for the script's --verify.
func TestReleaseElsewhere(t *testing.T) {
	if raceEnabled {
		t.Skip("it runs no code of ours for long, and builds much")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	const platform = "linux/amd64"
	build := func(dir, out string, env ...string) string {
		t.Helper()
		copySource(t, dir)
		cmd := exec.Command("bash", "scripts/release.sh")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123456789abcdef0123", "SOURCE_DATE_EPOCH=1700000000", "TARGETS="+platform, "OUT="+out)
		cmd.Env = append(cmd.Env, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return filepath.Join(dir, out)
	}
	one := build(filepath.Join(t.TempDir(), "a"), "dist", "IMAGE=none")
	// An engine that says what it is given, in place of any that is here. What
	// it cannot see, no image can hold.
	engine := t.TempDir()
	const docker = `#!/bin/sh
[ "$1" = build ] || exit 0
for context; do :; done
binary=${3#BINARY=}
{ echo "$5"; cd "$context" && test -x "$binary" && ls; } >"${0%/*}/said"
`
	if err := os.WriteFile(filepath.Join(engine, "docker"), []byte(docker), 0o755); err != nil {
		t.Fatal(err)
	}
	two := build(filepath.Join(t.TempDir(), "another", "directory"), "not dist", "IMAGE=an:image", "PATH="+engine+string(filepath.ListSeparator)+os.Getenv("PATH"))
	said, err := os.ReadFile(filepath.Join(engine, "said"))
	if want := "an:image\nDockerfile\ntbl_linux_amd64\n"; runtime.GOARCH == "amd64" && string(said) != want {
		t.Errorf("the engine is given %q, %v; want %q", said, err, want)
	}
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

// TestReleaseKeeps: what no release made is not removed, whatever OUT names.
func TestReleaseKeeps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	for _, c := range []struct {
		name  string
		files []string // nil: no directory
		want  string   // in the refusal; empty: it is replaced
	}{
		{"others", []string{"mine"}, "holds no earlier release|which no release made"},
		{"programs", []string{"tbl_linux_amd64"}, "no SHA256SUMS"},
		{"downloads", []string{"SHA256SUMS", "thesis.pdf"}, "thesis.pdf, which no release made"},
		{"release", []string{"SHA256SUMS", "tbl_linux_amd64", "completions/tbl.bash", "tbl.1"}, ""},
		{"empty", []string{}, ""},
		{"new", nil, ""},
	} {
		out := filepath.Join(t.TempDir(), c.name)
		if c.files != nil {
			if err := os.MkdirAll(filepath.Join(out, "completions"), 0o755); err != nil {
				t.Fatal(err)
			}
			if len(c.files) == 0 {
				os.Remove(filepath.Join(out, "completions"))
			}
		}
		for _, f := range c.files {
			if err := os.WriteFile(filepath.Join(out, f), []byte("precious"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// No such platform: what is not refused before fails at once after.
		cmd := exec.Command("bash", filepath.Join(root, "scripts/release.sh"))
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123456789abcdef0123", "SOURCE_DATE_EPOCH=1700000000", "TARGETS=no/such", "OUT="+out, "IMAGE=none")
		said, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("%s: built for no such platform:\n%s", c.name, said)
		}
		refused := strings.Contains(string(said), "release: OUT "+out)
		if refused != (c.want != "") || !regexp.MustCompile(c.want).Match(said) {
			t.Errorf("%s: %q, want %q in it", c.name, said, c.want)
		}
		for _, f := range c.files {
			raw, err := os.ReadFile(filepath.Join(out, f))
			if kept := err == nil && string(raw) == "precious"; kept != (c.want != "") {
				t.Errorf("%s: %s is kept: %t, %v", c.name, f, kept, err)
			}
		}
	}
}

// TestScreenshotsOfOurOwn: where the dataplane doesn't come up, no picture is
// taken of whatever else answers on its port.
func TestScreenshotsOfOurOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	_, port, err := net.SplitHostPort(stranger.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, body := range map[string]string{
		"go":       `printf '#!/bin/sh\necho tbl: the port is taken >&2\nexit 2\n' >"$3" && chmod +x "$3"`,
		"chromium": `touch "${0%/*}/called"; exit 1`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", filepath.Join(root, "scripts/screenshots.sh"))
	cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "CHROMIUM=chromium", "PORT="+port)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no dataplane on port "+port) || !strings.Contains(string(out), "the port is taken") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(bin, "called")); err == nil {
		t.Error("a picture of a stranger was taken")
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
