//go:build !linux

package remote_test

import (
	"errors"
	"testing"

	"tbl/target/remote"
)

func isPortBusy(err error) bool { return errors.Is(err, remote.ErrPortBusy) }

func answerAll(int, []byte)            {}
func stopAnswering(*testing.T, string) {}
func inNamespace() bool                { return false }
func exhaustedChild()                  {}
