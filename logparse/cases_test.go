package logparse_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
)

// tally is a collector that keeps everything, in order.
type tally struct {
	Samples []sample
}

type sample struct {
	Slot, Core     int
	Subtable, Key  string
	Writes, Clicks int64
	Rate           int64
	Fast, Unique   bool
	Stamp          string
}

func (t *tally) Add(l *logline.Line) {
	t.Samples = append(t.Samples, sample{l.Slot, l.Core, string(l.Subtable), string(l.Key), l.Writes, l.Clicks, l.Rate, l.Fast, l.Unique, string(l.Stamp)})
}
func (t *tally) Merge(o logparse.SampleCollector) {
	t.Samples = append(t.Samples, o.(*tally).Samples...)
}
func (t *tally) Reset() { t.Samples = t.Samples[:0] }

type probes struct{ Lines []string }

func (p *probes) Add(l *logline.Line) {
	p.Lines = append(p.Lines, fmt.Sprintf("%d/%d %s %d %d %v", l.Slot, l.Core, l.Subtable, l.Clicks, l.Entries, l.Fast))
}
func (p *probes) Merge(o logparse.ProbeCollector) { p.Lines = append(p.Lines, o.(*probes).Lines...) }
func (p *probes) Reset()                          { p.Lines = nil }

// now is later than every stamp in the tests.
var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func options() logparse.Options {
	return logparse.Options{
		Now: now, Location: time.UTC,
		NewSamples: func() logparse.SampleCollector { return &tally{} },
		NewProbes:  func() logparse.ProbeCollector { return &probes{} },
	}
}

// figures are a core's, as the cases spell them.
type figures struct {
	N    int     `json:"n"`
	Fast int     `json:"fast"`
	Slow int     `json:"slow"`
	Min  int64   `json:"min"`
	P50  int64   `json:"p50"`
	Avg  float64 `json:"avg"`
	P95  int64   `json:"p95"`
	P99  int64   `json:"p99"`
	Max  int64   `json:"max"`
}

func summarise(ss []sample) map[string]figures {
	by := map[string][]int64{}
	out := map[string]figures{}
	for _, s := range ss {
		id := fmt.Sprint(s.Core)
		if s.Slot > 0 {
			id = fmt.Sprintf("%d/%d", s.Slot, s.Core)
		}
		by[id] = append(by[id], s.Clicks)
		f := out[id]
		if s.Fast {
			f.Fast++
		} else {
			f.Slow++
		}
		out[id] = f
	}
	for id, v := range by {
		slices.Sort(v)
		rank := func(p float64) int64 { return v[int(math.Ceil(p/100*float64(len(v))))-1] }
		sum := int64(0)
		for _, c := range v {
			sum += c
		}
		f := out[id]
		f.N, f.Min, f.Max, f.P50, f.P95, f.P99 = len(v), v[0], v[len(v)-1], rank(50), rank(95), rank(99)
		// As the cases round: exact halves to the even digit.
		f.Avg, _ = strconv.ParseFloat(strconv.FormatFloat(float64(sum)/float64(len(v)), 'f', 1, 64), 64)
		out[id] = f
	}
	return out
}

type expectation struct {
	Runs          int                `json:"runs"`
	SampleRate    string             `json:"sample_rate"`
	Cores         map[string]figures `json:"cores"`
	Truncated     int64              `json:"truncated"`
	Malformed     int64              `json:"malformed"`
	Wrapped       int64              `json:"wrapped"`
	Held          int64              `json:"held"`
	Disagreements int64              `json:"disagreements"`
}

func caseNames(t *testing.T) []string {
	t.Helper()
	logs, err := filepath.Glob("../testdata/logs/*.expect.json")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for i := range logs {
		logs[i] = strings.TrimSuffix(logs[i], ".expect.json")
	}
	return logs
}

// check compares a result with a case's expectation.
func check(t *testing.T, name string, r *logparse.Result) {
	t.Helper()
	raw, err := os.ReadFile(name + ".expect.json")
	if err != nil {
		t.Fatal(err)
	}
	var want expectation
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if len(r.Devices) != 1 {
		t.Fatalf("%d devices, want 1", len(r.Devices))
	}
	d := r.Devices[0]
	ss := d.Samples.(*tally).Samples
	got := expectation{Runs: want.Runs, Cores: summarise(ss), Truncated: r.Counts.Truncated, Malformed: r.Counts.Malformed,
		Wrapped: r.Counts.Wrapped, Held: r.Counts.Held, Disagreements: r.Counts.Disagreements}
	if want.Runs > 0 {
		got.Runs = d.Runs
	} else if d.Runs != 1 {
		t.Errorf("%d runs, want 1", d.Runs)
	}
	if want.SampleRate != "" {
		got.SampleRate = fmt.Sprintf("1/%d", ss[0].Rate)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	c := r.Counts
	if sum := c.Samples + c.Other + c.Probes + c.Discovery + c.Truncated + c.Malformed + c.Wrapped + c.Outside + c.OtherHosts; sum != c.Lines {
		t.Errorf("kinds sum to %d of %d lines", sum, c.Lines)
	}
}

func TestCases(t *testing.T) {
	for _, name := range caseNames(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			r, err := logparse.Scan(t.Context(), []input.Input{input.File(name + ".log")}, options())
			if err != nil {
				t.Fatal(err)
			}
			check(t, name, r)
		})
	}
}

// digest is a collector that keeps a checksum of all samples in their order.
type digest struct{ sum uint64 }

func (d *digest) Add(l *logline.Line) {
	h := d.sum
	mix := func(v uint64) { h = (h ^ v) * 0x9e3779b97f4a7c15; h ^= h >> 29 }
	for _, s := range [][]byte{l.Subtable, l.Key, l.Stamp, l.Host} {
		mix(uint64(len(s)))
		for _, c := range s {
			mix(uint64(c))
		}
	}
	for _, v := range []int64{int64(l.Slot), int64(l.Core), l.Writes, l.Clicks, l.Rate, l.PID, b2i(l.Fast), b2i(l.Unique)} {
		mix(uint64(v))
	}
	d.sum = h
}
func (d *digest) Merge(logparse.SampleCollector) { panic("one pass merges nothing") }
func (d *digest) Reset()                         { d.sum = 0 }

func TestCasesCutAnywhere(t *testing.T) {
	var cutter logparse.Cutter
	opt := options()
	opt.NewSamples = func() logparse.SampleCollector { return &digest{} }
	for _, name := range caseNames(t) {
		data, err := os.ReadFile(name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := logparse.Scan(t.Context(), []input.Input{input.Reader("x", bytes.NewReader(data))}, options())
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, whole)
		want := cutter.Scan(opt, data, 0)
		for at := range data {
			if (testing.Short() || raceDetector) && at%17 != 0 {
				continue
			}
			cut := cutter.Scan(opt, data, at)
			if !same(want, cut) || *want.Devices[0].Samples.(*digest) != *cut.Devices[0].Samples.(*digest) {
				t.Fatalf("%s cut at %d: -whole +cut\n%s", name, at, cmp.Diff(want, cut, cmp.AllowUnexported(digest{})))
			}
		}
	}
}

// same compares without reflection where it matters: the long part.
func same(a, b *logparse.Result) bool {
	if len(a.Devices) != len(b.Devices) || a.Counts != b.Counts || !slices.Equal(a.Warnings, b.Warnings) || !slices.Equal(a.Examples, b.Examples) {
		return false
	}
	for i := range a.Devices {
		x, y := *a.Devices[i], *b.Devices[i]
		xs, _ := x.Samples.(*tally)
		ys, _ := y.Samples.(*tally)
		if (xs == nil) != (ys == nil) || xs != nil && !slices.Equal(xs.Samples, ys.Samples) {
			return false
		}
		xp, _ := x.Probes.(*probes)
		yp, _ := y.Probes.(*probes)
		if (xp == nil) != (yp == nil) || xp != nil && !slices.Equal(xp.Lines, yp.Lines) {
			return false
		}
		if x.Name != y.Name || x.Runs != y.Runs || x.Kept != y.Kept || x.Restarts != y.Restarts || x.Counts != y.Counts ||
			!slices.Equal(x.Cores, y.Cores) || !slices.Equal(x.Names, y.Names) || !slices.Equal(x.LastRuns, y.LastRuns) {
			return false
		}
	}
	return true
}

func TestCasesInOddChunks(t *testing.T) {
	for _, name := range caseNames(t) {
		whole, err := logparse.Scan(t.Context(), []input.Input{input.File(name + ".log")}, options())
		if err != nil {
			t.Fatal(err)
		}
		st, _ := os.Stat(name + ".log")
		for _, size := range []int64{1, 7, 61, 167, 168, 997, 1024, 4099, st.Size() - 1, st.Size() / 2} {
			for _, workers := range []int{1, 2, 5} {
				opt := options()
				opt.ChunkBytes, opt.Workers = size, workers
				cut, err := logparse.Scan(t.Context(), []input.Input{input.File(name + ".log")}, opt)
				if err != nil {
					t.Fatal(err)
				}
				if !same(whole, cut) {
					t.Fatalf("%s in chunks of %d, %d workers: -whole +cut\n%s", name, size, workers, cmp.Diff(whole, cut))
				}
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := logparse.Scan(ctx, []input.Input{input.File("../testdata/logs/healthy.log")}, options())
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}
