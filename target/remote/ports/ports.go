// Package ports tells what the system's local ports, and its open files, allow
// a client that opens a connection per request.
package ports

import (
	"fmt"
	"time"
)

// Limits are what the system allows a client that opens a connection per
// request.
type Limits struct {
	PortLow  int `json:"port_low"`  // the ephemeral range, both ends included
	PortHigh int `json:"port_high"` //
	Reserved int `json:"reserved"`  // ports in the range that are set aside
	// TWReuse is net.ipv4.tcp_tw_reuse: 0 no, 1 yes, 2 on loopback only. With
	// it a port in TIME_WAIT is free again after a second.
	TWReuse int `json:"tcp_tw_reuse"`
	// TimeWait is how long a closed connection holds its port where the client
	// closed first.
	TimeWait  time.Duration `json:"time_wait_ns"`
	OpenFiles uint64        `json:"open_files"` // the soft limit; 0: unknown
	// Known is false where the system doesn't tell; the values are then the
	// usual ones.
	Known bool `json:"known"`
}

// Usage is what a run is going to do.
type Usage struct {
	Workers     int     // requests at a time
	Rate        float64 // requests per second; 0: as many as possible, unknown
	Binds       int     // source addresses; 0: one, the system's
	Loopback    bool    // to an address of this machine
	LingerReset bool    // connections end in a reset
	// ServerCloses says that the server was seen to close first, which puts
	// TIME_WAIT on its side.
	ServerCloses bool
}

// Budget is how many fresh connections the local ports are good for.
type Budget struct {
	// Ports is how many local ends there are for one destination.
	Ports int `json:"ports"`
	// Hold is how long one is gone after its connection was closed; 0: not at
	// all.
	Hold time.Duration `json:"hold_ns"`
	// Sustainable is the rate in requests per second that can go on for ever;
	// 0: the ports set no limit.
	Sustainable float64 `json:"sustainable_per_s"`
	// ExhaustedAfter is when the first request finds no port at the rate in
	// question; 0: never, or no rate was given.
	ExhaustedAfter time.Duration `json:"exhausted_after_ns"`
	// MaxRequests is how many requests fit before a port must come back; 0:
	// no limit.
	MaxRequests int64 `json:"max_requests_at_once"`
	// Warnings say what will go wrong and what helps.
	Warnings []string `json:"warnings,omitempty"`
}

// reusedAfter is how long tcp_tw_reuse leaves a port alone: the timestamp of
// the next connection must be larger, and its clock ticks once a second
// (Documentation/networking/ip-sysctl.rst).
const reusedAfter = time.Second

// sparesFiles is what a process needs besides its connections.
const sparesFiles = 32

// Plan computes the budget of a run.
func (l Limits) Plan(u Usage) Budget {
	b := Budget{Ports: max(0, l.PortHigh-l.PortLow+1-l.Reserved) * max(1, u.Binds)}
	switch {
	case u.LingerReset, u.ServerCloses:
	case l.TWReuse == 1, l.TWReuse == 2 && u.Loopback:
		b.Hold = min(reusedAfter, l.TimeWait)
	default:
		b.Hold = l.TimeWait
	}
	if b.Hold > 0 {
		b.Sustainable = float64(b.Ports) / b.Hold.Seconds()
		b.MaxRequests = int64(b.Ports)
		if u.Rate > b.Sustainable {
			b.ExhaustedAfter = time.Duration(float64(b.Ports) / u.Rate * float64(time.Second))
		}
	}
	if b.ExhaustedAfter > 0 {
		b.Warnings = append(b.Warnings, fmt.Sprintf(
			"the %d local ports are good for %.0f requests/s; at %.0f/s they are used up after %s: "+
				"more source addresses (--bind), a wider net.ipv4.ip_local_port_range, net.ipv4.tcp_tw_reuse=1 or --linger-reset help",
			b.Ports, b.Sustainable, u.Rate, b.ExhaustedAfter.Round(100*time.Millisecond)))
	}
	if u.Workers > b.Ports {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%d workers want more than the %d local ports there are", u.Workers, b.Ports))
	}
	if need := uint64(max(0, u.Workers)) + sparesFiles; l.OpenFiles > 0 && need > l.OpenFiles {
		b.Warnings = append(b.Warnings, fmt.Sprintf(
			"%d workers need about %d open files, %d are allowed: raise ulimit -n or lower the workers", u.Workers, need, l.OpenFiles))
	}
	return b
}
