package app

import (
	"net"
	"net/url"
	"runtime"

	"tbl/target/remote"
)

// setProcessors sets how many processors the process uses at once, unless the
// user has said so.
func setProcessors(getenv func(string) string) func(int) {
	return func(n int) {
		if getenv("GOMAXPROCS") == "" {
			runtime.GOMAXPROCS(n)
		}
	}
}

// shareProcessors leaves half of the machine's processors to a server that
// runs on it. A client that uses all of them takes them from the server it
// measures, and the processors' waking each other costs more than a second
// one gains: the rate falls and the cost of a request rises. Not so where the
// client has much to do itself: over TLS, and on the portable path.
func (a *app) shareProcessors(cfg *remote.Config) {
	u, err := url.Parse(cfg.URL)
	if err == nil && a.env.Processors != nil && u.Scheme == "http" && !cfg.Portable && onThisMachine(u.Hostname()) {
		a.env.Processors(max(1, runtime.NumCPU()/2))
	}
}

// onThisMachine says that host is an address of this machine.
func onThisMachine(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.IsLoopback() {
		return ip != nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}
