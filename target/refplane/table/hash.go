package table

import (
	"encoding/binary"
	"math/bits"
)

// Odd constants without structure: the golden ratio's fraction and its images
// under mix.
const (
	k0 = 0x9e3779b97f4a7c15
	k1 = 0xbf58476d1ce4e5b9
	k2 = 0x94d049bb133111eb
	k3 = 0xd6e8feb86659fd93
)

// fold multiplies to 128 bits and folds the halves together. A factor of zero
// would wipe out the other: keys could be made of which thousands share a hash.
func fold(a, b uint64) uint64 {
	if a == 0 || b == 0 {
		return a | b
	}
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Hash is a seeded hash of b, the same on every machine and in every run:
// ownership, the disaggregator and the index depend on it, so the standard
// library's per-process hashes won't do. Not cryptographic.
func Hash(seed uint64, b []byte) uint64 {
	h := seed ^ k0
	n := uint64(len(b))
	for len(b) > 16 {
		h = fold(binary.LittleEndian.Uint64(b)^k1, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var x, y uint64
	switch {
	case len(b) >= 8:
		x = binary.LittleEndian.Uint64(b)
		y = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		x = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return fold(fold(x^k2, y^h)^k3, n^k1)
}
