package timingstats

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// DefaultThreshold is the number of clicks from which a write counts as slow:
// own writes take 3 to 25, others' 121 to 300,000.
const DefaultThreshold int64 = 100

// Tag is what the source of a sample said about it.
type Tag uint8

// The tags. The zero value is no tag: such samples are told by the threshold.
const (
	Untagged Tag = iota
	Fast         // FAST_LOCAL, OWNER
	Slow         // SLOW, NON_OWNER
	numTags
)

// CoreRecorder accumulates the timed writes of one core. It keeps single
// samples up to ExactLimit in all, whatever their tags and rates; beyond, its
// memory is bounded by 24 KiB for every power of two that the clicks span. The
// zero value is ready. Not safe for concurrent use.
type CoreRecorder struct {
	strata []stratum // one per sampling rate
	cur    int       // the stratum of the last sample
	kept   int       // samples added while single ones are kept
	full   bool      // they no longer are
}

type stratum struct {
	rate int64
	tags [numTags]Recorder
}

// Add records one sample: its clicks, its tag, and its sampling rate as the N
// of "1 in N"; a rate below 1 means 1. Clicks out of [0, MaxClicks] are
// counted as out of range and are no sample.
func (c *CoreRecorder) Add(clicks int64, tag Tag, rate int64) {
	if c.cur >= len(c.strata) || c.strata[c.cur].rate != rate {
		c.find(rate)
	}
	c.strata[c.cur].tags[tag].Record(clicks)
	if !c.full {
		if c.kept++; c.kept > ExactLimit {
			c.fill()
		}
	}
}

// fill gives up single samples once there are more than ExactLimit; those out
// of range have been counted by kept, so look again.
func (c *CoreRecorder) fill() {
	n := c.N()
	if c.kept = int(n); n <= ExactLimit {
		return
	}
	c.full = true
	for i := range c.strata {
		for t := range numTags {
			if r := &c.strata[i].tags[t]; r.Exact() {
				r.spill()
			}
		}
	}
}

func (c *CoreRecorder) find(rate int64) {
	rate = max(rate, 1)
	for i := range c.strata {
		if c.strata[i].rate == rate {
			c.cur = i
			return
		}
	}
	s := stratum{rate: rate}
	for i := range s.tags {
		s.tags[i].highest = MaxClicks
		if c.full {
			s.tags[i].spill()
		}
	}
	c.strata = append(c.strata, s)
	c.cur = len(c.strata) - 1
}

// Merge adds everything that o holds; o stays as it is.
func (c *CoreRecorder) Merge(o *CoreRecorder) {
	for i := range o.strata {
		c.find(o.strata[i].rate)
		for t := range numTags {
			c.strata[c.cur].tags[t].Merge(&o.strata[i].tags[t])
		}
	}
	if !c.full {
		c.fill()
	}
}

// MergeUntagged adds everything that r holds as samples without a tag, of
// which each stands for one write; r stays as it is.
func (c *CoreRecorder) MergeUntagged(r *Recorder) {
	c.find(1)
	c.strata[c.cur].tags[Untagged].Merge(r)
	if !c.full {
		c.fill()
	}
}

// N is the number of samples.
func (c *CoreRecorder) N() int64 {
	var n int64
	for i := range c.strata {
		for t := range numTags {
			n += c.strata[i].tags[t].N()
		}
	}
	return n
}

// Rates are the sampling rates seen, each the N of "1 in N", ascending.
func (c *CoreRecorder) Rates() []int64 {
	var out []int64
	for i := range c.strata {
		out = append(out, c.strata[i].rate)
	}
	slices.Sort(out)
	return out
}

// Distribution is all samples in one Recorder, a new one, unweighted.
func (c *CoreRecorder) Distribution() *Recorder {
	r := NewRecorder(MaxClicks)
	for i := range c.strata {
		for t := range numTags {
			r.Merge(&c.strata[i].tags[t])
		}
	}
	return r
}

// Average is a mean that JSON shows with one decimal.
type Average float64

// MarshalJSON writes one decimal.
func (a Average) MarshalJSON() ([]byte, error) {
	f := float64(a)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'f', 1, 64), nil
}

// CoreSummary is what one core's samples say, written out. It holds all that a
// verdict needs. With N = 0 the clicks are 0 and mean nothing.
type CoreSummary struct {
	Core CoreID `json:"core"`
	N    int64  `json:"n"`
	// Fast and Slow count the tags given at the source, and for samples
	// without one the side of the threshold.
	Fast int64 `json:"fast"`
	Slow int64 `json:"slow"`

	MinClicks int64   `json:"min_clicks"`
	P50Clicks int64   `json:"p50_clicks"`
	AvgClicks Average `json:"avg_clicks"`
	P95Clicks int64   `json:"p95_clicks"`
	P99Clicks int64   `json:"p99_clicks"`
	MaxClicks int64   `json:"max_clicks"`
	// P99IsMax: with fewer than 100 samples p99 is only the maximum.
	P99IsMax bool `json:"p99_is_max"`

	ThresholdClicks int64 `json:"threshold_clicks"`
	// AtThreshold counts samples ≥ the threshold; SlowShare is their share,
	// weighted by sampling rate; EffectiveN is the (Σw)²/Σw² that an interval
	// of the share rests on, equal to N when all rates are.
	AtThreshold int64   `json:"at_threshold"`
	SlowShare   float64 `json:"slow_share"`
	EffectiveN  float64 `json:"n_eff"`
	MixedRates  bool    `json:"mixed_rates,omitempty"`
	// EstimatedWrites is the number of writes that the samples stand for: the sum
	// of their rates.
	EstimatedWrites float64 `json:"estimated_writes"`
	// SlowP50Clicks is the median of the samples ≥ the threshold, 0 without any.
	SlowP50Clicks int64 `json:"slow_p50_clicks,omitempty"`
	// Disagreements counts samples whose tag says otherwise than the threshold.
	Disagreements int64 `json:"disagreements"`
	OutOfRange    int64 `json:"out_of_range,omitempty"`
}

// Summary writes c out against a threshold in clicks; 0 means
// DefaultThreshold. Percentiles are not weighted.
func (c *CoreRecorder) Summary(core CoreID, threshold int64) CoreSummary {
	if threshold <= 0 {
		threshold = DefaultThreshold
	}
	d := c.Distribution()
	s := CoreSummary{
		Core: core, N: d.N(),
		MinClicks: d.Min(), P50Clicks: d.Percentile(50), AvgClicks: Average(d.Mean()),
		P95Clicks: d.Percentile(95), P99Clicks: d.Percentile(99), MaxClicks: d.Max(),
		P99IsMax: d.N() < 100, ThresholdClicks: threshold, OutOfRange: d.OutOfRange(),
	}
	var w, ww, wSlow float64
	used := 0
	for i := range c.strata {
		st := &c.strata[i]
		var n, slow int64
		for t := range numTags {
			rn, rs := st.tags[t].N(), st.tags[t].CountFrom(threshold)
			n, slow = n+rn, slow+rs
			switch t {
			case Fast:
				s.Fast += rn
				s.Disagreements += rs
			case Slow:
				s.Slow += rn
				s.Disagreements += rn - rs
			default:
				s.Fast += rn - rs
				s.Slow += rs
			}
		}
		if n > 0 {
			used++
		}
		s.AtThreshold += slow
		r := float64(st.rate)
		w += r * float64(n)
		ww += r * r * float64(n)
		wSlow += r * float64(slow)
	}
	s.EstimatedWrites = w
	if s.AtThreshold > 0 {
		s.SlowP50Clicks = d.atRank(uint64(s.N - s.AtThreshold + (s.AtThreshold+1)/2))
	}
	if s.MixedRates = used > 1; s.MixedRates {
		s.SlowShare, s.EffectiveN = wSlow/w, w*w/ww
	} else if s.N > 0 {
		s.SlowShare, s.EffectiveN = float64(s.AtThreshold)/float64(s.N), float64(s.N)
	}
	return s
}

// Set is the cores of one run on one device. The zero value is empty and
// ready. Not safe for concurrent use.
type Set struct {
	cores map[CoreID]*CoreRecorder
}

// Core is the recorder of a core, made at its first mention.
func (s *Set) Core(id CoreID) *CoreRecorder {
	c := s.cores[id]
	if c == nil {
		if s.cores == nil {
			s.cores = make(map[CoreID]*CoreRecorder)
		}
		c = &CoreRecorder{}
		s.cores[id] = c
	}
	return c
}

// Merge adds everything that o holds; o stays as it is.
func (s *Set) Merge(o *Set) {
	for id, c := range o.cores {
		s.Core(id).Merge(c)
	}
}

// IDs are the cores mentioned, in order.
func (s *Set) IDs() []CoreID {
	return slices.SortedFunc(maps.Keys(s.cores), CoreID.Compare)
}

// Rates are the sampling rates seen on any core, ascending.
func (s *Set) Rates() []int64 {
	var out []int64
	for _, c := range s.cores {
		out = append(out, c.Rates()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Summaries writes all cores out, in order.
func (s *Set) Summaries(threshold int64) []CoreSummary {
	out := make([]CoreSummary, 0, len(s.cores))
	for _, id := range s.IDs() {
		out = append(out, s.cores[id].Summary(id, threshold))
	}
	return out
}

// Total is the distribution of all cores' samples together, unweighted.
func (s *Set) Total() *Recorder {
	r := NewRecorder(MaxClicks)
	for _, id := range s.IDs() {
		r.Merge(s.cores[id].Distribution())
	}
	return r
}

// Missing are the cores that must exist and were not seen: those of known that
// seen lacks, the gaps below the highest number seen or known on each blade,
// and the numbers below perBlade (0: not given) on every blade. With nothing
// seen nor known, perBlade is counted on the one blade 0. In order.
func Missing(seen, known []CoreID, perBlade int) []CoreID {
	have := make(map[CoreID]bool)
	top := make(map[int]int) // cores per blade
	for _, id := range seen {
		have[id] = true
	}
	for _, ids := range [][]CoreID{seen, known} {
		for _, id := range ids {
			top[id.Slot] = max(top[id.Slot], id.Core+1)
		}
	}
	if len(top) == 0 {
		top[0] = 0
	}
	var out []CoreID
	for slot, n := range top {
		for c := range max(n, perBlade) {
			if id := (CoreID{Slot: slot, Core: c}); !have[id] {
				out = append(out, id)
			}
		}
	}
	slices.SortFunc(out, CoreID.Compare)
	return out
}
