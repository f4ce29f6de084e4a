package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"tbl/cmd/tbl/internal/figures"
	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/target"
	"tbl/timingstats/verdict"
)

func stdoutFormats() []string {
	var out []string
	for _, f := range formats() {
		if f.Stdout {
			out = append(out, f.Name)
		}
	}
	return out
}

func exportEndings() []string {
	var out []string
	for _, f := range formats() {
		out = append(out, f.Ending)
	}
	return out
}

// output is where a command's result goes. It is opened before anything is
// sent, so that a file that can't be written costs no run.
type output struct {
	a       *app
	stdout  io.Writer
	format  render.Format
	exports []export
	quiet   bool
	strict  bool
	plot    *render.PlotStyle // nil: none
	asserts []verdict.Assertion
	args    []string
	flags   map[string]string // the settings, see runfile.Header
	vars    map[string]string // the variables that gave some of them, likewise
	seed    uint64            // of the embedded dataplane, 0: there is none
	merged  *runfile.Header   // of a run made of others; nil: this one ran itself
	clock   target.Clock      // the measured target's
	started time.Time         // on it
}

type export struct {
	path   string
	format render.Format
	temp   *os.File
}

// output checks the output flags. Close it in any case.
func (a *app) output(c *cli.Context) (*output, error) {
	o := &output{a: a, stdout: a.stdout, quiet: c.Bool("quiet"), strict: c.Bool("strict"), args: a.args, flags: savedSettings(c), vars: savedVariables(c)}
	o.start(target.Wall{})
	if err := oneOf("format", c.String("format"), stdoutFormats()...); err != nil {
		return nil, err
	}
	for _, f := range formats() {
		if f.Name == c.String("format") {
			o.format = f
		}
	}
	if c.String("log") == "-" {
		// stdout then carries the log lines only.
		o.stdout = a.env.Stderr
	}
	if c.Bool("plot") {
		o.plot = &render.PlotStyle{Width: a.columns(), ASCII: c.Bool("ascii")}
	} else if c.Bool("ascii") {
		return nil, usagef("--ascii needs --plot")
	}
	for _, flag := range []string{"assert", "warn"} {
		for _, expr := range c.StringSlice(flag) {
			as, err := verdict.ParseAssertion(expr, flag == "warn")
			if err != nil {
				return nil, usagef("--%s: %w", flag, err)
			}
			o.asserts = append(o.asserts, as)
		}
	}
	if err := a.checkSummary(); err != nil {
		return nil, err
	}
	for _, path := range c.StringSlice("export") {
		if err := o.addExport(path, runsOf(c.Command.Name)); err != nil {
			o.Close()
			return nil, err
		}
	}
	return o, nil
}

// runsOf is the command whose runs a command makes: its own, but for merge.
func runsOf(command string) string {
	if command == "merge" {
		return "load"
	}
	return command
}

// distributed are the commands whose runs hold distributions, for a histogram
// log.
var distributed = [...]string{"load", "bulk-post", "validate", "stats"}

func (o *output) addExport(path, command string) error {
	for _, f := range formats() {
		if strings.EqualFold(filepath.Ext(path), f.Ending) {
			if !figures.Followed(f, command) {
				return usagef("--export %s: runs of %s have no such figures that are followed from run to run", path, command)
			}
			if f.Name == "hlog" && !slices.Contains(distributed[:], command) {
				return usagef("--export %s: runs of %s hold no distributions, those of %s do", path, command, strings.Join(distributed[:], ", "))
			}
			if onlyCharts(f.Name) && !report.Draws(command) {
				return usagef("--export %s: runs of %s have no charts", path, command)
			}
			e, err := newExport("--export", path, f)
			if err != nil {
				return err
			}
			o.exports = append(o.exports, e)
			return nil
		}
	}
	return usagef("--export %s: want a file ending in %s", path, strings.Join(exportEndings(), ", "))
}

// newExport opens a file that a flag names. It is written beside its final
// name and renamed: a run that fails leaves an earlier file as it was.
func newExport(flag, path string, f render.Format) (export, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return export{}, usagef("%s %s: is a directory, want a file", flag, path)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".tbl-*")
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			// The temporary name means nothing to the user.
			err = pathErr.Err
		}
		return export{}, usagef("%s %s: %w", flag, path, err)
	}
	return export{path, f, temp}, nil
}

// columns is the width of the terminal on stdout, 0 where it is none.
func (a *app) columns() int {
	if f, ok := a.env.Stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// start begins the run's time, on the clock of what is measured.
func (o *output) start(clock target.Clock) {
	o.clock, o.started = clock, clock.Now()
}

// header says what ran. fields are the result's own.
func (o *output) header(command string, fields map[string]any) runfile.Header {
	h := runfile.Header{
		Command: command, Settings: o.flags, Variables: o.vars, Target: targetOf(fields), Seed: cmp.Or(seedIn(o.flags["seed"]), o.seed, seedOf(fields)),
		Started: o.started.UTC(), DurationNS: o.clock.Now().Sub(o.started).Nanoseconds(),
		VirtualClock: o.clock.Virtual(),
	}
	if !h.VirtualClock {
		h.Environment = runfile.Here(release)
	}
	if o.merged != nil {
		h = *o.merged
	}
	h.Schema, h.Version, h.Args = runfile.Schema, runfile.Version, runfile.Redact(o.args)
	return h
}

// unsaved are flags that are no settings of a run: they say where its result
// goes and how it looks, or ask for something else than a run.
var unsaved = [...]string{"export", "format", "quiet", "v", "plot", "ascii", "dry-run", "metrics", "help"}

// savedSettings are the values of the command's flags as they are saved: an
// empty one is not.
func savedSettings(c *cli.Context) map[string]string {
	out := map[string]string{}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		switch {
		case slices.Contains(unsaved[:], name), runfile.Secret(name):
		default:
			text := fmt.Sprint(c.Value(name))
			if v, ok := c.Value(name).(cli.StringSlice); ok {
				text = strings.Join(v.Value(), ", ")
			}
			if text != "" {
				out[name] = text
			}
		}
	}
	return out
}

// savedVariables are the environment variables that the command's settings come
// from, where the command line doesn't say otherwise. The library reads them
// from the process's own environment, and so must this.
func savedVariables(c *cli.Context) map[string]string {
	out := map[string]string{}
	for _, f := range c.Command.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok || slices.Contains(unsaved[:], f.Names()[0]) || len(given(c, f.Names()...)) > 0 {
			continue
		}
		for _, name := range doc.GetEnvVars() {
			value := os.Getenv(name)
			if value == "" {
				continue
			}
			if runfile.Secret(f.Names()[0]) {
				value = "***"
			}
			out[name] = value
			break
		}
	}
	return out
}

// targetOf is what a result says that it measured.
func targetOf(fields map[string]any) string {
	name, _ := fields["target"].(string)
	if parts, ok := fields["targets"].([]any); ok {
		var names []string
		for _, p := range parts {
			m, _ := p.(map[string]any)
			names = append(names, targetOf(m))
		}
		name = strings.Join(names, ", ")
	}
	return name
}

// seedOf is the seed that a result says it used. Where both are drawn, that of
// the embedded dataplane goes before it: it says which core owns what.
func seedOf(fields map[string]any) uint64 {
	n, _ := fields["seed"].(json.Number)
	return seedIn(n.String())
}

// seedIn reads a seed, 0 where there is none.
func seedIn(text string) uint64 {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return seed
}

// Close removes what was not written.
func (o *output) Close() {
	for _, e := range o.exports {
		e.temp.Close()
		os.Remove(e.temp.Name())
	}
	o.exports = nil
}

// finish writes the result, adds the user's own thresholds to the verdicts,
// and sets the exit code. The result's own verdicts are in d already.
func (o *output) finish(ctx context.Context, d *render.Document) error {
	fields, err := figures.Fields(d)
	if err != nil {
		return err
	}
	if o.plot != nil {
		if err := d.Plot(*o.plot); err != nil {
			return err
		}
	}
	for _, as := range o.asserts {
		for _, f := range figures.SetsFor(fields, as.Figure()) {
			v := as.Judge(f.Figures)
			if f.Of != "" {
				v.Line += " (" + f.Of + ")"
				v = v.About(f.Of)
			}
			d.Verdicts = append(d.Verdicts, v)
		}
	}
	if d.Verdicts == nil {
		d.Verdicts = []verdict.Verdict{} // a list in JSON
	}
	d.Conclude(o.strict)
	cut := ctx.Err() != nil
	interrupted := cut && !o.a.stdout.closed.Load()
	if cut {
		d.Interrupt()
	}
	o.a.code = outcomeCode(verdict.Overall(d.Verdicts, o.strict), interrupted)
	head := o.header(d.Command, fields)
	d.Started, d.Length = head.Started, time.Duration(head.DurationNS)
	followedFigures := figures.Benchmarks(d.Command, fields)
	fields["run"], fields["exit"], fields["verdicts"] = head, o.a.code, d.Verdicts
	if d.Overall != nil {
		fields["overall"] = d.Overall
	}
	if cut {
		fields["partial"] = true
	}
	d.Data = fields
	d.Benchmarks, d.BenchConfig = followedFigures, figures.BenchConfig(&head)
	var errs []error
	shown := *d
	if o.quiet && o.format.Name == "text" {
		shown.Blocks = nil
	}
	if err := o.format.Write(o.stdout, &shown); err != nil {
		errs = append(errs, fmt.Errorf("writing the result: %w", err))
	}
	d.Compact = true
	for _, e := range o.exports {
		if err := e.write(d); err != nil {
			errs = append(errs, fmt.Errorf("--export %s: %w", e.path, err))
		}
	}
	o.exports = nil
	if err := o.a.github(d, o.strict); err != nil {
		errs = append(errs, fmt.Errorf("job summary: %w", err))
	}
	return o.a.afterRun(errors.Join(errs...))
}

func (e export) write(d *render.Document) error {
	err := errors.Join(e.format.Write(e.temp, d), e.temp.Chmod(0o644), e.temp.Close())
	if err == nil {
		err = os.Rename(e.temp.Name(), e.path)
	}
	if err != nil {
		os.Remove(e.temp.Name())
	}
	return err
}

// annotations is how many errors of one step GitHub shows.
const annotations = 10

// github adds the result to the job summary and annotates what fails, when the
// run is a step of a GitHub workflow.
func (a *app) github(d *render.Document, strict bool) error {
	if a.env.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	var bad []string
	for _, v := range d.Verdicts {
		if verdict.Overall([]verdict.Verdict{v}, strict) > verdict.Warn {
			bad = append(bad, v.Line)
		}
	}
	if more := len(bad) - annotations; more > 0 {
		bad = append(bad[:annotations-1], fmt.Sprintf("%d more verdicts fail or lack evidence: the job's summary has them all", more+1))
	}
	esc := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, line := range bad {
		fmt.Fprintf(a.env.Stderr, "::error title=tbl %s::%s\n", d.Command, render.Visible(esc.Replace(line)))
	}
	f, err := a.summary()
	if f == nil {
		return err
	}
	for _, form := range formats() {
		if form.Name == "markdown" {
			_, err = fmt.Fprintf(f, "## tbl %s\n\n", d.Command)
			err = errors.Join(err, form.Write(f, d))
		}
	}
	return errors.Join(err, f.Close())
}

// summary opens the job's summary; nil where there is none.
func (a *app) summary() (*os.File, error) {
	path := a.env.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" || a.env.Getenv("GITHUB_ACTIONS") != "true" {
		return nil, nil
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// checkSummary finds out before a run whether its summary can be written.
func (a *app) checkSummary() error {
	f, err := a.summary()
	if err != nil {
		return usagef("GITHUB_STEP_SUMMARY: %w", err)
	}
	if f != nil {
		return f.Close()
	}
	return nil
}
