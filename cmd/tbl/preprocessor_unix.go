//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
)

// preprocess hands over to groff's table preprocessor where that is what was
// called. It bears our name, and man runs it through the PATH, without
// arguments and with its input on a pipe: with us in front of it, every manual
// page would be our help. Only what comes behind us on the PATH is called, so
// that two of us never call each other.
func preprocess() {
	info, err := os.Stdin.Stat()
	if err != nil || len(os.Args) != 1 || info.Mode()&os.ModeCharDevice != 0 {
		return
	}
	path, err := os.Executable()
	if err != nil {
		return
	}
	self, err := os.Stat(path)
	if err != nil {
		return
	}
	behind := false
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir == "" {
			continue
		}
		next := filepath.Join(dir, "tbl")
		info, err := os.Stat(next)
		switch {
		case err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		case os.SameFile(self, info):
			behind = true
		case behind:
			_ = syscall.Exec(next, os.Args, os.Environ()) // failing, we are what there is
		}
	}
}
