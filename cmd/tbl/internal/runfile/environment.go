package runfile

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strings"
)

// Here describes this machine. What can't be told is empty.
func Here(version string) *Environment {
	e := &Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Version: version}
	if name, err := os.Hostname(); err == nil {
		e.Host = name
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				e.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return e
}
