//go:build !linux

package remote

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"

	"tbl/target"
)

// fastPath exists on Linux only.
type fastPath struct{}

func (f *fastPath) init(*Remote)               {}
func (f *fastPath) close()                     {}
func (f *fastPath) enabled() bool              { return false }
func (f *fastPath) takes(*target.Request) bool { return false }
func (f *fastPath) do(context.Context, *target.Request, *target.Answer) error {
	return errClosed
}

func dialControl(netip.AddrPort) func(context.Context, string, string, syscall.RawConn) error {
	return nil
}

// quiet says that nothing has come on an idle connection.
func quiet(c *net.TCPConn) bool {
	if c.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	var b [1]byte
	_, err := c.Read(b[:])
	ne, ok := err.(net.Error)
	return ok && ne.Timeout() && c.SetReadDeadline(time.Time{}) == nil
}
