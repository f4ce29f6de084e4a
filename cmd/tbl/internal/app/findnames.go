package app

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober"
	"tbl/timingstats"
)

func (a *app) findNamesCommand() *cli.Command {
	return &cli.Command{
		Usage: "find names that each core owns, for an application to be configured with",
		Flags: commandFlags(
			ownEnv("find-names", stringFlag("", "cores", "all", "cores that names are wanted for: all, or a list such as 0,2,5")),
			intFlag(catEmbedded, flagDataplaneCores, 4, "number of cores, 1 to 256 (elsewhere --cores)"),
			stringFlag("", "pattern", "sess_{rand}", "`PATTERN` of the names, with {rand} (random letters and digits) or {n} (a running number)"),
			ownEnv("find-names", intFlag("", "each", 1, "names per core")),
			intFlag("", "requests", 0, "most requests in all (default: as many as the cores need)"),
			intFlag("", "workers", 32, "requests at a time"),
			floatFlag("", "error", 1e-6, "model odds of a wrong owner below which a name is decided"),
			intFlag("", "threshold", 100, "clicks from which a write is remote"),
			boolFlag("", "steer", "reach each core through source ports that were seen to lead to it"),
		),
		Action: a.findNames,
	}
}

func (a *app) findNames(c *cli.Context) error {
	if err := atLeast(c, 1, "each", "workers", "threshold"); err != nil {
		return err
	}
	if err := positiveIfSet(c, "requests"); err != nil {
		return err
	}
	if err := oddsFlag(c); err != nil {
		return err
	}
	cfg := prober.FindConfig{
		Pattern: c.String("pattern"), Each: c.Int("each"), Seed: c.Uint64("seed"), Requests: c.Int("requests"), Workers: c.Int("workers"),
		MaxError: c.Float64("error"), Threshold: int64(c.Int("threshold")), Steer: c.Bool("steer"), MaxErrors: maxErrors(c),
	}
	if list := c.String("cores"); list != "all" {
		for _, s := range strings.Split(list, ",") {
			var id timingstats.CoreID
			if err := id.UnmarshalText([]byte(strings.TrimSpace(s))); err != nil {
				return usagef("--cores: %w", err)
			}
			cfg.Cores = append(cfg.Cores, id)
		}
	}
	return a.measure(c, needs{writes: "one probe entry per core and name that is tried, removed at the end"}, func(ctx context.Context, p *plane) (*render.Document, error) {
		cfg := cfg
		cfg.Progress = new(prober.Progress)
		stop := a.progress(c, proberSnapshot("find-names", cfg.Progress))
		r, err := prober.FindNames(ctx, p, cfg)
		stop()
		if r == nil {
			return nil, err
		}
		return render.Found(r), err
	})
}
