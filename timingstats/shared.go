package timingstats

import "sync/atomic"

// sharedOctaves covers values below 2^42.
const sharedOctaves = 42 - hdrBits + 1

// SharedRecorder is a histogram that all workers of a run record into, without
// locks and in bounded memory: 8 KiB for every power of two that its values
// span. It has the buckets of a Recorder beyond its exact limit, and becomes
// one by Snapshot. The zero value is ready and takes 0 to MaxLatencyNS. Safe
// for concurrent use; must not be copied.
type SharedRecorder struct {
	oct        [sharedOctaves]atomic.Pointer[[1 << hdrBits]atomic.Uint64]
	sumLo      atomic.Uint64 // wraps into sumHi
	sumHi      atomic.Uint64
	min        atomic.Int64 // lowest value + 1; 0 when there is none
	max        atomic.Int64
	outOfRange atomic.Int64
}

// Record adds one value; one out of range is counted as such.
func (s *SharedRecorder) Record(v int64) {
	if uint64(v) > uint64(MaxLatencyNS) {
		s.outOfRange.Add(1)
		return
	}
	o, p := bucketOf(v, hdrBits)
	oct := s.oct[o].Load()
	if oct == nil {
		oct = new([1 << hdrBits]atomic.Uint64)
		if !s.oct[o].CompareAndSwap(nil, oct) {
			oct = s.oct[o].Load()
		}
	}
	oct[p].Add(1)
	if lo := s.sumLo.Add(uint64(v)); lo < uint64(v) {
		s.sumHi.Add(1)
	}
	for m := s.min.Load(); m == 0 || v+1 < m; m = s.min.Load() {
		if s.min.CompareAndSwap(m, v+1) {
			break
		}
	}
	for m := s.max.Load(); v > m; m = s.max.Load() {
		if s.max.CompareAndSwap(m, v) {
			break
		}
	}
}

// Snapshot is what has been recorded so far. Taken beside recording workers it
// is a good approximation; after they have ended it is exact.
func (s *SharedRecorder) Snapshot() *Recorder {
	r := NewHistogram(0)
	for k := range s.oct {
		oct := s.oct[k].Load()
		if oct == nil {
			continue
		}
		r.hist.grow(k)
		for i := range oct {
			c := oct[i].Load()
			r.hist.oct[k][i] = c
			r.n += c
		}
	}
	r.sumLo, r.sumHi = s.sumLo.Load(), s.sumHi.Load()
	if m := s.min.Load(); m > 0 {
		r.min, r.max = m-1, s.max.Load()
	}
	r.outOfRange = s.outOfRange.Load()
	return r
}
