package app

import (
	"net"
	"net/url"
	"runtime"
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
// one gains: the rate falls and the cost of a request rises.
func (a *app) shareProcessors(target string) {
	if a.env.Processors != nil && onThisMachine(target) {
		a.env.Processors(max(1, runtime.NumCPU()/2))
	}
}

// onThisMachine says that the URL names an address of this machine.
func onThisMachine(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	host := u.Hostname()
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
