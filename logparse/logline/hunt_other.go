//go:build !amd64

package logline

// canHunt is false: each line is parsed.
const canHunt = false

func hunt([]byte) (pos, lines, start int, hit bool) { return 0, 0, 0, false }

func prefetch(*byte) {}
