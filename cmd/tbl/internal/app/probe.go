package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/prober"
	"tbl/timingstats"
)

// defaultProbeName is the name that the wire contract probes by default.
const defaultProbeName = "uuid_01"

func (a *app) probeCommand() *cli.Command {
	return &cli.Command{
		Usage: "find out which core owns a name",
		Flags: flags([]cli.Flag{
			stringsFlag("", "name", "subtable `NAME` to ask about (repeatable; default: "+defaultProbeName+")"),
			stringFlag("", "names-file", "", "`FILE` with one name per line, - for stdin"),
			boolFlag("", "discovered", "the names that the cores found for themselves"),
			intFlag("", "requests", 0, "most requests per name (default: 500, more for more cores)"),
			boolFlag("", "exhaust", "send all of --requests instead of stopping when a name is decided"),
			intFlag("", "workers", 32, "requests at a time"),
			floatFlag("", "error", 1e-6, "model odds of a wrong owner below which a name is decided"),
			stringFlag("", "threshold", "100", "clicks from which a write is remote, or auto"),
			stringFlag("", "expect-owner", "", "core `K` that must own every name, or the run fails"),
			stringFlag("", "expect-file", "", "JSON `FILE` that maps names to the cores that must own them, or an earlier --export of probe"),
			boolFlag("", "steer", "reach each core through source ports that were seen to lead to it"),
			boolFlag("", "keep-entries", "leave the probe's own entries to expire (60 s) instead of deleting them"),
		}, plotFlags(), commandFlags()),
		Action: a.probe,
	}
}

func (a *app) probe(c *cli.Context) error {
	if n := given(c, "name", "names-file", "discovered"); len(n) > 1 {
		return usagef("--%s and --%s: want one source of names", n[0], n[1])
	}
	if err := atLeast(c, 1, "workers"); err != nil {
		return err
	}
	if err := atLeast(c, 0, "requests"); err != nil {
		return err
	}
	if err := oddsFlag(c); err != nil {
		return err
	}
	cfg := prober.ProbeConfig{
		Requests: c.Int("requests"), Exhaust: c.Bool("exhaust"), Workers: c.Int("workers"),
		MaxError: c.Float64("error"), MaxErrors: maxErrors(c), Steer: c.Bool("steer"), KeepEntries: c.Bool("keep-entries"),
		OnPlan: func(p prober.ProbePlan) {
			if !c.Bool("quiet") {
				fmt.Fprintf(a.env.Stderr, "tbl: %s, %s: about %s requests each, %s at most\n",
					render.Count(p.Cores, "core"), render.Count(p.Names, "name"), render.Int(int64(p.Expected)), render.Int(int64(p.Ceiling)))
			}
		},
	}
	var err error
	if cfg.Threshold, cfg.AutoThreshold, err = threshold(c); err != nil {
		return err
	}
	cfg.Names = c.StringSlice("name")
	switch {
	case c.IsSet("names-file"):
		if cfg.Names, err = a.readNames("names-file", c.String("names-file")); err != nil {
			return err
		}
	case !c.IsSet("name"):
		cfg.Names = []string{defaultProbeName}
	}
	for _, n := range cfg.Names {
		if n == "" {
			return usagef("a name is empty")
		}
	}
	var expect *timingstats.CoreID
	if s := c.String("expect-owner"); s != "" {
		expect = new(timingstats.CoreID)
		if err := expect.UnmarshalText([]byte(s)); err != nil {
			return usagef("--expect-owner: %w", err)
		}
	}
	if path := c.String("expect-file"); path != "" {
		if expect != nil {
			return usagef("--expect-owner and --expect-file: want one of them")
		}
		if cfg.Expect, err = readExpectations(path); err != nil {
			return err
		}
		if len(given(c, "name", "names-file", "discovered")) == 0 {
			cfg.Names = slices.Sorted(maps.Keys(cfg.Expect))
		}
	}
	return a.measure(c, needs{writes: "one probe entry (60 s) per core and name"}, func(ctx context.Context, p *plane) (*render.Document, error) {
		cfg := cfg
		cfg.Progress = new(prober.Progress)
		if c.Bool("discovered") {
			who, err := prober.Whoami(ctx, p, prober.AskConfig{})
			if err != nil {
				return nil, err
			}
			cfg.Names = nil
			own := map[string]timingstats.CoreID{}
			for _, n := range who.Names {
				cfg.Names = append(cfg.Names, n.Subtable)
				own[n.Subtable] = n.Core
			}
			if cfg.Expect == nil {
				// A name that a core uses is meant to be its own.
				cfg.Expect = own
			}
		}
		if expect != nil {
			cfg.Expect = map[string]timingstats.CoreID{}
			for _, n := range cfg.Names {
				cfg.Expect[n] = *expect
			}
		}
		if cfg.Expect != nil {
			for _, n := range cfg.Names {
				if _, ok := cfg.Expect[n]; !ok {
					return nil, usagef("--expect-file: no expectation for the name %q", n)
				}
			}
		}
		stop := a.progress(c, proberSnapshot("probe", cfg.Progress))
		r, err := prober.Probe(ctx, p, cfg)
		stop()
		if r == nil {
			return nil, err
		}
		return render.Probe(r), err
	})
}

// oddsFlag checks --error.
func oddsFlag(c *cli.Context) error {
	if e := c.Float64("error"); !(e > 0 && e < 0.5) {
		return usagef("--error %v: want odds between 0 and 0.5", e)
	}
	return nil
}

// readExpectations reads a map of names to cores, {"name": "3"} or
// {"name": 3}, or an earlier result of probe.
func readExpectations(path string) (map[string]timingstats.CoreID, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--expect-file: %w", err)
	}
	var earlier struct {
		Names []prober.NameResult `json:"names"`
	}
	out := map[string]timingstats.CoreID{}
	if json.Unmarshal(raw, &earlier) == nil && len(earlier.Names) > 0 {
		for _, n := range earlier.Names {
			if n.Owner != nil {
				out[n.Name] = *n.Owner
			}
		}
	} else {
		var plain map[string]any
		if err := json.Unmarshal(raw, &plain); err != nil {
			return nil, usagef("--expect-file %s: want a JSON object of names and cores: %w", path, err)
		}
		for name, v := range plain {
			var id timingstats.CoreID
			if err := id.UnmarshalText([]byte(fmt.Sprint(v))); err != nil {
				return nil, usagef("--expect-file %s: %q: %w", path, name, err)
			}
			out[name] = id
		}
	}
	if len(out) == 0 {
		return nil, usagef("--expect-file %s: no names with an owner in it", path)
	}
	return out, nil
}

// readNames reads one name per line.
func (a *app) readNames(flag, path string) ([]string, error) {
	in := a.env.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("--%s: %w", flag, err)
		}
		defer f.Close()
		in = f
	}
	var names []string
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if name := strings.TrimSuffix(s.Text(), "\r"); name != "" {
			names = append(names, name)
		}
	}
	if err := s.Err(); err != nil {
		return nil, usagef("--%s %s: %w", flag, path, err)
	}
	if len(names) == 0 {
		return nil, usagef("--%s %s: no names in it", flag, path)
	}
	return names, nil
}

// threshold reads --threshold: a number of clicks, or auto.
func threshold(c *cli.Context) (clicks int64, auto bool, err error) {
	s := c.String("threshold")
	if s == "auto" {
		return 0, true, nil
	}
	if _, err := fmt.Sscan(s, &clicks); err != nil || clicks < 1 || fmt.Sprint(clicks) != s {
		return 0, false, usagef("--threshold %q: want a number of clicks from 1, or auto", s)
	}
	return clicks, false, nil
}

// proberSnapshot adapts the prober's progress.
func proberSnapshot(label string, p *prober.Progress) func() render.Snapshot {
	return func() render.Snapshot {
		return render.Snapshot{
			Label: label, Done: p.Sent.Load(), Total: p.Planned.Load(), Errors: p.Errors.Load(),
			Heard: p.Heard.Load(), Cores: p.Cores.Load(),
		}
	}
}
