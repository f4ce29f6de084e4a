package app

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if raceEnabled {
		// Ten times as slow, and timings are what is judged.
		os.Setenv("TBL_CLICK", "200ns")
	}
	os.Exit(m.Run())
}
