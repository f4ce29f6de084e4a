package app

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tbl/cmd/tbl/internal/browsertest"
	"tbl/cmd/tbl/internal/report"
	"tbl/cmd/tbl/internal/runfile"
)

// savable are a run of each command that has charts and one that has none, all
// simulated, by a name.
func savable() map[string][]string {
	logs := "../../../../testdata/logs/"
	return map[string][]string{
		"before":   {"stats", logs + "broken.log"},
		"after":    {"stats", logs + "healthy.log"},
		"validate": {"validate", "--clock", "model", "--seed", "7", "--count", "20000", "--fault", "deterministic-names"},
		"load":     {"load", "--clock", "model", "--seed", "1", "--rate", "2000", "--duration", "6s", "--fault", "flap"},
		"bulk":     {"bulk-post", "--clock", "model", "--seed", "1", "--num-posts", "64", "--uuids-per-post", "100"},
		"probe":    {"probe", "--clock", "model", "--seed", "1", "--discovered"},
		"whoami":   {"whoami", "--clock", "model", "--seed", "1"},
		"info":     {"info", "--clock", "model", "--seed", "1"},
		"sticky":   {"sticky", "--seed", "1", "--transactions", "200"},
		"reset":    {"reset", "--clock", "model", "--seed", "1"},
	}
}

// savedRuns saves them and returns their directory.
func savedRuns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, args := range savable() {
		path := filepath.Join(dir, name+".json")
		if code, _, stderr := run(t, "", append(args, "--export", path, "--quiet")...); code == exitUsage {
			t.Fatalf("%s: %s", name, stderr)
		}
	}
	return dir
}

// TestChartExports has every command whose runs have charts draw them by
// itself: what the table of charts and the tree call a command is the same.
func TestChartExports(t *testing.T) {
	dir := t.TempDir()
	drawn := map[string]bool{}
	for name, args := range savable() {
		if !report.Draws(args[0]) {
			continue
		}
		drawn[args[0]] = true
		path := filepath.Join(dir, name+".svg")
		if code, _, stderr := run(t, "", append(args, "--export", path, "--quiet")...); code == exitUsage {
			t.Errorf("%s: %s", name, stderr)
		} else if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte("<svg")) {
			t.Errorf("%s: %v, %.40q", name, err, b)
		}
	}
	for _, k := range report.Kinds() {
		for _, command := range k.Commands {
			if !drawn[command] {
				t.Errorf("no run of %s, which has a %s chart, was drawn", command, k.Name)
			}
		}
	}
	var clients []string
	for _, seed := range []string{"1", "2"} {
		path := filepath.Join(dir, seed+".json")
		clients = append(clients, path)
		if code, _, stderr := run(t, "", "load", "--clock", "model", "--seed", seed, "--key-prefix", seed, "--count", "3000", "--export", path, "--quiet"); code != exitOK {
			t.Fatal(stderr)
		}
	}
	if code, _, stderr := run(t, "", append([]string{"merge", "--export", filepath.Join(dir, "merged.svg")}, clients...)...); code != exitOK {
		t.Errorf("merge: exit %d: %s", code, stderr)
	}
}

// TestReportPage opens reports in a browser: every chart has marks, nothing is
// asked for, nothing complained about, every text can be read in light and
// dark, without JavaScript, on a narrow screen and on paper.
func TestReportPage(t *testing.T) {
	dir := savedRuns(t)
	at := func(name string) string { return filepath.Join(dir, name+".json") }
	b := browsertest.Start(t)
	for name, c := range map[string]struct {
		runs   []string
		charts int
	}{
		"before and after":      {[]string{at("before"), at("after")}, 2},
		"a proof":               {[]string{at("validate")}, 5},
		"one of each, overlaid": {[]string{dir}, 20},
		"nothing to draw":       {[]string{at("reset")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "report.html")
			if code, _, stderr := run(t, "", append([]string{"report", "-o", page}, c.runs...)...); code != exitOK {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			p := b.Open(t, "file://"+page, browsertest.Options{NoJavaScript: true})
			p.Healthy()
			if got := len(p.Requests()); got != 1 {
				t.Errorf("%d requests, want the page alone: %v", got, p.Requests())
			}
			var marks []int
			p.Eval(`[...document.querySelectorAll("figure svg")].map(s => [...s.querySelectorAll("g.marks path")].filter(m => { const b = m.getBoundingClientRect(); return b.width + b.height > 0 }).length)`, &marks)
			charts := p.Charts("figure svg")
			if len(charts) != c.charts || len(marks) != len(charts) {
				t.Fatalf("%d charts, want %d: %+v", len(charts), c.charts, charts)
			}
			for i, ch := range charts {
				if ch.Name == "" || ch.Texts == 0 || marks[i] == 0 {
					t.Errorf("chart %+v has %d marks", ch, marks[i])
				}
			}
			if first := p.Text("header p"); first == "" || !strings.Contains(p.Text("header"), first) {
				t.Errorf("the page does not begin with a verdict: %q", first)
			}
			for _, width := range []int64{360, 1280} {
				p.Do(chromedp.EmulateViewport(width, 800))
				var over int
				p.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over)
				if over > 0 {
					t.Errorf("%d wide, the page sticks out by %d", width, over)
				}
			}
			// On paper nothing can be opened nor moved sideways: the tables are all
			// there, but for very long ones.
			p.Paper()
			p.Do(chromedp.EmulateViewport(720, 1000))
			var over int
			p.Eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over)
			if over > 0 {
				t.Errorf("on paper the page sticks out by %d", over)
			}
			var closed int
			p.Eval(`[...document.querySelectorAll("details:not(.long) table")].filter(x => x.getBoundingClientRect().height === 0 || !x.checkVisibility()).length`, &closed)
			if closed > 0 {
				t.Errorf("%d tables are not printed", closed)
			}
		})
	}
}

// TestReportForms writes every form, told by the ending and by --format.
func TestReportForms(t *testing.T) {
	dir := savedRuns(t)
	runs := []string{filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")}
	for ending, want := range map[string]string{
		".html": "<!DOCTYPE html>", ".svg": "<?xml", ".png": "\x89PNG", ".md": "LOCALITY ISSUE", ".xml": "<?xml", ".csv": "table,run,TMM", ".txt": "LOCALITY ISSUE",
	} {
		path := filepath.Join(t.TempDir(), "out"+ending)
		code, stdout, stderr := run(t, "", append([]string{"report", "-o", path}, runs...)...)
		raw, err := os.ReadFile(path)
		if code != exitOK || err != nil || !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%s: exit %d, %v, stderr %q, file %.100q", ending, code, err, stderr, raw)
		}
		if want := path + ": 2 runs; charts: timing, percentiles\n"; stdout != want {
			t.Errorf("%s: says %q, want %q", ending, stdout, want)
		}
	}
	for _, f := range reportFormats() {
		code, stdout, stderr := run(t, "", append([]string{"report", "--format", f.name}, runs...)...)
		if code != exitOK || len(stdout) == 0 || stderr != "" {
			t.Errorf("--format %s: exit %d, %d bytes, stderr %q", f.name, code, len(stdout), stderr)
		}
	}
	charts := filepath.Join(t.TempDir(), "charts") + "/"
	code, stdout, _ := run(t, "", append([]string{"report", "--format", "png", "-o", charts}, runs...)...)
	if want := charts + "timing.png\n" + charts + "percentiles.png\n"; code != exitOK || stdout != want {
		t.Errorf("a directory: exit %d, says %q, want %q", code, stdout, want)
	}
	one, err := os.Open(charts + "timing.png")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if m, err := png.Decode(one); err != nil || m.Bounds().Dx() != 1440 {
		t.Errorf("the picture: %v", err)
	}
}

// TestReportExports is the page that a command itself writes.
func TestReportExports(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	code, _, stderr := run(t, "", "load", "--clock", "model", "--seed", "1", "--count", "2000", "--quiet", "--export", at("a.html"), "--export", at("a.svg"), "--export", at("a.png"))
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	raw, err := os.ReadFile(at("a.html"))
	if err != nil || bytes.Count(raw, []byte("<svg")) != 4 || !bytes.Contains(raw, []byte("tbl load --clock model --seed 1")) {
		t.Errorf("%v, %d charts", err, bytes.Count(raw, []byte("<svg")))
	}
	// A command without charts has a page all the same, and refuses pictures
	// before it asks anything.
	if code, _, stderr := run(t, "", "reset", "--clock", "model", "--quiet", "--export", at("r.html")); code != exitOK {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, stdout, stderr := run(t, "", "reset", "--clock", "model", "--export", at("r.svg")); code != exitUsage || stdout != "" || !strings.Contains(stderr, "have no charts") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}

// TestReportRefuses is bad input: one line, exit 2, and nothing lost.
func TestReportRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if code, _, stderr := run(t, "", "whoami", "--clock", "model", "--seed", "1", "--quiet", "--export", at("run.json")); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	whole, err := os.ReadFile(at("run.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"cut.json": string(whole[:len(whole)/2]), "foreign.json": "{}", "kept.svg": "mine"} {
		if err := os.WriteFile(at(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "want the runs"},
		{"{}/none.json", "no such file"},
		{"{}/cut.json", "cut short"},
		{"{}/foreign.json", "no header"},
		{"{}/empty", "no .json files"},
		{"{}/run.json -o {}/out.gif", "want a file ending in .html"},
		{"{}/run.json -o {}/none/out.html", "no such file or directory"},
		{"{}/run.json -o {}/empty", "is a directory"},
		{"{}/run.json -o {}/empty --format html", "is a directory"},
		{"{}/run.json --format gif", "want one of html"},
		{"{}/run.json --chart pie", `no chart "pie": these runs have spread`},
		{"{}/run.json --chart timing -o {}/kept.svg", "no chart"},
		{"{}/run.json --colour red", "unknown flag"},
	} {
		args := append([]string{"report"}, strings.Fields(strings.ReplaceAll(c.args, "{}", dir))...)
		code, stdout, stderr := run(t, "", args...)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("report %s: exit %d, stdout %q, stderr %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
	if raw, err := os.ReadFile(at("kept.svg")); string(raw) != "mine" {
		t.Errorf("an earlier file is now %.40q, %v", raw, err)
	}
	left, err := filepath.Glob(at(".tbl-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// chartTable lists the charts for USAGE.md.
func chartTable() string {
	var b strings.Builder
	b.WriteString("| `--chart` | shows | of runs of |\n|:---|:---|:---|\n")
	for _, k := range report.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", k.Name, k.Shows, strings.Join(k.Commands, "`, `"))
	}
	return b.String()
}

// TestRepeat runs what a report says makes a run again: with the variables and
// the seed of the first one, and without its files.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	save := func(name string, args ...string) *runfile.File {
		t.Helper()
		path := filepath.Join(dir, name)
		if code, _, stderr := run(t, "", append(args, "--quiet", "--export", path)...); code != exitOK {
			t.Fatalf("%s: %s", args, stderr)
		}
		f, err := runfile.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, name := range []string{"TBL_CLICK", "TBL_HANDOFF_DELAY"} {
		t.Setenv(name, "")
	}
	t.Setenv("TBL_WORKERS", "3")
	t.Setenv("TBL_KEY_PREFIX", "not this")
	t.Setenv("TBL_TOKEN", "hush")
	for _, clock := range []string{"wall", "model"} {
		f := save(clock+".json", "load", "--count", "400", "--key-prefix", "a b", "--clock="+clock)
		seed := strconv.FormatUint(f.Header.Seed, 10)
		want := "TBL_TOKEN='***' TBL_WORKERS=3 tbl load --count 400 --key-prefix 'a b' --clock=" + clock + " --seed " + seed
		if got := report.Repeat(f); got != want || seed == "0" {
			t.Fatalf("repeat with\n%s, want\n%s", got, want)
		}
		again := save("again-"+clock+".json", "load", "--count", "400", "--key-prefix", "a b", "--clock="+clock, "--seed", seed)
		if again.Header.Seed != f.Header.Seed {
			t.Errorf("%s: the seed is %d, then %d", clock, f.Header.Seed, again.Header.Seed)
		}
		if clock == "model" && !bytes.Equal(again.Fields["cores"], f.Fields["cores"]) {
			t.Errorf("with seed %s the figures are others", seed)
		}
	}
	t.Setenv("TBL_TOKEN", "")
	for seed, c := range map[string]string{"7": "c1", "8": "c2"} {
		save(c+".json", "load", "--count", "400", "--key-prefix", c, "--clock", "model", "--seed", seed)
	}
	merged := filepath.Join(dir, "merged.json")
	if code, _, stderr := run(t, "", "merge", filepath.Join(dir, "c1.json"), filepath.Join(dir, "c2.json"), "--export", merged); code == exitUsage {
		t.Fatal(stderr)
	}
	_, out, _ := run(t, "", "report", merged)
	for seed, c := range map[string]string{"7": "c1", "8": "c2"} {
		if want := "\nTBL_WORKERS=3 tbl load --count 400 --key-prefix " + c + " --clock model --seed " + seed + "\n"; !strings.Contains(out, want) {
			t.Errorf("the report of a merge lacks %q:\n%s", want, out)
		}
	}
}
