//go:build !linux

package refplane

import "time"

// threadTime is the processor time of the calling thread, which is not known
// on this system.
func threadTime() (spent time.Duration, ok bool) { return 0, false }
