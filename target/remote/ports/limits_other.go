//go:build !linux

package ports

import "time"

// ReadLimits returns the range that RFC 6335 sets aside and twice the usual
// 30 seconds of maximum segment lifetime.
func ReadLimits() Limits {
	return Limits{PortLow: 49152, PortHigh: 65535, TimeWait: time.Minute}
}
