package app

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tbl/cmd/tbl/internal/commandref"
)

// said runs a command line and returns what it wrote to stdout.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	env := Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }}
	if code := Run(context.Background(), env, args); code != exitOK {
		t.Fatalf("tbl %s: exit %d", strings.Join(args, " "), code)
	}
	return out.String()
}

// scriptFile is a completion script in a file.
func scriptFile(t *testing.T, shell string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tbl."+shell)
	if err := os.WriteFile(path, []byte(said(t, "completion", shell)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// interpreter skips the test where a shell isn't installed.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s on this machine", name)
	}
	return path
}

// Every shell takes its script without a complaint.
func TestCompletionSyntax(t *testing.T) {
	parse := map[string][]string{
		"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"},
		"powershell": {"pwsh", "-NoProfile", "-NonInteractive", "-File"},
	}
	for _, s := range commandref.Shells() {
		t.Run(s.Name, func(t *testing.T) {
			how := parse[s.Name]
			if how == nil {
				t.Fatal("no way to check this shell's syntax")
			}
			out, err := exec.Command(interpreter(t, how[0]), append(slices.Clone(how[1:]), scriptFile(t, s.Name))...).CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// completions are cases for all shells: the words before the cursor, and what
// must and must not be offered.
var completions = []struct {
	line      []string
	want, not []string
}{
	{[]string{""}, []string{"validate", "load", "stats", "timing-stats", "serve"}, []string{"--format"}},
	{[]string{"val"}, []string{"validate"}, []string{"load"}},
	{[]string{"load", "--fo"}, []string{"--format"}, []string{"--count"}},
	{[]string{"load", "--format", ""}, []string{"text", "json", "csv", "markdown"}, []string{"a-file.txt"}},
	{[]string{"load", "--format", "j"}, []string{"json"}, []string{"text"}},
	{[]string{"lint", "--format", ""}, []string{"sarif"}, []string{"csv"}},
	{[]string{"load", "--clock", ""}, []string{"wall", "model"}, []string{"a-file.txt"}},
	{[]string{"serve", "--fault", "s"}, []string{"stall"}, []string{"flap"}},
	{[]string{"serve", "--fault", "dead"}, []string{"dead-core="}, nil},
	{[]string{"load", "--keys", ""}, []string{"seq", "uuid", "zipf"}, nil},
	{[]string{"sticky", "--policy", ""}, []string{"round-robin"}, nil},
	{[]string{"load", "--workers", ""}, nil, []string{"a-file.txt", "text"}},
	{[]string{"load", "--file", ""}, []string{"a-file.txt"}, []string{"text"}},
	{[]string{"stats", "a-"}, []string{"a-file.txt"}, nil},
	{[]string{"irule", ""}, []string{"localdb", "harness", "tmsh"}, []string{"a-file.txt"}},
	{[]string{"completion", ""}, []string{"bash", "fish"}, nil},
}

// check compares what a shell offers.
func check(t *testing.T, line []string, offered, want, not []string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(offered, w) {
			t.Errorf("tbl %q offers %q, want %s", line, offered, w)
		}
	}
	for _, n := range not {
		if slices.Contains(offered, n) {
			t.Errorf("tbl %q offers %s", line, n)
		}
	}
}

// dirWithFile is a directory with the one file that completions speak of.
func dirWithFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a-file.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBashCompletion(t *testing.T) {
	bash := interpreter(t, "bash")
	script, dir := scriptFile(t, "bash"), dirWithFile(t)
	ask := func(words []string) []string {
		cmd := exec.Command(bash, append([]string{"--norc", "-c", `source "$1"; shift; COMP_WORDS=(tbl "$@"); COMP_CWORD=$#; _tbl; printf '%s\n' "${COMPREPLY[@]}"`, "bash", script}, words...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}
	for _, c := range completions {
		check(t, c.line, ask(c.line), c.want, c.not)
	}
	// Names that splitting and patterns would spoil are offered whole.
	for _, name := range []string{"a file.txt", "a*", "a-[f]*"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cur, want := range map[string][]string{
		"a":    {"a file.txt", "a*", "a-[f]*", "a-file.txt"},
		"a f":  {"a file.txt"},
		`"a f`: {"a file.txt"},
		"'a f": {"a file.txt"},
		`a\ f`: {"a file.txt"},
		"a*":   {"a*"},
	} {
		got := ask([]string{"stats", cur})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("tbl stats %q offers %q, want %q", cur, got, want)
		}
	}
	// bash takes --flag=value apart.
	check(t, []string{"--format="}, ask([]string{"load", "--format", "="}), []string{"json", "text"}, nil)
	check(t, []string{"--format=j"}, ask([]string{"load", "--format", "=", "j"}), []string{"json"}, []string{"text"})
}

func TestFishCompletion(t *testing.T) {
	fish := interpreter(t, "fish")
	script, dir := scriptFile(t, "fish"), dirWithFile(t)
	for _, c := range completions {
		cmd := exec.Command(fish, "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, script, "tbl "+strings.Join(c.line, " "))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", c.line, err)
		}
		var offered []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		check(t, c.line, offered, c.want, c.not)
	}
}

// zsh's functions run in an editor only; here those that it calls are
// replaced by ones that print what they are given.
func TestZshCompletion(t *testing.T) {
	zsh := interpreter(t, "zsh")
	script, dir := scriptFile(t, "zsh"), dirWithFile(t)
	const stage = `
compdef() { :; }
compset() { :; }
compadd() { while [[ $1 == -* ]]; do [[ $1 == -S ]] && shift; [[ $1 == -- ]] && { shift; break }; shift; done; print -l -- ${(M)@:#$PREFIX*} }
_files() { print -l -- *(N) }
_describe() { print -l -- ${(M)${${(P)2}%%:*}:#$PREFIX*} }
script=$1; shift
source $script
words=(tbl "$@"); CURRENT=$#words; PREFIX=$words[-1]
_tbl`
	for _, c := range completions {
		cmd := exec.Command(zsh, append([]string{"-f", "-c", stage, "zsh", script}, c.line...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) > 0 {
			t.Fatalf("%q: %v: %s", c.line, err, out)
		}
		check(t, c.line, strings.Fields(string(out)), c.want, c.not)
	}
}

// Every flag that names its values in the help offers them.
func TestChoicesAreOffered(t *testing.T) {
	for _, w := range commands((&app{}).cli()) {
		for _, f := range w.Flags {
			if strings.HasPrefix(f.Usage, "what goes to stdout: ") && len(f.Words) < 2 {
				t.Errorf("%s --%s offers nothing", w.Names[0], f.Names[0])
			}
			if len(f.Words) > 0 && (f.Files || !f.Value) {
				t.Errorf("%s --%s: a list of words, and a file or no value", w.Names[0], f.Names[0])
			}
		}
	}
}

func TestManual(t *testing.T) {
	page := said(t, "man")
	for _, want := range []string{".TH TBL 1", ".SH EXIT STATUS", `.SS "tbl validate"`, `\fB\-\-target\fR`, ".B 130"} {
		if !strings.Contains(page, want) {
			t.Errorf("the manual misses %q", want)
		}
	}
	if strings.Count(page, `\fB\-\-target\fR`) != 1 {
		t.Error("shared flags are not listed once")
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".TH ") && !strings.HasPrefix(line, ".S") &&
			!strings.HasPrefix(line, ".B ") && !strings.HasPrefix(line, ".I ") && !slices.Contains([]string{".TP\n", ".PP\n", ".nf\n", ".fi\n", ".RS\n", ".RE\n"}, line) {
			t.Errorf("a line that roff takes for an order: %q", line)
		}
	}
	mandoc := interpreter(t, "mandoc")
	cmd := exec.Command(mandoc, "-T", "lint", "-W", "warning")
	// A plain build has no date; the release's has.
	cmd.Stdin = strings.NewReader(strings.Replace(page, `.TH TBL 1 ""`, `.TH TBL 1 "2026-01-02"`, 1))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

func TestVersion(t *testing.T) {
	if got := said(t, "version"); !strings.HasPrefix(got, "tbl devel (commit ") {
		t.Errorf("version %q", got)
	}
	got := said(t, "version", "--format", "json")
	for _, want := range []string{`"version": "devel"`, `"commit": `, `"go": "go1.`, `"os": "`, `"arch": "`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s misses %s", got, want)
		}
	}
}
