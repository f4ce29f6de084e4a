//go:build !unix

package input

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
