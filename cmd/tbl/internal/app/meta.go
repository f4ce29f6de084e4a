package app

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/target"
)

func (a *app) metaCommand() *cli.Command {
	return &cli.Command{
		Usage: "when an entry was created and last touched, and what is left of its timers",
		Flags: flags([]cli.Flag{
			stringFlag("", "subtable", "", "`NAME` of the subtable"),
			stringFlag("", "key", "", "the entry's `KEY`"),
		}, targetFlags(), embeddedFlags(), outputFlags()),
		Action: a.meta,
	}
}

func (a *app) meta(c *cli.Context) error {
	for _, f := range []string{"subtable", "key"} {
		if c.String(f) == "" {
			return usagef("--%s: want a value", f)
		}
	}
	return a.measure(c, needs{}, func(ctx context.Context, p *plane) (*render.Document, error) {
		var ans target.Answer
		req := target.Request{Op: target.OpMeta, Subtable: []byte(c.String("subtable")), Key: []byte(c.String("key"))}
		if err := p.Do(ctx, &req, &ans); err != nil {
			if target.Unsupported(err) {
				return nil, incompletef("the dataplane at %s keeps no times of entries: it has no /meta", p.Name())
			}
			return nil, err
		}
		return render.Meta(p.Name(), c.String("subtable"), c.String("key"), ans.Slot, ans.Core, ans.Meta, time.UTC), nil
	})
}
