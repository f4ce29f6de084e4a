package logline_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tbl/logparse/logline"
)

// line is a sample of core 1.
func line(writes int) string {
	return fmt.Sprintf("May  6 16:02:11 bigip1 info tmm1[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm=1 subtable=s writes=%d key=k clicks=5 FAST_LOCAL (sampled 1/100)\n", writes)
}

// FuzzParse: whatever a line holds, nothing panics, what the parser remembers
// changes nothing, and a sample's fields are where they say.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		line(1), "tmm=1 subtable=s writes=1 key=k clicks=5 SLOW (sampled 1/9)", "<134>1 2026-05-06T16:02:11.482-07:00 bigip1 tmm 16963 - [F5@12276 a=\"]\"] tmm=1 subtable=s",
		"PROBE tmm=3 subtable=uuid_01 clicks=2104 entries=4 NON_OWNER", "05-06 16:02:11 info bigip1 tmm2[16963]: Rule x <A> tmm=", "May  6 16:02:14 bigip1 last message repeated 5 times",
		"tmm=1 subtable=localdb_tmm_1_922743 initialized after 3 probes (diff=-11 clicks of 4 total TMMs)",
		"tmm=1 WARNING could not find local subtable after 200 probes; using localdb_tmm_1_4711 (last diff=-5210)",
	} {
		f.Add([]byte(s), []byte(line(2)))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var fresh, warm logline.Parser
		var l, m logline.Line
		for _, x := range [][]byte{a, b, a, b, b, a} {
			warm.Parse(x, &m)
			fresh = logline.Parser{}
			fresh.Parse(x, &l)
			if diff := cmp.Diff(look(&l), look(&m)); diff != "" {
				t.Fatalf("%q: -fresh +after other lines\n%s", x, diff)
			}
			l.Time()
		}
		if l.Kind == logline.KindSample {
			tag := "SLOW"
			if l.Fast {
				tag = "FAST_LOCAL"
			}
			unique := ""
			if l.Unique {
				unique = "unique, "
			}
			// Leading zeros are read but not written again.
			text := fmt.Sprintf(" subtable=%s writes=%d key=%s clicks=%d %s (%ssampled 1/%d)", l.Subtable, l.Writes, l.Key, l.Clicks, tag, unique, l.Rate)
			if !bytes.Contains(a, []byte(text)) && !bytes.Contains(a, []byte("=0")) && !bytes.Contains(a, []byte("/0")) {
				t.Fatalf("%q: read as %q", a, text)
			}
		}
	})
}
