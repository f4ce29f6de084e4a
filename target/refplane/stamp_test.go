package refplane

import (
	"testing"
	"time"
)

// TestStamp: the text kept of a second is that of the second, forwards and
// backwards.
func TestStamp(t *testing.T) {
	var s stamp
	base := time.Date(2026, 12, 31, 23, 59, 58, 0, time.FixedZone("", 3600))
	for _, after := range []time.Duration{
		0, 7 * time.Millisecond, 45 * time.Millisecond, 999 * time.Millisecond, time.Second, time.Second + 120*time.Millisecond,
		time.Hour, time.Millisecond, -time.Second, 40 * 24 * time.Hour, -(base.Sub(time.Unix(0, 0))),
	} {
		now := base.Add(after)
		want := now.UTC().Format("2006-01-02T15:04:05.000") + "+00:00"
		if got := string(s.append([]byte("x"), now)); got != "x"+want {
			t.Errorf("%v: %s, want %s", after, got, want)
		}
	}
}
