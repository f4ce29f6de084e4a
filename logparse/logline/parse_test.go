package logline_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tbl/logparse/logline"
)

const tail = " clicks=5 FAST_LOCAL (sampled 1/1000)"

// seen is what a test looks at in a line.
type seen struct {
	Kind                 logline.Kind
	Stamp, Host          string
	Slot, Proc           int
	PID                  int64
	Core                 int
	Subtable, Key        string
	Writes, Clicks, Rate int64
	Fast, Unique         bool
	Held                 int64
}

func look(l *logline.Line) seen {
	return seen{l.Kind, string(l.Stamp), string(l.Host), l.Slot, l.ProcCore, l.PID, l.Core, string(l.Subtable), string(l.Key), l.Writes, l.Clicks, l.Rate, l.Fast, l.Unique, l.Held}
}

func TestPrefixes(t *testing.T) {
	const msg = "tmm=2 subtable=s writes=10 key=k" + tail
	rule := "Rule /Common/LOCALDB <HTTP_REQUEST>: " + msg
	for _, c := range []struct {
		line, stamp, host string
		slot, proc        int
		pid               int64
	}{
		{"May  6 16:02:11 bigip1.example.net info tmm2[16963]: " + rule, "May  6 16:02:11", "bigip1.example.net", 0, 2, 16963},
		{"May  6 16:02:11.482 bigip1 info tmm2[16963]: " + rule, "May  6 16:02:11.482", "bigip1", 0, 2, 16963},
		{"2026-05-06T16:02:11.482+03:00 bigip1 info tmm2[16963]: " + rule, "2026-05-06T16:02:11.482+03:00", "bigip1", 0, 2, 16963},
		{"2026-05-06T16:02:11Z bigip1 info tmm2[16963]: " + rule, "2026-05-06T16:02:11Z", "bigip1", 0, 2, 16963},
		{"2026-05-06 16:02:11,482 bigip1 tmm2[16963]: " + rule, "2026-05-06 16:02:11,482", "bigip1", 0, 2, 16963},
		{"05-06 16:02:11 info bigip1 tmm2[16963]: " + rule, "05-06 16:02:11", "bigip1", 0, 2, 16963},
		{"05-06 16:02:11 info bigip1 tmm2[16963]: Rule LOCALDB <HTTP_REQUEST> " + msg, "05-06 16:02:11", "bigip1", 0, 2, 16963},
		{"<134>May  6 16:02:11 slot1/bigip1 info tmm[16963]: " + rule, "May  6 16:02:11", "bigip1", 1, 0, 16963},
		{"<134>1 2026-05-06T16:02:11.482-07:00 bigip1 tmm 16963 - [F5@12276 hostname=\"big\\\"]ip1\"][x a=\"]\"] " + rule, "2026-05-06T16:02:11.482-07:00", "bigip1", 0, -1, 16963},
		{"<134>1 2026-05-06T16:02:11.482-07:00 - tmm - - - \ufeff" + rule, "2026-05-06T16:02:11.482-07:00", "", 0, -1, 0},
		{"<134>1 2026-05-06T16:02:11Z slot12/b tmm 7 - - " + msg, "2026-05-06T16:02:11Z", "b", 12, -1, 7},
		{msg, "", "", 0, -1, 0},
		{rule, "", "", 0, -1, 0},
		{"tmm2[7]: " + msg, "", "", 0, 2, 7},
		{"May  6 16:02:11 info tmm2[16963]: " + msg, "May  6 16:02:11", "", 0, 2, 16963},
		{"May  6 16:02:11 " + msg, "May  6 16:02:11", "", 0, -1, 0},
		{"May  6 16:02:11 bigip1 " + msg, "May  6 16:02:11", "bigip1", 0, -1, 0},
		{"May 16 2026 16:02:11 bigip1 tmm2: " + msg, "May 16 2026 16:02:11", "bigip1", 0, 2, 0},
		{"/var/log/ltm.1:May  6 16:02:11 bigip1 info tmm2[16963]: " + rule, "", "", 0, 2, 16963},
		{"May  6 16:02:11 10.1.2.3 info tmm2[16963]: Rule /Common/a b <CLIENT_DATA>: " + msg, "May  6 16:02:11", "10.1.2.3", 0, 2, 16963},
		{"May  6 16:02:11 slotty info tmm2[16963]: " + msg, "May  6 16:02:11", "slotty", 0, 2, 16963},
		{"May  6 16:02:11 slot/x info tmm2[16963]: " + msg, "May  6 16:02:11", "slot/x", 0, 2, 16963},
	} {
		var p logline.Parser
		var l logline.Line
		want := seen{logline.KindSample, c.stamp, c.host, c.slot, c.proc, c.pid, 2, "s", "k", 10, 5, 1000, true, false, 0}
		for range 3 { // with nothing, and with this line, remembered
			p.Parse([]byte(c.line), &l)
			if diff := cmp.Diff(want, look(&l)); diff != "" {
				t.Errorf("%s\n-want +got\n%s", c.line, diff)
				break
			}
		}
	}
}

func TestKinds(t *testing.T) {
	const rule = "May  6 16:02:11 bigip1 info tmm1[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: "
	for _, c := range []struct {
		msg  string
		kind logline.Kind
	}{
		{"tmm=1 subtable=s writes=10 key=a b clicks=1 SLOW (sampled 1/1)" + tail, logline.KindSample},
		{"tmm=1 subtable=s writes=10 key=" + tail, logline.KindSample},
		{"tmm=1 subtable=s writes=10 key=k clicks=2147483647 SLOW (sampled 1/1)", logline.KindSample},
		{"tmm=1 subtable=s writes=10 key=k clicks=2147483648 SLOW (sampled 1/1)", logline.KindWrapped},
		{"tmm=1 subtable=s writes=10 key=k clicks=-1 SLOW (sampled 1/1)", logline.KindWrapped},
		{"tmm=1 subtable=s writes=10 key=k clicks=99999999999999999999999 SLOW (sampled 1/1)", logline.KindWrapped},
		{"tmm=1 subtable=s", logline.KindTruncated},
		{"tmm=1 subtable=s wri", logline.KindTruncated},
		{"tmm=1 subtable=s writes=1", logline.KindTruncated},
		{"tmm=1 subtable=s writes=10 ke", logline.KindTruncated},
		{"tmm=1 subtable=s writes=10 key=k clicks=5 FAST_LOCAL (sampled 1/10", logline.KindTruncated},
		{"tmm=1 subtable=s writes=10 key=k clicks=5 FAST", logline.KindTruncated},
		{"tmm=1 subtable=s writes=10 key=k)", logline.KindTruncated},
		{"tmm=1 subtable=s writes=abc key=k" + tail, logline.KindMalformed},
		{"tmm=1 subtable=s writes=-3 key=k" + tail, logline.KindMalformed},
		{"tmm=1 subtable=s writes=9999999999999999999 key=k" + tail, logline.KindMalformed},
		{"tmm=x subtable=s writes=10 key=k" + tail, logline.KindMalformed},
		{"tmm=-1 subtable=s writes=10 key=k" + tail, logline.KindMalformed},
		{"tmm=1x subtable=s writes=10 key=k" + tail, logline.KindMalformed},
		{"tmm=99999999 subtable=s writes=10 key=k" + tail, logline.KindMalformed},
		{"tmm=1 subtable=s key=k" + tail, logline.KindMalformed},
		{"tmm=1 subtable=s writes=10 key=k clicks=5 SLOWER (sampled 1/1000)", logline.KindMalformed},
		{"tmm=1 subtable=s writes=10 key=k clicks=5 FAST_LOCAL (sampled 1/0)", logline.KindMalformed},
		{"tmm=1 subtable=s writes=10 key=k click=5 FAST_LOCAL (sampled 1/10)", logline.KindMalformed},
		{"tmm=1 subtable=s writes=10 key=k clicks= FAST_LOCAL (sampled 1/10)", logline.KindMalformed},
		{"tmm=1 subtable=s writes=10 key=(sampled 1/10)", logline.KindMalformed},
		{"tmm=1 subtable=localdb_tmm_1_922743 initialized after 3 probes (diff=11 clicks of 4 total TMMs)", logline.KindDiscovery},
		{"tmm=1 subtable=localdb_tmm_1_922743 initialized badly", logline.KindMalformed},
		{"tmm=1 WARNING could not find local subtable after 200 probes; using localdb_tmm_1_4711 (last diff=5210)", logline.KindDiscovery},
		{"PROBE tmm=1 subtable=uuid_01 clicks=2104 entries=4 NON_OWNER", logline.KindProbe},
		{"PROBE tmm=1 subtable=a clicks=1 entries=2 OWNER clicks=3 entries=4 OWNER", logline.KindProbe},
		{"PROBE tmm=1 subtable=uuid_01 clicks=-4 entries=4 OWNER", logline.KindWrapped},
		{"PROBE tmm=1 subtable=uuid_01 clicks=2104 entries=4", logline.KindOther},
		{"PROBE tmm=1 subtable= entries=4 OWNER", logline.KindOther},
		{"tmm=1 CLIENT_ACCEPTED accepts=12000 from 10.1.2.3:51514", logline.KindOther},
		{"tmm=1 /load key=loadkey_98000", logline.KindOther},
		{"user said tmm=1 subtable=s writes=10 key=k" + tail, logline.KindOther},
		{"tmm=", logline.KindOther},
		{"", logline.KindOther},
		{"Re-enabling general logging; held 26 messages.", logline.KindHeld},
		{"last message repeated 5 times", logline.KindHeld},
	} {
		var p logline.Parser
		var l logline.Line
		for range 2 {
			if got := p.Parse([]byte(rule+c.msg), &l); got != c.kind && c.kind != logline.KindHeld || l.Kind != got {
				t.Errorf("%s: %v, want %v", c.msg, got, c.kind)
			}
			if l.Kind >= logline.KindSample && l.Kind <= logline.KindWrapped && l.Core != 1 {
				t.Errorf("%s: core %d", c.msg, l.Core)
			}
		}
	}
	// A name of a probe is user input, too.
	var p logline.Parser
	var l logline.Line
	p.Parse([]byte("PROBE tmm=1 subtable=a clicks=1 entries=2 OWNER clicks=3 entries=4 NON_OWNER"), &l)
	if string(l.Subtable) != "a clicks=1 entries=2 OWNER" || l.Clicks != 3 || l.Entries != 4 || l.Fast {
		t.Errorf("probe %+v", look(&l))
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2027, 1, 2, 12, 30, 0, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"90m":                       now.Add(-90 * time.Minute),
		"-1h":                       now.Add(-time.Hour),
		"2d":                        now.AddDate(0, 0, -2),
		"16:02":                     time.Date(2027, 1, 2, 16, 2, 0, 0, time.UTC),
		"Dec 31 23:59":              time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC),
		"Jan  1 00:00:01":           time.Date(2027, 1, 1, 0, 0, 1, 0, time.UTC),
		"12-31 23:59:58":            time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC),
		"2026-05-06":                time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC),
		"2026-05-06T16:02:11+03:00": time.Date(2026, 5, 6, 13, 2, 11, 0, time.UTC),
		"2026-05-06 16:02":          time.Date(2026, 5, 6, 16, 2, 0, 0, time.UTC),
	} {
		m, err := logline.ParseMoment(in, now)
		if got, to := logline.Window(m, logline.Moment{}, now, now); err != nil || !got.Equal(want) || m.IsZero() || !to.IsZero() {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "25:00", "May 40 10:00", "--5m", "-99999999d"} {
		if got, err := logline.ParseMoment(in, now); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestWindow(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	old := time.Date(2024, 5, 7, 0, 0, 0, 0, time.UTC)
	winter := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		since, until string
		end          time.Time
		from, to     string // empty: none
	}{
		// One alone is the last that is not over a month after the end …
		{"May 6 16:02", "", old, "2024-05-06 16:02", ""},
		{"May 26", "", old, "2024-05-26 00:00", ""},
		{"Jun 20", "", old, "2023-06-20 00:00", ""},
		{"", "May 26", old, "", "2024-05-26 00:00"},
		{"", "Jun 20", old, "", "2023-06-20 00:00"},
		{"Dec 31", "", old, "2023-12-31 00:00", ""},
		{"Feb 29", "", old, "2024-02-29 00:00", ""},
		// … nor over a day after now.
		{"Dec 1 12:00", "", now, "2026-12-01 12:00", ""},
		{"Dec 1 12:01", "", now, "2025-12-01 12:01", ""},
		{"", "Dec 20", now, "", "2025-12-20 00:00"},
		{"Dec 1 12:01", "", now.AddDate(0, 0, -20), "2025-12-01 12:01", ""},
		{"Nov 29", "", now.AddDate(0, 0, -20), "2026-11-29 00:00", ""},
		// Both: until is the first from since on.
		{"Dec 20", "Jan 5", winter, "2025-12-20 00:00", "2026-01-05 00:00"},
		{"Dec 20", "Jan 5", now, "2025-12-20 00:00", "2026-01-05 00:00"},
		{"May 1", "Jul 20", old, "2024-05-01 00:00", "2024-07-20 00:00"},
		{"May 6", "May 6", old, "2024-05-06 00:00", "2024-05-06 00:00"},
		{"Jan 1", "Dec 31", winter, "2026-01-01 00:00", "2026-12-31 00:00"},
		{"Apr 20", "Feb 29", old, "2024-04-20 00:00", "2028-02-29 00:00"},
		{"Feb 29", "Feb 28", time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC), "2024-02-29 00:00", "2024-02-28 00:00"},
		{"2025-12-20", "Jan 5", now, "2025-12-20 00:00", "2026-01-05 00:00"},
		{"Dec 20", "2025-01-05", now, "2024-12-20 00:00", "2025-01-05 00:00"},
		{"Jan 3", "2025-01-05", now, "2025-01-03 00:00", "2025-01-05 00:00"},
		// Swapped, they stay so.
		{"Dec 31", "Dec 2", winter, "2025-12-31 00:00", "2025-12-02 00:00"},
		{"Dec 31", "Nov 30", winter, "2025-12-31 00:00", "2026-11-30 00:00"},
		{"2026-05-07", "May 6", now, "2026-05-07 00:00", "2026-05-06 00:00"},
		{"2026-05-07", "2026-05-06", now, "2026-05-07 00:00", "2026-05-06 00:00"},
		{"2026-05-07", "2025-01-06", now, "2026-05-07 00:00", "2025-01-06 00:00"},
	} {
		var m [2]logline.Moment
		var got [2]string
		for i, in := range []string{c.since, c.until} {
			var err error
			if in != "" {
				if m[i], err = logline.ParseMoment(in, now); err != nil {
					t.Fatal(err)
				}
			}
		}
		from, to := logline.Window(m[0], m[1], c.end, now)
		for i, at := range []time.Time{from, to} {
			if !at.IsZero() {
				got[i] = at.Format("2006-01-02 15:04")
			}
		}
		if got != [2]string{c.from, c.to} {
			t.Errorf("%q to %q in a log of %v: %q, want %q to %q", c.since, c.until, c.end, got, c.from, c.to)
		}
	}
}
