package timingstats

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// Interval is one line of a histogram log.
type Interval struct {
	// Tag tells distributions of the same interval apart ("tmm_2"); commas,
	// blanks and line ends in it are written as "_". Empty: none.
	Tag string
	// Start from the log's start time, and Length of the interval.
	Start, Length time.Duration
	Hist          Histogram
	// PerUnit is WriteHistogramLog's perUnit for this interval, where a log has
	// several units; 0: that of the log.
	PerUnit float64
}

// WriteHistogramLog writes intervals in HdrHistogram's log format 1.3, which
// its tools read. perUnit is how many of the recorded units the "Interval_Max"
// column counts as one: 1e6 for nanoseconds shown in milliseconds, 1 for
// clicks. comments are lines for the head. Interval times keep their
// milliseconds and so does the start time.
func WriteHistogramLog(w io.Writer, start time.Time, perUnit float64, comments []string, intervals []Interval) error {
	b := bufio.NewWriter(w)
	for _, c := range comments {
		fmt.Fprintf(b, "#[%s]\n", strings.Join(strings.Fields(c), " "))
	}
	ms := start.UnixMilli()
	fmt.Fprintf(b, "#[Histogram log format version 1.3]\n")
	fmt.Fprintf(b, "#[StartTime: %d.%03d (seconds since epoch), %s]\n", ms/1000, ms%1000, start.UTC().Format(time.RFC3339))
	fmt.Fprintln(b, `"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`)
	tag := strings.NewReplacer(",", "_", " ", "_", "\r", "_", "\n", "_")
	for _, iv := range intervals {
		if iv.Tag != "" {
			fmt.Fprintf(b, "Tag=%s,", tag.Replace(iv.Tag))
		}
		per := perUnit
		if iv.PerUnit != 0 {
			per = iv.PerUnit
		}
		fmt.Fprintf(b, "%.3f,%.3f,%.3f,%s\n", iv.Start.Seconds(), iv.Length.Seconds(), float64(iv.Hist.Max)/max(per, 1e-9), iv.Hist.V2)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("histogram log: %w", err)
	}
	return nil
}
