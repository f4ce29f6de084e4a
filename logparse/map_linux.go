package logparse

import "golang.org/x/sys/unix"

// mapFlags fills the page table in one go.
const mapFlags = unix.MAP_POPULATE
