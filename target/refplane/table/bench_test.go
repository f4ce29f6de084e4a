package table

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"tbl/target"
)

var one = []byte("1")

const loadTimeout = 3600 // s, as the endpoint's

// putKey fills k with a 36-byte key in the shape of a UUID for number i.
func putKey(k *[36]byte, i uint64) {
	const hex = "0123456789abcdef"
	copy(k[:], "00000000-0000-4000-8000-000000000000")
	for at := 35; i > 0 && at > 23; at-- {
		k[at] = hex[i&15]
		i >>= 4
	}
}

// filled is a store with n entries of 36-byte keys in one subtable.
func filled(n int) *Store {
	st := new(Store)
	st.Init(1, 1000)
	var k [36]byte
	c := Command{Verb: Verb(target.TableSet), Sub: []byte("localdb_tmm_0_4711"), Value: one, Timeout: loadTimeout, Key: k[:]}
	for i := range n {
		putKey(&k, uint64(i))
		st.Exec(&c, 1000)
	}
	return st
}

// BenchmarkOwnWrite is one write of a new 36-byte key into a store that holds
// the given number of entries; old entries are deleted outside the timing.
func BenchmarkOwnWrite(b *testing.B) { benchmarkOwnWrite(b, 1) }

// BenchmarkOwnWriteAnnounced is BenchmarkOwnWrite in groups that are announced,
// as a bulk load writes: they wait for memory together.
func BenchmarkOwnWriteAnnounced(b *testing.B) { benchmarkOwnWrite(b, 8) }

func benchmarkOwnWrite(b *testing.B, group int) {
	for _, n := range []int{1_000_000, 20_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			if testing.Short() && n > 1_000_000 {
				b.Skip("1.8 GB")
			}
			st := filled(n)
			runtime.GC()
			keys := make([][36]byte, 1<<16)
			set := Command{Verb: Verb(target.TableSet), Sub: []byte("localdb_tmm_0_4711"), Value: one, Timeout: loadTimeout}
			var k [36]byte
			del := Command{Verb: Verb(target.TableDelete), Sub: set.Sub, Key: k[:]}
			next, first := uint64(n), uint64(0)
			// The thread's processor time is the figure to trust on a busy machine.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			begin, unpaid := threadCPU(b), time.Duration(0)
			b.ReportAllocs()
			b.ResetTimer()
			for left := b.N; left > 0; left -= len(keys) {
				// Making keys is not the storage's work: the processor would wait
				// for each byte of a key that was written just before.
				b.StopTimer()
				pause := threadCPU(b)
				for ; next-first > uint64(n); first++ {
					putKey(&k, first)
					st.Exec(&del, 1000)
				}
				keys = keys[:min(len(keys), left)]
				for i := range keys {
					putKey(&keys[i], next)
					next++
				}
				unpaid += threadCPU(b) - pause
				b.StartTimer()
				for at := 0; at < len(keys); at += group {
					keys := keys[at:min(at+group, len(keys))]
					for i := 0; group > 1 && i < len(keys); i++ {
						st.Expect(keys[i][:])
					}
					for i := range keys {
						set.Key = keys[i][:]
						st.Exec(&set, 1000)
					}
				}
			}
			b.ReportMetric(float64((threadCPU(b)-begin-unpaid).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkOwnGrow is one write while the store grows from nothing to the
// given number of entries: the amortised cost with splitting and allocation.
func BenchmarkOwnGrow(b *testing.B) {
	for _, n := range []int{1_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				filled(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/write")
		})
	}
}

// BenchmarkMemory reports bytes of heap per entry.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1_000_000, 1_500_000, 2_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			for range b.N {
				before := heapInuse()
				st := filled(n)
				after := heapInuse()
				b.ReportMetric(float64(after-before)/float64(n), "B/entry")
				runtime.KeepAlive(st)
			}
		})
	}
}

func heapInuse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// BenchmarkGC is a garbage collection beside the given number of entries:
// what it costs must not grow with them.
func BenchmarkGC(b *testing.B) {
	for _, n := range []int{0, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			if testing.Short() && n > 1_000_000 {
				b.Skip("1 GB")
			}
			st := filled(n)
			b.ResetTimer()
			for range b.N {
				runtime.GC()
			}
			runtime.KeepAlive(st)
		})
	}
}
