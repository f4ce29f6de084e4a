package refplane

import "runtime"

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

func heapInuse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
