// Package session answers whether one subtable per session is good for speed
// and memory: it plays the life of many sessions, arrivals, visits and
// departures, against three ways to lay their keys out on a dataplane, and
// lays the costs side by side.
package session

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrConfig is wrapped by every error about a configuration's values.
var ErrConfig = errors.New("invalid configuration")

// ErrUnsupported says that the dataplane has no table endpoint.
var ErrUnsupported = errors.New("the dataplane offers no table operations")

// ErrUnreachable says that no request got through.
var ErrUnreachable = errors.New("target unreachable")

// Design is a way to lay out the keys of sessions.
type Design string

// The designs.
const (
	PerSession Design = "per-session" // one subtable per session
	Shared     Design = "shared"      // one subtable for all, keys prefixed with the session
	Local      Design = "local"       // each core's own subtable, prefixed keys, sessions held to one core
)

// designs is the table of the designs, in the order of the results.
var designs = []struct {
	name  Design
	title string
}{
	{PerSession, "one subtable per session"},
	{Shared, "one shared subtable, prefixed keys"},
	{Local, "per-core local subtable, prefixed keys, affinity"},
}

// Designs lists all of them.
func Designs() []Design {
	var out []Design
	for _, d := range designs {
		out = append(out, d.name)
	}
	return out
}

// Title says in words what the design is.
func (d Design) Title() string {
	for _, x := range designs {
		if x.name == d {
			return x.title
		}
	}
	return string(d)
}

// The defaults that a zero field of a Config stands for.
const (
	DefaultSessions  = 100_000
	DefaultKeys      = 10
	DefaultVisits    = 3
	DefaultLookups   = 3
	DefaultWorkers   = 32
	DefaultThink     = 30 * time.Second
	DefaultArrivals  = 1000 // sessions per second, in virtual time
	DefaultTimeout   = 1800 // seconds
	DefaultLifetime  = 3600 // seconds
	DefaultEnumerate = 0.10
	DefaultWrite     = 0.30
	DefaultLeave     = 0.50
	DefaultScans     = 12
)

// Mix is how many of a session's keys have which timer. The zero value stands
// for 60 % with an idle timeout, 30 % with a lifetime, 10 % for ever.
type Mix struct {
	Timeout    float64 `json:"timeout"`
	Lifetime   float64 `json:"lifetime"`
	Indefinite float64 `json:"indefinite"`
}

// Config is the workload. The zero value is 100,000 sessions of 10 keys.
type Config struct {
	Sessions int64 // 0: 100,000
	Keys     int   // of a session. 0: 10
	// Visits is the mean number of visits of a session after its first, in
	// which its keys are written. 0: 3. Negative: none.
	Visits int
	// Think is the mean time between two visits of a session; the times are
	// exponentially distributed. 0: 30 s. Negative: none.
	Think time.Duration
	// Arrivals is how many sessions begin per second. 0: in virtual time
	// 1,000; in real time the visits come in the order that this would give,
	// but as fast as they are answered.
	Arrivals float64
	// Zipf makes few sessions popular: visits are Zipf-distributed over the
	// sessions instead of uniformly.
	Zipf bool
	// Lookups is how many known keys a visit looks up. 0: 3. Negative: none.
	Lookups int
	// Enumerate is the share of visits that don't know the session's keys and
	// list them; Write that of visits that write one key anew; Leave that of
	// sessions whose last visit deletes them. 0: 10 %, 30 %, 50 %. Negative:
	// none.
	Enumerate, Write, Leave float64
	Mix                     Mix
	// Timeout and Lifetime are those of the keys that have one, in seconds.
	// 0: 1,800 and 3,600.
	Timeout, Lifetime int64
	// ValueSize in bytes. 0: 16.
	ValueSize int
	Workers   int    // 0: 32
	Seed      uint64 // of sessions, visits and choices; 0 is a seed like any
	// Designs to compare. Nil: all.
	Designs []Design
	// Scans is how often a whole subtable is listed to show what enumeration
	// without an index would cost where sessions share one, at as many of the
	// visits. 0: 12. Negative, or where nothing is enumerated: never.
	Scans int
	// MaxErrors is the share of requests that may fail: ERRORS judges by it,
	// and a design with more is not compared. 0: verdict.DefaultMaxErrors.
	// Negative: none.
	MaxErrors float64
	// Progress is filled while the run goes on. Nil: nobody watches.
	Progress *Progress
}

func share(v, def float64) float64 {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}

func count[T int | int64 | time.Duration | float64](v, def T) T {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}

// withDefaults checks the values and fills in the defaults.
func (c Config) withDefaults() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return c, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	unit := func(v float64) bool { return v <= 1 && !math.IsNaN(v) }
	switch {
	case c.Sessions < 0:
		return bad("sessions %d: want 1 or more", c.Sessions)
	case c.Keys < 0 || c.Keys > 10_000:
		return bad("keys %d: want 1 to 10,000", c.Keys)
	case !(c.Arrivals >= 0) || math.IsInf(c.Arrivals, 0):
		return bad("arrivals %v: want 0 or more per second", c.Arrivals)
	case c.ValueSize < 0 || c.ValueSize > 1<<20:
		return bad("value size %d: want 0 to %d", c.ValueSize, 1<<20)
	case !unit(c.Enumerate) || !unit(c.Write) || !unit(c.Leave):
		return bad("shares of visits: want up to 1")
	case c.Workers < 0 || c.Workers > 1<<16:
		return bad("workers %d: want 1 to %d", c.Workers, 1<<16)
	case c.Timeout < 0 || c.Lifetime < 0:
		return bad("timeout and lifetime: want 1 second or more")
	case c.Mix.Timeout < 0 || c.Mix.Lifetime < 0 || c.Mix.Indefinite < 0:
		return bad("negative share in the mix of timers")
	}
	for _, d := range c.Designs {
		if d.Title() == string(d) {
			return bad("design %q: want one of %v", d, Designs())
		}
	}
	if len(c.Designs) == 0 {
		c.Designs = Designs()
	}
	c.Sessions = count(c.Sessions, DefaultSessions)
	c.Keys = count(c.Keys, DefaultKeys)
	c.Visits = count(c.Visits, DefaultVisits)
	c.Think = count(c.Think, DefaultThink)
	c.Lookups = count(c.Lookups, DefaultLookups)
	c.Enumerate = share(c.Enumerate, DefaultEnumerate)
	c.Write = share(c.Write, DefaultWrite)
	c.Leave = share(c.Leave, DefaultLeave)
	c.Timeout = count(c.Timeout, DefaultTimeout)
	c.Lifetime = count(c.Lifetime, DefaultLifetime)
	c.ValueSize = count(c.ValueSize, 16)
	c.Workers = count(c.Workers, DefaultWorkers)
	c.Scans = count(c.Scans, DefaultScans)
	if c.Mix == (Mix{}) {
		c.Mix = Mix{Timeout: 0.6, Lifetime: 0.3, Indefinite: 0.1}
	}
	sum := c.Mix.Timeout + c.Mix.Lifetime + c.Mix.Indefinite
	c.Mix = Mix{Timeout: c.Mix.Timeout / sum, Lifetime: c.Mix.Lifetime / sum, Indefinite: c.Mix.Indefinite / sum}
	return c, nil
}
