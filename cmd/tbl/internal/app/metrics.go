package app

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/logreport"
	"tbl/cmd/tbl/internal/metrics"
	"tbl/cmd/tbl/internal/render"
	"tbl/target"
)

// metricsFlags are the flags of commands that can run for long.
func metricsFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(catOutput, "metrics", "", "while it runs, offer its progress to Prometheus at http://`HOST:PORT`/metrics; port 0 picks one"),
	}
}

// startMetrics offers the run's progress where --metrics says, until stop is
// called. Without the flag it does nothing.
func (a *app) startMetrics(c *cli.Context, tgt string) (stop func(), err error) {
	addr := c.String("metrics")
	if addr == "" {
		return func() {}, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef("--metrics %q: want HOST:PORT, such as 127.0.0.1:9400", addr)
	}
	run := metrics.NewRun(release, c.Command.Name, tgt)
	srv, err := metrics.Serve(c.Context, addr, run.Handler())
	if err != nil {
		return nil, usagef("--metrics: %w; choose another address, or port 0 for a free one", err)
	}
	if !c.Bool("quiet") {
		fmt.Fprintf(a.env.Stderr, "tbl: metrics at http://%s%s while the command runs\n", srv.Addr(), metrics.Path)
	}
	a.watch = run
	return func() {
		a.watch = nil
		// Nothing is lost with a listener that won't close: the command ends.
		_ = srv.Close()
	}, nil
}

// scraped adapts a command's progress.
func scraped(poll func() render.Snapshot) func() metrics.Progress {
	return func() metrics.Progress {
		s := poll()
		return metrics.Progress{Completed: s.Done, Planned: s.Total, Known: s.Cores, Heard: s.Heard, Scheduled: s.Scheduled}
	}
}

// observe performs a request and counts it.
func observe(ctx context.Context, run *metrics.Run, tgt target.Target, req *target.Request, ans *target.Answer) error {
	clock := tgt.Clock()
	start := clock.Now()
	err := tgt.Do(ctx, req, ans)
	run.Observe(req, ans, clock.Now().Sub(start), err)
	return err
}

// watchedTarget counts what is asked of a target.
type watchedTarget struct {
	target.Target
	run *metrics.Run
}

// Do performs one request.
func (t *watchedTarget) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	return observe(ctx, t.run, t.Target, req, ans)
}

// logCores are the cores of every device of a report.
func logCores(r *logreport.Report) []metrics.LogCore {
	var out []metrics.LogCore
	for i := range r.Devices {
		d := &r.Devices[i]
		for j := range d.Cores {
			out = append(out, metrics.LogCore{Device: d.Name, CoreSummary: d.Cores[j].CoreSummary})
		}
	}
	return out
}

// inputNames names what a log is read from.
func inputNames(c *cli.Context) string {
	switch {
	case c.IsSet("log-cmd"):
		return "what a command prints"
	case c.IsSet("syslog-listen"):
		return c.String("syslog-listen")
	case c.Args().Present():
		return strings.Join(c.Args().Slice(), ", ")
	}
	return "stdin"
}
