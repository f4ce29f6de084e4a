package remote

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
)

// resolver turns the host into an address once. Of several addresses the
// first that could be connected to is kept, so that all requests of a run
// reach one server.
type resolver struct {
	host  string
	port  uint16
	fixed *atomic.Pointer[netip.AddrPort]
	mu    *sync.Mutex // one look-up at a time
}

func newResolver(host, port string) (resolver, error) {
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil || p == 0 {
		return resolver{}, fmt.Errorf("port %q: want 1 to 65535", port)
	}
	res := resolver{host: host, port: uint16(p), fixed: new(atomic.Pointer[netip.AddrPort]), mu: new(sync.Mutex)}
	if a, err := netip.ParseAddr(host); err == nil {
		ap := netip.AddrPortFrom(a.Unmap(), res.port)
		res.fixed.Store(&ap)
	}
	return res, nil
}

// known is the address that all requests go to, once there is one.
func (res *resolver) known() (netip.AddrPort, bool) {
	if p := res.fixed.Load(); p != nil {
		return *p, true
	}
	return netip.AddrPort{}, false
}

func (res *resolver) keep(a netip.AddrPort) { res.fixed.CompareAndSwap(nil, &a) }

func (res *resolver) lookup(ctx context.Context) ([]netip.AddrPort, error) {
	res.mu.Lock()
	defer res.mu.Unlock()
	if a, ok := res.known(); ok {
		return []netip.AddrPort{a}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", res.host)
	if err != nil {
		return nil, err
	}
	out := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		out[i] = netip.AddrPortFrom(a.Unmap(), res.port)
	}
	return out, nil
}
