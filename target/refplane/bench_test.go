package refplane

import (
	"fmt"
	"runtime"
	"testing"

	"tbl/target"
)

// putKey fills k with a 36-byte key, the shape of a UUID, for number i.
func putKey(k *[36]byte, i uint64) {
	const hex = "0123456789abcdef"
	a, b := mix(i), mix(^i)
	for j := range 18 {
		k[2*j] = hex[a&15]
		k[2*j+1] = hex[b&15]
		a = a>>4 | a<<60
		b = b>>4 | b<<60
	}
}

// filled is a store with n entries of 36-byte keys in one subtable.
func filled(n int) *store {
	st := new(store)
	st.init(1, 1000)
	var k [36]byte
	c := command{verb: verb(target.TableSet), sub: []byte("localdb_tmm_0_4711"), value: one, timeout: loadTimeout, key: k[:]}
	for i := range n {
		putKey(&k, uint64(i))
		st.exec(&c, 1000)
	}
	return st
}

// BenchmarkOwnWrite is one write of a new 36-byte key into a store that holds
// the given number of entries; old entries are deleted outside the timing.
func BenchmarkOwnWrite(b *testing.B) {
	for _, n := range []int{1_000_000, 20_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			if testing.Short() && n > 1_000_000 {
				b.Skip("1.8 GB")
			}
			st := filled(n)
			runtime.GC()
			var k [36]byte
			set := command{verb: verb(target.TableSet), sub: []byte("localdb_tmm_0_4711"), value: one, timeout: loadTimeout, key: k[:]}
			del := command{verb: verb(target.TableDelete), sub: set.sub, key: k[:]}
			next, first := uint64(n), uint64(0)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				putKey(&k, next)
				next++
				st.exec(&set, 1000)
				if next-first > uint64(n+n/10) {
					b.StopTimer()
					for ; next-first > uint64(n); first++ {
						putKey(&k, first)
						st.exec(&del, 1000)
					}
					b.StartTimer()
				}
			}
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
