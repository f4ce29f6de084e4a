package timingstats

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HdrHistogram's own reader reads the log back.
func TestHistogramLog(t *testing.T) {
	var ivs []Interval
	for i := range 3 {
		r := NewRecorder(0)
		for v := range int64(1000) {
			r.Record(v * 1000 * int64(i+1))
		}
		h, err := r.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		ivs = append(ivs, Interval{Tag: []string{"", "tmm_1", "a b,c"}[i], Start: time.Duration(i) * 1500 * time.Millisecond, Length: time.Second, Hist: h})
	}
	var b bytes.Buffer
	start := time.UnixMilli(1_767_225_600_123)
	if err := WriteHistogramLog(&b, start, 1e6, []string{"made by a test\nof two lines"}, ivs); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"#[made by a test of two lines]\n", "#[StartTime: 1767225600.123 (seconds since epoch), 2026-01-01T00:00:00Z]", "Tag=a_b_c,3.000,1.000,2.997,", "\n0.000,1.000,0.999,HIST"} {
		if !strings.Contains(text, want) {
			t.Errorf("log lacks %q:\n%s", want, text)
		}
	}
	rd := hdrhistogram.NewHistogramLogReader(strings.NewReader(text))
	for i := range ivs {
		h, err := rd.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v", i, err)
		}
		if h.TotalCount() != 1000 || h.Tag() != []string{"", "tmm_1", "a_b_c"}[i] {
			t.Errorf("interval %d: %d values, tag %q", i, h.TotalCount(), h.Tag())
		}
		if got := h.StartTimeMs() - start.UnixMilli(); got != int64(i)*1500 {
			t.Errorf("interval %d starts at %d ms", i, got)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestHistogramLogError(t *testing.T) {
	if err := WriteHistogramLog(brokenWriter{}, time.Time{}, 1, nil, nil); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("%v", err)
	}
}

// A histogram merged from eight saved parts is that of the whole, to the bit.
func TestSavedPartsMerge(t *testing.T) {
	whole := NewRecorder(0)
	merged := newHistogram(0)
	for part := range int64(8) {
		r := NewRecorder(0)
		for i := range int64(3000) {
			v := (i*7919 + part*104729) % 50_000_000
			r.Record(v)
			whole.Record(v)
		}
		saved, err := r.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		back, err := saved.Recorder()
		if err != nil {
			t.Fatal(err)
		}
		merged.Merge(back)
	}
	sameRecorder(t, merged, whole)
}
