package app

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if raceEnabled {
		// Ten times as slow, and timings are what is judged: a longer click keeps
		// own writes far below the threshold, a delay others' far above.
		os.Setenv("TBL_CLICK", "200ns")
		os.Setenv("TBL_HANDOFF_DELAY", "1ms")
	}
	os.Exit(m.Run())
}
