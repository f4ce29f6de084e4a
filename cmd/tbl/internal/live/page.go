package live

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"time"

	"tbl/cmd/tbl/internal/render"
)

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS string

//go:embed page.js
var pageJS string

// document is the page with what it is made of.
type document struct {
	tmpl *template.Template
	// policy is the Content-Security-Policy: the page's own style and script,
	// its own server, nothing else.
	policy string
}

func newDocument() *document {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return &document{
		tmpl: template.Must(template.New("page").Parse(pageHTML)),
		policy: "default-src 'none'; style-src " + hash(styleCSS) + "; script-src " + hash(pageJS) +
			"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// column is one figure of a core in the charts: its name in the JSON, and in
// words.
type column struct {
	Key, Name string
	of        func(*Core) float64
}

// chart is a bar per core, made of one column or of several on top of each
// other.
type chart struct {
	ID, Title, Unit string
	Columns         []column
}

// charts is the table of the charts.
func charts() []chart {
	return []chart{
		{"writes", "Writes per second", "writes per second", []column{
			{"writes_local_per_s", "local", func(c *Core) float64 { return c.WritesLocalPerS }},
			{"writes_remote_per_s", "remote", func(c *Core) float64 { return c.WritesRemotePerS }},
		}},
		{"entries", "Entries stored", "entries", []column{{"entries", "entries", func(c *Core) float64 { return float64(c.Entries) }}}},
		{"bytes", "Bytes stored", "bytes", []column{{"bytes", "bytes", func(c *Core) float64 { return float64(c.Bytes) }}}},
		{"connections", "Connections served", "connections", []column{{"connections", "connections", func(c *Core) float64 { return float64(c.Connections) }}}},
	}
}

// The plot of a chart, in its own units. The script draws by the same numbers,
// which it reads from the page.
const (
	plotWidth  = 480
	plotTop    = 26
	plotBottom = 168
)

// bar is one rectangle.
type bar struct {
	Core                int
	Key, Class          string
	X, Y, Width, Height string
}

// tick is a label under the bars.
type tick struct {
	X    string
	Text string
}

// drawing is a chart with its bars.
type drawing struct {
	chart
	Most  string // the highest bar, in words
	Desc  string
	Bars  []bar
	Ticks []tick
}

func draw(c chart, cores []Core) drawing {
	d := drawing{chart: c}
	most, at := 0.0, 0
	for i := range cores {
		if v := c.sum(&cores[i]); v > most {
			most, at = v, i
		}
	}
	d.Most = number(most)
	d.Desc = "no core has any"
	if most > 0 {
		d.Desc = "the highest is core " + strconv.Itoa(cores[at].Core) + " with " + number(most)
	}
	step := float64(plotWidth) / float64(max(1, len(cores)))
	every := int(math.Ceil(float64(len(cores)) / 16)) // labels that fit
	for i := range cores {
		y := float64(plotBottom)
		for n, col := range c.Columns {
			h := 0.0
			if most > 0 {
				h = col.of(&cores[i]) / most * (plotBottom - plotTop)
			}
			y -= h
			class := "bar"
			if n > 0 {
				class = "bar second"
			}
			d.Bars = append(d.Bars, bar{cores[i].Core, col.Key, class, short(float64(i)*step + step*0.1), short(y), short(step * 0.8), short(h)})
		}
		if i%every == 0 {
			d.Ticks = append(d.Ticks, tick{short((float64(i) + 0.5) * step), strconv.Itoa(cores[i].Core)})
		}
	}
	return d
}

func (c *chart) sum(core *Core) (v float64) {
	for _, col := range c.Columns {
		v += col.of(core)
	}
	return v
}

// short is a coordinate.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// number is a figure in words: whole from 10 on.
func number(v float64) string {
	if v != 0 && v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return render.Int(int64(math.Round(v)))
}

// span is a length of time for somebody who watches a clock.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// view is what the template shows.
type view struct {
	Title, Window, Uptime string
	Style                 template.CSS
	Script                template.JS
	Totals                []Fact
	Share                 share
	Charts                []drawing
	Rows                  []row
	Facts, Faults         []Fact
	Width, Top, Bottom    int
	Events                string
}

// share is how many of the writes stayed at their core.
type share struct {
	Text  string
	Width string // of the local part, of plotWidth
	Some  bool   // there were writes
}

// row is a core in the table.
type row struct {
	Core  int
	Cells []cell
}

type cell struct{ Key, Text string }

// columns is the table of the table: every figure of a core.
func columns() []column {
	whole := func(of func(*Core) int64) func(*Core) float64 {
		return func(c *Core) float64 { return float64(of(c)) }
	}
	return []column{
		{"writes_local_per_s", "Local writes/s", func(c *Core) float64 { return c.WritesLocalPerS }},
		{"writes_remote_per_s", "Remote writes/s", func(c *Core) float64 { return c.WritesRemotePerS }},
		{"writes_local", "Local writes", whole(func(c *Core) int64 { return c.WritesLocal })},
		{"writes_remote", "Remote writes", whole(func(c *Core) int64 { return c.WritesRemote })},
		{"entries", "Entries", whole(func(c *Core) int64 { return c.Entries })},
		{"bytes", "Bytes", whole(func(c *Core) int64 { return c.Bytes })},
		{"subtables", "Subtables", whole(func(c *Core) int64 { return c.Subtables })},
		{"expired", "Expired", whole(func(c *Core) int64 { return c.Expired })},
		{"connections", "Connections", whole(func(c *Core) int64 { return c.Connections })},
	}
}

// Columns are the headings of the table.
func (v *view) Columns() []column { return columns() }

func (p *Page) page(w http.ResponseWriter) {
	s := p.read()
	v := view{
		Title: p.cfg.Title, Window: span(time.Duration(s.WindowNS)), Uptime: span(time.Duration(s.UptimeNS)),
		Style: template.CSS(styleCSS), Script: template.JS(pageJS),
		Facts: p.cfg.Facts, Faults: p.cfg.Faults, Width: plotWidth, Top: plotTop, Bottom: plotBottom, Events: PathEvents,
	}
	v.Totals, v.Share = totals(s)
	for _, c := range charts() {
		v.Charts = append(v.Charts, draw(c, s.Cores))
	}
	for i := range s.Cores {
		r := row{Core: s.Cores[i].Core}
		for _, col := range columns() {
			r.Cells = append(r.Cells, cell{col.Key, number(col.of(&s.Cores[i]))})
		}
		v.Rows = append(v.Rows, r)
	}
	var out bytes.Buffer
	if err := p.doc.tmpl.Execute(&out, &v); err != nil {
		http.Error(w, "the status page can't be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.doc.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	// A client that has gone needs no page.
	_, _ = w.Write(out.Bytes())
}

// totals sums the cores up.
func totals(s *State) ([]Fact, share) {
	var local, remote, rate, entries, size, conns float64
	var localRate float64
	for i := range s.Cores {
		c := &s.Cores[i]
		local += float64(c.WritesLocal)
		remote += float64(c.WritesRemote)
		localRate += c.WritesLocalPerS
		rate += c.WritesLocalPerS + c.WritesRemotePerS
		entries += float64(c.Entries)
		size += float64(c.Bytes)
		conns += float64(c.Connections)
	}
	out := []Fact{{"Writes per second", number(rate)}, {"Entries", number(entries)}, {"Bytes", number(size)}}
	if s.Server != nil {
		out = append(out, Fact{"Open connections", render.Int(s.Server.Open)}, Fact{"Requests", render.Int(s.Server.Requests)})
	} else {
		out = append(out, Fact{"Connections", number(conns)})
	}
	sh := share{Text: "No writes yet.", Width: "0"}
	part := func(of, all float64, when string) {
		// Only all of them are 100 %.
		percent := math.Floor(of/all*1000) / 10
		text := strconv.FormatFloat(percent, 'f', 1, 64)
		sh = share{Some: true, Width: short(of / all * plotWidth), Text: text + " % of the writes " + when + " were local, " +
			strconv.FormatFloat(100-percent, 'f', 1, 64) + " % went to other cores' storage."}
	}
	switch {
	case rate > 0:
		part(localRate, rate, "lately")
	case local+remote > 0:
		part(local, local+remote, "since the start")
	}
	return out, sh
}
