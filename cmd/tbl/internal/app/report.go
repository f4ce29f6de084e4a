package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"tbl/cmd/tbl/internal/render"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/report/page"
	"tbl/cmd/tbl/internal/runfile"
)

// formats are those of render, and those with pictures, which a file can get.
func formats() []render.Format {
	out := render.Formats()
	for _, f := range reportFormats() {
		if f.pictures {
			out = append(out, render.Format{Name: f.name, Ending: f.ending, Write: func(w io.Writer, d *render.Document) error {
				r, err := reportOf(d)
				if err != nil {
					return err
				}
				return f.write(w, r)
			}})
		}
	}
	return out
}

// reportOf is the report of a result that is being written.
func reportOf(d *render.Document) (*report.Report, error) {
	raw, err := json.Marshal(d.Data)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	f, err := runfile.Parse(raw)
	if err != nil {
		return nil, err
	}
	return report.Build([]report.Source{{File: f, Doc: d}}), nil
}

// reportFormat is one form of a report.
type reportFormat struct {
	name, ending string
	pictures     bool // it has the charts, and is offered by --export too
	binary       bool // nothing for a terminal
	write        func(io.Writer, *report.Report) error
}

func reportFormats() []reportFormat {
	out := []reportFormat{
		{name: "html", ending: ".html", pictures: true, write: page.Write},
		{name: "svg", ending: ".svg", pictures: true, write: charts(report.WriteSVG)},
		{name: "png", ending: ".png", pictures: true, binary: true, write: charts(report.WritePNG)},
	}
	for _, name := range [...]string{"text", "markdown", "csv", "junit"} {
		for _, f := range render.Formats() {
			if f.Name == name {
				out = append(out, reportFormat{name: name, ending: f.Ending, write: func(w io.Writer, r *report.Report) error {
					return f.Write(w, r.Document())
				}})
			}
		}
	}
	return out
}

// charts writes a report's charts, one below the other.
func charts(write func(io.Writer, []*report.Chart) error) func(io.Writer, *report.Report) error {
	return func(w io.Writer, r *report.Report) error {
		if len(r.Charts) == 0 {
			return fmt.Errorf("there is nothing to draw: %s", nothingToDraw(r))
		}
		return write(w, r.Charts)
	}
}

// onlyCharts says that a form holds nothing but charts.
func onlyCharts(format string) bool { return format == "svg" || format == "png" }

func nothingToDraw(r *report.Report) string {
	if len(r.Absent) > 0 {
		return strings.Join(r.Absent, " ")
	}
	return "runs of " + r.Runs[0].Header.Command + " have no charts"
}

func (a *app) reportCommand() *cli.Command {
	var names, endings, kinds []string
	for _, f := range reportFormats() {
		names, endings = append(names, f.name), append(endings, f.ending)
	}
	for _, k := range report.Kinds() {
		kinds = append(kinds, k.Name)
	}
	return &cli.Command{
		Usage:     "saved runs as one HTML page with charts, or as pictures, Markdown, JUnit",
		ArgsUsage: "RUN…",
		Description: "Each RUN is a run file (--export FILE.json), a directory of them, or a quoted glob; several runs are\n" +
			"drawn over one another. The page is one file: it needs no network and no script, and prints.\n" +
			"The exit code says whether the report was written, not what its verdicts say.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, the form told by its ending: " + strings.Join(endings, " ") +
				"; svg and png also to a directory, a file per chart (default: stdout)", EnvVars: env("output")},
			among(ownEnv("report", stringFlag("", "format", "", "the form: "+strings.Join(names, ", ")+" (default: by the ending, or text)")), names...),
			among(stringsFlag("", "chart", "only this `KIND` of chart: "+strings.Join(kinds, ", ")+" (repeatable)"), kinds...),
		},
		Action: a.report,
	}
}

func (a *app) report(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("report: want the runs to report: files that --export FILE.json saved, directories of them, or a quoted glob")
	}
	path := c.String("output")
	format, err := reportFormatOf(c.String("format"), path)
	if err != nil {
		return err
	}
	var sources []report.Source
	for _, arg := range c.Args().Slice() {
		files, err := runfile.ReadAll(arg)
		if err != nil {
			return usagef("%w", err)
		}
		for _, f := range files {
			sources = append(sources, report.Source{File: f})
		}
	}
	r := report.Build(sources)
	if r.Charts, err = r.Pick(c.StringSlice("chart")); err != nil {
		return usagef("--chart: %w", err)
	}
	switch {
	case path == "" || path == "-":
		if f, ok := a.env.Stdout.(*os.File); ok && format.binary && term.IsTerminal(int(f.Fd())) {
			return usagef("--format %s is no text for a terminal: write it to a file with -o FILE%s", format.name, format.ending)
		}
		if err := format.write(a.stdout, r); err != nil {
			return usagef("%w", err)
		}
		return nil
	case isDir(path):
		return a.chartFiles(path, format, r)
	}
	if err := a.writeReport(path, format, r); err != nil {
		return err
	}
	what := "no charts"
	if len(r.Charts) > 0 {
		what = "charts: " + strings.Join(chartNames(r.Charts), ", ")
	}
	fmt.Fprintf(a.stdout, "%s: %s; %s\n", path, runCount(len(r.Runs)), what)
	return nil
}

// reportFormatOf is the form that --format, or the ending of -o, asks for.
func reportFormatOf(name, path string) (reportFormat, error) {
	all := reportFormats()
	var names, endings []string
	for _, f := range all {
		names, endings = append(names, f.name), append(endings, f.ending)
	}
	switch {
	case name != "":
		if err := oneOf("format", name, names...); err != nil {
			return reportFormat{}, err
		}
		return all[slices.Index(names, name)], nil
	case path == "" || path == "-":
		return all[slices.Index(names, "text")], nil
	case isDir(path):
		return reportFormat{}, usagef("-o %s is a directory: say with --format svg or png what to write into it", path)
	}
	if i := slices.Index(endings, strings.ToLower(filepath.Ext(path))); i >= 0 {
		return all[i], nil
	}
	return reportFormat{}, usagef("-o %s: want a file ending in %s, or --format", path, strings.Join(endings, ", "))
}

// isDir says that a path is a directory, or is written like one.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || strings.HasSuffix(path, "/")
}

// writeReport writes a file, or leaves an earlier one as it was.
func (a *app) writeReport(path string, format reportFormat, r *report.Report) error {
	e, err := newExport("-o", path, render.Format{Write: func(w io.Writer, _ *render.Document) error { return format.write(w, r) }})
	if err != nil {
		return err
	}
	if err := e.write(nil); err != nil {
		return usagef("-o %s: %w", path, err)
	}
	return nil
}

// chartFiles writes one file per chart into a directory.
func (a *app) chartFiles(dir string, format reportFormat, r *report.Report) error {
	if !onlyCharts(format.name) {
		return usagef("-o %s is a directory: want a file for --format %s", dir, format.name)
	}
	if len(r.Charts) == 0 {
		return usagef("there is nothing to draw: %s", nothingToDraw(r))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("-o: %w", err)
	}
	for i, name := range chartNames(r.Charts) {
		one := *r
		one.Charts = r.Charts[i : i+1]
		path := filepath.Join(dir, name+format.ending)
		if err := a.writeReport(path, format, &one); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, path)
	}
	return nil
}

func runCount(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// chartNames are the charts' kinds, with the command where runs of several
// commands have the same kind.
func chartNames(charts []*report.Chart) []string {
	count := map[string]int{}
	for _, c := range charts {
		count[c.Name]++
	}
	out := make([]string, len(charts))
	for i, c := range charts {
		out[i] = c.Name
		if count[c.Name] > 1 {
			out[i] = c.Command + "-" + c.Name
		}
	}
	return out
}
