package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"tbl/cmd/tbl/internal/logreport"
	"tbl/cmd/tbl/internal/render"
	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// slowShown is how many of the slowest samples --show-slow lists.
const slowShown = 20

func (a *app) statsCommand() *cli.Command {
	return &cli.Command{
		Usage:     "per-core timing and verdict from sampled logs",
		ArgsUsage: "[FILE|-]…",
		Description: "Reads files, compressed or not, or standard input: a BIG-IP's /var/log/ltm, a syslog\n" +
			"server's copy, or what `tbl load --log` wrote. Of several runs the last one is judged.",
		Flags: flags([]cli.Flag{
			stringFlag("", "threshold", "100", "clicks from which a write is remote, or auto: the valley between two populations"),
			ownEnv("stats", intFlag("", "cores", 0, "cores that must have written (default: the gaps in the numbers seen are missing)")),
			boolFlag("", "show-slow", fmt.Sprintf("list the %d slowest samples at or above the threshold", slowShown)),
			boolFlag("", "all-lines", "count PROBE lines as samples too"),
			boolFlag("", "probes", "report PROBE lines only: which core owns each name"),
			stringFlag("", "expect-owner", "", "with --probes: core `K` that must own every name"),
			among(stringFlag("", "rule", string(verdict.RuleShare), "share (share of slow samples, with its interval) or mean (plain)"), rules()...),
			among(stringFlag("", "group-by", "", "summarise by subtable, host or minute too"), logreport.GroupKinds()...),
			boolFlag("", "follow", "go on as the file grows, across rotation, until Ctrl-C ends it with the verdict's exit code; a table about every two seconds on stderr"),
			stringFlag("", "since", "", "leave out what is older than `TIME`: as logs write it (May 6 16:02:11), 2026-05-06T16:02:11, 16:02 of today, or 90m or 3d for so long ago"),
			stringFlag("", "until", "", "leave out what is younger than `TIME`"),
			among(stringFlag("", "run", "last", "which run: last, all, or a number from 1"), "last", "all"),
			ownEnv("stats", stringFlag("", "host", "", "only the device `NAME`")),
			stringFlag("", "log-cmd", "", "read what `COMMAND` prints, such as 'ssh bigip tail -F /var/log/ltm', until Ctrl-C"),
			stringFlag("", "syslog-listen", "", "listen for syslog on udp://`ADDRESS` or tcp://ADDRESS, until Ctrl-C"),
		}, plotFlags(), outputFlags(), metricsFlags(), gateFlags()),
		Action: a.stats,
	}
}

func (a *app) stats(c *cli.Context) error {
	opt, err := statsOptions(c, time.Now())
	if err != nil {
		return err
	}
	inputs, err := a.statsInputs(c)
	if err != nil {
		return err
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	live := c.Bool("follow") || c.IsSet("log-cmd") || c.IsSet("syslog-listen")
	unwatch, err := a.startMetrics(c, inputNames(c))
	if err != nil {
		return err
	}
	defer unwatch()
	if live {
		opt.OnReport = a.onReport(c)
	}
	// Reading makes little garbage beside its buffers, and a collection costs a
	// short run a tenth of its time.
	if a.env.CollectLater != nil {
		a.env.CollectLater()
	}
	r, err := logreport.Run(c.Context, inputs, opt)
	if err != nil && !errors.Is(err, context.Canceled) {
		return usagef("%w", err)
	}
	if live {
		// A live source is ended by the user: that is its end, not a cut.
		return out.finish(context.WithoutCancel(c.Context), render.Stats(r))
	}
	return out.finish(c.Context, render.Stats(r))
}

// rules are the values of --rule.
func rules() []string { return []string{string(verdict.RuleShare), string(verdict.RuleMean)} }

func statsOptions(c *cli.Context, now time.Time) (opt logreport.Options, err error) {
	if opt.Threshold, opt.AutoThreshold, err = threshold(c); err != nil {
		return opt, err
	}
	if err := positiveIfSet(c, "cores"); err != nil {
		return opt, err
	}
	if err := oneOf("rule", c.String("rule"), rules()...); err != nil {
		return opt, err
	}
	if opt.GroupBy = c.String("group-by"); opt.GroupBy != "" {
		if err := oneOf("group-by", opt.GroupBy, logreport.GroupKinds()...); err != nil {
			return opt, err
		}
	}
	opt.Cores, opt.Rule, opt.Probes = c.Int("cores"), verdict.Rule(c.String("rule")), c.Bool("probes")
	if c.Bool("show-slow") {
		opt.Slow = slowShown
	}
	if s := c.String("expect-owner"); s != "" {
		if !opt.Probes {
			return opt, usagef("--expect-owner needs --probes")
		}
		opt.ExpectOwner = new(timingstats.CoreID)
		if err := opt.ExpectOwner.UnmarshalText([]byte(s)); err != nil {
			return opt, usagef("--expect-owner: %w", err)
		}
	}
	opt.Read = logparse.Options{Host: c.String("host"), AllLines: c.Bool("all-lines"), Now: now}
	switch s := c.String("run"); s {
	case "last":
		opt.Read.Run = logparse.RunLast
	case "all":
		opt.Read.Run = logparse.RunAll
	default:
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return opt, usagef("--run %q: want last, all, or a number from 1", s)
		}
		opt.Read.Run = logparse.RunSelect(n)
	}
	if opt.Read.Since, err = moment(c, "since", now); err != nil {
		return opt, err
	}
	if opt.Read.Until, err = moment(c, "until", now); err != nil {
		return opt, err
	}
	// Whether they are swapped does not depend on the log, which isn't open yet.
	if from, to := logline.Window(opt.Read.Since, opt.Read.Until, now, now); !to.IsZero() && from.After(to) {
		return opt, usagef("--since is after --until")
	}
	return opt, nil
}

// moment reads a flag that is a time; zero when it isn't given.
func moment(c *cli.Context, name string, now time.Time) (logline.Moment, error) {
	s := c.String(name)
	if s == "" {
		return logline.Moment{}, nil
	}
	t, err := logline.ParseMoment(s, now.In(time.Local))
	if err != nil {
		return t, usagef("--%s: %w", name, err)
	}
	return t, nil
}

// statsInputs checks the files, before anything is read.
func (a *app) statsInputs(c *cli.Context) ([]input.Input, error) {
	files := c.Args().Slice()
	sources := given(c, "log-cmd", "syslog-listen")
	for _, name := range sources {
		if c.String(name) == "" {
			return nil, usagef("--%s: want a value", name)
		}
	}
	switch {
	case len(sources) > 1:
		return nil, usagef("--%s and --%s: want one source", sources[0], sources[1])
	case len(sources) == 1 && len(files) > 0:
		return nil, usagef("--%s and files: want one source", sources[0])
	case c.IsSet("log-cmd"):
		return []input.Input{input.Command(c.String("log-cmd"))}, nil
	case c.IsSet("syslog-listen"):
		return []input.Input{input.Syslog(c.String("syslog-listen"))}, nil
	case len(files) == 0:
		if f, ok := a.env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return nil, usagef("no input: name a log file, or pipe one in: ssh bigip 'cat /var/log/ltm' | tbl stats")
		}
		files = []string{"-"}
	}
	var out []input.Input
	stdin := false
	for _, path := range files {
		switch {
		case path == "-" && stdin:
			return nil, usagef("standard input can be read once only")
		case path == "-":
			stdin = true
			out = append(out, a.stdinInput())
		case c.Bool("follow"):
			if err := readable(path); err != nil {
				return nil, err
			}
			out = append(out, input.Follow(path, false))
		default:
			if err := readable(path); err != nil {
				return nil, err
			}
			out = append(out, input.File(path))
		}
	}
	return out, nil
}

func readable(path string) error {
	f, err := openFile(path)
	if err != nil {
		return usagef("%w", err)
	}
	return f.Close()
}

func (a *app) stdinInput() input.Input {
	if f, ok := a.env.Stdin.(*os.File); ok {
		return input.Stdin(f)
	}
	return input.Reader("stdin", a.env.Stdin)
}

// onReport is what is done with the report so far of a live source; nil:
// nothing.
func (a *app) onReport(c *cli.Context) func(*logreport.Report) {
	var each []func(*logreport.Report)
	if !c.Bool("quiet") {
		each = append(each, a.liveTable())
	}
	if a.watch != nil {
		each = append(each, func(r *logreport.Report) { a.watch.Log(logCores(r)) })
	}
	if len(each) == 0 {
		return nil
	}
	return func(r *logreport.Report) {
		for _, f := range each {
			f(r)
		}
	}
}

// liveTable shows the report so far: in place on a terminal, else below the
// last one, about every two seconds.
func (a *app) liveTable() func(*logreport.Report) {
	var last time.Time
	return func(r *logreport.Report) {
		if time.Since(last) < 2*time.Second {
			return
		}
		last = time.Now()
		if f, ok := a.env.Stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			// Home and clear: the table is drawn over the last one.
			io.WriteString(f, "\x1b[H\x1b[2J")
		}
		if err := render.Formats()[0].Write(a.env.Stderr, render.Stats(r)); err != nil {
			return
		}
	}
}
