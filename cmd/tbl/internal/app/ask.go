package app

import (
	"context"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober"
	"tbl/target"
)

func (a *app) infoCommand() *cli.Command {
	return a.askCommand("ask which cores there are", 30,
		func(ctx context.Context, t target.Target, cfg prober.AskConfig) (*render.Document, error) {
			r, err := prober.Info(ctx, t, cfg)
			if r == nil {
				return nil, err
			}
			return render.Info(r), err
		})
}

func (a *app) whoamiCommand() *cli.Command {
	return a.askCommand("ask every core for its subtable and counters; check that the names are unique", 30,
		func(ctx context.Context, t target.Target, cfg prober.AskConfig) (*render.Document, error) {
			r, err := prober.Whoami(ctx, t, cfg)
			if r == nil {
				return nil, err
			}
			return render.Whoami(r), err
		})
}

func (a *app) dumpCommand() *cli.Command {
	return a.askCommand("list the keys that each core holds", 30,
		func(ctx context.Context, t target.Target, cfg prober.AskConfig) (*render.Document, error) {
			r, err := prober.Dump(ctx, t, cfg)
			if r == nil {
				return nil, err
			}
			return render.Dump(r), err
		})
}

// askCommand is a command that only asks.
func (a *app) askCommand(usage string, requests int, ask func(context.Context, target.Target, prober.AskConfig) (*render.Document, error)) *cli.Command {
	return &cli.Command{
		Usage: usage,
		Flags: commandFlags(
			intFlag("", "requests", requests, "requests at least; it goes on until every core answered or a miss is unlikely"),
			intFlag("", "workers", 8, "requests at a time"),
		),
		Action: func(c *cli.Context) error {
			if err := atLeast(c, 1, "requests", "workers"); err != nil {
				return err
			}
			cfg := prober.AskConfig{Requests: c.Int("requests"), Workers: c.Int("workers"), MaxErrors: maxErrors(c)}
			return a.measure(c, needs{}, func(ctx context.Context, p *plane) (*render.Document, error) {
				cfg := cfg
				cfg.Progress = new(prober.Progress)
				defer a.progress(c, proberSnapshot(c.Command.Name, cfg.Progress))()
				return ask(ctx, p, cfg)
			})
		},
	}
}
