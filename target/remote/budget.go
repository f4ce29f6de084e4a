package remote

import (
	"fmt"

	"tbl/target/remote/ports"
)

// Budget is the plan for this target on this system, by what is known of the
// server so far.
func (r *Remote) Budget(workers int, rate float64) ports.Budget {
	dst, _ := r.addrs.known()
	return ports.ReadLimits().Plan(ports.Usage{
		Workers: workers, Rate: rate, Binds: len(r.cfg.Binds), LingerReset: r.cfg.LingerReset,
		Loopback:     dst.IsValid() && dst.Addr().IsLoopback(),
		ServerCloses: r.serverCloses(),
	})
}

// serverCloses says that nearly all answers so far were closed by the server
// first.
func (r *Remote) serverCloses() bool {
	n := r.answered.Load()
	return n > 0 && r.closedFirst.Load() >= n-n/100
}

// enoughAnswers is how many answers say how a server closes.
const enoughAnswers = 100

// Warnings are doubts about the run so far that a report should print: a
// server that leaves the closing, and with it TIME_WAIT, to this side, and
// requests that shared connections.
func (r *Remote) Warnings() []string {
	var out []string
	n, first := r.answered.Load(), r.closedFirst.Load()
	if n < enoughAnswers || r.cfg.KeepAlive {
		return nil
	}
	if opened := r.opened.Load(); opened < n {
		out = append(out, fmt.Sprintf("%d answers came over %d connections: they were not all fresh", n, opened))
	}
	if b := r.Budget(0, 0); first < n/2 && b.Sustainable > 0 {
		out = append(out, fmt.Sprintf(
			"the server closed first after %d of %d answers only: TIME_WAIT is on this side, and its %d local ports are good for %.0f requests/s in the long run (--linger-reset or more --bind addresses change that)",
			first, n, b.Ports, b.Sustainable))
	}
	return out
}

// Ports is the number of local ends that connections come from as long as they
// don't run out: the system hands out ports of one parity first, and the
// others only when those are gone.
func (r *Remote) Ports() int { return r.Budget(1, 0).Ports / 2 }
