package loader

import (
	"time"

	"tbl/loader/steer"
	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// ErrorCount is what failed in one class.
type ErrorCount struct {
	Class target.Class `json:"class"`
	Count int64        `json:"count"`
	// Example is the first failure's text, At when it happened, from the start.
	Example string `json:"example"`
	AtNS    int64  `json:"at_ns"`
}

// Accounting is where every request went: Sent is OK plus the sum of Errors.
type Accounting struct {
	Sent   int64        `json:"sent"`
	OK     int64        `json:"ok"`
	Failed int64        `json:"failed"`
	Errors []ErrorCount `json:"errors"` // by class, only those that occurred
	// Retries counts further attempts at requests that surely had not arrived;
	// they are no part of Sent.
	Retries int64 `json:"retries"`
	// Connections is how many the target says it opened; 0 where it has none.
	// With a fresh one per request it is not below OK.
	Connections int64 `json:"connections"`
	// ServerClosed and ClientClosed count who closed first, which is where
	// TIME_WAIT piles up. Both are 0 where there are no connections.
	ServerClosed int64 `json:"server_closed"`
	ClientClosed int64 `json:"client_closed"`
}

// ErrorsInput is the account as ERRORS judges it. maxErrors is as in a Config.
func (a *Accounting) ErrorsInput(maxErrors float64) verdict.ErrorsInput {
	in := verdict.ErrorsInput{Sent: a.Sent, MaxShare: maxErrors}
	for _, e := range a.Errors {
		in.Add(e.Class.String(), e.Count, e.Example)
	}
	return in
}

// Latency is a distribution of times, in nanoseconds.
type Latency = timingstats.LatencySummary

// LoadCore is what one core did.
type LoadCore struct {
	Core   timingstats.CoreID `json:"core"`
	Writes int64              `json:"writes"`
	Share  float64            `json:"share"` // of all writes, 0 to 1
	// Response is from the scheduled moment (open loop), or the same as
	// Service (closed loop).
	Response     Latency               `json:"response"`
	Service      Latency               `json:"service"`
	ResponseHist timingstats.Histogram `json:"response_hist"`
	// ServiceHist is empty in a closed loop, where it is ResponseHist.
	ServiceHist timingstats.Histogram `json:"service_hist,omitzero"`
}

// RunSummary is one of several runs.
type RunSummary struct {
	Run int `json:"run"` // from 1
	// Started is the moment, on the target's clock, from which the run's figures
	// and its series count: the first request's, or the end of the warm-up.
	Started    time.Time `json:"started"`
	Sent       int64     `json:"sent"`
	OK         int64     `json:"ok"`
	Failed     int64     `json:"failed"`
	Writes     int64     `json:"writes"`
	ElapsedNS  int64     `json:"elapsed_ns"`
	WritesPerS float64   `json:"writes_per_s"`
	// Deleted is what the reset before the run removed.
	Deleted int64 `json:"deleted"`
	// Series is the run second by second, from the end of its warm-up.
	Series timingstats.SeriesSummary `json:"series"`
}

// LoadResult is what a Load did.
type LoadResult struct {
	Target string `json:"target"`
	Mode   string `json:"mode"` // count, file, coverage, duration
	// Partial says that the run was cut short, Stop why; empty when it wasn't.
	Partial bool   `json:"partial"`
	Stop    string `json:"stop,omitempty"`
	Virtual bool   `json:"virtual_clock"`
	Workers int    `json:"workers"`
	Seed    uint64 `json:"seed"`

	Accounting
	Requested int64 `json:"requested"` // writes asked for, 0 where not known beforehand

	// ElapsedNS is the time from the first request's start to the last one's
	// end, over all runs and without pauses, and without the warm-up.
	ElapsedNS int64 `json:"elapsed_ns"`
	// WritesPerS is successful writes over ElapsedNS. WallPerWriteNS is its
	// inverse: the time that passed per write with all workers together, not
	// the time that a write takes.
	WritesPerS     float64 `json:"writes_per_s"`
	WallPerWriteNS float64 `json:"wall_per_write_ns"`
	// WarmupSent of Sent were before the figures began.
	WarmupSent int64 `json:"warmup_sent"`

	// OfferedPerS is the open-loop schedule's mean rate over the run,
	// AchievedPerS what was sent, LateMaxNS the latest start after its
	// scheduled moment. All 0 in a closed loop.
	OpenLoop     bool    `json:"open_loop"`
	OfferedPerS  float64 `json:"offered_per_s"`
	AchievedPerS float64 `json:"achieved_per_s"`
	LateMaxNS    int64   `json:"late_max_ns"`
	// ShapedSchedule says that the schedule's rate changes over the run, so
	// that the throughput's course says nothing about the target.
	ShapedSchedule bool `json:"shaped_schedule,omitempty"`

	Response Latency `json:"response"`
	Service  Latency `json:"service"`
	// ResponseHist and ServiceHist are the same as histograms.
	ResponseHist timingstats.Histogram `json:"response_hist"`
	ServiceHist  timingstats.Histogram `json:"service_hist"`
	// Connect and FirstByte are parts of Service; N is 0 where the target has
	// no connections.
	Connect       Latency               `json:"connect"`
	FirstByte     Latency               `json:"first_byte"`
	ConnectHist   timingstats.Histogram `json:"connect_hist,omitzero"`
	FirstByteHist timingstats.Histogram `json:"first_byte_hist,omitzero"`

	KnownCores int `json:"known_cores"` // the dataplane's own count, 0: it doesn't say
	// SourcePorts is how many ports the connections came from, over and over;
	// 0 where each request is as good as a new one. Of merged runs it is the
	// number that spreads as their ports do together.
	SourcePorts int        `json:"source_ports,omitempty"`
	Cores       []LoadCore `json:"cores"`
	// Missing are the known cores without a write; where the reset before a run
	// didn't reach every core, those that it didn't.
	Missing []timingstats.CoreID `json:"missing"`

	// Runs are the runs one by one: one unless several were asked for.
	Runs     []RunSummary  `json:"runs"`
	Steering *steer.Result `json:"steering,omitempty"`

	Warnings []string          `json:"warnings"`
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// Elapsed is ElapsedNS as a duration.
func (r *LoadResult) Elapsed() time.Duration { return time.Duration(r.ElapsedNS) }

// BulkCore is what one core did.
type BulkCore struct {
	Core   timingstats.CoreID `json:"core"`
	Posts  int64              `json:"posts"`
	Writes int64              `json:"writes"`
	Share  float64            `json:"share"` // of all writes, 0 to 1
	// The clicks per write of its batches: the smallest, the mean over all
	// writes, and the largest.
	MinClicks float64 `json:"min_clicks_per_write"`
	AvgClicks float64 `json:"avg_clicks_per_write"`
	MaxClicks float64 `json:"max_clicks_per_write"`
	// Batches is over the batches' clicks per write, rounded: N counts posts.
	Batches  timingstats.CoreSummary `json:"batches"`
	Response Latency                 `json:"response"`
	// BatchesHist and ResponseHist are the same as histograms.
	BatchesHist  timingstats.Histogram `json:"batches_hist"`
	ResponseHist timingstats.Histogram `json:"response_hist"`
}

// BulkResult is what a Bulk did. Accounting counts posts.
type BulkResult struct {
	Target  string `json:"target"`
	Partial bool   `json:"partial"`
	Stop    string `json:"stop,omitempty"`
	Virtual bool   `json:"virtual_clock"`
	Workers int    `json:"workers"`
	Seed    uint64 `json:"seed"`

	Accounting
	Requested  int64 `json:"requested"`  // posts asked for, 0 where not known beforehand
	KeysSent   int64 `json:"keys_sent"`  // keys in posts that succeeded or failed
	Written    int64 `json:"written"`    // what the dataplane says it wrote
	Mismatches int64 `json:"mismatches"` // posts whose written differed from their keys: errors of class malformed
	BytesSent  int64 `json:"bytes_sent"` // bodies only

	ElapsedNS      int64   `json:"elapsed_ns"`
	WritesPerS     float64 `json:"writes_per_s"`
	BytesPerS      float64 `json:"bytes_per_s"`
	WallPerWriteNS float64 `json:"wall_per_write_ns"`
	Threshold      int64   `json:"threshold_clicks"`

	Response     Latency               `json:"response"`
	ResponseHist timingstats.Histogram `json:"response_hist"`

	KnownCores  int                  `json:"known_cores"`
	SourcePorts int                  `json:"source_ports,omitempty"` // as in a LoadResult
	Cores       []BulkCore           `json:"cores"`
	Missing     []timingstats.CoreID `json:"missing"` // as in a LoadResult

	Runs []RunSummary `json:"runs"` // their series count keys

	Warnings []string          `json:"warnings"`
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// Elapsed is ElapsedNS as a duration.
func (r *BulkResult) Elapsed() time.Duration { return time.Duration(r.ElapsedNS) }
