package timingstats

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a distribution as it is saved: HdrHistogram's V2 compressed
// form (base64, lowest value 1, 3 significant digits), which other tools read,
// with the figures beside it that its buckets can't hold exactly.
type Histogram struct {
	// Unit is that of all values: UnitNS or UnitClicks. Empty in files of
	// older versions, which saved times only.
	Unit       string `json:"unit"`
	N          int64  `json:"n"`
	Min        int64  `json:"min"`
	Max        int64  `json:"max"`
	SumHi      uint64 `json:"sum_hi,omitempty"` // sum / 2^64
	SumLo      uint64 `json:"sum_lo"`           // sum mod 2^64
	OutOfRange int64  `json:"out_of_range,omitempty"`
	V2         string `json:"hdr_v2"`
}

// The units of saved histograms.
const (
	UnitNS     = "ns"
	UnitClicks = "clicks"
)

// unit is that of what r records, as told by its highest value.
func (r *Recorder) unit() string {
	if r.highest == MaxClicks {
		return UnitClicks
	}
	return UnitNS
}

// Histogram is r as it is saved. Single samples are not kept.
func (r *Recorder) Histogram() (Histogram, error) {
	h := hdrhistogram.New(1, max(r.max, 2), 3)
	var err error
	r.Each(func(low, _, n int64) {
		if e := h.RecordValues(low, n); e != nil && err == nil {
			err = e
		}
	})
	if err != nil {
		return Histogram{}, fmt.Errorf("histogram: %w", err)
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return Histogram{}, fmt.Errorf("encode histogram: %w", err)
	}
	return Histogram{
		Unit: r.unit(), N: r.N(), Min: r.min, Max: r.max, SumHi: r.sumHi, SumLo: r.sumLo,
		OutOfRange: r.outOfRange, V2: string(b),
	}, nil
}

// Recorder reads h back: the same buckets, count, sum, minimum and maximum.
// The result never holds single samples. A count that contradicts the buckets
// is an error.
func (h Histogram) Recorder() (*Recorder, error) {
	r := newHistogram(0)
	switch h.Unit {
	case "", UnitNS:
	case UnitClicks:
		r.highest = MaxClicks
	default:
		return nil, fmt.Errorf("decode histogram: unit %q, want %s or %s", h.Unit, UnitNS, UnitClicks)
	}
	d, err := hdrhistogram.Decode([]byte(h.V2))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	if d.SignificantFigures() != 3 || d.LowestTrackableValue() > 1 {
		return nil, fmt.Errorf("decode histogram: lowest value %d with %d significant digits, want 1 with 3",
			d.LowestTrackableValue(), d.SignificantFigures())
	}
	for _, b := range d.Distribution() {
		if b.Count > 0 {
			r.hist.add(b.From, uint64(b.Count))
			r.n += uint64(b.Count)
		}
	}
	if int64(r.n) != h.N {
		return nil, fmt.Errorf("decode histogram: %d values, header says %d", r.n, h.N)
	}
	r.min, r.max, r.sumHi, r.sumLo, r.outOfRange = h.Min, h.Max, h.SumHi, h.SumLo, h.OutOfRange
	return r, nil
}
