package logparse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
)

const tail = " clicks=5 FAST_LOCAL (sampled 1/1000)"

func TestHeld(t *testing.T) {
	for line, held := range map[string]int64{
		"May  6 16:02:14 bigip1 notice tmm[16963]: 01010201:2: Re-enabling general logging; held 26 messages.":                        26,
		"May  6 16:02:14 bigip1 last message repeated 5 times":                                                                        5,
		"May  6 16:02:14 bigip1 notice syslog-ng[12]: last message repeated 7 times":                                                  7,
		"May  6 16:02:14 bigip1 warning tmm1[16963]: 01010201:4: Per-invocation log rate exceeded; throttling.":                       0,
		"May  6 16:02:14 bigip1 notice systemd-journald[512]: Suppressed 1255 messages from tmm.service":                              1255,
		"May  6 16:02:14 bigip1 Suppressed 3 messages from /system.slice":                                                             3,
		"May  6 16:02:14 bigip1 rsyslogd: message repeated 4 times: [ tmm=1 subtable=s writes=1 key=k clicks=5 SLOW (sampled 1/100)]": 4,
		"Suppressed 9 messages from x": 9,
	} {
		r := scanText(t, options(), line+"\n"+strings.Repeat("nothing\n", 20))
		if r.Counts.Held != held || r.Counts.Throttled != b2i(held == 0) || r.Counts.Samples != 0 {
			t.Errorf("%s: %+v", line, r.Counts)
		}
	}
	for _, line := range []string{
		"May  6 16:02:14 bigip1 info tmm[16963]: Rule /Common/x <HTTP_REQUEST>: Re-enabling general logging; held 26 messages.",
		"May  6 16:02:14 bigip1 info tmm[16963]: Rule /Common/x <HTTP_REQUEST>: last message repeated 5 times",
		"May  6 16:02:14 bigip1 info tmm[16963]: Rule /Common/x <HTTP_REQUEST>: Suppressed 9 messages from x",
		"May  6 16:02:14 bigip1 info httpd[1]: he said: last message repeated 5 times",
	} {
		if r := scanText(t, options(), line); r.Counts.Held != 0 || r.Counts.Other != 1 {
			t.Errorf("somebody's text counts as held: %s: %+v", line, r.Counts)
		}
	}
}

func TestDisagreements(t *testing.T) {
	const msg = "tmm=2 subtable=s writes=%d key=k" + tail + "\n"
	text := fmt.Sprintf("May  6 16:02:11 b info tmm2[1]: "+msg, 1) +
		fmt.Sprintf("May  6 16:02:11 b info tmm[1]: "+msg, 2) + // bare: core 0
		fmt.Sprintf("May  6 16:02:11 b info tmm3[1]: "+msg, 3) +
		fmt.Sprintf("<134>1 2026-05-06T16:02:11Z b tmm 1 - - "+msg, 4) +
		fmt.Sprintf(msg, 5)
	r := scanText(t, options(), text)
	if r.Counts.Disagreements != 2 || r.Counts.Samples != 5 || len(r.Devices) != 1 {
		t.Errorf("%+v, %d devices", r.Counts, len(r.Devices))
	}
}

// at is a sample of core 0 of a host, under a process id and a time.
func at(stamp, host string, pid, writes int) string {
	return fmt.Sprintf("%s %s info tmm[%d]: tmm=0 subtable=s writes=%d key=k%s\n", stamp, host, pid, writes, tail)
}

func TestDevices(t *testing.T) {
	const s = "May  6 16:02:11"
	text := at(s, "a.example.net", 1, 10) + at(s, "b", 1, 5) + at(s, "a", 1, 20) + at(s, "slot2/b.x", 1, 6) + at(s, "10.0.0.1", 9, 1) + at(s, "10.0.0.2", 9, 1)
	r := scanText(t, options(), text)
	var names []string
	for _, d := range r.Devices {
		names = append(names, fmt.Sprintf("%s:%d:%d:%v", d.Name, d.Runs, d.Counts.Samples, d.Cores))
	}
	want := []string{"10.0.0.1:1:1:[{0 0 1}]", "10.0.0.2:1:1:[{0 0 1}]", "a:1:2:[{0 0 2}]", "b:1:2:[{0 0 1} {2 0 1}]"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	opt := options()
	opt.Host = "a.example.net"
	r = scanText(t, opt, text)
	if len(r.Devices) != 1 || r.Devices[0].Name != "a" || r.Counts.Samples != 2 || r.Counts.OtherHosts != 4 {
		t.Errorf("host a: %+v", r.Counts)
	}
	opt.Host = "c"
	if r = scanText(t, opt, text); len(r.Devices) != 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], `"10.0.0.1"`) {
		t.Errorf("host c: %v", r.Warnings)
	}
}

func TestRunsAndRestarts(t *testing.T) {
	const s = "May  6 16:02:11"
	found := func(pid, n int) string {
		return fmt.Sprintf("%s b info tmm[%d]: tmm=0 subtable=localdb_tmm_0_%d initialized after 3 probes (diff=11 clicks of 4 total TMMs)\n", s, pid, n)
	}
	text := found(1, 7) + at(s, "b", 1, 10) + at(s, "b", 1, 20) + at(s, "b", 1, 20) + found(2, 8) + at(s, "b", 2, 30) + at(s, "b", 2, 40)
	r := scanText(t, options(), text)
	d := r.Devices[0]
	if d.Runs != 3 || d.Kept != 3 || d.Restarts != 1 || len(samples(d)) != 2 || samples(d)[0].Writes != 30 {
		t.Errorf("%+v", d)
	}
	if len(d.Names) != 1 || d.Names[0].Subtable != "localdb_tmm_0_8" {
		t.Errorf("names %+v: those from before the restart are void", d.Names)
	}
	if len(d.LastRuns) != 3 || d.LastRuns[0].Samples != 2 || d.LastRuns[1].Samples != 1 || d.LastRuns[2].Number != 3 {
		t.Errorf("runs %+v", d.LastRuns)
	}
	for run, want := range map[logparse.RunSelect]int{1: 2, 2: 1, 3: 2, 4: 0, logparse.RunAll: 5} {
		opt := options()
		opt.Run = run
		r := scanText(t, opt, text)
		if got := len(samples(r.Devices[0])); got != want {
			t.Errorf("run %d: %d samples, want %d", run, got, want)
		}
		if (run == 4) != strings.Contains(strings.Join(r.Warnings, ""), "run 4 was asked for") {
			t.Errorf("run %d: warnings %v", run, r.Warnings)
		}
	}
}

// A process id that is another one is a restart, a higher one or a lower one,
// and is told once.
func TestRestartsAreTold(t *testing.T) {
	const s = "May  6 16:02:11"
	for _, c := range []struct {
		pids []int
		want string // part of the only warning; empty: none
	}{
		{[]int{7, 7, 7}, ""},
		{[]int{7, 9, 9}, `device "b" restarted once (the process id changed): names found before are void`},
		{[]int{9, 7, 7}, `device "b" restarted once (the process id changed): names found before are void`},
		{[]int{9, 7, 9}, `device "b" restarted 2 times (the process id changed): names found before the last time are void`},
	} {
		text := ""
		for i, pid := range c.pids {
			text += at(s, "b", pid, i+1)
		}
		r := scanText(t, options(), text)
		if got := strings.Join(r.Warnings, "\n"); got != c.want {
			t.Errorf("process ids %v: %q, want %q", c.pids, got, c.want)
		}
		if d := r.Devices[0]; d.Runs != d.Restarts+1 {
			t.Errorf("process ids %v: %d runs, %d restarts", c.pids, d.Runs, d.Restarts)
		}
	}
}

func TestWindowAcrossNewYear(t *testing.T) {
	text := at("Dec 31 23:59:58", "b", 1, 10) + at("Dec 31 23:59:59", "b", 1, 20) + at("Jan  1 00:00:01", "b", 1, 30) + at("2027-01-01T03:00:02+03:00", "b", 1, 40) + at("01-01 00:00:03", "b", 1, 50)
	opt := options()
	opt.Now = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	since, until := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 2, 0, time.UTC)
	opt.Since, opt.Until = logline.MomentOf(since), logline.MomentOf(until)
	r := scanText(t, opt, text+"tmm=0 subtable=s writes=60 key=k"+tail)
	if got := samples(r.Devices[0]); len(got) != 4 || got[0].Writes != 20 || got[3].Writes != 60 {
		t.Errorf("%+v", got)
	}
	if r.Counts.Outside != 2 || r.Counts.Undated != 1 {
		t.Errorf("%+v", r.Counts)
	}
	run := r.Devices[0].LastRuns[0]
	if !run.First.Equal(since) || !run.Last.Equal(until) {
		t.Errorf("run from %v to %v", run.First, run.Last)
	}
}

// moment is one as users write it, on the day of now.
func moment(t *testing.T, in string, now time.Time) logline.Moment {
	t.Helper()
	if in == "" {
		return logline.Moment{}
	}
	m, err := logline.ParseMoment(in, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Limits without a year are the same for all files of a set: those of the
// newest. What is read from a pipe ends now.
func TestWindowWithoutYears(t *testing.T) {
	dir := t.TempDir()
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 12, 0, 0, 0, time.UTC) }
	lines := func(days ...time.Time) string {
		text := ""
		for i, d := range days {
			text += at(d.Format(time.Stamp), "b", 1, i+1)
		}
		return text
	}
	file := func(name string, changed time.Time, text string) input.Input {
		path := write(t, filepath.Join(dir, name), []byte(text))
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
		return input.File(path)
	}
	autumn := []input.Input{
		file("rot.0", day(2026, 11, 29), lines(day(2026, 11, 26), day(2026, 11, 28))),
		file("rot.1", day(2026, 10, 1), lines(day(2026, 9, 29), day(2026, 9, 30))),
	}
	winter := lines(day(2025, 12, 20), day(2025, 12, 28), day(2026, 1, 3))
	begun := file("begun", now, "")
	for _, c := range []struct {
		name         string
		in           []input.Input
		since, until string
		want         int64
	}{
		{"a rotated set", autumn, "Nov 27", "", 1},
		{"a rotated set", autumn, "Sep 30", "", 3},
		{"a rotated set", autumn, "", "Sep 30", 1},
		{"a rotated set", autumn, "Sep 30", "Nov 27", 2},
		{"New Year, from a pipe", nil, "Dec 20", "", 3},
		{"New Year, from a pipe", nil, "Dec 28", "Jan 2", 1},
		{"New Year, from a pipe", nil, "", "Dec 25", 1},
		{"New Year", []input.Input{file("ny", day(2026, 1, 10), winter)}, "Dec 20", "Jan 5", 3},
		{"New Year", []input.Input{file("ny", day(2026, 1, 10), winter)}, "Dec 28", "", 2},
		{"of an earlier year", []input.Input{file("old", day(2024, 5, 7), lines(day(2024, 5, 5), day(2024, 5, 6))), begun}, "May 6", "", 1},
		{"of an earlier year, later", []input.Input{file("old", day(2024, 5, 7), lines(day(2024, 5, 5), day(2024, 5, 6)))}, "May 20", "", 0},
		{"of an earlier year", []input.Input{file("old", day(2024, 5, 7), lines(day(2024, 5, 5), day(2024, 5, 6)))}, "", "May 20", 2},
	} {
		opt := options()
		opt.Since, opt.Until = moment(t, c.since, now), moment(t, c.until, now)
		in := c.in
		if in == nil {
			in = []input.Input{input.Reader("pipe", strings.NewReader(winter))}
		}
		if r := scan(t, opt, in...); r.Counts.Samples != c.want || r.Counts.Samples+r.Counts.Outside != r.Counts.Lines {
			t.Errorf("%s, %q to %q: %d samples, want %d of %d", c.name, c.since, c.until, r.Counts.Samples, c.want, r.Counts.Lines)
		}
	}
	// A file that was changed in the future has no lines of then.
	r := scan(t, options(), file("future", day(2027, 2, 1), lines(day(2026, 1, 3))))
	if first := r.Devices[0].LastRuns[0].First; !first.Equal(day(2026, 1, 3)) {
		t.Errorf("a file changed in the future: its first line is of %v", first)
	}
}

func TestLineTime(t *testing.T) {
	loc := time.FixedZone("here", 2*3600)
	for stamp, want := range map[string]time.Time{
		"May  6 16:02:11":               time.Date(2026, 5, 6, 16, 2, 11, 0, loc),
		"May  6 16:02:11.482":           time.Date(2026, 5, 6, 16, 2, 11, 482e6, loc),
		"Nov 30 11:00:00":               time.Date(2026, 11, 30, 11, 0, 0, 0, loc), // less than a day ahead
		"Dec  1 16:02:11":               time.Date(2025, 12, 1, 16, 2, 11, 0, loc),
		"Feb 29 00:00:00":               time.Date(2024, 2, 29, 0, 0, 0, 0, loc),
		"05-06 16:02:11":                time.Date(2026, 5, 6, 16, 2, 11, 0, loc),
		"2024-05-06T16:02:11.5+03:30":   time.Date(2024, 5, 6, 12, 32, 11, 5e8, time.UTC),
		"2024-05-06T16:02:11-0700":      time.Date(2024, 5, 6, 23, 2, 11, 0, time.UTC),
		"2024-05-06T16:02:11Z":          time.Date(2024, 5, 6, 16, 2, 11, 0, time.UTC),
		"2024-05-06 16:02:11,000000001": time.Date(2024, 5, 6, 16, 2, 11, 1, loc),
		"May 16 2023 16:02:11":          time.Date(2023, 5, 16, 16, 2, 11, 0, loc),
		"Mai 16 16:02:11":               {},
		"May 36 16:02:11":               {},
		"May 16 26:02:11":               {},
	} {
		opt := options()
		opt.Location = loc
		r := scanText(t, opt, at(stamp, "b", 1, 1))
		if got := r.Devices[0].LastRuns[0].First; !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("%s: %v, want %v", stamp, got, want)
		}
	}
}
