package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober/proof"
	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/remote"
)

func (a *app) validateCommand() *cli.Command {
	return &cli.Command{
		Usage: "the five-step proof that every core writes to storage it owns",
		Flags: commandFlags(
			intFlag("", "count", 0, "writes of the load (default: as many as the cores need, 100,000 for 4)"),
			intFlag("", "probe-requests", 0, "most requests per name in the last step (default: as many as the cores need, 200 for 4)"),
			intFlag("", "workers", 64, "requests at a time"),
			intFlag("", "threshold", 100, "clicks from which a write is remote"),
			boolFlag("", "destroy", "delete entries that are already there"),
			boolFlag("", "http", "embedded: go over loopback instead of in process"),
			stringsFlag("", "name", "a further `NAME` whose owner the last step finds (repeatable)"),
			stringFlag("", "names", "", "further names from `FILE`, one per line, - for stdin"),
			boolFlag("", "steer", "reach each core through source ports that were seen to lead to it"),
			among(stringsFlag("", "step", "run only this `STEP`: "+strings.Join(stepWords(), ", ")+" (repeatable)"), stepWords()...),
			among(stringsFlag("", "skip", "leave out this `STEP` (repeatable)"), stepWords()...),
			ownEnv("validate", stringFlag(catTarget, "log", "", "remote: `FILE` that the dataplane logs to, - for stdin; embedded: append sampled timings to it")),
			stringFlag(catTarget, "log-cmd", "", "remote: `COMMAND` that prints the dataplane's log, such as 'ssh bigip tail -F /var/log/ltm'"),
			stringFlag(catTarget, "syslog-listen", "", "remote: listen for the dataplane's log on udp://`ADDRESS` or tcp://ADDRESS"),
		),
		Action: a.validate,
	}
}

func stepWords() (out []string) {
	for _, s := range proof.Steps() {
		out = append(out, s.Word)
	}
	return out
}

// steps reads --step or --skip: the word or the number of a step.
func steps(c *cli.Context, flag string) ([]proof.Step, error) {
	var out []proof.Step
next:
	for _, w := range c.StringSlice(flag) {
		for _, s := range proof.Steps() {
			if w == s.Word || w == fmt.Sprint(int(s.Step)) {
				out = append(out, s.Step)
				continue next
			}
		}
		return nil, usagef("--%s %q: want one of %s, or 1 to %d", flag, w, strings.Join(stepWords(), ", "), len(proof.Steps()))
	}
	return out, nil
}

func (a *app) validate(c *cli.Context) error {
	if err := positiveIfSet(c, "count", "probe-requests"); err != nil {
		return err
	}
	if err := atLeast(c, 1, "workers", "threshold"); err != nil {
		return err
	}
	cfg := proof.Config{
		Count: c.Int("count"), ProbeRequests: c.Int("probe-requests"), Workers: c.Int("workers"), Destroy: c.Bool("destroy"),
		Threshold: int64(c.Int("threshold")), LogSample: c.Int("log-sample"), Names: c.StringSlice("name"), MaxErrors: maxErrors(c), Steer: c.Bool("steer"),
		Progress: new(proof.Progress),
	}
	var err error
	if cfg.Only, err = steps(c, "step"); err != nil {
		return err
	}
	if cfg.Skip, err = steps(c, "skip"); err != nil {
		return err
	}
	if path := c.String("names"); path != "" {
		more, err := a.readNames("names", path)
		if err != nil {
			return err
		}
		cfg.Names = append(cfg.Names, more...)
	}
	if cfg.Names, err = uniqueNames(cfg.Names); err != nil {
		return err
	}
	remoteTarget := c.IsSet("target") || c.IsSet("host")
	sources := given(c, "log", "log-cmd", "syslog-listen")
	switch {
	case remoteTarget && len(sources) > 1:
		return usagef("--%s and --%s: want one source of the log", sources[0], sources[1])
	case remoteTarget && c.Bool("http"):
		return usagef("--http is for the embedded dataplane: drop it, or drop the target")
	case !remoteTarget && len(given(c, "log-cmd", "syslog-listen")) > 0:
		return usagef("--%s is for a remote dataplane: the embedded one's log is read anyhow", given(c, "log-cmd", "syslog-listen")[0])
	case !remoteTarget && cfg.LogSample == 0:
		return usagef("--log-sample 0: the proof reads the sampled log, want at least 1")
	}
	n := needs{
		writes: "sampled keys into every core's own subtable, after deleting what is there (--destroy), and a probe entry (60 s) per core and name",
		rate:   fmt.Sprintf("as fast as answered, %d at a time", cfg.Workers),
	}
	if len(c.StringSlice("target")) > 1 {
		if len(sources) > 0 {
			return usagef("--%s and several targets: a log is one target's, want one", sources[0])
		}
		return a.validateEach(c, n, cfg)
	}
	return a.measure(c, n, func(ctx context.Context, p *plane) (*render.Document, error) {
		if p.embedded != nil {
			cfg.Destroy = true
			cfg.Log = &embeddedLog{buf: p.captured, flush: p.embedded.FlushLog}
			if c.Bool("http") {
				stop, err := overLoopback(ctx, p)
				if err != nil {
					return nil, err
				}
				defer stop()
			}
		} else if len(sources) == 1 {
			if cfg.Log, err = a.remoteLog(sources[0], c.String(sources[0])); err != nil {
				return nil, err
			}
		}
		stop := a.progress(c, proofSnapshot(cfg.Progress))
		r, err := proof.Run(ctx, p, cfg)
		stop()
		var held *proof.NotEmptyError
		if errors.As(err, &held) {
			return nil, usagef("%w: the proof would delete them; give --destroy if they may go", held)
		}
		if r == nil {
			return nil, err
		}
		return render.Proof(r), err
	})
}

// proofSnapshot adapts the proof's progress.
func proofSnapshot(p *proof.Progress) func() render.Snapshot {
	return func() render.Snapshot {
		step, counts := p.Now()
		if counts == nil {
			return render.Snapshot{}
		}
		return proberSnapshot(fmt.Sprintf("step %d/%d %s", step.Step, len(proof.Steps()), step.Word), counts)()
	}
}

// validateEach proves several targets side by side.
func (a *app) validateEach(c *cli.Context, n needs, cfg proof.Config) error {
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	opts, err := a.targetOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("read-only") {
		return usagef("--read-only: %s writes %s", c.Command.Name, n.writes)
	}
	if c.Bool("dry-run") {
		return a.plan(out, opts, n)
	}
	unwatch, err := a.startMetrics(c, opts.describe())
	if err != nil {
		return err
	}
	defer unwatch()
	var targets []target.Target
	for _, url := range opts.urls {
		one := *opts
		one.urls = []string{url}
		p, err := one.open(c.Context)
		if err != nil {
			return err
		}
		defer p.Close()
		targets = append(targets, p)
	}
	outcomes := proof.RunEach(c.Context, targets, func(int) proof.Config {
		own := cfg
		own.Progress = nil
		return own
	})
	var docs []*render.Document
	var results []*proof.Result
	var names []string
	var errs []error
	for i, o := range outcomes {
		var held *proof.NotEmptyError
		if errors.As(o.Err, &held) {
			return usagef("%s: %w: the proof would delete them; give --destroy if they may go", opts.urls[i], held)
		}
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", opts.urls[i], o.Err))
		}
		if o.Result != nil {
			docs, results, names = append(docs, render.Proof(o.Result)), append(results, o.Result), append(names, opts.urls[i])
		}
	}
	err = runError(errors.Join(errs...))
	if len(docs) == 0 {
		return err
	}
	if werr := out.finish(c.Context, render.Proofs(names, results, docs)); werr != nil {
		return werr
	}
	return a.afterRun(err)
}

func uniqueNames(names []string) ([]string, error) {
	for i, n := range names {
		for _, m := range names[:i] {
			if n == m {
				return nil, usagef("--name %q is given twice", n)
			}
		}
		if n == "" {
			return nil, usagef("--name: a name is empty")
		}
	}
	return names, nil
}

// overLoopback puts p's embedded plane behind a listener and makes p a client
// of it.
func overLoopback(ctx context.Context, p *plane) (stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, incompletef("--http: %w", err)
	}
	r, err := remote.New(remote.Config{URL: "http://" + ln.Addr().String()})
	if err != nil {
		ln.Close()
		return nil, err
	}
	// The server outlives the run's own context: an interrupted run still gets
	// its last answers.
	serveCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = httpserve.New(p.embedded, httpserve.Config{}).Serve(serveCtx, ln)
	}()
	p.Target, p.remote = r, r
	return func() {
		r.Close()
		cancel()
		<-done
		p.Target, p.remote = p.embedded, nil
	}, nil
}
