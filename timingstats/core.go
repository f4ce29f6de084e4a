// Package timingstats summarises timings: recorders that accumulate, and
// summaries that are written out. It judges nothing (see verdict).
package timingstats

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// CoreID identifies a core. Slot is its blade on a chassis and 0 where blades
// are unknown; Core is the number within the blade.
type CoreID struct {
	Slot, Core int
}

// String is "2", or "1/2" on a chassis.
func (c CoreID) String() string {
	if c.Slot == 0 {
		return strconv.Itoa(c.Core)
	}
	return strconv.Itoa(c.Slot) + "/" + strconv.Itoa(c.Core)
}

// Compare orders by blade, then by number.
func (c CoreID) Compare(o CoreID) int {
	return cmp.Or(cmp.Compare(c.Slot, o.Slot), cmp.Compare(c.Core, o.Core))
}

// MarshalText writes String's form, also as a JSON key.
func (c CoreID) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// maxID bounds the numbers of blades and cores that are believed: what lists
// the cores that are missing lists all up to the highest.
const maxID = 1 << 16

// UnmarshalText reads it, up to 65,535.
func (c *CoreID) UnmarshalText(b []byte) error {
	slot, core, chassis := strings.Cut(string(b), "/")
	if !chassis {
		slot, core = "0", slot
	}
	s, err1 := strconv.Atoi(slot)
	n, err2 := strconv.Atoi(core)
	if err1 != nil || err2 != nil || s < 0 || n < 0 || s >= maxID || n >= maxID {
		return fmt.Errorf("core %q: want N or SLOT/N", b)
	}
	*c = CoreID{Slot: s, Core: n}
	return nil
}
