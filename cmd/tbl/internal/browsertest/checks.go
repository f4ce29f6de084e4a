package browsertest

import (
	_ "embed"
	"fmt"
)

//go:embed contrast.js
var contrastJS string

//go:embed marks.js
var marksJS string

// Low is a text whose contrast with what lies behind it is too low.
type Low struct {
	Text       string  `json:"text"`
	Element    string  `json:"element"`
	Color      string  `json:"color"`
	Background string  `json:"background"`
	Ratio      float64 `json:"ratio"` // from 1 to 21
	Want       float64 `json:"want"`  // 4.5, or 3 for large text
}

// String says it in a line.
func (l Low) String() string {
	return fmt.Sprintf("%q in %s: %s on %s is %.2f:1, want %v:1", l.Text, l.Element, l.Color, l.Background, l.Ratio, l.Want)
}

// Contrast measures every visible text of the page as it is shown now against
// WCAG 2.2's level AA (success criterion 1.4.3) and returns how many texts it
// looked at and those that fail.
func (p *Page) Contrast() (texts int, low []Low) {
	p.t.Helper()
	var got struct {
		Texts int   `json:"texts"`
		Low   []Low `json:"low"`
	}
	p.Eval(contrastJS, &got)
	return got.Texts, got.Low
}

// Chart is what a chart shows.
type Chart struct {
	Name  string `json:"name"`  // its accessible name; empty where it has none
	Marks int    `json:"marks"` // shapes of some size: bars, points, lines
	Texts int    `json:"texts"` // labels with something in them
}

// Charts looks at every element of a CSS selector.
func (p *Page) Charts(selector string) []Chart {
	p.t.Helper()
	var got []Chart
	p.Eval(fmt.Sprintf("(%s)(%q)", marksJS, selector), &got)
	return got
}

// Healthy fails the test where the page asked for anything elsewhere,
// complained, or has a text of too low contrast in light or in dark.
func (p *Page) Healthy() {
	p.t.Helper()
	for _, u := range p.Foreign() {
		p.t.Errorf("%s asks for %s", p.url, u)
	}
	for _, dark := range []bool{false, true} {
		p.Dark(dark)
		texts, low := p.Contrast()
		if texts == 0 {
			p.t.Errorf("%s shows no text (dark: %v)", p.url, dark)
		}
		for _, l := range low {
			p.t.Errorf("dark %v: %s", dark, l)
		}
	}
	for _, e := range p.Errors() {
		p.t.Errorf("%s: %s", p.url, e)
	}
}
