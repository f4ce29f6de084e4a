package main

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// arrows says which packages of ours a package may import. A trailing /...
// stands for everything below. A package that is missing here may import none.
var arrows = map[string][]string{
	"cmd/tbl":                      {"cmd/tbl/internal/app"},
	"cmd/tbl/internal/app":         {"..."},
	"cmd/tbl/internal/render":      {"cmd/tbl/internal/logreport", "loader/...", "prober/...", "timingstats/...", "target"},
	"cmd/tbl/internal/report":      {"cmd/tbl/internal/logreport", "cmd/tbl/internal/render", "cmd/tbl/internal/runfile", "loader/...", "prober/...", "timingstats/..."},
	"cmd/tbl/internal/report/page": {"cmd/tbl/internal/report", "cmd/tbl/internal/render", "timingstats/verdict"},
	"cmd/tbl/internal/runfile":     {},
	"cmd/tbl/internal/figures":     {"cmd/tbl/internal/render", "cmd/tbl/internal/runfile", "timingstats", "timingstats/compare", "timingstats/verdict"},
	"cmd/tbl/internal/merging":     {"cmd/tbl/internal/figures", "cmd/tbl/internal/render", "cmd/tbl/internal/report", "cmd/tbl/internal/runfile", "loader", "loader/fleet"},
	"cmd/tbl/internal/live":        {"cmd/tbl/internal/render", "target", "target/httpserve"},
	"cmd/tbl/internal/metrics":     {"target", "target/httpserve", "timingstats"},
	"cmd/tbl/internal/nodes":       {"cmd/tbl/internal/render", "target", "target/cluster", "target/refplane", "target/remote", "timingstats/verdict"},
	"cmd/tbl/internal/logreport":   {"logparse/...", "timingstats", "timingstats/verdict"},
	"prober/proof":                 {"loader", "prober", "logparse", "logparse/logline", "timingstats", "timingstats/verdict", "target"},
	"loader":                       {"loader/pace", "loader/source", "loader/steer", "target", "timingstats", "timingstats/verdict"},
	"loader/fleet":                 {"loader", "loader/steer", "timingstats", "timingstats/verdict"},
	"loader/steer":                 {"target", "timingstats"},
	"loader/session":               {"target", "timingstats", "timingstats/verdict"},
	"prober":                       {"target", "timingstats", "timingstats/verdict"},
	"prober/stickiness":            {"target", "timingstats", "timingstats/verdict"},
	"timingstats/verdict":          {"timingstats"},
	"timingstats/compare":          {"timingstats"},
	"target/httpserve":             {"target/wire", "target"},
	"target/remote":                {"target/remote/ports", "target/wire", "target"},
	"target/remote/ports":          {},
	"target/wire":                  {"target"},
	"target/refplane":              {"target", "target/refplane/table"},
	"target/refplane/table":        {"target"},
	"target/cluster":               {"target"},
	"target/targettest":            {"target"},
	"logparse":                     {"logparse/input", "logparse/logline"},
	"logparse/input":               {},
	"logparse/logline":             {},
}

// homes says which package alone may import a library, and what lies below it;
// empty: none, it is for tests.
var homes = map[string]string{
	"github.com/urfave/cli/v2":                "cmd/tbl/internal/app",
	"github.com/olekukonko/tablewriter":       "cmd/tbl/internal/render",
	"github.com/schollz/progressbar/v3":       "cmd/tbl/internal/render",
	"github.com/HdrHistogram/hdrhistogram-go": "timingstats",
	"github.com/chromedp/chromedp":            "cmd/tbl/internal/browsertest",
	"github.com/chromedp/cdproto":             "cmd/tbl/internal/browsertest",
	"github.com/prometheus/client_golang":     "cmd/tbl/internal/metrics",
	"github.com/santhosh-tekuri/jsonschema":   "",
	"gonum.org/v1/plot":                       "cmd/tbl/internal/report",
}

// TestImports reads the files themselves: what `go list` says can come from
// the test cache.
func TestImports(t *testing.T) {
	seen, atHome := map[string]bool{}, map[string]bool{}
	used := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != root && d.Name() != ".." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		seen[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			for lib, home := range homes {
				switch {
				case !matches(lib+"/...", name):
				case pkg != home:
					t.Errorf("%s imports %s, which belongs to %s", rel, name, cmp.Or(home, "tests"))
				default:
					atHome[lib] = true
				}
			}
			ours, ok := strings.CutPrefix(name, "tbl/")
			if !ok {
				continue
			}
			at := slices.IndexFunc(arrows[pkg], func(a string) bool { return matches(a, ours) })
			if at < 0 {
				t.Errorf("%s: %s must not import %s", rel, pkg, ours)
				continue
			}
			if used[pkg] == nil {
				used[pkg] = map[string]bool{}
			}
			used[pkg][arrows[pkg][at]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{"cmd/tbl", "target", "loader", "timingstats/verdict"} {
		if !seen[must] {
			t.Errorf("package %s was not read: the test looks in the wrong place", must)
		}
	}
	for pkg, to := range arrows {
		for _, a := range to {
			if !used[pkg][a] {
				t.Errorf("%s imports nothing of %s: its arrow is out of date", pkg, a)
			}
		}
	}
	for lib, home := range homes {
		if home != "" && !atHome[lib] {
			t.Errorf("%s does not import %s: its line is out of date", home, lib)
		}
	}
}

func matches(arrow, pkg string) bool {
	prefix, below := strings.CutSuffix(arrow, "...")
	if !below {
		return arrow == pkg
	}
	return strings.HasPrefix(pkg+"/", prefix)
}
