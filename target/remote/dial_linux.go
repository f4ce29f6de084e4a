package remote

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// dialControl prepares a socket that is bound before it connects: with an
// address alone, the port is left to connect, which may then share ports
// between destinations; a chosen port may be one that has just been used.
func dialControl(local netip.AddrPort) func(context.Context, string, string, syscall.RawConn) error {
	if !local.IsValid() {
		return nil
	}
	return func(_ context.Context, _, _ string, rc syscall.RawConn) error {
		var err error
		if cerr := rc.Control(func(fd uintptr) { err = bindOption(int(fd), local.Port() != 0) }); cerr != nil {
			return cerr
		}
		return err
	}
}

func bindOption(fd int, chosen bool) error {
	if chosen {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
}

// quiet says that nothing has come on an idle connection, neither a close nor
// bytes that nobody asked for.
func quiet(c *net.TCPConn) bool {
	rc, err := c.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	cerr := rc.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ok = err == unix.EAGAIN
	})
	return ok && cerr == nil
}
