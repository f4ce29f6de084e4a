package figures

import (
	"maps"
	"slices"
	"strings"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/runfile"
	"tbl/timingstats"
	"tbl/timingstats/compare"
)

// Followed says whether runs of a command have figures for a form of benchmarks;
// true for a form of anything else.
func Followed(f render.Format, command string) bool {
	directions := map[string][]compare.Direction{
		"bench": {compare.Lower, compare.Higher}, "smaller": {compare.Lower}, "bigger": {compare.Higher},
	}
	want, ok := directions[f.Name]
	whole, core := comparedFigures(command)
	has := func(cf comparedFigure) bool { return slices.Contains(want, cf.better) }
	return !ok || slices.ContainsFunc(whole, has) || slices.ContainsFunc(core, has)
}

// Benchmarks are a result's figures that compare looks at: those of the whole,
// then those of each core.
func Benchmarks(command string, fields map[string]any) []render.Benchmark {
	whole, core := comparedFigures(command)
	var out []render.Benchmark
	for _, set := range Sets(fields) {
		title := benchName(command)
		if set.Of != "" {
			title += "/" + strings.Replace(set.Of, " ", "=", 1)
		}
		add := func(name string, figures []comparedFigure, values map[string]float64) {
			b := render.Benchmark{Name: name, N: 1}
			for _, n := range []string{"ok", "served", "n"} {
				if v, ok := values[n]; ok && v >= 1 {
					b.N = int64(v)
					break
				}
			}
			for _, cf := range figures {
				if v, ok := cf.in(values); ok && (!cf.open || set.All["open_loop"] == 1) {
					b.Figures = append(b.Figures, render.BenchFigure{Name: cf.name, Value: v, Better: cf.better})
				}
			}
			if len(b.Figures) > 0 {
				out = append(out, b)
			}
		}
		add(title, whole, set.All)
		for _, id := range slices.SortedFunc(maps.Keys(set.Cores), timingstats.CoreID.Compare) {
			n := set.Cores[id]
			if v, ok := n["response.n"]; ok {
				n["n"] = v
			}
			add(title+"/tmm="+strings.ReplaceAll(id.String(), "/", "."), core, n)
		}
	}
	return out
}

// benchName is a command as a benchmark's name: BulkPost.
func benchName(command string) string {
	var b strings.Builder
	for _, word := range strings.Split(command, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// BenchConfig is what a run was measured under, by the names that Go's tools
// use.
func BenchConfig(h *runfile.Header) []render.BenchSetting {
	var out []render.BenchSetting
	add := func(name, value string) {
		if value != "" {
			out = append(out, render.BenchSetting{Name: name, Value: value})
		}
	}
	if e := h.Environment; e != nil {
		add("goos", e.OS)
		add("goarch", e.Arch)
		add("cpu", e.CPU)
		add("tbl", e.Version)
	}
	add("pkg", "tbl/"+h.Command)
	add("target", h.Target)
	return out
}
