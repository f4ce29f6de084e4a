package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats"
	"tbl/timingstats/compare"
)

func (a *app) compareCommand() *cli.Command {
	return &cli.Command{
		Usage:     "saved runs against saved runs: what changed, by how much, is it real",
		ArgsUsage: "BASE NEW",
		Description: "Each side is a run file (--export FILE.json), a directory of them, or a quoted glob.\n" +
			"Repeated runs are compared by Mann–Whitney's test; of single runs only the spread within is known.",
		Flags: flags([]cli.Flag{
			stringFlag("", "max-regress", "0%", "`PERCENT` by which a figure may get worse: more, and real, fails; 0: nothing does"),
			stringFlag("", "alpha", "1%", "probability that any figure of runs that don't differ is called different"),
			uintDecimal{&cli.Uint64Flag{Name: "seed", Usage: "seed of the bootstrap for single runs", EnvVars: env("seed"), Base: 10}},
			boolFlag("", "all", "show the figures of single cores that don't differ too"),
		}, outputFlags(), gateFlags()),
		Action: a.compare,
	}
}

func (a *app) compare(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("compare: want two sides, BASE and NEW, got %d", c.NArg())
	}
	var cfg compare.Config
	var err error
	if cfg.MaxRegress, err = parsePercent(c.String("max-regress")); err != nil {
		return usagef("--max-regress: %w", err)
	}
	if cfg.Alpha, err = parseShare(c.String("alpha")); err != nil || cfg.Alpha <= 0 || cfg.Alpha >= 0.5 {
		return usagef("--alpha %q: want a percentage above 0%% and below 50%%", c.String("alpha"))
	}
	cfg.Seed = c.Uint64("seed")
	base, err := readRuns(c.Args().Get(0))
	if err != nil {
		return err
	}
	now, err := readRuns(c.Args().Get(1))
	if err != nil {
		return err
	}
	command := base[0].Header.Command
	for _, f := range append(slices.Clone(base), now...) {
		if f.Header.Command != command {
			return usagef("%s is a run of %s, %s one of %s: only runs of one command can be compared", base[0].Path, command, f.Path, f.Header.Command)
		}
	}
	out, err := a.output(c)
	if err != nil {
		return err
	}
	defer out.Close()
	figures, partly, err := figuresOfRuns(command, base, now)
	if err != nil {
		return err
	}
	if len(figures) == 0 {
		return usagef("runs of %s have no figures to compare", command)
	}
	r := compare.Runs(figures, cfg)
	r.Warnings = append(r.Warnings, partly...)
	return out.finish(c.Context, render.Compare(command, settings(base, now), r, c.Bool("all")))
}

// parsePercent reads a percentage, 10% or 10, as a share.
func parsePercent(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: want a percentage such as 10%%, 0%% or more", s)
	}
	return v / 100, nil
}

// readRuns reads one side: a file, a directory of .json files, or a glob.
func readRuns(arg string) ([]*runfile.File, error) {
	paths := []string{arg}
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(arg, "*.json")); err != nil || len(paths) == 0 {
			return nil, usagef("%s: no .json files in that directory", arg)
		}
	} else if err != nil && strings.ContainsAny(arg, "*?[") {
		if paths, err = filepath.Glob(arg); err != nil || len(paths) == 0 {
			return nil, usagef("%s: no file matches", arg)
		}
	}
	var out []*runfile.File
	for _, p := range paths {
		f, err := runfile.Read(p)
		if err != nil {
			return nil, usagef("%w", err)
		}
		out = append(out, f)
	}
	return out, nil
}

// comparedFigure is a figure that compare looks at.
type comparedFigure struct {
	name     string // as flattened from the JSON
	better   compare.Direction
	hist     string // the field that holds its distribution, if any
	quantile float64
	open     bool // of open loops only: in closed ones it is another figure's copy
}

// in says that a result with these values has the figure: a percentile of
// nothing is none.
func (cf comparedFigure) in(values map[string]float64) (float64, bool) {
	of, _, _ := strings.Cut(cf.name, ".")
	if n, counted := values[of+".n"]; counted && n == 0 {
		return 0, false
	}
	v, ok := values[cf.name]
	return v, ok
}

// comparedFigures says, for each command, which figures of the whole and of
// each core are compared.
func comparedFigures(command string) (whole, core []comparedFigure) {
	latency := func(of string) []comparedFigure {
		var out []comparedFigure
		for _, q := range []struct {
			name string
			q    float64
		}{{"p50_ns", 50}, {"p90_ns", 90}, {"p99_ns", 99}} {
			out = append(out, comparedFigure{name: of + "." + q.name, better: compare.Lower, hist: of + "_hist", quantile: q.q})
		}
		return out
	}
	rate := comparedFigure{name: "writes_per_s", better: compare.Higher}
	errs := comparedFigure{name: "errors_share", better: compare.Lower}
	switch command {
	case "load":
		service := latency("service")
		for i := range service {
			service[i].open = true
		}
		whole = slices.Concat([]comparedFigure{rate, errs}, latency("response"), service, []comparedFigure{{name: "connect.p99_ns", better: compare.Lower}})
		core = latency("response")
	case "bulk-post":
		whole = append([]comparedFigure{rate, {name: "bytes_per_s", better: compare.Higher}, errs}, latency("response")...)
		core = append([]comparedFigure{
			{name: "avg_clicks_per_write", better: compare.Lower},
			{name: "batches.p50_clicks", better: compare.Lower, hist: "batches_hist", quantile: 50},
		}, latency("response")...)
	case "stats":
		core = []comparedFigure{
			{name: "p50_clicks", better: compare.Lower}, {name: "p95_clicks", better: compare.Lower},
			{name: "avg_clicks", better: compare.Lower}, {name: "slow_share", better: compare.Lower},
		}
	case "sticky":
		whole = []comparedFigure{{name: "split", better: compare.Lower}, {name: "refused", better: compare.Lower}}
	case "validate":
		whole = []comparedFigure{{name: "load.writes_per_s", better: compare.Higher}, {name: "elapsed_ns", better: compare.Lower}}
	}
	return whole, core
}

// figuresOfRuns gathers the figures of both sides, and says which files hold
// more than is looked at.
func figuresOfRuns(command string, base, now []*runfile.File) (figures []compare.Figure, partly []string, err error) {
	type side struct {
		figures []figureSet
		files   []*runfile.File
	}
	sides := [2]side{{files: base}, {files: now}}
	cores := map[timingstats.CoreID]bool{}
	open := false
	for i := range sides {
		for _, f := range sides[i].files {
			fields := map[string]any{}
			if err := f.Decode(&fields); err != nil {
				return nil, nil, usagef("%w", err)
			}
			sets := figureSets(fields)
			set := sets[0]
			if len(sets) > 1 {
				partly = append(partly, fmt.Sprintf("%s is a run over several: only %s, the first of %d, is looked at", f.Path, set.of, len(sets)))
			}
			sides[i].figures = append(sides[i].figures, set)
			for id := range set.Cores {
				cores[id] = true
			}
			open = open || set.All["open_loop"] == 1
		}
	}
	var out []compare.Figure
	add := func(name, group string, cf comparedFigure, get func(figureSet) map[string]float64, dist func(*runfile.File) *timingstats.Recorder) {
		if cf.open && !open {
			return
		}
		f := compare.Figure{Name: name, Better: cf.better, Group: group, Quantile: cf.quantile}
		any := false
		for i, values := range []*[]float64{&f.Base, &f.New} {
			for _, s := range sides[i].figures {
				v, ok := cf.in(get(s))
				if !ok {
					v = math.NaN()
				}
				any = any || ok
				*values = append(*values, v)
			}
		}
		if !any {
			return
		}
		if cf.hist != "" && len(base) == 1 {
			f.BaseDist = dist(base[0])
		}
		if cf.hist != "" && len(now) == 1 {
			f.NewDist = dist(now[0])
		}
		out = append(out, f)
	}
	whole, core := comparedFigures(command)
	// Only single runs are looked at by their distributions; each is read once.
	ofCores := map[*runfile.File]map[timingstats.CoreID]map[string]json.RawMessage{}
	for _, s := range sides {
		if len(s.files) == 1 {
			ofCores[s.files[0]] = coreFields(s.files[0])
		}
	}
	type distribution struct {
		file  *runfile.File
		core  timingstats.CoreID
		field string
	}
	read := map[distribution]*timingstats.Recorder{}
	ofCore := func(f *runfile.File, id timingstats.CoreID, field string) *timingstats.Recorder {
		key := distribution{f, id, field}
		if _, ok := read[key]; !ok {
			read[key] = recorder(ofCores[f][id][field])
		}
		return read[key]
	}
	for _, cf := range whole {
		add(cf.name, "", cf, func(s figureSet) map[string]float64 { return s.All }, func(f *runfile.File) *timingstats.Recorder {
			return recorder(f.Fields[cf.hist])
		})
	}
	for _, id := range slices.SortedFunc(maps.Keys(cores), timingstats.CoreID.Compare) {
		for _, cf := range core {
			add("cores."+id.String()+"."+cf.name, "cores", cf, func(s figureSet) map[string]float64 { return s.Cores[id] }, func(f *runfile.File) *timingstats.Recorder {
				return ofCore(f, id, cf.hist)
			})
		}
	}
	return out, partly, nil
}

// coreFields are the elements of the file's list of cores, by core.
func coreFields(f *runfile.File) map[timingstats.CoreID]map[string]json.RawMessage {
	out := map[timingstats.CoreID]map[string]json.RawMessage{}
	var cores []map[string]json.RawMessage
	if json.Unmarshal(f.Fields["cores"], &cores) != nil {
		return out
	}
	for _, c := range cores {
		var id timingstats.CoreID
		if json.Unmarshal(c["core"], &id) == nil {
			out[id] = c
		}
	}
	return out
}

// recorder reads a saved histogram; nil where there is none.
func recorder(raw json.RawMessage) *timingstats.Recorder {
	var h timingstats.Histogram
	if raw == nil || json.Unmarshal(raw, &h) != nil || h.N == 0 {
		return nil
	}
	r, err := h.Recorder()
	if err != nil {
		return nil
	}
	return r
}

// shownValues is how many of a setting's values are shown on one side.
const shownValues = 3

// settings names what differs between the sides besides what was measured:
// then a change has more than one possible cause.
func settings(base, now []*runfile.File) []render.Setting {
	values := func(files []*runfile.File, get func(*runfile.File) string) string {
		var seen []string
		for _, f := range files {
			if v := get(f); !slices.Contains(seen, v) {
				seen = append(seen, v)
			}
		}
		slices.Sort(seen)
		if more := len(seen) - shownValues; more > 0 {
			return fmt.Sprintf("%s and %d more", strings.Join(seen[:shownValues], ", "), more)
		}
		return strings.Join(seen, ", ")
	}
	var out []render.Setting
	add := func(name string, get func(*runfile.File) string) {
		if b, n := values(base, get), values(now, get); b != n {
			out = append(out, render.Setting{Name: name, Base: b, New: n})
		}
	}
	add("seed", seedSet)
	for _, name := range []string{"target", "mode", "known_cores", "requested", "workers", "open_loop", "offered_per_s", "virtual_clock", "threshold_clicks"} {
		add(name, func(f *runfile.File) string { return strings.Trim(string(f.Fields[name]), `"`) })
	}
	add("command line", func(f *runfile.File) string { return strings.Join(withoutOutput(f.Header.Args), " ") })
	add("machine", func(f *runfile.File) string {
		e := f.Header.Environment
		switch {
		case f.Header.VirtualClock:
			return "simulated"
		case e == nil:
			return "several"
		}
		return fmt.Sprintf("%s, %d cores, %s %s", e.CPU, e.Cores, e.OS, e.Kernel)
	})
	add("tbl", func(f *runfile.File) string {
		if f.Header.Environment == nil {
			return ""
		}
		return f.Header.Environment.Version + " " + f.Header.Environment.Go
	})
	return out
}

// seedSet is the seed that a run was told; one that was drawn says nothing, as
// each run has another.
func seedSet(f *runfile.File) string {
	set := f.Header.Settings["seed"]
	for i, a := range f.Header.Args { // version 1 has no settings
		if name, value, inline := strings.Cut(a, "="); set == "" && strings.TrimLeft(name, "-") == "seed" && name != "seed" {
			if set = value; !inline && i+1 < len(f.Header.Args) {
				set = f.Header.Args[i+1]
			}
		}
	}
	if set == "" || set == "0" {
		return "drawn"
	}
	return set
}

// withoutOutput is a command line less what only says where the result goes,
// and less the seed, which is a setting of its own.
func withoutOutput(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		name, _, inline := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if slices.Contains([]string{"export", "format", "seed", "quiet", "v"}, name) && strings.HasPrefix(args[i], "-") {
			if !inline && name != "quiet" && name != "v" {
				i++
			}
			continue
		}
		out = append(out, args[i])
	}
	return out
}
