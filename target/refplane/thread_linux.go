package refplane

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that the calling thread has had so far; ok
// is false where the system doesn't tell. It is a system call: for long work,
// not for a single write.
func threadTime() (spent time.Duration, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
