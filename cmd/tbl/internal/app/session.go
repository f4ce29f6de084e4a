package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/loader/session"
)

func (a *app) sessionCommand() *cli.Command {
	return &cli.Command{
		Usage: "one subtable per session, or not? the life of many sessions over three designs, side by side",
		Flags: commandFlags(
			intFlag("", "sessions", session.DefaultSessions, "number of sessions"),
			ownEnv("session", intFlag("", "keys", session.DefaultKeys, "keys of a session")),
			intFlag("", "visits", session.DefaultVisits, "mean number of visits after the first, 0: none"),
			durationFlag("", "think", session.DefaultThink, "mean time between two visits; on the wall clock only with --arrivals"),
			floatFlag("", "arrivals", 0, "sessions that begin per second (default: 1,000 on the model clock; on the wall none, then sessions and visits come as fast as answered, without the pauses of --think)"),
			boolFlag("", "zipf", "few sessions get most of the visits"),
			stringFlag("", "enumerate", "10%", "share of visits that list the session's keys, not knowing them"),
			stringFlag("", "write", "30%", "share of visits that write a key anew"),
			stringFlag("", "leave", "50%", "share of sessions whose last visit deletes them"),
			intFlag("", "lookups", session.DefaultLookups, "known keys that a visit looks up"),
			intFlag("", "key-timeout", session.DefaultTimeout, "idle timeout of keys that have one, in seconds"),
			intFlag("", "key-lifetime", session.DefaultLifetime, "lifetime of keys that have one, in seconds"),
			stringFlag("", "mix", "60:30:10", "shares of keys with a timeout, with a lifetime, for ever"),
			among(stringsFlag("", "design", "only this `DESIGN`: "+strings.Join(designNames(), ", ")+" (repeatable)"), designNames()...),
			intFlag("", "workers", session.DefaultWorkers, "requests at a time"),
		),
		Action: a.session,
	}
}

func designNames() (out []string) {
	for _, d := range session.Designs() {
		out = append(out, string(d))
	}
	return out
}

func (a *app) session(c *cli.Context) error {
	if err := atLeast(c, 1, "sessions", "keys", "workers", "key-timeout", "key-lifetime"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "visits", "lookups"); err != nil {
		return err
	}
	if think := c.Duration("think"); think < 0 {
		return usagef("--think %v: want 0 or more", think)
	}
	cfg := session.Config{
		Sessions: int64(c.Int("sessions")), Keys: c.Int("keys"), Visits: zeroIsNone(c.Int("visits")), Think: zeroIsNone(c.Duration("think")),
		Arrivals: c.Float64("arrivals"), Zipf: c.Bool("zipf"), Lookups: zeroIsNone(c.Int("lookups")),
		Timeout: int64(c.Int("key-timeout")), Lifetime: int64(c.Int("key-lifetime")), Workers: c.Int("workers"),
		Seed: c.Uint64("seed"), MaxErrors: maxErrors(c),
	}
	for flag, to := range map[string]*float64{"enumerate": &cfg.Enumerate, "write": &cfg.Write, "leave": &cfg.Leave} {
		share, err := parseShare(c.String(flag))
		if err != nil {
			return usagef("--%s: %w", flag, err)
		}
		if *to = share; share == 0 {
			*to = -1
		}
	}
	var err error
	if cfg.Mix, err = parseMix(c.String("mix")); err != nil {
		return err
	}
	for _, d := range c.StringSlice("design") {
		if err := oneOf("design", d, designNames()...); err != nil {
			return err
		}
		cfg.Designs = append(cfg.Designs, session.Design(d))
	}
	n := needs{
		writes: fmt.Sprintf("%s sessions of %d keys for each design, in subtables of their own, and deletes them afterwards", render.Int(cfg.Sessions), cfg.Keys),
		rate:   fmt.Sprintf("as fast as answered, %d at a time", cfg.Workers),
	}
	if cfg.Arrivals > 0 {
		n.rate = fmt.Sprintf("%s beginning, their visits %s apart, %d at a time", render.Rate(cfg.Arrivals), render.Duration(c.Duration("think")), cfg.Workers)
	}
	return a.measure(c, n, func(ctx context.Context, p *plane) (*render.Document, error) {
		cfg := cfg
		cfg.Progress = new(session.Progress)
		stop := a.progress(c, func() render.Snapshot {
			pr := cfg.Progress
			return render.Snapshot{Label: fmt.Sprintf("design %d", pr.Design.Load()), Done: pr.Completed.Load(), Total: pr.Total.Load(), Errors: pr.Errors.Load()}
		})
		r, err := session.Run(ctx, p, cfg)
		stop()
		switch {
		case errors.Is(err, session.ErrConfig):
			return nil, usagef("%w", err)
		case errors.Is(err, session.ErrUnreachable), errors.Is(err, session.ErrUnsupported):
			err = incompletef("%w", err)
		}
		if r == nil {
			return nil, err
		}
		return render.Session(r), err
	})
}

// zeroIsNone gives a user's 0 the meaning that a Config gives to negative
// values, its own 0 being the default.
func zeroIsNone[T int | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// parseShare reads a percentage, 10%, or a share, 0.1.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q: want a percentage from 0%% to 100%%", s)
	}
	return v, nil
}

// parseMix reads TIMEOUT:LIFETIME:INDEFINITE in any unit.
func parseMix(s string) (session.Mix, error) {
	var v [3]float64
	sum := 0.0
	parts := strings.Split(s, ":")
	for i, p := range parts {
		x, err := strconv.ParseFloat(p, 64)
		if err != nil || len(parts) != 3 || !(x >= 0 && x < 1e9) {
			return session.Mix{}, usagef("--mix %q: want three shares such as 60:30:10", s)
		}
		v[i] = x
		sum += x
	}
	if len(parts) != 3 || sum == 0 {
		return session.Mix{}, usagef("--mix %q: want three shares such as 60:30:10", s)
	}
	return session.Mix{Timeout: v[0] / sum, Lifetime: v[1] / sum, Indefinite: v[2] / sum}, nil
}
