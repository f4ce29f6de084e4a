package logparse

import (
	"bytes"
	"testing"
)

func BenchmarkHunt(b *testing.B) {
	buf := bytes.Repeat([]byte("May  6 16:02:12 bigip1 notice mcpd[6123]: 01070410:5: Removed subscription with subscriber id 17.cli\n"), 2500)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, n, _, _ := hunt(buf); n < 2490 {
			b.Fatal(n)
		}
	}
}
func BenchmarkIndexNL(b *testing.B) {
	buf := bytes.Repeat([]byte("May  6 16:02:12 bigip1 notice mcpd[6123]: 01070410:5: Removed subscription with subscriber id 17.cli\n"), 2500)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		for x := buf; len(x) > 0; {
			x = x[bytes.IndexByte(x, '\n')+1:]
		}
	}
}
