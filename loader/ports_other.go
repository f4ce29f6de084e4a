//go:build !linux

package loader

// ReadPortEnv can't ask this system.
func ReadPortEnv() PortEnv { return PortEnv{} }
