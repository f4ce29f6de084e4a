package session

import (
	"sync/atomic"

	"tbl/target"
	"tbl/timingstats"
	"tbl/timingstats/verdict"
)

// Progress is what a run lets others see while it goes on. The zero value is
// ready; all fields may be read at any time.
type Progress struct {
	Total, Completed, Errors atomic.Int64 // visits
	Design                   atomic.Int64 // from 1, in the order of Config.Designs
}

// Result is the comparison.
type Result struct {
	Target   string  `json:"target"`
	Virtual  bool    `json:"virtual_clock"`
	Seed     uint64  `json:"seed"`
	Cores    int     `json:"cores"`
	Sessions int64   `json:"sessions"`
	Keys     int     `json:"keys"`
	Visits   int     `json:"visits"`
	ThinkNS  int64   `json:"think_ns"`
	Arrivals float64 `json:"arrivals_per_s"` // 0: as fast as they are answered
	Zipf     bool    `json:"zipf"`
	Mix      Mix     `json:"mix"`
	// TimeoutS and LifetimeS are those of the keys that have one.
	TimeoutS  int64   `json:"timeout_s"`
	LifetimeS int64   `json:"lifetime_s"`
	Enumerate float64 `json:"enumerate"`
	Write     float64 `json:"write"`
	Leave     float64 `json:"leave"`

	Designs []DesignResult `json:"designs"`
	// Best is the recommended design, empty without enough evidence.
	Best           Design   `json:"best"`
	Recommendation []Advice `json:"recommendation"`

	// Verdicts are COVERAGE, over all designs together, and ERRORS.
	Verdicts []verdict.Verdict `json:"verdicts"`

	Partial  bool     `json:"partial"` // cut short by the caller
	Warnings []string `json:"warnings"`
}

// The tables of a result, as Advice names them.
const (
	TableOps    = "operations" // DesignResult's totals: remote share, cost per visit
	TableCost   = "cost"       // DesignResult.Ops
	TableMemory = "memory"     // DesignResult.Load, entries and bytes, growth
)

// Advice is one sentence of the recommendation and the table it follows from.
type Advice struct {
	Text  string `json:"text"`
	Table string `json:"table"`
}

// DesignResult is what one design cost.
type DesignResult struct {
	Design Design `json:"design"`
	Title  string `json:"title"`

	Visits     int64        `json:"visits"` // first ones included
	Operations int64        `json:"operations"`
	OK         int64        `json:"ok"`
	Failed     int64        `json:"failed"`
	Errors     []ErrorCount `json:"errors"`
	ElapsedNS  int64        `json:"elapsed_ns"`
	OpsPerS    float64      `json:"ops_per_s"`

	// RemoteShare is the share of operations that ran on another core than
	// the one that accepted them. RemoteBy says how that is known: "owner" (the
	// dataplane says who owns) or "clicks" (slow ones count as remote).
	Remote      int64   `json:"remote"`
	RemoteShare float64 `json:"remote_share"`
	RemoteBy    string  `json:"remote_by"`
	// TheoryShare is (N−1)/N for designs whose owner has nothing to do with
	// the accepting core, 0 for the local one.
	TheoryShare float64 `json:"theory_share"`

	Ops []OpCost `json:"ops"`
	// ClicksPerVisit sums up Ops without the slowest 2 % of each kind, of few
	// without as many as may be pre-empted by chance: one such sample of 400,000
	// clicks would outweigh a thousand others.
	ClicksPerVisit float64 `json:"clicks_per_visit"`
	// ClicksPerVisitError is how far ClicksPerVisit may be off to either side,
	// with 99 %, by how much sessions differ: designs that differ by less can't
	// be told apart.
	ClicksPerVisitError float64 `json:"clicks_per_visit_error"`
	Misses              int64   `json:"misses"` // look-ups of keys that had expired

	// Scan is what listing a whole subtable costs in the course of the visits,
	// which is the only way to enumerate a session without an index; N is 0
	// where it doesn't apply.
	Scan OpCost `json:"scan"`
	// IndexSets and IndexDeletes are how many of the sets and deletes were of
	// index entries: those that list a session's keys where sessions share a
	// subtable.
	IndexSets    int64 `json:"index_sets"`
	IndexDeletes int64 `json:"index_deletes"`

	Load []CoreLoad `json:"load"`
	// The ratios are max/mean over the cores; 0: not known.
	EntriesRatio  float64             `json:"entries_max_over_mean"`
	BytesRatio    float64             `json:"bytes_max_over_mean"`
	ExecutedRatio float64             `json:"executed_max_over_mean"`
	HotCore       *timingstats.CoreID `json:"hot_core,omitempty"` // executed over 1.25 of the mean, and more than chance makes of so many sessions
	Entries       int64               `json:"entries"`            // at the end of the visits
	Bytes         int64               `json:"bytes"`
	BytesPerEntry float64             `json:"bytes_per_entry"`

	// Indefinite entries are left for good: those that never expire, of
	// sessions that never left. The growth is theirs: by 1,000 sessions that
	// come, and, where sessions come at a rate, by the hour; 0 without one, and
	// where fewer than two came.
	Indefinite       int64   `json:"indefinite_entries"`
	GrowthEntriesP1k float64 `json:"growth_entries_per_1000_sessions"`
	GrowthBytesP1k   float64 `json:"growth_bytes_per_1000_sessions"`
	GrowthEntriesPH  float64 `json:"growth_entries_per_h"`
	GrowthBytesPH    float64 `json:"growth_bytes_per_h"`
	LeftAfterExpiry  int64   `json:"left_after_expiry"`  // measured once all timers had passed; -1: not waited for
	AffinityMisses   int64   `json:"affinity_misses"`    // local design: another core than the session's accepted
	LeftAfterCleanup int64   `json:"left_after_cleanup"` // entries of ours that could not be removed
}

// ErrorCount is what failed in one class.
type ErrorCount struct {
	Class   target.Class `json:"class"`
	Count   int64        `json:"count"`
	Example string       `json:"example"`
}

// OpCost is one kind of operation: server-side clicks and client-side time.
type OpCost struct {
	Op        string  `json:"op"`
	N         int64   `json:"n"`
	MinClicks int64   `json:"min_clicks"`
	P50Clicks int64   `json:"p50_clicks"`
	AvgClicks float64 `json:"avg_clicks"`
	// TrimmedClicks is the mean without the slowest 2 % (see setApart); of
	// listings without the slowest one.
	TrimmedClicks float64                    `json:"trimmed_avg_clicks"`
	P95Clicks     int64                      `json:"p95_clicks"`
	P99Clicks     int64                      `json:"p99_clicks"`
	MaxClicks     int64                      `json:"max_clicks"`
	Latency       timingstats.LatencySummary `json:"latency"`

	off float64 // how far TrimmedClicks may be, with 99 %
}

// CoreLoad is one core's part.
type CoreLoad struct {
	Core     timingstats.CoreID `json:"core"`
	Accepted int64              `json:"accepted"` // operations that reached it
	Executed int64              `json:"executed"` // operations on subtables that it owns; -1: not known
	Entries  int64              `json:"entries"`  // -1: not known
	Bytes    int64              `json:"bytes"`    // -1: not known
}
