package table

// prefetch asks for p's cache line and doesn't wait for it.
//
//go:noescape
func prefetch(p *uint64)
