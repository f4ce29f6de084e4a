//go:build !linux

package remote

import (
	"context"

	"tbl/target"
)

// fastPath exists on Linux only.
type fastPath struct{}

func (f *fastPath) init(*Remote)                   {}
func (f *fastPath) close()                         {}
func (f *fastPath) enabled() bool                  { return false }
func (f *fastPath) takes(req *target.Request) bool { return false }
func (f *fastPath) do(context.Context, *target.Request, *target.Answer) error {
	return errClosed
}
