//go:build !race

package logparse_test

const raceDetector = false
