package verdict

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tbl/timingstats"
)

// Figures are all numbers of a report that an assertion can name, under the
// names that the JSON gives them.
type Figures struct {
	// All are the figures of the whole ("rate_per_s", "errors_share").
	All map[string]float64
	// Cores are those of each core ("p99_clicks").
	Cores map[timingstats.CoreID]map[string]float64
}

// Assertion is a threshold of the user's own: FIGURE OP VALUE.
//
// FIGURE is a name as in the JSON; its unit may be left out ("p99" for
// p99_clicks, "rate" for rate_per_s, "slow" with a per cent value for
// slow_share) or be another one of the same kind ("p99_ms" for p99_ns). Alone it
// means the figure of the whole, and every core where only cores have it;
// "cores.2.p99" is that of one core, "cores.*.p99" that of every core; what
// stands in a list goes by its name there, or its place ("devices.a.restarts",
// "runs.0.elapsed_ns").
// OP is one of < <= > >= == !=. VALUE is a number, with "%" for a share, or a
// time with its unit (20ms). Commas may part its thousands
// (4,400), not those of a share.
type Assertion struct {
	text  string
	scope string // "": whole or every core; "*": every core; else a core
	name  string
	op    string
	value float64
	// percent: the value was a share; inNS: it was a time, in nanoseconds.
	percent, inNS bool
	warn          bool
}

// operators in the order in which they are looked for.
var operators = [...]string{"<=", ">=", "==", "!=", "<", ">"}

// ParseAssertion reads an assertion. warn makes it one that warns only.
func ParseAssertion(s string, warn bool) (Assertion, error) {
	a := Assertion{text: strings.TrimSpace(s), warn: warn}
	at := -1
	for _, op := range operators {
		if i := strings.Index(s, op); i >= 0 && (at < 0 || i < at) {
			at, a.op = i, op
		}
	}
	if at < 0 {
		return a, fmt.Errorf("assertion %q: want FIGURE OP VALUE with one of %s", s, strings.Join(operators[:], " "))
	}
	name, value := strings.TrimSpace(s[:at]), strings.TrimSpace(s[at+len(a.op):])
	if rest, ok := strings.CutPrefix(name, "cores."); ok {
		core, figure, ok := strings.Cut(rest, ".")
		if !ok {
			return a, fmt.Errorf("assertion %q: want cores.N.FIGURE or cores.*.FIGURE", s)
		}
		if core != "*" {
			var id timingstats.CoreID
			if err := id.UnmarshalText([]byte(core)); err != nil {
				return a, fmt.Errorf("assertion %q: %w", s, err)
			}
			core = id.String()
		}
		a.scope, name = core, figure
	}
	if name == "" || strings.ContainsAny(name, " \t<>=!") {
		return a, fmt.Errorf("assertion %q: no figure named before %s", s, a.op)
	}
	a.name = name
	var err error
	if a.value, err = a.parseValue(value); err != nil {
		return a, fmt.Errorf("assertion %q: %w", s, err)
	}
	return a, nil
}

// timeUnits are the units of times in nanoseconds, longest names first.
var timeUnits = [...]struct {
	suffix string
	ns     float64
}{{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"min", 60e9}, {"s", 1e9}}

// thousands is a number whose commas part its thousands. Any other comma is
// somebody's decimal sign: to leave it out would make the threshold ten times as
// large, or more. So is that of a percentage, of which nobody asserts thousands.
const thousands = `^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$`

func (a *Assertion) parseValue(s string) (float64, error) {
	number, scale := s, 1.0
	if n, ok := strings.CutSuffix(s, "%"); ok {
		number, scale, a.percent = n, 0.01, true
	} else {
		for _, u := range timeUnits {
			if n, ok := strings.CutSuffix(s, u.suffix); ok {
				number, scale, a.inNS = n, u.ns, true
				break
			}
		}
	}
	number = strings.TrimSpace(number)
	if strings.Contains(number, ",") {
		if a.percent || !regexp.MustCompile(thousands).MatchString(number) {
			return 0, fmt.Errorf("value %q: write a fraction with a point, 0.5; commas part thousands only, as in 4,400, and none stand in a percentage", s)
		}
		number = strings.ReplaceAll(number, ",", "")
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("value %q is no number", s)
	}
	return f * scale, nil
}

// Figure is the name of the figure, without that of a core.
func (a Assertion) Figure() string { return a.name }

// String is the assertion as it was written.
func (a Assertion) String() string { return a.text }

// Judge holds the assertion against the figures. A figure that is absent fails,
// and so does one that is not a number.
func (a Assertion) Judge(f Figures) Verdict {
	v := Verdict{Name: Assert, Of: a.text, State: Pass}
	bad := Fail
	if a.warn {
		bad = Warn
	}
	fail := func(format string, args ...any) Verdict {
		v.State, v.Line = bad, fmt.Sprintf("ASSERT FAILED: %s: %s", a.text, fmt.Sprintf(format, args...))
		return v
	}
	type hit struct {
		where string
		value float64
	}
	var hits []hit
	var ambiguous error
	look := func(where string, m map[string]float64) {
		x, ok, err := a.find(m)
		if err != nil {
			ambiguous = err
		}
		if ok {
			hits = append(hits, hit{where, x})
		}
	}
	if a.scope == "" {
		look("", f.All)
	}
	absent := []string{}
	if len(hits) == 0 && ambiguous == nil {
		for _, id := range slices.SortedFunc(maps.Keys(f.Cores), timingstats.CoreID.Compare) {
			if a.scope != "" && a.scope != "*" && a.scope != id.String() {
				continue
			}
			before := len(hits)
			look("TMM "+id.String(), f.Cores[id])
			if len(hits) == before {
				absent = append(absent, "TMM "+id.String())
			}
		}
	}
	switch {
	case ambiguous != nil:
		return fail("%v", ambiguous)
	case len(hits) == 0:
		return fail("there is no such figure")
	case len(absent) > 0:
		return fail("there is no such figure on %s", strings.Join(absent, ", "))
	}
	var broken []string
	v.Figures = map[string]float64{}
	worst := hits[0]
	for _, h := range hits {
		if math.IsNaN(h.value) || !a.holds(h.value) {
			broken = append(broken, strings.TrimSpace(h.where+" "+a.show(h.value)))
		}
		if a.worse(h.value, worst.value) {
			worst = h
		}
	}
	v.Figures[a.name] = worst.value
	if len(broken) > 0 {
		return fail("it is %s", strings.Join(broken, ", "))
	}
	if len(hits) == 1 {
		v.Line = fmt.Sprintf("OK: %s (it is %s)", a.text, a.show(worst.value))
		return v
	}
	v.Line = fmt.Sprintf("OK: %s on all %d cores", a.text, len(hits))
	if word := a.extreme(); word != "" {
		v.Line += fmt.Sprintf(" (%s %s on %s)", word, a.show(worst.value), worst.where)
	}
	return v
}

// worse says that x is nearer to breaking the assertion than y, or breaks it
// more.
func (a Assertion) worse(x, y float64) bool {
	switch a.op {
	case "<", "<=":
		return x > y
	case ">", ">=":
		return x < y
	case "==":
		return math.Abs(x-a.value) > math.Abs(y-a.value)
	}
	return math.Abs(x-a.value) < math.Abs(y-a.value)
}

// extreme is the word for the worst of several figures that hold; empty when
// there is nothing to say about it.
func (a Assertion) extreme() string {
	switch a.op {
	case "<", "<=":
		return "at most"
	case ">", ">=":
		return "at least"
	case "!=":
		return "nearest"
	}
	return ""
}

func (a Assertion) holds(x float64) bool {
	switch a.op {
	case "<":
		return x < a.value
	case "<=":
		return x <= a.value
	case ">":
		return x > a.value
	case ">=":
		return x >= a.value
	case "==":
		return x == a.value
	}
	return x != a.value
}

func (a Assertion) show(x float64) string {
	switch {
	case a.percent:
		return strconv.FormatFloat(x*100, 'g', 4, 64) + " %"
	case a.inNS:
		return duration(x)
	case x == math.Trunc(x) && math.Abs(x) < 1e15:
		return Thousands(int64(x))
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// unitSuffixes are the units that a figure's name may end in and that an
// assertion may leave out, with what one of it is in the base unit of its kind.
var unitSuffixes = [...]struct {
	suffix, kind string
	base         float64
}{
	{"_clicks", "clicks", 1}, {"_ns", "time", 1}, {"_us", "time", 1e3}, {"_ms", "time", 1e6},
	{"_per_s", "rate", 1}, {"_share", "share", 1}, {"_bytes", "bytes", 1}, {"_s", "time", 1e9},
}

// find looks the assertion's figure up and converts it to the unit of the
// assertion's value.
func (a Assertion) find(m map[string]float64) (float64, bool, error) {
	if a.percent {
		name := a.name
		if !strings.HasSuffix(name, "_share") {
			name += "_share"
		}
		x, ok := m[name]
		return x, ok, nil
	}
	stem, kind, base := splitUnit(a.name)
	wantBase := base
	if a.inNS {
		if kind == "" {
			kind = "time"
		}
		if kind != "time" {
			return 0, false, errors.New("a time is held against a figure that isn't one")
		}
		wantBase = 1
	} else if x, ok := m[a.name]; ok {
		return x, true, nil
	}
	// Other spellings: the same stem with a unit of the same kind, or of any
	// kind when the assertion names none.
	var found []string
	var value float64
	bare := false // a time was meant without a unit
	for _, u := range unitSuffixes {
		if kind != "" && u.kind != kind || kind == "" && u.kind == "share" {
			continue
		}
		if x, ok := m[stem+u.suffix]; ok {
			value = x
			if kind == "time" {
				value = x * u.base / wantBase
			}
			found = append(found, stem+u.suffix)
			if kind == "" && u.kind == "time" {
				bare = true
			}
		}
	}
	if bare && len(found) == 1 {
		return 0, false, fmt.Errorf("%s is a time: say in which unit, as in %s_ms%s20 or %s%s20ms", found[0], stem, a.op, stem, a.op)
	}
	switch len(found) {
	case 0:
		return 0, false, nil
	case 1:
		return value, true, nil
	}
	return 0, false, fmt.Errorf("say which of %s is meant", strings.Join(found, ", "))
}

// splitUnit parts a figure's name from its unit; kind is "" without one.
func splitUnit(name string) (stem, kind string, base float64) {
	for _, u := range unitSuffixes {
		if s, ok := strings.CutSuffix(name, u.suffix); ok && s != "" {
			return s, u.kind, u.base
		}
	}
	return name, "", 1
}
