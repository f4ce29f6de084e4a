package app

import (
	"net"
	"net/url"
	"runtime"
	"runtime/debug"
	"sync"

	"tbl/target/remote"
)

// halveProcessors is Env.HalveProcessors of the process: half of what the process
// may use now, container quotas counted, unless the user has said how many.
func halveProcessors(getenv func(string) string) func() {
	var once sync.Once
	return func() {
		if getenv("GOMAXPROCS") == "" {
			once.Do(func() { runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)) })
		}
	}
}

// collectLater is Env.CollectLater of the process: garbage is collected when it
// is four times what is in use, or earlier where the memory would come near to
// 64 MiB, of which the program itself is a part; either unless the user has said so. It is not taken back at the end of
// a run: that would start a collection just before the process ends.
func collectLater(getenv func(string) string) func() {
	return func() {
		if getenv("GOGC") == "" {
			debug.SetGCPercent(400)
		}
		if getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(48 << 20)
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
	if err == nil && a.env.HalveProcessors != nil && u.Scheme == "http" && !cfg.Portable && onThisMachine(u.Hostname()) {
		a.env.HalveProcessors()
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
