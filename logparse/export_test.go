package logparse

import (
	"bytes"
	"context"
	"io"
)

// Cutter scans data cut into two reads, with one buffer for all its scans.
type Cutter struct{ buf block }

func (c *Cutter) Scan(opt Options, data []byte, at int) *Result {
	opt.defaults()
	opt.limit(nil)
	e := newEngine(&opt, &pool{}, false)
	r := io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:]))
	if err := c.buf.stream(context.Background(), r, e); err != nil {
		panic(err)
	}
	return e.result()
}
