package refplane

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Config sets up a Plane. The zero value is the healthy default: four cores
// on real threads, random seed, sampled log off because there is no writer.
type Config struct {
	// Cores is the number of cores, 1 to 256. Zero: 4.
	Cores int
	// Seed decides ownership, the disaggregator's hash, names, invented
	// connections, and under the model clock everything. Zero: random.
	Seed uint64
	// Clock is wall (the zero value) or model.
	Clock ClockKind
	// DAG says what the accepting core is a hash of. Zero: the whole 4-tuple.
	DAG DAGKind
	// Click is the unit that timings are counted in. Zero: 10 ns. A slow
	// machine or the race detector needs a longer one for own writes to stay
	// far below Threshold.
	Click time.Duration
	// HandoffDelay is added to every operation on a subtable of another core.
	// Zero: none.
	HandoffDelay time.Duration
	// MaxTries bounds the names that a core tries to find one of its own.
	// Zero: max(200, 25·Cores).
	MaxTries int
	// Threshold is the number of clicks from which a write counts as remote.
	// Zero: 100.
	Threshold int64
	// LogSample: one in so many writes of a core is timed and logged. Zero:
	// 1000; 1: every write; negative: none.
	LogSample int
	// Log receives the sampled lines. Whole lines only, from one goroutine. A
	// failed write ends the log; the bytes it was given are not used again.
	// Nil: no log is written and no write is sampled, but that chatty-log's lines
	// are counted.
	Log io.Writer
	// Faults are the mistakes to make; of one kind the last counts.
	Faults []Fault
	// Slot is the blade's number on a chassis, printed in answers and log
	// lines. Zero: no chassis.
	Slot int
}

// ClockKind chooses the time a Plane lives in.
type ClockKind uint8

// The clocks.
const (
	Wall  ClockKind = iota // real threads, real time
	Model                  // single-threaded simulation in virtual time; 1 % of the timings carry noise unless the fault jitter says otherwise
)

// DAGKind says what the disaggregator hashes to pick the accepting core.
type DAGKind uint8

// The hashes.
const (
	Tuple DAGKind = iota // both addresses and both ports
	Ports                // both ports
	SrcIP                // the source address: a client reaches one core only
)

var clockNames = [...]string{Wall: "wall", Model: "model"}
var dagNames = [...]string{Tuple: "tuple", Ports: "ports", SrcIP: "src-ip"}

// String is the clock as the command line spells it.
func (k ClockKind) String() string { return clockNames[k] }

// String is the hash as the command line spells it.
func (k DAGKind) String() string { return dagNames[k] }

// ClockNames lists the clocks for help and validation; the index is the
// ClockKind.
func ClockNames() []string { return append([]string(nil), clockNames[:]...) }

// DAGNames lists the hashes for help and validation; the index is the DAGKind.
func DAGNames() []string { return append([]string(nil), dagNames[:]...) }

// ParseClock reads a name of ClockNames.
func ParseClock(s string) (ClockKind, error) {
	for i, n := range clockNames {
		if n == s {
			return ClockKind(i), nil
		}
	}
	return 0, fmt.Errorf("clock %q: want wall or model", s)
}

// ParseDAG reads a name of DAGNames.
func ParseDAG(s string) (DAGKind, error) {
	for i, n := range dagNames {
		if n == s {
			return DAGKind(i), nil
		}
	}
	return 0, fmt.Errorf("dag %q: want tuple, ports or src-ip", s)
}

// withDefaults fills the zero values and refuses what makes no sense. A zero
// seed stays zero: New draws it.
func (c Config) withDefaults() (Config, error) {
	if c.Cores == 0 {
		c.Cores = 4
	}
	if c.Cores < 1 || c.Cores > 256 {
		return c, fmt.Errorf("cores %d: want 1 to 256", c.Cores)
	}
	if c.Clock > Model {
		return c, fmt.Errorf("clock %d: unknown", c.Clock)
	}
	if c.DAG > SrcIP {
		return c, fmt.Errorf("dag %d: unknown", c.DAG)
	}
	if c.Click == 0 {
		c.Click = 10 * time.Nanosecond
	}
	if c.Click < 0 || c.HandoffDelay < 0 || c.MaxTries < 0 || c.Threshold < 0 || c.Slot < 0 {
		return c, errors.New("click, handoff delay, max tries, threshold and slot: none may be negative")
	}
	if c.MaxTries == 0 {
		c.MaxTries = DefaultMaxTries(c.Cores)
	}
	if c.Threshold == 0 {
		c.Threshold = 100
	}
	if c.LogSample == 0 {
		c.LogSample = 1000
	}
	if c.LogSample < 0 || c.Log == nil {
		c.LogSample = 0
	}
	for _, f := range c.Faults {
		if !slices.ContainsFunc(FaultKinds(), func(k FaultKind) bool { return k.Name == f.Name }) {
			return c, fmt.Errorf("fault %q: unknown", f.Name)
		}
		if (f.Name == DeadCore || f.Name == Stall) && f.Core >= c.Cores {
			return c, fmt.Errorf("fault %s: there are only %d cores", f, c.Cores)
		}
		if f.Name == DeadCore && c.Cores == 1 {
			return c, fmt.Errorf("fault %s: the only core can't be dead", f)
		}
		if f.Name == DAGSkew && len(f.Weights) > c.Cores {
			return c, fmt.Errorf("fault %s: more weights than the %d cores", f, c.Cores)
		}
	}
	if r := newDAG(c).ramp; r != nil && r[len(r)-1] == 0 {
		return c, errors.New("faults: no core is left to accept connections")
	}
	return c, nil
}

// DefaultMaxTries is how many names a core tries by default on a dataplane of
// so many cores.
func DefaultMaxTries(cores int) int { return max(200, 25*cores) }

// DiscoveryOdds is the probability that on a dataplane of so many cores at
// least one finds no name of its own within tries: 1−(1−q)^N with
// q = (1−1/N)^tries.
func DiscoveryOdds(cores, tries int) float64 {
	if cores <= 1 {
		return 0
	}
	n := float64(cores)
	q := math.Exp(float64(tries) * math.Log1p(-1/n))
	return -math.Expm1(n * math.Log1p(-q))
}
