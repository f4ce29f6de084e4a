//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A signal that comes twice at once, as timeout(1) sends it, is one: what was
// measured is printed.
func TestSignalTwice(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "tbl")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for range 5 {
		cmd := exec.Command(bin, "load", "--clock", "model", "--count", "900000000")
		var out bytes.Buffer
		cmd.Stdout = &out
		progress, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(progress).ReadString('=') // it runs
		cmd.Process.Signal(syscall.SIGINT)
		cmd.Process.Signal(syscall.SIGINT)
		err = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "INCOMPLETE: interrupted") {
			t.Fatalf("%v: exit %d, %q", err, code, out.String())
		}
	}
}
