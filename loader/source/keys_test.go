package source

import (
	"strings"
	"testing"
)

// batch is a usual number of keys in a body.
const batch = 15_625

func TestUUIDs(t *testing.T) {
	body := FillUUIDs(nil, 1000, NewRandom())
	seen := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		u := strings.TrimSuffix(line, "\n")
		if len(u) != 36 || u[8] != '-' || u[13] != '-' || u[18] != '-' || u[23] != '-' || u[14] != '4' ||
			!strings.ContainsRune("89ab", rune(u[19])) || strings.Trim(u, "0123456789abcdef-") != "" {
			t.Fatalf("no version-4 UUID: %q", u)
		}
		seen[u] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d distinct of 1000", len(seen))
	}
	var b [36]byte
	putUUID(b[:], 0x0123456789abcdef, 0x0123456789abcdef)
	if string(b[:]) != "01234567-89ab-4def-8123-456789abcdef" {
		t.Errorf("got %s", b[:])
	}
}

func BenchmarkFillUUIDs(b *testing.B) {
	r := NewRandom()
	body := FillUUIDs(nil, batch, r)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		body = FillUUIDs(body, batch, r)
		n += batch
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mkeys/s")
}
