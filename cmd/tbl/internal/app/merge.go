package app

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/merging"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader/fleet"
)

func (a *app) mergeCommand() *cli.Command {
	return &cli.Command{
		Usage:     "runs that several client machines made at the same time, as one run",
		ArgsUsage: "RUN…",
		Description: "Each RUN is a run file (--export FILE.json) of load or bulk-post, a directory of them, or a quoted glob.\n" +
			"Distributions and series are added up, the verdicts judged anew; with --export FILE.json the result is a run\n" +
			"file like any other. Runs that don't belong together are refused.",
		Flags:  flags(outputFlags(), gateFlags()),
		Action: a.merge,
	}
}

func (a *app) merge(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("merge: want the runs to merge: files that --export FILE.json saved, directories of them, or a quoted glob")
	}
	var files []*runfile.File
	for _, arg := range c.Args().Slice() {
		more, err := runfile.ReadAll(arg)
		if err != nil {
			return usagef("%w", err)
		}
		files = append(files, more...)
	}
	if len(files) < 2 {
		return usagef("merge: want two runs or more, got 1")
	}
	if err := merging.Check(files); err != nil {
		return usagef("merge: %w", err)
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	d, head, err := merging.Merge(files, mergeConfig(c, files))
	if err != nil {
		return usagef("merge: %w", err)
	}
	out.merged = head
	return out.finish(c.Context, d)
}

// mergeConfig takes what the runs had agreed on, unless a flag says otherwise.
func mergeConfig(c *cli.Context, files []*runfile.File) fleet.Config {
	cfg := fleet.Config{MaxErrors: maxErrors(c)}
	if s, same := merging.Common(files, "max-errors"); same && !c.IsSet("max-errors") {
		if percent, err := strconv.ParseFloat(s, 64); err == nil {
			cfg.MaxErrors = errorShare(percent)
		}
	}
	if s, same := merging.Common(files, "start-at"); same {
		cfg.StartAt, _ = parseStart(s) // the run has read it before
	}
	return cfg
}

// startAtFlag lets several clients start together.
func startAtFlag() cli.Flag {
	return stringFlag("", "start-at", "", "send the first request at that `TIME` (2026-03-01T12:00:00Z, or seconds since 1970), so that several clients start together")
}

// startAt reads --start-at; zero where it isn't given.
func startAt(c *cli.Context) (time.Time, error) {
	text := c.String("start-at")
	if text == "" {
		return time.Time{}, nil
	}
	at, err := parseStart(text)
	switch {
	case err != nil:
		return at, usagef("--start-at %q: want a time such as 2026-03-01T12:00:00Z, or seconds since 1970", text)
	case hasFlag(c.Command, "clock") && c.String("clock") == "model":
		return at, usagef("--start-at: a simulated run has a time of its own: want --clock wall")
	case time.Until(at) < 0:
		return at, usagef("--start-at %s: that was %s ago", text, render.Duration(-time.Until(at)))
	case time.Until(at) > farOff:
		return at, usagef("--start-at %s: that is in %s, want %s at most", text, time.Until(at).Round(time.Minute), farOff)
	}
	return at, nil
}

// farOff is how far in the future a start may lie: beyond, the clock is wrong,
// or the date.
const farOff = 48 * time.Hour

// parseStart reads a point of time.
func parseStart(s string) (time.Time, error) {
	if secs, err := strconv.ParseFloat(s, 64); err == nil && secs > 0 && secs < 1<<33 {
		return time.UnixMilli(int64(secs * 1000)), nil
	}
	return time.Parse(time.RFC3339, strings.ToUpper(s))
}
