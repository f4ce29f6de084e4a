//go:build !race

package refplane

const raceEnabled = false
