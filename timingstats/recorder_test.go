package timingstats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNearestRank(t *testing.T) {
	for _, c := range []struct {
		p    float64
		n    uint64
		want uint64
	}{
		{50, 1, 1}, {99, 1, 1}, {0, 5, 1}, {100, 5, 5}, {50, 4, 2}, {50, 5, 3},
		{99, 60, 60}, {99, 99, 99}, {99, 100, 99}, {99, 101, 100}, {99, 200, 198}, {95, 20, 19}, {95, 21, 20},
		{99.9, 1000, 999}, {99.9, 1001, 1000}, {99.9, 10, 10},
		{99, 1 << 60, (1<<60)/100*99 + 76}, // no overflow: ceil(0.99·2^60)
	} {
		if got := nearestRank(c.p, c.n); got != c.want {
			t.Errorf("nearestRank(%v, %d) = %d, want %d", c.p, c.n, got, c.want)
		}
	}
}

// The buckets are HdrHistogram's own, edge by edge.
func TestBucketsMatchHdrHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, MaxLatencyNS).Draw(t, "v") >> rapid.IntRange(0, 42).Draw(t, "shift")
		h := hdrhistogram.New(1, MaxLatencyNS, 3)
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		o, p := bucketOf(v, hdrBits)
		low, high := bucketBounds(o, p, hdrBits)
		if v < low || v > high {
			t.Fatalf("%d is not within its bucket [%d, %d]", v, low, high)
		}
		for _, b := range h.Distribution() {
			if b.Count > 0 && (b.From != low || b.To != high) {
				t.Fatalf("%d lies in [%d, %d], HdrHistogram says [%d, %d]", v, low, high, b.From, b.To)
			}
		}
	})
}

// Up to the limit every figure is that of the sorted samples.
func TestRecorderExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 400_000), 1, 300).Draw(t, "values")
		r := NewRecorder(MaxClicks)
		var sum int64
		for _, v := range values {
			r.Record(v)
			sum += v
		}
		slices.Sort(values)
		n := len(values)
		for _, p := range []float64{0, 1, 50, 90, 95, 99, 99.9, 100} {
			rank := max(int(math.Ceil(p*float64(n)/100-1e-9)), 1)
			if got, want := r.Percentile(p), values[rank-1]; got != want {
				t.Fatalf("p%v of %d = %d, want %d", p, n, got, want)
			}
		}
		if r.Min() != values[0] || r.Max() != values[n-1] || r.N() != int64(n) {
			t.Fatalf("min %d max %d n %d", r.Min(), r.Max(), r.N())
		}
		if want := float64(sum) / float64(n); math.Abs(r.Mean()-want) > 1e-9*want {
			t.Fatalf("mean %v, want %v", r.Mean(), want)
		}
	})
}

// Beyond the limit percentiles are at most a bucket's width above the truth
// and never outside the values; the rank is still ours.
func TestRecorderBeyondLimit(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	values := make([]int64, ExactLimit*3)
	r := NewRecorder(0)
	for i := range values {
		values[i] = int64(math.Exp(rng.NormFloat64()*3 + 10))
		r.Record(values[i])
	}
	slices.Sort(values)
	if r.Exact() {
		t.Fatal("still exact")
	}
	for p := 0.0; p <= 100; p += 0.1 {
		rank := nearestRank(p, uint64(len(values)))
		want := values[rank-1]
		got := r.Percentile(p)
		if got < want || float64(got) > float64(want)*(1+1.0/1024) {
			t.Fatalf("p%.1f = %d, exactly %d (seed %d)", p, got, want, seed)
		}
	}
	if r.Percentile(100) != values[len(values)-1] || r.Percentile(0) != values[0] {
		t.Errorf("p0 %d and p100 %d are not the exact minimum and maximum", r.Percentile(0), r.Percentile(100))
	}
}

func TestRecorderLimitBoundary(t *testing.T) {
	r := NewRecorder(0)
	for i := range int64(ExactLimit) {
		r.Record(1_000_000 + i)
	}
	if !r.Exact() || r.Percentile(50) != 1_000_000+ExactLimit/2-1 {
		t.Fatalf("with %d samples: exact %v, p50 %d", ExactLimit, r.Exact(), r.Percentile(50))
	}
	r.Record(5)
	if r.Exact() || r.N() != ExactLimit+1 || r.Min() != 5 || r.Max() != 1_000_000+ExactLimit-1 {
		t.Fatalf("one more: exact %v n %d min %d max %d", r.Exact(), r.N(), r.Min(), r.Max())
	}
}

func TestRecorderOutOfRange(t *testing.T) {
	r := NewRecorder(MaxClicks)
	r.Record(-1)
	r.Record(math.MinInt64)
	r.Record(MaxClicks + 1)
	r.Record(MaxClicks)
	if r.OutOfRange() != 3 || r.N() != 1 || r.Max() != MaxClicks || r.Min() != MaxClicks {
		t.Errorf("out of range %d, n %d, min %d, max %d", r.OutOfRange(), r.N(), r.Min(), r.Max())
	}
}

func TestRecorderEmpty(t *testing.T) {
	var r Recorder
	if r.N() != 0 || r.Percentile(99) != 0 || r.Mean() != 0 || r.CountFrom(10) != 0 {
		t.Error("an empty recorder has figures")
	}
	if s := r.Latency(); s.N != 0 || !s.P99IsMax {
		t.Errorf("%+v", s)
	}
}

// However values are dealt to recorders and in whatever order these are
// merged, the result is that of a single one, to the bit.
func TestMergeConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.SampledFrom([]int{1, 100, ExactLimit - 1, ExactLimit, ExactLimit + 1, 3 * ExactLimit}).Draw(t, "n")
		parts := rapid.IntRange(1, 8).Draw(t, "parts")
		rng := rand.New(rand.NewPCG(seed, 1))
		whole := NewRecorder(0)
		part := make([]*Recorder, parts)
		for i := range part {
			part[i] = NewRecorder(0)
		}
		for range n {
			v := int64(math.Exp(rng.NormFloat64()*4+8)) - 1 // now and then negative
			whole.Record(v)
			part[rng.IntN(parts)].Record(v)
		}
		merged := NewRecorder(0)
		for _, i := range rng.Perm(parts) {
			merged.Merge(part[i])
		}
		sameRecorder(t, merged, whole)
	})
}

func sameRecorder(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want *Recorder) {
	t.Helper()
	if got.Exact() != want.Exact() || got.OutOfRange() != want.OutOfRange() {
		t.Fatalf("exact %v, out of range %d, want %v, %d", got.Exact(), got.OutOfRange(), want.Exact(), want.OutOfRange())
	}
	g, err1 := got.Histogram()
	w, err2 := want.Histogram()
	if err1 != nil || err2 != nil {
		t.Fatalf("histograms: %v, %v", err1, err2)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Fatalf("histograms differ:\n%s", d)
	}
	if d := cmp.Diff(want.Latency(), got.Latency()); d != "" {
		t.Fatalf("summaries differ:\n%s", d)
	}
}

func TestHistogramRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 50, ExactLimit + 5} {
		r := newHistogram(0)
		for range n {
			r.Record(int64(math.Exp(rng.NormFloat64()*4 + 10)))
		}
		h, err := r.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		back, err := h.Recorder()
		if err != nil {
			t.Fatalf("n=%d: %v", n, err)
		}
		sameRecorder(t, back, r)
		// HdrHistogram's own reader sees the same counts.
		d, err := hdrhistogram.Decode([]byte(h.V2))
		if err != nil || d.TotalCount() != int64(n) {
			t.Fatalf("decoded: %v, %v", d, err)
		}
	}
}

func TestHistogramForeign(t *testing.T) {
	r := NewRecorder(0)
	r.Record(77)
	good, err := r.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	coarse := hdrhistogram.New(1, 1000, 2)
	_ = coarse.RecordValue(5)
	other, err := coarse.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]Histogram{
		"no base64":     {N: 1, V2: "%%%"},
		"cut":           {N: 1, V2: good.V2[:len(good.V2)/2]},
		"wrong count":   {N: 2, Min: 77, Max: 77, SumLo: 77, V2: good.V2},
		"other digits":  {N: 1, V2: string(other)},
		"empty":         {N: 1},
		"negative":      {N: -1, V2: good.V2},
		"count of none": {N: 0, V2: good.V2},
	} {
		if _, err := h.Recorder(); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	var core CoreRecorder
	hist := newHistogram(0)
	rec := NewRecorder(MaxClicks)
	for i := range int64(ExactLimit * 2) { // every bucket once, and past the exact samples
		hist.Record(i)
		rec.Record(i)
		core.Add(i, Fast, 1000)
		core.Add(i, Slow, 1000)
	}
	var i int64
	for name, f := range map[string]func(){
		"histogram":    func() { hist.Record(i % 20_000) },
		"Recorder":     func() { rec.Record(i % 20_000) },
		"CoreRecorder": func() { core.Add(i%20_000, Fast, 1000) },
	} {
		if n := testing.AllocsPerRun(1000, func() { f(); i++ }); n != 0 {
			t.Errorf("%s: %v allocations per value", name, n)
		}
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := newHistogram(0)
	b.ReportAllocs()
	for i := range b.N {
		r.Record(int64(i & 4095))
	}
}

func BenchmarkCoreRecorder(b *testing.B) {
	var r CoreRecorder
	b.ReportAllocs()
	for i := range b.N {
		r.Add(int64(i&31), Fast, 1000)
	}
}
