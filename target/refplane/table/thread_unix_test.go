//go:build unix

package table

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is the calling thread's processor time.
func threadCPU(tb testing.TB) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
