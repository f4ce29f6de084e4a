package loader

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeWait is how long a closed connection keeps its port on the side that
// closed first (TCP_TIMEWAIT_LEN of Linux; RFC 9293 asks for two segment
// lifetimes).
const timeWait = 60 * time.Second

// PortEnv is what the system grants to a client that opens connections.
type PortEnv struct {
	// Known says that the rest was read; it is false where the system can't be
	// asked.
	Known bool `json:"known"`
	// FirstPort to LastPort is the ephemeral range, less Reserved ports of it.
	FirstPort int `json:"first_port"`
	LastPort  int `json:"last_port"`
	Reserved  int `json:"reserved_ports"`
	// TWReuse is net.ipv4.tcp_tw_reuse: 0 never, 1 ports in TIME_WAIT are used
	// again after a second, 2 on loopback only.
	TWReuse int `json:"tcp_tw_reuse"`
	// OpenFiles is the soft limit of open files; 0: none.
	OpenFiles int64 `json:"open_files"`
}

// PortPlan is what a run is about to do.
type PortPlan struct {
	Sources     int     // source addresses; 0: 1
	Requests    int64   // 0: not known
	Rate        float64 // per second; 0: as fast as it goes
	Workers     int
	Loopback    bool // the target is on this machine
	LingerReset bool // connections end with a reset
	// ServerCloses says that the server was seen to close first: the ports
	// wait on its side then.
	ServerCloses bool
}

// PortBudget says how long a run's ports last.
type PortBudget struct {
	PortEnv
	// Ports is how many connections can wait or stand at once.
	Ports int64 `json:"ports"`
	// SustainablePerS is the rate that can go on for ever; 0: not limited by ports.
	SustainablePerS float64 `json:"sustainable_per_s"`
	// ExhaustedNS is when the ports run out, from the start; 0: never, as far
	// as is known.
	ExhaustedNS int64 `json:"exhausted_ns"`
	// Warnings are the doubts, one sentence each with its remedy.
	Warnings []string `json:"warnings"`
}

// PlanPorts says whether the ports and descriptors of env are enough for plan.
func PlanPorts(env PortEnv, plan PortPlan) PortBudget {
	b := PortBudget{PortEnv: env, Warnings: []string{}}
	if !env.Known {
		return b
	}
	b.Ports = int64(max(0, env.LastPort-env.FirstPort+1-env.Reserved)) * int64(max(1, plan.Sources))
	// Beside the workers' own: the standard streams, the poller, files.
	if need := int64(plan.Workers) + 16; env.OpenFiles > 0 && need > env.OpenFiles {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%d workers need more than the %d open files that are allowed: raise the limit (ulimit -n) or lower --workers",
			plan.Workers, env.OpenFiles))
	}
	if int64(plan.Workers) > b.Ports {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%d workers want more than the %d local ports there are: add source addresses with --bind", plan.Workers, b.Ports))
	}
	if plan.LingerReset || plan.ServerCloses {
		return b // a port is free again as soon as its connection is gone
	}
	wait := timeWait
	if env.TWReuse == 1 || env.TWReuse == 2 && plan.Loopback {
		wait = time.Second
	}
	b.SustainablePerS = float64(b.Ports) / wait.Seconds()
	if plan.Requests > 0 && plan.Requests <= b.Ports {
		return b
	}
	switch {
	case plan.Rate > b.SustainablePerS:
		at := float64(b.Ports) / plan.Rate
		if plan.Requests > 0 && float64(plan.Requests) <= plan.Rate*at {
			return b
		}
		b.ExhaustedNS = int64(math.Round(at * 1e9))
		b.Warnings = append(b.Warnings, fmt.Sprintf("at %.0f/s the %d local ports are used up after %v if the client closes first: %.0f/s can be sustained; lower --rate, add source addresses with --bind, or end connections with --linger-reset",
			plan.Rate, b.Ports, time.Duration(b.ExhaustedNS).Round(100*time.Millisecond), b.SustainablePerS))
	case plan.Rate == 0 && wait > time.Second && plan.Requests > b.Ports:
		b.Warnings = append(b.Warnings, fmt.Sprintf("%d requests on %d local ports: if the client closes first, %.0f/s can be sustained, and faster than that the ports are used up after %d requests; add source addresses with --bind, or end connections with --linger-reset",
			plan.Requests, b.Ports, b.SustainablePerS, b.Ports))
	}
	return b
}

// reservedPorts counts the ports of a list such as "8080,9000-9010" that lie
// in a range.
func reservedPorts(list string, first, last int) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		z := a
		if ranged {
			if z, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		n += max(0, min(z, last)-max(a, first)+1)
	}
	return n
}
