package loader

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
)

// hexPairs holds the two digits of every byte, low byte first, so that a
// UUID takes 16 stores of two bytes.
var hexPairs = func() (t [256]uint16) {
	const digits = "0123456789abcdef"
	for i := range t {
		t[i] = uint16(digits[i>>4]) | uint16(digits[i&15])<<8
	}
	return t
}()

// putUUID writes the version-4 UUID made of 122 of the 128 bits to dst, which
// is at least 36 bytes long. (RFC 9562, section 5.4.)
func putUUID(dst []byte, hi, lo uint64) {
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(0b11<<62) | 0b10<<62
	_ = dst[35]
	le := binary.LittleEndian
	le.PutUint16(dst[0:], hexPairs[hi>>56])
	le.PutUint16(dst[2:], hexPairs[hi>>48&255])
	le.PutUint16(dst[4:], hexPairs[hi>>40&255])
	le.PutUint16(dst[6:], hexPairs[hi>>32&255])
	dst[8] = '-'
	le.PutUint16(dst[9:], hexPairs[hi>>24&255])
	le.PutUint16(dst[11:], hexPairs[hi>>16&255])
	dst[13] = '-'
	le.PutUint16(dst[14:], hexPairs[hi>>8&255])
	le.PutUint16(dst[16:], hexPairs[hi&255])
	dst[18] = '-'
	le.PutUint16(dst[19:], hexPairs[lo>>56])
	le.PutUint16(dst[21:], hexPairs[lo>>48&255])
	dst[23] = '-'
	le.PutUint16(dst[24:], hexPairs[lo>>40&255])
	le.PutUint16(dst[26:], hexPairs[lo>>32&255])
	le.PutUint16(dst[28:], hexPairs[lo>>24&255])
	le.PutUint16(dst[30:], hexPairs[lo>>16&255])
	le.PutUint16(dst[32:], hexPairs[lo>>8&255])
	le.PutUint16(dst[34:], hexPairs[lo&255])
}

// newChaCha is a cryptographic generator, seeded by the system.
func newChaCha() *rand.ChaCha8 {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	return rand.NewChaCha8(seed)
}

// seededChaCha is a repeatable one, for stream n of a seed.
func seededChaCha(seed, n uint64) *rand.ChaCha8 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	copy(b[16:], "bulk-load bodies")
	return rand.NewChaCha8(b)
}

// randomSeed is a seed other than 0 from the system.
func randomSeed() uint64 {
	var b [8]byte
	crand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// splitmix is the finaliser of Steele, Lea and Flood's SplitMix64: neighbouring
// inputs give unrelated outputs.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// keyGen makes one worker's generated keys. A seeded one gives the n-th key
// the same name whichever worker makes it.
type keyGen struct {
	kind   Keys
	prefix []byte // with the '_'
	seed   uint64
	chacha *rand.ChaCha8 // nil when seeded
	pcg    *rand.PCG
	zipf   *rand.Zipf
}

// zipfExponent skews as measured for web pages and caches (0.6 to 1.2); the
// generator wants more than 1.
const zipfExponent = 1.1

func newKeyGen(cfg *LoadConfig, seed uint64, repeatable bool) *keyGen {
	prefix := cfg.KeyPrefix
	if prefix == "" {
		prefix = DefaultKeyPrefix
	}
	g := &keyGen{kind: cfg.Keys, prefix: []byte(prefix + "_"), seed: seed}
	switch cfg.Keys {
	case KeysUUID:
		if !repeatable {
			g.chacha = newChaCha()
		}
	case KeysZipf:
		g.pcg = rand.NewPCG(seed, 0)
		g.zipf = rand.NewZipf(rand.New(g.pcg), zipfExponent, 1, uint64(orDefault(cfg.KeySpace, DefaultKeySpace))-1)
	}
	return g
}

// appendKey appends the n-th key.
func (g *keyGen) appendKey(dst []byte, n int64) []byte {
	switch g.kind {
	case KeysUUID:
		var hi, lo uint64
		if g.chacha != nil {
			hi, lo = g.chacha.Uint64(), g.chacha.Uint64()
		} else {
			s := splitmix(g.seed ^ splitmix(uint64(n)))
			hi, lo = splitmix(s), splitmix(s+1)
		}
		var buf [36]byte
		putUUID(buf[:], hi, lo)
		return append(dst, buf[:]...)
	case KeysZipf:
		g.pcg.Seed(g.seed, splitmix(uint64(n)))
		n = int64(g.zipf.Uint64())
	}
	return strconv.AppendInt(append(dst, g.prefix...), n, 10)
}

// fillUUIDs overwrites body with n lines of fresh UUIDs.
func fillUUIDs(body []byte, n int, r *rand.ChaCha8) []byte {
	if cap(body) < n*uuidLine {
		body = make([]byte, n*uuidLine)
	}
	body = body[:n*uuidLine]
	for i := 0; i < len(body); i += uuidLine {
		line := body[i : i+uuidLine : i+uuidLine]
		putUUID(line, r.Uint64(), r.Uint64())
		line[36] = '\n'
	}
	return body
}
