package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/loader"
	"tbl/loader/steer"
	"tbl/prober"
	"tbl/target"
)

// needs says what a command does to a target, for --read-only and --dry-run.
type needs struct {
	// writes says what is written or deleted; empty: the command only asks.
	writes string
	// rate and takes complete the plan; empty: as fast as answered, until done.
	rate, takes string
}

// measure is the frame of every command that needs a target: it checks the
// output, opens the target, lets run measure, and writes what it returns,
// also when run was cut short.
func (a *app) measure(c *cli.Context, n needs, run func(context.Context, *plane) (*render.Document, error)) error {
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	opts, err := a.targetOptions(c)
	if err != nil {
		return err
	}
	if n.writes != "" && c.Bool("read-only") {
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
	if c.Bool("each") && len(opts.urls) > 1 {
		return a.measureEach(c, out, opts, run)
	}
	if len(opts.urls) > 1 && hasFlag(c.Command, "policy") {
		b, err := parseCluster(c)
		if err != nil {
			return err
		}
		opts.balance = &b
	}
	p, err := opts.open(c.Context)
	if err != nil {
		return err
	}
	out.start(p.Clock())
	if p.embedded != nil {
		out.seed = p.embedded.Seed()
	}
	doc, err := run(c.Context, p)
	err = errors.Join(err, p.Close())
	if doc == nil {
		return runError(err)
	}
	if p.nodes != nil {
		p.nodes.Report(doc)
	}
	if p.remote != nil {
		for _, w := range p.remote.Warnings() {
			doc.Linef("warning: %s", w)
		}
	}
	for _, w := range p.warnings() {
		fmt.Fprintf(a.env.Stderr, "tbl: warning: %s\n", plainLine(w))
	}
	if errors.Is(err, errLogLost) && !a.stdout.closed.Load() {
		doc.Lost(oneLine(err))
	}
	if werr := out.finish(c.Context, doc); werr != nil {
		return werr
	}
	if answeredWithErrors(err) && a.code == exitFail {
		return &exitError{exitFail, err}
	}
	err = runError(err)
	if a.code == exitInterrupted && exitCode(err) == exitInterrupted && !errors.Is(err, errLogUnread) {
		return nil // the document says so
	}
	return a.afterRun(err)
}

// measureEach runs against one target after the other and judges each apart.
func (a *app) measureEach(c *cli.Context, out *output, opts *targetOptions, run func(context.Context, *plane) (*render.Document, error)) error {
	if g := given(c, "file", "policy", "sticky", "repin", "pin-at", "transport", "tx-size"); len(g) > 0 {
		return usagef("--each and --%s: each target is measured by itself, so want one of them", g[0])
	}
	var docs []*render.Document
	var names []string
	var errs []error
	for _, url := range opts.urls {
		one := *opts
		one.urls = []string{url}
		p, err := one.open(c.Context)
		if err != nil {
			return err
		}
		doc, err := run(c.Context, p)
		if err = errors.Join(err, p.Close()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", url, err))
		}
		if doc != nil {
			docs, names = append(docs, doc), append(names, url)
		}
	}
	err := runError(errors.Join(errs...))
	if len(docs) == 0 {
		return err
	}
	if werr := out.finish(c.Context, render.Each(c.Command.Name, names, docs)); werr != nil {
		return werr
	}
	return a.afterRun(err)
}

// runError gives the errors of the measuring packages their exit codes.
func runError(err error) error {
	var t *target.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &t) && t.Status == 401:
		return incompletef("the dataplane asks for a token: give --token (%w)", err)
	case errors.Is(err, loader.ErrConfig), errors.Is(err, prober.ErrConfig):
		return usagef("%w", err)
	case errors.Is(err, loader.ErrUnreachable), errors.Is(err, loader.ErrNoDataplane), errors.Is(err, loader.ErrNotCleared), errors.Is(err, steer.ErrNotSteerable), errors.Is(err, errLogLost):
		return incompletef("%w", err)
	}
	return err
}

// answeredWithErrors says that a run was given up because a dataplane refused
// everything: that is a verdict about it, not a lack of evidence.
func answeredWithErrors(err error) bool {
	return errors.Is(err, loader.ErrAllFailed) || errors.Is(err, loader.ErrNoDataplane)
}

// plan prints what a run would do.
func (a *app) plan(out *output, opts *targetOptions, n needs) error {
	d := &render.Document{}
	d.Linef("target: %s", opts.describe())
	writes := n.writes
	if writes == "" {
		writes = "nothing, it only asks"
	}
	d.Linef("writes: %s", writes)
	if n.rate != "" {
		d.Linef("rate: %s", n.rate)
	}
	if n.takes != "" {
		d.Linef("takes: %s", n.takes)
	}
	d.Linef("dry run: nothing was sent")
	return render.Formats()[0].Write(out.stdout, d)
}

// progress shows a run's progress on stderr until the function that it
// returns is called.
func (a *app) progress(c *cli.Context, poll func() render.Snapshot) (stop func()) {
	if a.watch != nil {
		a.watch.Watch(scraped(poll))
	}
	if c.Bool("quiet") {
		return func() {}
	}
	return render.Progress(a.env.Stderr, poll)
}

// maxErrors is --max-errors as a share, in the form that the measuring
// packages take: negative for none at all, as their zero is the default.
func maxErrors(c *cli.Context) float64 { return errorShare(c.Float64("max-errors")) }

func errorShare(percent float64) float64 {
	if percent > 0 {
		return percent / 100
	}
	return -1
}

func dryRunFlag() []cli.Flag {
	return []cli.Flag{boolFlag(catTarget, "dry-run", "print what would be written or deleted, and send nothing")}
}

// commandFlags are a command's own flags and those that all measuring
// commands share.
func commandFlags(own ...cli.Flag) []cli.Flag {
	return flags(own, dryRunFlag(), targetFlags(), embeddedFlags(), outputFlags(), metricsFlags(), gateFlags())
}

// hasFlag says that a command knows a flag.
func hasFlag(cmd *cli.Command, name string) bool {
	return slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
}
