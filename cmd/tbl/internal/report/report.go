// Package report turns saved runs into what people look at: one HTML page with
// charts, or the charts by themselves, or Markdown and JUnit. It judges
// nothing: verdicts are those that the runs were saved with.
package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats/verdict"
)

// Report is what Build made of runs. It is then only read.
type Report struct {
	Runs   []*Run
	Charts []*Chart
	// Absent says which charts the runs' commands have otherwise and why they
	// are not here, one sentence each.
	Absent []string
}

// Run is one saved run.
type Run struct {
	// Name tells the runs of a report apart: the file's name without its
	// ending, or the command where there is no file.
	Name   string
	Path   string
	Header runfile.Header
	// Doc holds the run's own tables and lines; its Verdicts and Overall are
	// those that were saved.
	Doc *render.Document
	// Repeat is the command line that makes the run again, of a merged run those
	// of its clients, one below the other.
	Repeat string
	// Target and Seed are empty where the run has none.
	Target, Seed string
	// Problem says why the run's figures can't be shown; empty: they can.
	Problem string
}

// Source is one run to report.
type Source struct {
	File *runfile.File
	// Doc is the result as the command itself showed it; nil: it is made from
	// the file.
	Doc *render.Document
}

// Build makes a report. There must be a source.
func Build(sources []Source) *Report {
	r := &Report{}
	names := runNames(sources)
	var commands []string
	lines := map[string][]line{}
	for i, s := range sources {
		run, ls := buildRun(names[i], s)
		r.Runs = append(r.Runs, run)
		command := s.File.Header.Command
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
		for _, l := range ls {
			l.command = command
			if len(sources) > 1 || l.name == "" {
				l.name = join(run.Name, l.name)
			}
			lines[command] = append(lines[command], l)
		}
	}
	for _, command := range commands {
		charts, absent := chartsOf(command, lines[command])
		r.Charts = append(r.Charts, charts...)
		for _, a := range absent {
			if len(commands) > 1 {
				a = command + ": " + a
			}
			r.Absent = append(r.Absent, a)
		}
	}
	return r
}

// runNames are the files' names without their endings; those that are not
// enough to tell runs apart get their directory, or their place.
func runNames(sources []Source) []string {
	out := make([]string, len(sources))
	for i, s := range sources {
		out[i] = s.File.Header.Command
		if p := s.File.Path; p != "" {
			out[i] = clean(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(p), ".gz"), ".json"))
		}
	}
	again := func(rename func(i int) string) {
		count := map[string]int{}
		for _, n := range out {
			count[n]++
		}
		for i, n := range out {
			if count[n] > 1 {
				out[i] = rename(i)
			}
		}
	}
	again(func(i int) string {
		if dir := filepath.Base(filepath.Dir(sources[i].File.Path)); dir != "." {
			return clean(dir) + "/" + out[i]
		}
		return out[i]
	})
	again(func(i int) string { return fmt.Sprintf("%s (%d)", out[i], i+1) })
	return out
}

func buildRun(name string, s Source) (*Run, []line) {
	f := s.File
	run := &Run{Name: name, Path: f.Path, Header: f.Header, Repeat: Repeat(f)}
	doc, lines, err := read(f)
	if err != nil {
		// The header and the verdicts are there all the same.
		run.Problem = fmt.Sprintf("the figures of this run can't be read: %v", err)
		doc, lines = &render.Document{Command: f.Header.Command}, nil
	}
	if s.Doc != nil {
		doc = s.Doc
	}
	shown := *doc
	shown.Verdicts, shown.Overall = nil, nil
	if err := json.Unmarshal(f.Fields["verdicts"], &shown.Verdicts); err != nil {
		shown.Verdicts = nil
	}
	var overall verdict.Verdict
	if json.Unmarshal(f.Fields["overall"], &overall) == nil && overall.Line != "" {
		shown.Overall = &overall
	} else {
		shown.Conclude(false)
	}
	run.Doc = &shown
	run.Target, run.Seed = f.Header.Target, ownSeed(f)
	if run.Target == "" && json.Unmarshal(f.Fields["target"], &run.Target) != nil {
		run.Target = ""
	}
	return run, lines
}

// State is the run's outcome: that of its overall verdict.
func (r *Run) State() verdict.State {
	if r.Doc.Overall == nil {
		return verdict.NotJudged
	}
	return r.Doc.Overall.State
}

// Line is the run's overall verdict in one line.
func (r *Run) Line() string {
	if r.Doc.Overall == nil {
		return "no verdicts: this command does not judge"
	}
	return r.Doc.Overall.Line
}

// Length is how long the run took.
func (r *Run) Length() time.Duration { return time.Duration(r.Header.DurationNS) }

// Repeat is the command line that makes a run again, for a shell, with the
// variables that it took settings from before it. A seed that was drawn is
// added: it decides which core owns what, and simulated figures are the same
// with it. Left out is what only says where the result goes, and a start that is
// past. A merged run is made by its clients' commands.
func Repeat(f *runfile.File) string {
	var clients []struct {
		CommandLine string `json:"command_line"`
	}
	if raw, ok := f.Fields["clients"]; ok && json.Unmarshal(raw, &clients) == nil {
		lines := []string{"# on each client one of these, with one --start-at for all; then tbl merge of what they save"}
		for _, c := range clients {
			if c.CommandLine != "" {
				lines = append(lines, c.CommandLine)
			}
		}
		if len(lines) > 1 {
			return strings.Join(lines, "\n")
		}
	}
	var words []string
	seeded := false
	for _, name := range slices.Sorted(maps.Keys(f.Header.Variables)) {
		seeded = seeded || strings.HasSuffix(name, "_SEED")
		if name != "TBL_START_AT" {
			words = append(words, name+"="+quote(f.Header.Variables[name]))
		}
	}
	words = append(words, "tbl")
	args := f.Header.Args
	for i := 0; i < len(args); i++ {
		name, _, inline := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") {
			name = ""
		}
		switch name {
		case "quiet":
		case "export", "start-at":
			if !inline {
				i++ // its value
			}
		default:
			words = append(words, quote(args[i]))
			seeded = seeded || name == "seed"
		}
	}
	if seed := ownSeed(f); !seeded && seed != "" {
		words = append(words, "--seed", seed)
	}
	return strings.Join(words, " ")
}

// Simulated says that the run was one on the model clock.
func (r *Run) Simulated() bool { return simulated(r.Header) }

// simulated says it of a header. Files of version 1 say it by having no
// environment.
func simulated(h runfile.Header) bool {
	return h.VirtualClock || h.Version < 2 && h.Environment == nil
}

// ownSeed is the seed that a run used, also one that was drawn; empty where
// none is known.
func ownSeed(f *runfile.File) string {
	if f.Header.Seed != 0 {
		return strconv.FormatUint(f.Header.Seed, 10)
	}
	var seed json.Number
	if json.Unmarshal(f.Fields["seed"], &seed) != nil || seed == "0" {
		return ""
	}
	return seed.String()
}

// quote writes a word as a POSIX shell reads it.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// Pick returns the charts of the given kinds, all where none is given. A kind
// that no chart of the report has is an error.
func (r *Report) Pick(kinds []string) ([]*Chart, error) {
	if len(kinds) == 0 {
		return r.Charts, nil
	}
	var out []*Chart
	for _, k := range kinds {
		found := false
		for _, c := range r.Charts {
			if c.Name == k {
				out, found = append(out, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no chart %q: these runs have %s", k, r.chartNames())
		}
	}
	return out, nil
}

func (r *Report) chartNames() string {
	var names []string
	for _, c := range r.Charts {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Document is the report for the forms without pictures: Markdown, JUnit,
// text. The verdict comes first, then each chart's table, then the runs' own.
// How to read a chart is left to where there is one.
func (r *Report) Document() *render.Document {
	d := &render.Document{Command: "report", VerdictFirst: true}
	several := len(r.Runs) > 1
	for _, run := range r.Runs {
		d.Linef("%s", join2(several, run.Name+": ", run.Line()))
		if run.Problem != "" {
			d.Linef("%s", run.Problem)
		}
		for _, v := range run.Doc.Verdicts {
			d.Verdicts = append(d.Verdicts, of(run, several, v))
		}
		for _, v := range run.Doc.Cases {
			d.Cases = append(d.Cases, of(run, several, v))
		}
	}
	for _, c := range r.Charts {
		d.Blocks = append(d.Blocks, render.Block{Line: c.Title, Heading: true})
		for _, n := range c.TableNotes {
			d.Linef("%s", n)
		}
		d.Blocks = append(d.Blocks, render.Block{Table: c.Table})
	}
	for _, a := range r.Absent {
		d.Linef("%s", a)
	}
	for _, run := range r.Runs {
		d.Blocks = append(d.Blocks, render.Block{Line: "Run " + run.Name, Heading: true})
		d.Blocks = append(d.Blocks, run.Doc.Blocks...)
		d.Linef("The command that makes this run again:")
		d.Blocks = append(d.Blocks, render.Block{Line: run.Repeat, Code: true})
	}
	if !several {
		d.Overall = r.Runs[0].Doc.Overall
	}
	d.Conclude(false)
	return d
}

func join2(both bool, a, b string) string {
	if both {
		return a + b
	}
	return b
}

// of names a verdict's run.
func of(run *Run, several bool, v verdict.Verdict) verdict.Verdict {
	if several {
		v.Name = verdict.Name(run.Name + " " + string(v.Name))
	}
	return v
}
