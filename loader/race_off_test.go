//go:build !race

package loader

// raceDetector says that the race detector is on: it allocates on its own and
// slows everything down tenfold.
const raceDetector = false
