package loader

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tbl/loader/pace"
	"tbl/loader/source"
	"tbl/target"
)

// The errors on which a caller decides.
var (
	// ErrConfig is wrapped by every error about a configuration's values.
	// Nothing was sent then.
	ErrConfig = errors.New("invalid configuration")
	// ErrUnreachable says that no request got through: refused, timed out, cut.
	ErrUnreachable = errors.New("target unreachable")
	// ErrNoDataplane says that something answered, but no dataplane: a web
	// server, say, that has a 200 for everything.
	ErrNoDataplane = errors.New("no dataplane behind the target")
	// ErrAllFailed says that a dataplane answers, but nothing ever succeeded.
	ErrAllFailed = errors.New("every request failed")
	// ErrNotCleared says that the reset between two runs did not reach every core.
	ErrNotCleared = errors.New("reset between runs incomplete")
)

// The defaults that a zero field of a Config stands for.
const (
	DefaultMinWritesPerCore = 5
	DefaultMaxConnections   = 5000
	DefaultWorkers          = 32
	DefaultKeyPrefix        = "loadkey"
	DefaultValueSize        = 1
	DefaultKeySpace         = 1_000_000
	DefaultMaxErrors        = 0.01

	DefaultNumPosts     = 64
	DefaultUUIDsPerPost = 15_625
	DefaultBulkWorkers  = 16

	// MaxBody is the largest body a dataplane takes, in bytes (16 MiB).
	MaxBody = 16 << 20
)

// Stage is a stretch of an open-loop schedule.
type Stage = pace.Stage

// Source gives out the keys and values to write, in order. See source.OpenCSV.
//
// Next appends the next row's key to key[:0] and value to value[:0] and
// returns them, or io.EOF after the last. It is called from many workers.
type Source interface {
	Next(key, value []byte) (k, v []byte, err error)
}

// LoadConfig says what Load writes. The zero value writes coverage-driven:
// until every core has DefaultMinWritesPerCore writes, on at most
// DefaultMaxConnections connections.
//
// How the run ends: Source set, at the end of the source; Count set, after
// that many writes; Duration set, after that time; whichever comes first. None
// of them set: coverage.
type LoadConfig struct {
	// Count is how many writes. 0: not limited by count.
	Count int64
	// Source gives keys and values. Nil: they are generated.
	Source Source
	// SourceRows is how many rows Source has, when known, for the progress and
	// to say what is missing from a partial run. 0: not known.
	SourceRows int64
	// MinWritesPerCore and MaxConnections bound a coverage-driven run.
	// 0: the defaults.
	MinWritesPerCore, MaxConnections int64
	// Duration ends the issuing of requests; those on their way are waited
	// for. 0: not limited by time.
	Duration time.Duration
	// Warmup is how long requests are sent, and accounted for, before the
	// figures (rates, latencies, series) begin. 0: none.
	Warmup time.Duration

	// Workers is how many requests are on their way at most. 0: 32.
	Workers int
	// Rate is the open-loop schedule's requests per second. 0, with no Stages:
	// closed loop, every worker as fast as it is answered.
	Rate float64
	// Ramp lets the rate grow in a straight line from 0 to Rate over that
	// time. It needs Rate. 0: at once.
	Ramp time.Duration
	// Stages is the open-loop schedule, instead of Rate and Ramp. The run ends
	// with the last stage.
	Stages []Stage

	// Keys is the kind of generated keys. The zero value is source.KeysSeq.
	Keys source.Keys
	// KeyPrefix of generated keys. Empty: "loadkey".
	KeyPrefix string
	// KeySpace is the number of distinct keys of source.KeysZipf. 0: 1,000,000.
	KeySpace int64
	// Value is written with every generated key. Nil: ValueSize bytes of '1'.
	Value []byte
	// ValueSize is the size of the value, in bytes. 0: 1.
	ValueSize int
	// Seed makes generated keys repeatable. 0: fresh ones from the operating
	// system, except in virtual time, where it is a seed like any other.
	Seed uint64

	// Retries is how often a write is tried again that surely did not arrive.
	// 0: never.
	Retries int
	// MaxErrors is the share of failed requests above which the run fails.
	// 0: 0.01. Negative: none may fail.
	MaxErrors float64
	// MaxImbalance is how many times the mean a core may hold, 1 or more,
	// before BALANCE warns. 0: 1.25.
	MaxImbalance float64

	// Steer picks source ports so that every core gets an even share. OnlyCore
	// picks those that reach one core; it implies Steer.
	Steer    bool
	OnlyCore *int

	// Runs repeats the run, with a reset of every core before each. 0: 1,
	// without a reset. The last run's entries stay. Not with a Source.
	Runs int
	// Pause is between two runs. 0: none.
	Pause time.Duration
	// StartAt is the moment of the first request, on the target's clock: what
	// has to be learnt about the target is learnt before. It lets several
	// clients start together. Zero, or past: at once.
	StartAt time.Time

	// Progress is filled while the run goes on. Nil: nobody watches.
	Progress *Progress
}

// ModeOf names how the run ends: "file", "count", "duration" or "coverage".
func (c *LoadConfig) ModeOf() string {
	switch {
	case c.Source != nil:
		return "file"
	case c.Count > 0:
		return "count"
	case c.Duration > 0 || len(c.Stages) > 0:
		return "duration"
	}
	return "coverage"
}

func (c *LoadConfig) openLoop() bool { return c.Rate > 0 || len(c.Stages) > 0 }

// Validate checks the values. Its errors wrap ErrConfig.
func (c *LoadConfig) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	switch {
	case c.Count < 0:
		return bad("count %d: want 0 or more", c.Count)
	case c.Count > 0 && c.Source != nil:
		return bad("a count and a source: want one of them")
	case c.MinWritesPerCore < 0:
		return bad("minimum writes per core %d: want 0 or more", c.MinWritesPerCore)
	case c.MaxConnections < 0:
		return bad("maximum connections %d: want 0 or more", c.MaxConnections)
	case c.Duration < 0 || c.Warmup < 0 || c.Pause < 0 || c.Ramp < 0:
		return bad("negative duration, warm-up, pause or ramp")
	case c.Duration > 0 && c.Warmup >= c.Duration:
		return bad("warm-up %v: want less than the duration %v", c.Warmup, c.Duration)
	case c.Workers < 0 || c.Workers > maxWorkers:
		return bad("workers %d: want 1 to %d", c.Workers, maxWorkers)
	case !(c.Rate >= 0 && c.Rate <= maxRate):
		return bad("rate %v: want 0 to %v per second", c.Rate, float64(maxRate))
	case c.Ramp > 0 && c.Rate == 0:
		return bad("a ramp without a rate")
	case c.Rate > 0 && len(c.Stages) > 0:
		return bad("a rate and stages: want one of them")
	case !c.Keys.Valid():
		return bad("keys %v", c.Keys)
	case c.KeySpace < 0:
		return bad("key space %d: want 1 or more", c.KeySpace)
	case c.ValueSize < 0 || c.ValueSize > 1<<20:
		return bad("value size %d: want 0 to %d bytes", c.ValueSize, 1<<20)
	case c.Retries < 0:
		return bad("retries %d: want 0 or more", c.Retries)
	case c.MaxErrors != c.MaxErrors || c.MaxErrors > 1:
		return bad("maximum share of errors %v: want up to 1", c.MaxErrors)
	case c.MaxImbalance != 0 && !(c.MaxImbalance >= 1 && !math.IsInf(c.MaxImbalance, 0)):
		return bad("maximum imbalance %v: want 1 or more", c.MaxImbalance)
	case c.OnlyCore != nil && *c.OnlyCore < 0:
		return bad("core %d: want 0 or more", *c.OnlyCore)
	case c.Runs < 0:
		return bad("runs %d: want 1 or more", c.Runs)
	case c.Runs > 1 && c.Source != nil:
		return bad("several runs of one source: it can be read once only")
	}
	total := time.Duration(0)
	for i, s := range c.Stages {
		if s.Duration <= 0 || !(s.Rate >= 0 && s.Rate <= maxRate) {
			return bad("stage %d: %v at %v per second", i+1, s.Duration, s.Rate)
		}
		total += s.Duration
	}
	if len(c.Stages) > 0 && c.Warmup >= total {
		return bad("warm-up %v: want less than the stages' %v", c.Warmup, total)
	}
	return nil
}

const (
	maxWorkers = 1 << 16
	maxRate    = 1e9
)

// BulkConfig says what Bulk posts. The zero value posts 64 bodies of 15,625
// fresh UUIDs each, 1,000,000 writes in all, by 16 workers.
type BulkConfig struct {
	// NumPosts is how many bodies. 0: 64, or with Source as many as it fills.
	NumPosts int
	// UUIDsPerPost is the number of keys in a body. 0: 15,625, or with
	// BatchBytes as many as fit.
	UUIDsPerPost int
	// BatchBytes bounds a body by its size. 0: by the count, and never above
	// MaxBody.
	BatchBytes int
	// Workers is how many bodies are on their way at most. 0: 16. In real time
	// each has a goroutine beside it that makes its bodies ahead of the send, two
	// in turn; all have ended when Bulk returns.
	Workers int
	// Runs repeats all posts, with a reset of every core before each time. 0:
	// 1, without a reset.
	Runs int
	// Pause is between two runs. 0: none.
	Pause time.Duration
	// StartAt is as in LoadConfig.
	StartAt time.Time
	// Source gives the keys (its values are not used). Nil: fresh UUIDs.
	Source Source
	// ReuseBodies sends one body again and again, all workers the same: it
	// measures the wire, and writes the same keys.
	ReuseBodies bool
	// Timeout is what a post may take, plus one second for each 100,000 keys
	// or 4 MiB of it. 0: as long as the target lets it. In virtual time there
	// is none.
	Timeout time.Duration
	// Seed makes the UUIDs repeatable. 0: fresh ones, as in LoadConfig.
	Seed uint64
	// Retries is how often a body is posted again that surely did not arrive.
	Retries int
	// MaxErrors is the share of failed posts above which the run fails. 0: 0.01.
	// Negative: none may fail.
	MaxErrors float64
	// MaxImbalance is as in LoadConfig.
	MaxImbalance float64
	// Threshold is the clicks per write from which a batch counts as remote.
	// 0: the verdicts' default of 100.
	Threshold int64
	// Progress is filled while the run goes on, in keys. Nil: nobody watches.
	Progress *Progress
}

// Validate checks the values. Its errors wrap ErrConfig.
func (c *BulkConfig) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...)
	}
	switch {
	case c.NumPosts < 0:
		return bad("posts %d: want 1 or more", c.NumPosts)
	case c.UUIDsPerPost < 0:
		return bad("keys per post %d: want 1 or more", c.UUIDsPerPost)
	case c.BatchBytes < 0 || c.BatchBytes > MaxBody:
		return bad("batch size %d: want up to %d bytes", c.BatchBytes, MaxBody)
	case c.Source == nil && c.UUIDsPerPost > MaxBody/source.UUIDLine:
		return bad("keys per post %d: a body of %d bytes is over the limit of %d bytes (%d keys)",
			c.UUIDsPerPost, int64(c.UUIDsPerPost)*source.UUIDLine, MaxBody, MaxBody/source.UUIDLine)
	case c.Source == nil && c.BatchBytes > 0 && c.BatchBytes < source.UUIDLine:
		return bad("batch size %d: a key alone takes %d bytes", c.BatchBytes, source.UUIDLine)
	case c.Workers < 0 || c.Workers > maxWorkers:
		return bad("workers %d: want 1 to %d", c.Workers, maxWorkers)
	case c.Runs < 0:
		return bad("runs %d: want 1 or more", c.Runs)
	case c.Runs > 1 && c.Source != nil:
		return bad("several runs of one source: it can be read once only")
	case c.Source != nil && c.ReuseBodies:
		return bad("bodies of a source can't be used again")
	case c.Pause < 0 || c.Timeout < 0:
		return bad("negative pause or time-out")
	case c.Retries < 0:
		return bad("retries %d: want 0 or more", c.Retries)
	case c.MaxErrors != c.MaxErrors || c.MaxErrors > 1:
		return bad("maximum share of errors %v: want up to 1", c.MaxErrors)
	case c.MaxImbalance != 0 && !(c.MaxImbalance >= 1 && !math.IsInf(c.MaxImbalance, 0)):
		return bad("maximum imbalance %v: want 1 or more", c.MaxImbalance)
	case c.Threshold < 0:
		return bad("threshold %d: want 1 or more clicks", c.Threshold)
	}
	return nil
}

// unreached tells the classes that mean that no server was reached.
func unreached(c target.Class) bool {
	switch c {
	case target.ClassRefused, target.ClassTimeout, target.ClassReset, target.ClassAddressExhausted, target.ClassTLS, target.ClassTruncated:
		return true
	}
	return false
}
