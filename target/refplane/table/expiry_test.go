package table

import (
	"runtime"
	"testing"
	"time"
)

// expireAll sweeps the store in the steps that a core takes, and returns the
// longest one's processor time.
func expireAll(tb testing.TB, st *Store, now uint32) (longest time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for done := false; !done; {
		start := threadCPU(tb)
		done = st.Expire(now, sweepStep)
		longest = max(longest, threadCPU(tb)-start)
	}
	return longest
}

// sweepStep is the number of records that a core takes at a time.
const sweepStep = 256

// TestExpiryGivesMemoryBack expires a million entries that all fall due at
// once.
func TestExpiryGivesMemoryBack(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	before := heapInuse()
	st := filled(n)
	grown := heapInuse() - before
	for st.Entries() > 0 { // filled at second 1000 with an idle timeout of 3600
		expireAll(t, st, 1000+loadTimeout)
	}
	left := heapInuse() - before
	runtime.KeepAlive(st)
	if st.expired != int64(n) || st.bytes != 0 || st.Subtables() != 0 {
		t.Errorf("expired %d of %d, %d bytes and %d subtables left", st.expired, n, st.bytes, st.Subtables())
	}
	if float64(left) > 0.1*float64(grown) {
		t.Errorf("the heap grew by %d and still holds %d of that: over 10 %%", grown, left)
	}
}

// BenchmarkExpiry sweeps a million entries that fall due at once, and reports
// the longest step.
func BenchmarkExpiry(b *testing.B) {
	const n = 1_000_000
	var longest time.Duration
	for range b.N {
		b.StopTimer()
		before := heapInuse()
		st := filled(n)
		grown := heapInuse() - before
		b.StartTimer()
		longest = max(longest, expireAll(b, st, 1000+loadTimeout))
		b.StopTimer()
		b.ReportMetric(100*(1-float64(heapInuse()-before)/float64(grown)), "%given-back")
		runtime.KeepAlive(st)
		b.StartTimer()
	}
	b.ReportMetric(float64(longest.Nanoseconds()), "longest-step-ns")
}
