package remote

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawAddr is dst as the kernel wants it. An IPv4 address fills the first part
// of the larger structure.
func rawAddr(dst netip.AddrPort, zone uint32) (sa unix.RawSockaddrInet6, size uintptr) {
	if dst.Addr().Is4() {
		in4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&sa))
		in4.Family = unix.AF_INET
		in4.Addr = dst.Addr().As4()
		setPort(&in4.Port, dst.Port())
		return sa, unsafe.Sizeof(*in4)
	}
	sa.Family = unix.AF_INET6
	sa.Addr = dst.Addr().As16()
	sa.Scope_id = zone
	setPort(&sa.Port, dst.Port())
	return sa, unsafe.Sizeof(sa)
}

// setPort writes a port in network order.
func setPort(dst *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(dst))[:], port)
}

// zoneIndex is the interface of a link-local address.
func zoneIndex(a netip.Addr) (uint32, error) {
	if a.Zone() == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n), nil
	}
	ifi, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return 0, fmt.Errorf("zone of %s: %w", a, err)
	}
	return uint32(ifi.Index), nil
}
