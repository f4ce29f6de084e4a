//go:build !race

package loader

// RaceDetector says that the race detector is on: it allocates on its own and
// slows everything down tenfold.
const RaceDetector = false
