// Package logreport is the report of sampled logs: it connects the reader of
// logs to recorders and verdicts, device by device.
package logreport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Options say what to report. The zero value reports the last run of every
// device with the default threshold.
type Options struct {
	// Read says what is read: host, times, run, lines. Its collectors are set
	// by Run.
	Read logparse.Options
	// Threshold in clicks, 0: the default. AutoThreshold takes it from the
	// two populations of each device instead, where there are two.
	Threshold     int64
	AutoThreshold bool
	Rule          verdict.Rule
	// Cores is the number of cores that must have written, 0: not known.
	Cores int
	// Slow keeps that many of the slowest samples at or above the threshold.
	Slow int
	// GroupBy also summarises by "subtable", "host" or "minute"; empty: not.
	GroupBy string
	// Probes reports PROBE lines, and only these, as ownership per name.
	Probes bool
	// ExpectOwner is the core that must own every probed name; nil: any.
	ExpectOwner *timingstats.CoreID
	// OnReport is called with the report so far while a live input is read,
	// about once a second.
	OnReport func(*Report)
}

// Report is the result. With one device its fields stand on top as well.
type Report struct {
	logparse.Counts
	// Word is the overall verdict's word: OK, LOCALITY ISSUE, INCOMPLETE, or
	// with Probes that of the worst name.
	Word              string               `json:"verdict"`
	SampleRate        string               `json:"sample_rate,omitempty"`
	Runs              int                  `json:"runs"`
	Missing           []Number             `json:"missing"`
	Remote            []Number             `json:"remote"`
	Mixed             []Number             `json:"mixed"`
	Local             []Number             `json:"local"`
	Cores             Cores                `json:"cores,omitempty"`
	Devices           []Device             `json:"devices"`
	Names             []Name               `json:"names,omitempty"`
	Inputs            []logparse.InputInfo `json:"inputs"`
	MalformedExamples []string             `json:"malformed_examples,omitempty"`
	Warnings          []string             `json:"warnings,omitempty"`
	// Verdicts are those of every device, or name.
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// Device is the report of one device.
type Device struct {
	Name            string             `json:"device"`
	Word            string             `json:"verdict"`
	SampleRate      string             `json:"sample_rate,omitempty"`
	Runs            int                `json:"runs"`
	Run             int                `json:"run"` // the one that was judged, 0: all
	LastRuns        []logparse.RunInfo `json:"last_runs,omitempty"`
	Restarts        int                `json:"restarts"`
	ThresholdClicks int64              `json:"threshold_clicks"`
	ThresholdRule   string             `json:"threshold_rule"` // fixed, or auto
	Missing         []Number           `json:"missing"`
	Remote          []Number           `json:"remote"`
	Mixed           []Number           `json:"mixed"`
	Local           []Number           `json:"local"`
	Cores           Cores              `json:"cores"`
	Samples         int64              `json:"n"`
	Fast            int64              `json:"fast"`
	Slow            int64              `json:"slow"`
	Found           []logparse.Name    `json:"names,omitempty"`
	Slowest         []SlowSample       `json:"slowest,omitempty"`
	Histograms      []CoreHistogram    `json:"histograms,omitempty"`
	GroupBy         string             `json:"group_by,omitempty"`
	Groups          []Group            `json:"groups,omitempty"`
	Counts          logparse.Counts    `json:"counts"`
	Verdict         verdict.Verdict    `json:"verdict_detail"`
	Warnings        []string           `json:"warnings,omitempty"`
}

// CoreHistogram is the distribution of one core's clicks.
type CoreHistogram struct {
	Core timingstats.CoreID    `json:"core"`
	Hist timingstats.Histogram `json:"hist"`
}

// Group is a part of the samples: those of one subtable, host or minute.
type Group struct {
	Name  string                    `json:"name"`
	Cores []timingstats.CoreSummary `json:"cores"`
}

// maxGroups bounds the groups of a device: a key in the place of a subtable
// must not fill the memory.
const maxGroups = 10_000

// GroupKinds are the values of Options.GroupBy.
func GroupKinds() []string { return []string{"subtable", "host", "minute"} }

// Cores are the judged cores, in order; a JSON object keyed by core.
type Cores []verdict.CoreLocality

// MarshalJSON writes the object with its keys in the cores' order.
func (c Cores) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	for i, core := range c {
		raw, err := json.Marshal(core)
		if err != nil {
			return nil, fmt.Errorf("core %s: %w", core.Core, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", core.Core.String(), raw)
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cores) UnmarshalJSON(raw []byte) error {
	var byID map[string]verdict.CoreLocality
	if err := json.Unmarshal(raw, &byID); err != nil {
		return fmt.Errorf("cores: %w", err)
	}
	*c = slices.SortedFunc(maps.Values(byID), func(a, b verdict.CoreLocality) int { return a.Core.Compare(b.Core) })
	return nil
}

// Number is a core in a list: a JSON number, or "1/0" on a chassis.
type Number timingstats.CoreID

// MarshalJSON writes it.
func (n Number) MarshalJSON() ([]byte, error) {
	if n.Slot == 0 {
		return json.Marshal(n.Core)
	}
	return json.Marshal(timingstats.CoreID(n).String())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Number) UnmarshalJSON(raw []byte) error {
	return (*timingstats.CoreID)(n).UnmarshalText(bytes.Trim(raw, `"`))
}

func numbers(cores []timingstats.CoreID) []Number {
	out := make([]Number, len(cores))
	for i, c := range cores {
		out[i] = Number(c)
	}
	return out
}

// Name is what PROBE lines say about the owner of one name on one device.
type Name struct {
	Device string `json:"device"`
	// ThresholdRule is fixed, or auto: then the threshold is that of all timed
	// writes of the device.
	ThresholdRule string `json:"threshold_rule"`
	verdict.OwnershipReport
}

// SlowSample is one sample at or above the threshold.
type SlowSample struct {
	Core     timingstats.CoreID `json:"core"`
	Clicks   int64              `json:"clicks"`
	Subtable string             `json:"subtable"`
	Key      string             `json:"key"`
	Writes   int64              `json:"writes"`
	Time     string             `json:"time,omitempty"`
}

// Run reads inputs and reports. With an error the report, when there is one,
// holds what was read until then.
func Run(ctx context.Context, inputs []input.Input, opt Options) (*Report, error) {
	if opt.Threshold == 0 {
		opt.Threshold = timingstats.DefaultThreshold
	}
	read := opt.Read
	if opt.Probes {
		read.NewProbes = func() logparse.ProbeCollector { return &probes{} }
	} else {
		read.NewSamples = func() logparse.SampleCollector { return newSamples(opt) }
	}
	if opt.OnReport != nil {
		read.Snapshot = func(r *logparse.Result) { opt.OnReport(build(r, opt)) }
	}
	res, err := logparse.Scan(ctx, inputs, read)
	if res == nil {
		return nil, err
	}
	return build(res, opt), err
}

func build(res *logparse.Result, opt Options) *Report {
	r := &Report{
		Counts: res.Counts, Inputs: res.Inputs, MalformedExamples: res.Examples, Warnings: slices.Clone(res.Warnings), Devices: []Device{},
		Missing: []Number{}, Remote: []Number{}, Mixed: []Number{}, Local: []Number{},
	}
	if opt.Probes {
		buildProbes(r, res, opt)
	} else {
		buildSamples(r, res, opt)
	}
	if res.Broken != nil {
		name := verdict.Locality
		if opt.Probes {
			name = verdict.Ownership
		}
		r.Verdicts = append(r.Verdicts, verdict.Verdict{Name: name, State: verdict.Incomplete,
			Line: fmt.Sprintf("INCOMPLETE: the log is read in part only: %v", res.Broken)}.About("log command"))
	}
	if worst, ok := verdict.Worst(r.Verdicts, false); ok {
		r.Word = worst.Word()
	}
	return r
}

func buildSamples(r *Report, res *logparse.Result, opt Options) {
	for _, d := range res.Devices {
		if len(d.Cores) == 0 && len(res.Devices) > 1 && d.Samples == nil {
			// A host that only wrote other lines is no device of ours.
			continue
		}
		r.Devices = append(r.Devices, device(d, opt))
	}
	for _, d := range r.Devices {
		v := d.Verdict
		if len(r.Devices) > 1 {
			v.Line += " (device " + d.Name + ")"
			v = v.About("device " + d.Name)
		}
		r.Verdicts = append(r.Verdicts, v)
	}
	if len(r.Devices) == 1 {
		d := r.Devices[0]
		r.SampleRate, r.Runs, r.Cores = d.SampleRate, d.Runs, d.Cores
		r.Missing, r.Remote, r.Mixed, r.Local = d.Missing, d.Remote, d.Mixed, d.Local
	}
	if len(r.Devices) == 0 {
		r.Verdicts = []verdict.Verdict{verdict.JudgeLocality(nil, verdict.LocalityOptions{Cores: opt.Cores}).Verdict}
	}
}

// thresholdOf is the threshold for the timed writes of one device, how it was
// found, and the doubt about it, if there is one.
func (opt *Options) thresholdOf(set *timingstats.Set) (clicks int64, rule string, doubts []string) {
	if !opt.AutoThreshold {
		return opt.Threshold, "fixed", nil
	}
	if v := set.Valley(); v.Found {
		return v.ThresholdClicks, "auto", nil
	}
	return opt.Threshold, "fixed", []string{fmt.Sprintf("the timings are one population, so no threshold follows from them: %d clicks is used", opt.Threshold)}
}

func device(d *logparse.Device, opt Options) Device {
	out := Device{
		Name: d.Name, Runs: d.Runs, Run: d.Kept, LastRuns: d.LastRuns, Restarts: d.Restarts, Found: d.Names, Counts: d.Counts,
	}
	s, _ := d.Samples.(*samples)
	if s == nil {
		s = newSamples(opt)
	}
	var doubts []string
	out.ThresholdClicks, out.ThresholdRule, doubts = opt.thresholdOf(&s.set)
	out.Warnings = append(out.Warnings, doubts...)
	var known []timingstats.CoreID
	for _, c := range d.Cores {
		known = append(known, timingstats.CoreID{Slot: c.Slot, Core: c.Core})
	}
	names := map[timingstats.CoreID]verdict.NameShape{}
	for id, c := range s.cores {
		names[id] = c.names
	}
	j := verdict.JudgeLocality(s.set.Summaries(out.ThresholdClicks), verdict.LocalityOptions{Rule: opt.Rule, Cores: opt.Cores, Known: known, Names: names})
	out.Cores, out.Missing, out.Verdict, out.Word = j.Cores, numbers(j.Missing), j.Verdict, j.Word()
	out.Warnings = append(out.Warnings, j.Warnings...)
	states := map[verdict.CoreState][]timingstats.CoreID{}
	for _, c := range j.Cores {
		states[c.State] = append(states[c.State], c.Core)
		out.Samples, out.Fast, out.Slow = out.Samples+c.N, out.Fast+c.Fast, out.Slow+c.Slow
	}
	out.Remote, out.Mixed, out.Local = numbers(states[verdict.Remote]), numbers(states[verdict.Mixed]), numbers(states[verdict.Local])
	var rates []string
	for _, n := range s.set.Rates() {
		rates = append(rates, fmt.Sprintf("1/%d", n))
	}
	out.SampleRate = strings.Join(rates, ", ")
	if len(rates) > 1 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("sampling rates are mixed (%s): shares are weighted by rate", out.SampleRate))
	}
	if d.Runs > 1 && d.Kept > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d runs seen, run %d is judged: --run N or --run all for others", d.Runs, d.Kept))
	}
	if d.Runs > 1 && d.Kept > 0 {
		out.Verdict.Line += fmt.Sprintf("; run %d of %d", d.Kept, d.Runs)
		if at := overlap(d.LastRuns); at > 0 && opt.Read.Run == logparse.RunLast {
			out.Verdict = verdict.Verdict{Name: verdict.Locality, State: verdict.Incomplete, Line: fmt.Sprintf(
				"INCOMPLETE: run %d began before run %d had ended: these are not one log of one device, and which run is the last can't be told", at, at-1)}
			out.Verdict.Causes = []string{
				"Give files that cover the same time one by one, or choose with --run.",
				"Simulated runs all begin at the same date, and --log appends: give each a file of its own, or choose with --run.",
			}
			out.Word = out.Verdict.Word()
		}
	}
	for _, n := range d.Names {
		if n.Warning {
			out.Warnings = append(out.Warnings, fmt.Sprintf("TMM %s found no local subtable after %d tries and uses %s",
				timingstats.CoreID{Slot: n.Slot, Core: n.Core}, n.Tries, n.Subtable))
		}
	}
	for _, x := range s.slowest { // slowest first
		if x.Clicks >= out.ThresholdClicks {
			out.Slowest = append(out.Slowest, x)
		}
	}
	for _, id := range s.set.IDs() {
		h, err := s.set.Core(id).Distribution().Histogram()
		if err != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("TMM %s: %v", id, err))
			continue
		}
		out.Histograms = append(out.Histograms, CoreHistogram{id, h})
	}
	out.GroupBy = s.groupBy
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		out.Groups = append(out.Groups, Group{name, s.groups[name].Summaries(out.ThresholdClicks)})
	}
	if s.ungrouped > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("more than %d groups: %d samples are in none of them, though in the cores' figures", maxGroups, s.ungrouped))
	}
	return out
}

// overlap is the number of the first run that began clearly before the one
// before it had ended; 0: none. Within a log that can't be.
func overlap(runs []logparse.RunInfo) int {
	const slack = 2 * time.Second // stamps are whole seconds, and cores log apart
	for i := 1; i < len(runs); i++ {
		if a, b := runs[i-1].Last, runs[i].First; !a.IsZero() && !b.IsZero() && b.Add(slack).Before(a) {
			return runs[i].Number
		}
	}
	return 0
}

func buildProbes(r *Report, res *logparse.Result, opt Options) {
	probed := 0 // devices
	for _, d := range res.Devices {
		if d.Probes != nil {
			probed++
		}
	}
	for _, d := range res.Devices {
		p, _ := d.Probes.(*probes)
		if p == nil {
			continue
		}
		expected := p.expected(d.Cores, opt.Cores)
		threshold, rule, doubts := opt.thresholdOf(p.timings())
		for _, w := range doubts {
			if len(res.Devices) > 1 {
				w = "device " + d.Name + ": " + w
			}
			r.Warnings = append(r.Warnings, w)
		}
		for _, name := range slices.Sorted(maps.Keys(p.names)) {
			j := verdict.JudgeOwnership(p.names[name], verdict.OwnershipConfig{
				Subtable: name, Expected: expected, Threshold: threshold, Want: opt.ExpectOwner,
			})
			r.Names = append(r.Names, Name{d.Name, rule, j})
			v := j.Verdict.About(name)
			if probed > 1 {
				v.Line += " (device " + d.Name + ")"
				v = v.About("device " + d.Name)
			}
			r.Verdicts = append(r.Verdicts, v)
		}
	}
	slices.SortStableFunc(r.Names, func(a, b Name) int { return cmp.Compare(a.Device, b.Device) })
	if len(r.Names) == 0 {
		r.Verdicts = []verdict.Verdict{{Name: verdict.Ownership, State: verdict.Incomplete, Line: "INCOMPLETE: no PROBE lines"}}
	}
}
