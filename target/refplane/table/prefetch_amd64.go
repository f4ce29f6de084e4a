package table

import "unsafe"

// prefetch asks for p's cache line and doesn't wait for it.
//
//go:noescape
func prefetch(p *uint64)

// prefetchWrite is prefetch for a line that will be written.
//
//go:noescape
func prefetchWrite(p unsafe.Pointer)
