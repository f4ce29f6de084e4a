package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
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
		more, err := readRuns(arg)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	if len(files) < 2 {
		return usagef("merge: want two runs or more, got 1")
	}
	first := files[0]
	for _, f := range files {
		switch command := f.Header.Command; {
		case command != first.Header.Command:
			return usagef("merge: %s is a run of %s, %s one of %s: want runs of one command", first.Path, first.Header.Command, f.Path, command)
		case command != "load" && command != "bulk-post":
			return usagef("merge: %s is a run of %s: only runs of load and bulk-post add up to one", f.Path, command)
		case f.Header.Version < 2:
			return usagef("merge: %s was saved by an older version, without the start mark and the distributions that merging needs: run it again", f.Path)
		case f.Fields["targets"] != nil:
			return usagef("merge: %s judges several targets apart (--each): want runs on one target, or on one cluster", f.Path)
		case f.Fields["clients"] != nil:
			return usagef("merge: %s is merged itself: give the runs that it was made of", f.Path)
		}
	}
	if err := sameSettings(files); err != nil {
		return err
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	cfg := mergeConfig(c, files)
	var d *render.Document
	if first.Header.Command == "load" {
		d, err = mergeLoads(files, cfg, out)
	} else {
		d, err = mergeBulks(files, cfg, out)
	}
	if err != nil {
		return usagef("merge: %w", err)
	}
	if d.Extra, err = unknownInAll(files, d); err != nil {
		return err
	}
	return out.finish(c.Context, d)
}

func mergeLoads(files []*runfile.File, cfg fleet.Config, out *output) (*render.Document, error) {
	parts, err := mergeParts[loader.LoadResult](files)
	if err != nil {
		return nil, err
	}
	r, sum, err := fleet.Loads(parts, cfg)
	if err != nil {
		return nil, err
	}
	r.Warnings = append(r.Warnings, mergeDoubts(files)...)
	out.merged = mergedHeader(files, r.Runs[0], r.Seed)
	nameCommands(sum, files)
	return render.MergedLoad(r, sum), nil
}

func mergeBulks(files []*runfile.File, cfg fleet.Config, out *output) (*render.Document, error) {
	parts, err := mergeParts[loader.BulkResult](files)
	if err != nil {
		return nil, err
	}
	r, sum, err := fleet.Bulks(parts, cfg)
	if err != nil {
		return nil, err
	}
	r.Warnings = append(r.Warnings, mergeDoubts(files)...)
	out.merged = mergedHeader(files, r.Runs[0], r.Seed)
	nameCommands(sum, files)
	return render.MergedBulk(r, sum), nil
}

// nameCommands keeps with each client the command that makes its run again: the
// merge's own names files, which may be gone.
func nameCommands(sum *fleet.Summary, files []*runfile.File) {
	for i, f := range files {
		sum.Clients[i].CommandLine = report.Repeat(f)
	}
}

// mergeParts reads the results, each by its file's name, or its whole path
// where two files have one name.
func mergeParts[R loader.LoadResult | loader.BulkResult](files []*runfile.File) ([]fleet.Part[R], error) {
	var out []fleet.Part[R]
	for _, f := range files {
		p := fleet.Part[R]{Name: filepath.Base(f.Path), Result: new(R)}
		for _, o := range files {
			if o != f && filepath.Base(o.Path) == p.Name {
				p.Name = f.Path
				break
			}
		}
		if e := f.Header.Environment; e != nil {
			p.Host = e.Host
		}
		if err := f.Decode(p.Result); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// mergeConfig takes what the runs had agreed on, unless a flag says otherwise.
func mergeConfig(c *cli.Context, files []*runfile.File) fleet.Config {
	cfg := fleet.Config{MaxErrors: maxErrors(c)}
	if s, same := commonSetting(files, "max-errors"); same && !c.IsSet("max-errors") {
		if percent, err := strconv.ParseFloat(s, 64); err == nil {
			cfg.MaxErrors = errorShare(percent)
		}
	}
	if s, same := commonSetting(files, "start-at"); same {
		cfg.StartAt, _ = parseStart(s) // the run has read it before
	}
	return cfg
}

// commonSetting is a setting that all runs have, all with the same value.
func commonSetting(files []*runfile.File, name string) (value string, same bool) {
	value, same = files[0].Header.Settings[name]
	for _, f := range files {
		v, ok := f.Header.Settings[name]
		same = same && ok && v == value
	}
	return value, same
}

// ownSettings may differ between clients: each has keys and addresses of its
// own, and the verdicts are judged anew. How a target is named is no matter; the
// results say whether it is the same.
var ownSettings = [...]string{
	"seed", "key-prefix", "file", "bind", "start-at", "log", "target", "host", "port", "cacert", "assert", "warn", "strict", "max-errors",
}

// sameSettings refuses runs whose settings differ, naming the first one.
func sameSettings(files []*runfile.File) error {
	first := files[0]
	for _, f := range files[1:] {
		names := map[string]bool{}
		for _, settings := range []map[string]string{first.Header.Settings, f.Header.Settings} {
			for name := range settings {
				names[name] = !slices.Contains(ownSettings[:], name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if a, b := first.Header.Settings[name], f.Header.Settings[name]; names[name] && a != b {
				return usagef("merge: settings differ: %s has --%s %q, %s %q: want clients that do the same", first.Path, name, shortened(a, longestValue), f.Path, shortened(b, longestValue))
			}
		}
	}
	return nil
}

// mergeDoubts are what makes the merged figures mean less than they seem to.
func mergeDoubts(files []*runfile.File) []string {
	var out []string
	if files[0].Header.Target == "embedded" {
		out = append(out, fmt.Sprintf("each run had an embedded dataplane of its own: these are the figures of %d dataplanes together, not of one under %d clients", len(files), len(files)))
	}
	same := func(name string) (string, bool) {
		v, ok := commonSetting(files, name)
		return v, ok && v != ""
	}
	_, fromFile := files[0].Header.Settings["file"]
	file, oneFile := same("file")
	prefix, onePrefix := same("key-prefix")
	seed, oneSeed := same("seed")
	kind, _ := same("keys")
	switch {
	case oneFile:
		out = append(out, fmt.Sprintf("all clients wrote the keys of a file %s: if it is the same one, they wrote over each other", file))
	case fromFile:
	case files[0].Header.Command == "load" && kind == "seq" && onePrefix:
		out = append(out, fmt.Sprintf("all clients wrote the same keys, %s_…: give each a --key-prefix of its own", prefix))
	case kind != "seq" && oneSeed && seed != "0":
		out = append(out, fmt.Sprintf("all clients wrote the same keys, those of seed %s: give each a seed of its own, or none", seed))
	}
	return out
}

// mergedHeader is the header of the run that files make up. It keeps the
// settings that all had, and the environment where the machines are alike.
func mergedHeader(files []*runfile.File, run loader.RunSummary, seed uint64) *runfile.Header {
	h := files[0].Header
	h.Settings, h.Variables = map[string]string{}, nil
	for name := range files[0].Header.Settings {
		if v, same := commonSetting(files, name); same {
			h.Settings[name] = v
		}
	}
	h.Started, h.DurationNS, h.Seed = run.Started, run.ElapsedNS, seed
	if h.Environment != nil {
		e := *h.Environment
		h.Environment = &e
		for _, f := range files {
			if f.Header.Environment == nil {
				h.Environment = nil
				break
			}
			host := f.Header.Environment.Host
			if e.Host != host {
				e.Host = ""
			}
			other := *f.Header.Environment
			other.Host = e.Host
			if other != e {
				h.Environment = nil
				break
			}
		}
	}
	return &h
}

// unknownInAll are the fields that a newer program saved, where all files have
// the same: what differs can't be added up by one that doesn't know it.
func unknownInAll(files []*runfile.File, d *render.Document) (map[string]any, error) {
	known, err := jsonFields(d)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, raw := range files[0].Fields {
		_, taken := known[name]
		if taken || slices.Contains([]string{"exit", "verdicts", "overall", "partial", "stop"}, name) {
			continue
		}
		if !slices.ContainsFunc(files, func(f *runfile.File) bool { return !bytes.Equal(f.Fields[name], raw) }) {
			out[name] = json.RawMessage(raw)
		}
	}
	return out, nil
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
