package app

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/figures"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats/compare"
)

func (a *app) compareCommand() *cli.Command {
	return &cli.Command{
		Usage:     "saved runs against saved runs: what changed, by how much, is it real",
		ArgsUsage: "BASE NEW",
		Description: "Each side is a run file (--export FILE.json), a directory of them, or a quoted glob.\n" +
			"Repeated runs are compared by Mann–Whitney's test; of single runs only the spread within is known.",
		Flags: flags([]cli.Flag{
			stringFlag("", "max-regress", "0%", "`PERCENT` by which a figure may get worse: more, and real, fails; 0: nothing does"),
			stringFlag("", "alpha", "1%", "probability that any figure of runs that don't differ is called different"),
			uintDecimal{&cli.Uint64Flag{Name: "seed", Usage: "seed of the bootstrap for single runs", EnvVars: env("seed"), Base: 10}},
			boolFlag("", "all", "show the figures of single cores that don't differ too"),
		}, outputFlags(), gateFlags()),
		Action: a.compare,
	}
}

func (a *app) compare(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("compare: want two sides, BASE and NEW, got %d", c.NArg())
	}
	var cfg compare.Config
	var err error
	if cfg.MaxRegress, err = parsePercent(c.String("max-regress")); err != nil {
		return usagef("--max-regress: %w", err)
	}
	if cfg.Alpha, err = parseShare(c.String("alpha")); err != nil || cfg.Alpha <= 0 || cfg.Alpha >= 0.5 {
		return usagef("--alpha %q: want a percentage above 0%% and below 50%%", c.String("alpha"))
	}
	cfg.Seed = c.Uint64("seed")
	base, err := runfile.ReadAll(c.Args().Get(0))
	if err != nil {
		return usagef("%w", err)
	}
	now, err := runfile.ReadAll(c.Args().Get(1))
	if err != nil {
		return usagef("%w", err)
	}
	command := base[0].Header.Command
	for _, f := range append(slices.Clone(base), now...) {
		if f.Header.Command != command {
			return usagef("%s is a run of %s, %s one of %s: only runs of one command can be compared", base[0].Path, command, f.Path, f.Header.Command)
		}
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	compared, partly, err := figures.OfRuns(command, base, now)
	if err != nil {
		return usagef("%w", err)
	}
	if len(compared) == 0 {
		return usagef("runs of %s have no figures to compare", command)
	}
	r := compare.Runs(compared, cfg)
	r.Warnings = append(r.Warnings, partly...)
	return out.finish(c.Context, render.Compare(command, figures.Settings(base, now), r, c.Bool("all")))
}

// parsePercent reads a percentage, 10% or 10, as a share.
func parsePercent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: want a percentage such as 10%%, 0%% or more", s)
	}
	return v / 100, nil
}
