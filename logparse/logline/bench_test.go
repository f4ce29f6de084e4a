package logline_test

import (
	"testing"

	"tbl/logparse/logline"
)

// BenchmarkParse is the parser alone, per line.
func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"sample", "May  6 16:02:11 bigip1 info tmm2[16963]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm=2 subtable=localdb_tmm_2_5948 writes=1000 key=loadkey_17529 clicks=2 FAST_LOCAL (sampled 1/1000)"},
		{"other", "May  6 16:02:12 bigip1 notice mcpd[6123]: 01070410:5: Removed subscription with subscriber id 17.cli and some more text"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p logline.Parser
			var l logline.Line
			line := []byte(c.line)
			b.ReportAllocs()
			for b.Loop() {
				p.Parse(line, &l)
			}
		})
	}
}
