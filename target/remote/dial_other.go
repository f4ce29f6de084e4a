//go:build !linux

package remote

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

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
