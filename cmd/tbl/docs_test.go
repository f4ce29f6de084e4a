package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDocuments executes every example of the documents: each line behind "$ "
// in a console block, in order, in one directory. What a block shows as output
// must come out. A line "…" stands for any lines. Where no seed makes the
// figures repeatable, digits are not compared. UPDATE=1 writes the outputs
// anew.
//
// A comment "# exit N" behind a command says how it ends. A command that ends
// in " &" is a server, and runs on until the document's end.
func TestDocuments(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "tbl"), ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	// A machine that examples reach by ssh: it has a log, and runs a load.
	logs, err := filepath.Abs(filepath.Join(root, "testdata/logs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"ssh": "case \"$*\" in *'tbl load'*) shift; exec sh -c \"$*\" ;; *cat*|*tail*) cat '" + logs + "/healthy.log' ;; esac", "scp": ":"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"README.md", "USAGE.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(root, name)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d := &document{t: t, bin: bin, dir: t.TempDir()}
			d.prepare()
			defer d.stop()
			out := d.run(string(raw))
			d.scripts(string(raw))
			for _, m := range metricsAt.FindAllStringSubmatch(string(raw), -1) {
				if m[1] != "127.0.0.1:9400" {
					t.Errorf("%s: servers have 8080, the metrics of a run 127.0.0.1:9400", m[0])
				}
			}
			if d.commands == 0 {
				t.Error("no example found")
			}
			if os.Getenv("UPDATE") != "" && out != string(raw) {
				if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type document struct {
	t        *testing.T
	bin, dir string
	port     string // in place of 8080, where the documents serve
	// in place of 9400, where they offer the metrics of a run
	metricsPort string
	servers     []*exec.Cmd
	commands    int
}

var (
	block   = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	exitTag = regexp.MustCompile(`\s+# exit (\d+)$`)
	digits  = regexp.MustCompile(`[0-9][0-9.,]*`)
	// Where a run offers its metrics.
	metricsAt = regexp.MustCompile(`--metrics ([0-9.]+:[0-9]+)`)
	// Words that hang on figures: units, marks, blanks.
	units  = regexp.MustCompile(`N (ns|µs|ms|s)\b`)
	blanks = regexp.MustCompile(`[ *]+`)
)

// prepare makes the examples' directory look like a checkout, as far as they
// read from one: what else they need they make themselves.
func (d *document) prepare() {
	logs, err := filepath.Glob(filepath.Join(root, "testdata/logs/*.log"))
	if err != nil || len(logs) == 0 {
		d.t.Fatalf("no logs: %v", err)
	}
	into := filepath.Join(d.dir, "testdata/logs")
	if err := os.MkdirAll(into, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for _, l := range logs {
		raw, err := os.ReadFile(l)
		if err != nil {
			d.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(l)), raw, 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	d.port, d.metricsPort = freePort(d.t), freePort(d.t)
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

func (d *document) stop() {
	for _, s := range d.servers {
		_ = s.Process.Signal(os.Interrupt)
		_ = s.Wait()
	}
}

func (d *document) command(line string) *exec.Cmd {
	// The documents' own ports may be taken here.
	c := exec.Command("bash", "-c", "exec 2>&1\n"+strings.NewReplacer("8080", d.port, "9400", d.metricsPort).Replace(line))
	c.Dir = d.dir
	module, _ := filepath.Abs(root)
	// The binary is an ordinary one, and what is set here is not the reader's.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TBL_") })
	c.Env = append(env, "PATH="+d.bin+":"+os.Getenv("PATH"), "BIGIP=http://127.0.0.1:"+d.port, "MODULE="+module)
	return c
}

func (d *document) run(text string) string {
	return block.ReplaceAllStringFunc(text, func(b string) string {
		body := block.FindStringSubmatch(b)[1]
		var out strings.Builder
		lines := strings.SplitAfter(body, "\n")
		for i := 0; i < len(lines) && lines[i] != ""; {
			if !strings.HasPrefix(lines[i], "$ ") {
				d.t.Fatalf("output without a command: %q", lines[i])
			}
			cmd := lines[i]
			for i++; strings.HasSuffix(cmd, "\\\n"); i++ {
				cmd += lines[i]
			}
			var want strings.Builder
			for ; i < len(lines) && lines[i] != "" && !strings.HasPrefix(lines[i], "$ "); i++ {
				want.WriteString(lines[i])
			}
			out.WriteString(cmd + d.one(strings.TrimSpace(cmd[2:]), want.String()))
		}
		return "```console\n" + out.String() + "```"
	})
}

var (
	script   = regexp.MustCompile("(?ms)^```(yaml|sh)\n(.*?)^```$")
	runLines = regexp.MustCompile(`(?m)^ +run: \|\n((?:    +.*\n)+)`)
	listItem = regexp.MustCompile(`(?m)^    - (tbl .*)$`)
)

// scripts executes the commands of pipelines: what stands behind "run: |", the
// tbl lines of a "script:" list, and whole shell scripts that name tbl. All
// must succeed.
func (d *document) scripts(text string) {
	for _, m := range script.FindAllStringSubmatch(text, -1) {
		var commands []string
		if m[1] == "sh" {
			commands = []string{m[2]}
		}
		for _, r := range runLines.FindAllStringSubmatch(m[2], -1) {
			commands = append(commands, r[1])
		}
		for _, r := range listItem.FindAllStringSubmatch(m[2], -1) {
			commands = append(commands, r[1])
		}
		for _, c := range commands {
			if !strings.Contains(c, "tbl ") || strings.Contains(c, "not run here") {
				continue
			}
			d.commands++
			if out, err := d.command(c).Output(); err != nil || m[1] == "sh" && len(out) > 0 {
				d.t.Errorf("%s\n%v:\n%s", c, err, out)
			}
		}
	}
}

// one executes a command and returns the output that belongs behind it.
func (d *document) one(line, want string) string {
	d.commands++
	exit := 0
	if m := exitTag.FindStringSubmatch(line); m != nil {
		exit, _ = strconv.Atoi(m[1])
		line = strings.TrimSuffix(line, m[0])
	}
	if server, ok := strings.CutSuffix(line, " &"); ok {
		d.serve(server)
		return want
	}
	if strings.HasPrefix(line, "go test") {
		return want // this test is part of it
	}
	line = strings.Replace(line, "go run ./cmd/tbl", "tbl", 1)
	raw, err := d.command(line).Output()
	got := string(raw)
	code := 0
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		code = ee.ExitCode()
	} else if err != nil {
		d.t.Fatalf("%s: %v", line, err)
	}
	if code != exit {
		d.t.Errorf("$ %s\nexit %d, want %d:\n%s", line, code, exit, got)
	}
	if want == "" {
		return ""
	}
	// A seed on the model clock, or a file, gives the same figures each time.
	exact := strings.Contains(line, "--clock model") || strings.HasPrefix(line, "tbl stats") && !strings.Contains(line, "live")
	if !alike(want, got, exact) {
		if os.Getenv("UPDATE") == "" {
			d.t.Errorf("$ %s\nsays:\n%s\nwant:\n%s", line, got, want)
		}
		if !strings.Contains(want, "…\n") {
			return got
		}
	}
	return want
}

func (d *document) serve(line string) {
	c := d.command("exec " + line)
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.servers = append(d.servers, c)
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", "127.0.0.1:"+d.port)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: no server after 10 s: %v\n%s", line, err, out.String())
		}
	}
}

// alike compares line by line; "…" matches any number of lines.
func alike(want, got string, exact bool) bool {
	norm := func(s string) []string {
		s = strings.TrimRight(s, "\n")
		if !exact {
			s = blanks.ReplaceAllString(units.ReplaceAllString(digits.ReplaceAllString(s, "N"), "N T"), " ")
		}
		lines := strings.Split(s, "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return lines
	}
	return match(norm(want), norm(got))
}

func match(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		for i := 0; i <= len(got); i++ {
			if match(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && match(want[1:], got[1:])
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		want, got string
		exact, ok bool
	}{
		{"a 1\n…\nb", "a 1\nx\ny\nb\n", true, true},
		{"a 1", "a 2", true, false},
		{"a 1 µs", "a   2,000 ms", false, true},
		{"OK: 3", "ISSUE: 3", false, false},
		{"a\n…", "a", true, true},
	} {
		if got := alike(c.want, c.got, c.exact); got != c.ok {
			t.Error(fmt.Sprint(c), got)
		}
	}
}
