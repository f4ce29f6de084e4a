package app

import (
	"context"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober"
)

func (a *app) resetCommand() *cli.Command {
	return &cli.Command{
		Usage: "delete the entries of every core's own subtable",
		Flags: commandFlags(
			intFlag("", "requests", 0, "requests (default: 200, more for more cores)"),
			intFlag("", "workers", 32, "requests at a time"),
			boolFlag("", "until-clean", "go on until every core answered that it had nothing to delete"),
			boolFlag("", "all-names", "also clear every other name that the dataplane lists: those of earlier discoveries, and an application's"),
		),
		Action: func(c *cli.Context) error {
			if err := atLeast(c, 1, "workers"); err != nil {
				return err
			}
			if err := positiveIfSet(c, "requests"); err != nil {
				return err
			}
			cfg := prober.ResetConfig{
				Requests: c.Int("requests"), Workers: c.Int("workers"), UntilClean: c.Bool("until-clean"), AllNames: c.Bool("all-names"),
				MaxErrors: maxErrors(c),
			}
			n := needs{writes: "nothing; it deletes the entries of every core's own subtable"}
			if cfg.AllNames {
				n.writes += " and of every other name that the dataplane lists, an application's too"
			}
			return a.measure(c, n, func(ctx context.Context, p *plane) (*render.Document, error) {
				cfg := cfg
				cfg.Progress = new(prober.Progress)
				stop := a.progress(c, proberSnapshot("reset", cfg.Progress))
				r, err := prober.Reset(ctx, p, cfg)
				stop()
				if r == nil {
					return nil, err
				}
				return render.Reset(r), err
			})
		},
	}
}

// positiveIfSet checks flags whose default of 0 means something of its own,
// but whose 0 from the user means nothing.
func positiveIfSet(c *cli.Context, names ...string) error {
	for _, n := range names {
		if c.IsSet(n) && c.Int(n) < 1 {
			return usagef("--%s %d: want at least 1", n, c.Int(n))
		}
	}
	return nil
}
