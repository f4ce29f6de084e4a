//go:build unix

package input

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the command into a process group, so that what the shell starts ends with it,
// and a Ctrl-C at the terminal reaches us first.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
