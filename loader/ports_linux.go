package loader

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReadPortEnv asks the system. What can't be read is taken as Linux's default.
func ReadPortEnv() PortEnv {
	env := PortEnv{Known: true, FirstPort: 32768, LastPort: 60999, TWReuse: 2}
	if s, ok := sysctl("ip_local_port_range"); ok {
		var first, last int
		if n, _ := fmt.Sscan(s, &first, &last); n == 2 && first <= last {
			env.FirstPort, env.LastPort = first, last
		}
	}
	if s, ok := sysctl("ip_local_reserved_ports"); ok {
		env.Reserved = reservedPorts(s, env.FirstPort, env.LastPort)
	}
	if s, ok := sysctl("tcp_tw_reuse"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
			env.TWReuse = n
		}
	}
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) == nil && lim.Cur < 1<<40 {
		env.OpenFiles = int64(lim.Cur)
	}
	return env
}

func sysctl(name string) (string, bool) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	return string(b), err == nil
}
