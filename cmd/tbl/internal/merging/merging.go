// Package merging makes one run of runs that several clients saved: it refuses
// those that don't belong together, and keeps what they have in common.
package merging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"tbl/cmd/tbl/internal/figures"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/loader"
	"tbl/loader/fleet"
)

// Check refuses files, one at least, that can't be merged. Its errors name the files and say
// what is wanted.
func Check(files []*runfile.File) error {
	first := files[0]
	for _, f := range files {
		switch command := f.Header.Command; {
		case command != first.Header.Command:
			return fmt.Errorf("%s is a run of %s, %s one of %s: want runs of one command", first.Path, first.Header.Command, f.Path, command)
		case command != "load" && command != "bulk-post":
			return fmt.Errorf("%s is a run of %s: only runs of load and bulk-post add up to one", f.Path, command)
		case f.Header.Version < 2:
			return fmt.Errorf("%s was saved by an older version, without the start mark and the distributions that merging needs: run it again", f.Path)
		case f.Fields["targets"] != nil:
			return fmt.Errorf("%s judges several targets apart (--each): want runs on one target, or on one cluster", f.Path)
		case f.Fields["clients"] != nil:
			return fmt.Errorf("%s is merged itself: give the runs that it was made of", f.Path)
		}
	}
	return sameSettings(files)
}

// Merge merges the results of checked files. It returns the document to render
// and the header of the merged run. Its errors are fleet's, or about a file's form.
func Merge(files []*runfile.File, cfg fleet.Config) (*render.Document, *runfile.Header, error) {
	var d *render.Document
	var h *runfile.Header
	if files[0].Header.Command == "load" {
		r, sum, err := merge(files, cfg, fleet.Loads)
		if err != nil {
			return nil, nil, err
		}
		r.Warnings = append(r.Warnings, doubts(files)...)
		d, h = render.MergedLoad(r, sum), header(files, r.Runs[0], r.Seed)
	} else {
		r, sum, err := merge(files, cfg, fleet.Bulks)
		if err != nil {
			return nil, nil, err
		}
		r.Warnings = append(r.Warnings, doubts(files)...)
		d, h = render.MergedBulk(r, sum), header(files, r.Runs[0], r.Seed)
	}
	var err error
	d.Extra, err = unknownInAll(files, d)
	return d, h, err
}

// merge reads the results of one kind, joins them, and keeps with each client
// the command that makes its run again: the merge's own names files, which may be gone.
func merge[R loader.LoadResult | loader.BulkResult](files []*runfile.File, cfg fleet.Config,
	join func([]fleet.Part[R], fleet.Config) (*R, *fleet.Summary, error)) (*R, *fleet.Summary, error) {
	ps, err := parts[R](files)
	if err != nil {
		return nil, nil, err
	}
	r, sum, err := join(ps, cfg)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range files {
		sum.Clients[i].CommandLine = report.Repeat(f)
	}
	return r, sum, nil
}

// parts reads the results, each by its file's name, or its whole path
// where two files have one name.
func parts[R loader.LoadResult | loader.BulkResult](files []*runfile.File) ([]fleet.Part[R], error) {
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

// Common is a setting that all runs have, all with the same value.
func Common(files []*runfile.File, name string) (value string, same bool) {
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

// longestValue is how many characters of a setting an error shows.
const longestValue = 80

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
				return fmt.Errorf("settings differ: %s has --%s %q, %s %q: want clients that do the same", first.Path, name, render.Shortened(a, longestValue), f.Path, render.Shortened(b, longestValue))
			}
		}
	}
	return nil
}

// doubts are what makes the merged figures mean less than they seem to.
func doubts(files []*runfile.File) []string {
	var out []string
	if files[0].Header.Target == "embedded" {
		out = append(out, fmt.Sprintf("each run had an embedded dataplane of its own: these are the figures of %d dataplanes together, not of one under %d clients", len(files), len(files)))
	}
	same := func(name string) (string, bool) {
		v, ok := Common(files, name)
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

// header is the header of the run that files make up. It keeps the
// settings that all had, and the environment where the machines are alike.
func header(files []*runfile.File, run loader.RunSummary, seed uint64) *runfile.Header {
	h := files[0].Header
	h.Settings, h.Variables = map[string]string{}, nil
	for name := range files[0].Header.Settings {
		if v, same := Common(files, name); same {
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
	known, err := figures.Fields(d)
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
