//go:build !amd64

package table

import "unsafe"

func prefetch(*uint64) {}

func prefetchWrite(unsafe.Pointer) {}
