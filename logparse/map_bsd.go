//go:build unix && !linux

package logparse

const mapFlags = 0
