package timingstats

// LatencySummary is a distribution of times, written out. With N = 0 the times
// are 0 and mean nothing.
type LatencySummary struct {
	N      int64   `json:"n"`
	MinNS  int64   `json:"min_ns"`
	P50NS  int64   `json:"p50_ns"`
	AvgNS  Average `json:"avg_ns"`
	P90NS  int64   `json:"p90_ns"`
	P95NS  int64   `json:"p95_ns"`
	P99NS  int64   `json:"p99_ns"`
	P999NS int64   `json:"p999_ns"`
	MaxNS  int64   `json:"max_ns"`
	// P99IsMax: with fewer than 100 samples p99 is only the maximum. The same
	// holds for p99.9 below 1,000.
	P99IsMax  bool `json:"p99_is_max"`
	P999IsMax bool `json:"p999_is_max"`
	// OutOfRange counts times that were no sample: negative, or over 73 minutes.
	OutOfRange int64 `json:"out_of_range,omitempty"`
}

// Latency writes r, which holds nanoseconds, out.
func (r *Recorder) Latency() LatencySummary {
	return LatencySummary{
		N: r.N(), MinNS: r.Min(), P50NS: r.Percentile(50), AvgNS: Average(r.Mean()),
		P90NS: r.Percentile(90), P95NS: r.Percentile(95), P99NS: r.Percentile(99),
		P999NS: r.Percentile(99.9), MaxNS: r.Max(),
		P99IsMax: r.N() < 100, P999IsMax: r.N() < 1000, OutOfRange: r.OutOfRange(),
	}
}
