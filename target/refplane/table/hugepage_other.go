//go:build !linux

package table

// largePages asks for large pages on Linux only.
func largePages[T any]([]T) {}
