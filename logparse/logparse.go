// Package logparse reads the sampled log lines of a dataplane: files,
// compressed files, pipes and live sources, in every shape that syslog gives
// them, as fast as the disk. It tells samples, probes and discovery lines from
// everything else, devices and runs from each other, and counts what it left
// out. It judges nothing and keeps no sample: whoever wants them hands in
// collectors.
//
// Scan reads whole inputs and Start watches live ones; Read is the short form
// for one reader. Package input opens what is read, package logline tells what
// one line says; here lines become devices, runs and counts.
package logparse

import (
	"time"

	"tbl/logparse/logline"
)

// SampleCollector takes the samples of one run of one device. It is used by
// one goroutine at a time. What Merge and Add build up must not depend on how
// the samples were cut into pieces: large files are read in chunks.
type SampleCollector interface {
	// Add takes one sample (or a probe, with Options.AllLines). The line is valid until Add returns.
	Add(*logline.Line)
	// Merge takes over what later holds, as if its lines had been added here
	// after those already here. later came from the same factory and is reset
	// or dropped after it.
	Merge(later SampleCollector)
	// Reset empties the collector for another run.
	Reset()
}

// ProbeCollector takes the probe lines of one device since its last restart.
// The rules of SampleCollector hold.
type ProbeCollector interface {
	Add(*logline.Line)
	Merge(later ProbeCollector)
	Reset()
}

// RunSelect says which runs of a device reach its collector: RunLast, RunAll,
// or the number of one, from 1.
type RunSelect int

// Selections other than a number.
const (
	RunLast RunSelect = 0
	RunAll  RunSelect = -1
)

// Options say how to read. The zero value reads everything, keeps the last
// run, and delivers to nobody: counts only.
type Options struct {
	// Host keeps only this device: the first label of a host, or the whole host.
	// Empty: all.
	Host string
	// Since and Until limit the lines of ours by their time, both ends
	// included; zero: no limit. Without a year they get it once for all inputs,
	// as logline.Window says, of a log that ends with the newest of them. A line
	// without a time is kept, and counted.
	Since, Until logline.Moment
	from, to     time.Time // with their years
	// Run selects the runs.
	Run RunSelect
	// AllLines gives PROBE lines to the sample collectors too.
	AllLines bool

	// NewSamples and NewProbes make collectors; nil: not delivered. They are
	// called from several goroutines.
	NewSamples func() SampleCollector
	NewProbes  func() ProbeCollector

	// Now is the time from which years are inferred: a date without a year is
	// the last such date before Now plus one day, or before the file's own time of
	// change where that is earlier. Zero: time.Now().
	Now time.Time
	// Clock is what Now has become, while an input is read that may go on for
	// days. Nil: Now and the time since the start.
	Clock func() time.Time
	// Location is the zone of times without one. Nil: time.Local.
	Location *time.Location

	// Workers reads large files with so many goroutines. 0: GOMAXPROCS.
	Workers int
	// ChunkBytes is the piece of a large file that a worker reads at a time.
	// 0: by the size of the file, 4 to 64 MiB.
	ChunkBytes int64

	// Snapshot, when set, is called about every Every (0: one second) while a
	// live input is read, from the reading goroutine. The result and its
	// collectors may be read until it returns.
	Snapshot func(*Result)
	Every    time.Duration
}

// Counts is what was read, line by line.
type Counts struct {
	Lines     int64 `json:"lines"`
	Bytes     int64 `json:"bytes"` // after decompression
	Samples   int64 `json:"samples"`
	Other     int64 `json:"other_lines"`
	Probes    int64 `json:"probes"`
	Discovery int64 `json:"discovery_lines"`
	Truncated int64 `json:"truncated"`
	Malformed int64 `json:"malformed"`
	Wrapped   int64 `json:"wrapped"` // not among Samples
	// Held is the number of lines that the source says it left out;
	// Throttled counts the lines that say so without a number. With either,
	// all counts are lower bounds.
	Held      int64 `json:"held"`
	Throttled int64 `json:"throttled"`
	// Disagreements are lines whose process name and "tmm=" name different cores.
	Disagreements int64 `json:"disagreements"`
	// Outside are lines of ours outside Since and Until, OtherHosts those of
	// devices other than Options.Host: neither is in the counts by kind.
	Outside    int64 `json:"outside_window"`
	OtherHosts int64 `json:"other_hosts"`
	// Undated are lines of ours without a time, counted only when Since or
	// Until is given.
	Undated int64 `json:"undated"`
	// Shortened are lines over 8 MiB, of which the middle was not kept.
	Shortened int64 `json:"shortened"`
}

// Core is one core of a device, over all its runs.
type Core struct {
	Slot    int   `json:"slot"` // 0 where blades are unknown
	Core    int   `json:"core"`
	Samples int64 `json:"samples"`
}

// RunInfo is one run of a device.
type RunInfo struct {
	Number  int       `json:"number"` // from 1
	Samples int64     `json:"samples"`
	First   time.Time `json:"first"` // zero when the lines have no time
	Last    time.Time `json:"last"`
}

// Name is what a discovery line said last about a core.
type Name struct {
	Slot     int    `json:"slot"`
	Core     int    `json:"core"`
	Subtable string `json:"subtable"`
	Tries    int64  `json:"tries"`
	Clicks   int64  `json:"diff_clicks"`
	TMMs     int64  `json:"tmms"`    // 0 when not said
	Warning  bool   `json:"warning"` // no local name was found, this one is used all the same
}

// Device is one device of the input.
type Device struct {
	// Name is the first label of its host, or its address; empty when no line
	// named a host.
	Name string `json:"name"`
	// Runs is the number of runs seen, Kept the one in Samples (0: all, or none).
	Runs int `json:"runs"`
	Kept int `json:"kept_run"`
	// LastRuns describes the last runs, at most 64, oldest first.
	LastRuns []RunInfo `json:"last_runs,omitempty"`
	// Cores are all cores that wrote a sample in any run, ordered.
	Cores []Core `json:"cores"`
	// Restarts is the number of changes of the process id. Names and probes
	// from before the last one are void and left out.
	Restarts int `json:"restarts"`
	// Names are the last discovery lines per core since the last restart.
	Names []Name `json:"names,omitempty"`
	// Counts are this device's own, where a line can be told to be its.
	Counts Counts `json:"counts"`

	Samples SampleCollector `json:"-"` // nil when the selected run has none, or nobody collects
	Probes  ProbeCollector  `json:"-"`
}

// Result is what a scan found.
type Result struct {
	Counts Counts `json:"counts"`
	// Examples are the first three malformed lines, cut at 200 bytes.
	Examples []string `json:"malformed_examples,omitempty"`
	// Inputs names what was read, in the order of reading.
	Inputs []InputInfo `json:"inputs"`
	// Devices are ordered by name.
	Devices []*Device `json:"devices"`
	// Warnings are doubts in words.
	Warnings []string `json:"warnings,omitempty"`
	// Broken says how a command that was read failed after its first lines: what
	// was read is a part of the log only. Nil: nothing broke.
	Broken error `json:"-"`
}

// InputInfo is one input that was read.
type InputInfo struct {
	Name        string `json:"name"`
	Compression string `json:"compression,omitempty"` // "gzip", "zstd", "bzip2", "xz", or none
}
