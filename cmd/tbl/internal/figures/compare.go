package figures

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats"
	"tbl/timingstats/compare"
)

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

// OfRuns gathers the figures of both sides that compare looks at, and says which
// files hold more than is looked at. Its errors name the file.
func OfRuns(command string, base, now []*runfile.File) (figures []compare.Figure, partly []string, err error) {
	type side struct {
		figures []Set
		files   []*runfile.File
	}
	sides := [2]side{{files: base}, {files: now}}
	cores := map[timingstats.CoreID]bool{}
	open := false
	for i := range sides {
		for _, f := range sides[i].files {
			fields := map[string]any{}
			if err := f.Decode(&fields); err != nil {
				return nil, nil, err
			}
			sets := Sets(fields)
			set := sets[0]
			if len(sets) > 1 {
				partly = append(partly, fmt.Sprintf("%s is a run over several: only %s, the first of %d, is looked at", f.Path, set.Of, len(sets)))
			}
			sides[i].figures = append(sides[i].figures, set)
			for id := range set.Cores {
				cores[id] = true
			}
			open = open || set.All["open_loop"] == 1
		}
	}
	var out []compare.Figure
	add := func(name, group string, cf comparedFigure, get func(Set) map[string]float64, dist func(*runfile.File) *timingstats.Recorder) {
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
		add(cf.name, "", cf, func(s Set) map[string]float64 { return s.All }, func(f *runfile.File) *timingstats.Recorder {
			return recorder(f.Fields[cf.hist])
		})
	}
	for _, id := range slices.SortedFunc(maps.Keys(cores), timingstats.CoreID.Compare) {
		for _, cf := range core {
			add("cores."+id.String()+"."+cf.name, "cores", cf, func(s Set) map[string]float64 { return s.Cores[id] }, func(f *runfile.File) *timingstats.Recorder {
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

// Settings names what differs between the sides besides what was measured:
// then a change has more than one possible cause.
func Settings(base, now []*runfile.File) []render.Setting {
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
