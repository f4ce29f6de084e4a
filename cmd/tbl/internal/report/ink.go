package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The inks: what a picture on white is drawn in. In the page each is a variable
// of the style sheet, with another value on a dark ground.
//
// The colours of the series are Okabe and Ito's ("Color Universal Design",
// 2008), told apart by people with any of the common forms of colour blindness;
// the purple is darkened, and on dark the blue is their sky blue, so that each
// has a contrast of 3:1 with its ground (WCAG 2.2, 1.4.11).
var (
	inkText  = color.NRGBA{0x1A, 0x1A, 0x1A, 0xFF}
	inkMuted = color.NRGBA{0x59, 0x59, 0x59, 0xFF}
	inkGrid  = color.NRGBA{0xE2, 0xE2, 0xE2, 0xFF}
)

// Ink is a colour by its name in the style sheet, on a light and on a dark
// ground.
type Ink struct {
	Name        string
	Light, Dark color.NRGBA
}

// Inks are all that charts are drawn with; the series come first.
func Inks() []Ink {
	return []Ink{
		{"s1", color.NRGBA{0x00, 0x72, 0xB2, 0xFF}, color.NRGBA{0x56, 0xB4, 0xE9, 0xFF}},
		{"s2", color.NRGBA{0xD5, 0x5E, 0x00, 0xFF}, color.NRGBA{0xE6, 0x7A, 0x22, 0xFF}},
		{"s3", color.NRGBA{0x00, 0x9E, 0x73, 0xFF}, color.NRGBA{0x1F, 0xB9, 0x8C, 0xFF}},
		{"s4", color.NRGBA{0xB4, 0x5A, 0x8C, 0xFF}, color.NRGBA{0xCC, 0x79, 0xA7, 0xFF}},
		{"text", inkText, color.NRGBA{0xEC, 0xEC, 0xEC, 0xFF}},
		{"muted", inkMuted, color.NRGBA{0xB4, 0xB4, 0xB4, 0xFF}},
		{"grid", inkGrid, color.NRGBA{0x3A, 0x3A, 0x3A, 0xFF}},
	}
}

const seriesInks = 4

// seriesInk is the colour of series i; from the fifth on they repeat, and
// dashes and glyphs tell them apart.
func seriesInk(i int) color.NRGBA { return Inks()[i%seriesInks].Light }

// faint is a colour to lay over others.
func faint(c color.NRGBA, alpha float64) color.NRGBA {
	c.A = uint8(alpha * 255)
	return c
}

// seriesLine is the line of series i.
func seriesLine(i int) draw.LineStyle {
	dashes := [...][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}
	// Within one colour the dash differs, and neighbours differ in both.
	return draw.LineStyle{Color: seriesInk(i), Width: 1.7, Dashes: dashes[(i+i/seriesInks)%len(dashes)]}
}

// seriesGlyph is the point of series i.
func seriesGlyph(i int) draw.GlyphStyle {
	shapes := [...]draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}}
	return draw.GlyphStyle{Color: seriesInk(i), Radius: 4, Shape: shapes[i%len(shapes)]}
}

// markBegin and markEnd are the colours of empty paths that stand in the SVG
// where a group of marks begins and ends; nothing is drawn in them.
var (
	markBegin = color.NRGBA{0x01, 0x02, 0x03, 0xFF}
	markEnd   = color.NRGBA{0x01, 0x02, 0x04, 0xFF}
)

// Compiled with the first picture: most commands draw none.
var (
	svgStyle = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s*style="([^"]*)"`) })
	svgColor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#[0-9A-F]{6}`) })
	svgText  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(<text [^>]*font-size:([0-9.]+)px[^>]*)>([^<]*)</text>`)
	})
	svgHead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^.*?<svg width="([0-9.]+)pt" height="([0-9.]+)pt"[^>]*>`)
	})
)

// Hex is a colour as a style sheet writes it.
func Hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// variable is the style sheet's name for a colour. Colours that let others
// through come out of the library off by one.
func variable(c string) string {
	var r, g, b int
	if _, err := fmt.Sscanf(c, "#%02X%02X%02X", &r, &g, &b); err != nil {
		return c
	}
	near := func(have int, want uint8) bool { return have-int(want) <= 1 && int(want)-have <= 1 }
	for _, k := range Inks() {
		if near(r, k.Light.R) && near(g, k.Light.G) && near(b, k.Light.B) {
			return "var(--" + k.Name + ")"
		}
	}
	return c
}

// finishSVG turns the library's SVG into ours: with a name and a description,
// a font of the reader's, groups around the marks, and with page the page's
// colours instead of fixed ones.
func finishSVG(v *vgsvg.Canvas, charts []*Chart, id string, page bool) (string, error) {
	var raw bytes.Buffer
	if _, err := v.WriteTo(&raw); err != nil {
		return "", fmt.Errorf("write the chart: %w", err)
	}
	s := raw.String()
	head := svgHead().FindStringSubmatch(s)
	if head == nil {
		return "", fmt.Errorf("write the chart: the library's SVG has another head than expected")
	}
	s = s[len(head[0]):]
	begin, end := `<path d="" style="fill:`+Hex(markBegin)+`" />`, `<path d="" style="fill:`+Hex(markEnd)+`" />`
	s = strings.NewReplacer(begin+"\n"+end+"\n", "", begin, `<g class="marks">`, end, `</g>`).Replace(s)
	// Letters in attributes' quotes are the library's own: those of labels are
	// escaped.
	s = svgStyle().ReplaceAllStringFunc(s, func(attr string) string {
		var keep []string
		for _, d := range strings.Split(svgStyle().FindStringSubmatch(attr)[1], ";") {
			name, _, _ := strings.Cut(d, ":")
			if name == "font-family" || strings.HasPrefix(name, "font-") && name != "font-size" {
				continue
			}
			if page {
				d = svgColor().ReplaceAllStringFunc(d, variable)
			}
			keep = append(keep, d)
		}
		return ` style="` + strings.Join(keep, ";") + `"`
	})
	// The layout counts with one font's widths; another font is fitted to them.
	s = svgText().ReplaceAllStringFunc(s, func(el string) string {
		m := svgText().FindStringSubmatch(el)
		size, err := strconv.ParseFloat(m[2], 64)
		if err != nil || strings.TrimSpace(m[3]) == "" {
			return el
		}
		w := sans(vg.Length(size), nil).Width(html.UnescapeString(m[3]))
		return fmt.Sprintf(`%s textLength="%.4g" lengthAdjust="spacingAndGlyphs">%s</text>`, m[1], w.Points(), m[3])
	})
	var title, desc []string
	for _, c := range charts {
		title, desc = append(title, c.Title), append(desc, c.Desc)
	}
	labelled, titleID, descID := "", "", ""
	if id != "" {
		labelled = fmt.Sprintf(` aria-labelledby="%s-title" aria-describedby="%s-desc"`, id, id)
		titleID, descID = ` id="`+id+`-title"`, ` id="`+id+`-desc"`
	}
	size := ""
	if !page {
		size = fmt.Sprintf(` width="%s" height="%s"`, head[1], head[2])
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s"%s role="img"%s font-family="'Liberation Sans', Arial, Helvetica, sans-serif">`+
		"\n<title%s>%s</title>\n<desc%s>%s</desc>%s", head[1], head[2], size, labelled,
		titleID, html.EscapeString(strings.Join(title, "; ")), descID, html.EscapeString(strings.Join(desc, " ")), strings.TrimSpace(s)), nil
}
