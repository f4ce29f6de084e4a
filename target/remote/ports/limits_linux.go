package ports

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// timeWait is the kernel's TCP_TIMEWAIT_LEN, which is no setting.
const timeWait = 60 * time.Second

// ReadLimits asks the kernel.
func ReadLimits() Limits {
	l := Limits{PortLow: 32768, PortHigh: 60999, TimeWait: timeWait}
	var err error
	if f := sysctl("ip_local_port_range"); len(f) == 2 {
		var err2 error
		l.PortLow, err = strconv.Atoi(f[0])
		l.PortHigh, err2 = strconv.Atoi(f[1])
		l.Known = err == nil && err2 == nil
	}
	if f := sysctl("tcp_tw_reuse"); len(f) == 1 {
		l.TWReuse, _ = strconv.Atoi(f[0]) // what is no number is no
	}
	if f := sysctl("ip_local_reserved_ports"); len(f) == 1 {
		l.Reserved = reserved(f[0], l.PortLow, l.PortHigh)
	}
	var rl unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &rl) == nil {
		l.OpenFiles = rl.Cur
	}
	return l
}

func sysctl(name string) []string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// reserved counts the ports of a list like "8080,9000-9010" inside a range.
func reserved(list string, low, high int) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil {
			n += max(0, min(b, high)-max(a, low)+1)
		}
	}
	return n
}
