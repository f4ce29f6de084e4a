package remote

import (
	"context"

	"tbl/target"
)

type fastPath struct{ on bool }

func (f *fastPath) init(*Remote) {}
func (f *fastPath) close()       {}
func (f *fastPath) do(context.Context, *target.Request, *target.Answer) error {
	return errClosed
}
