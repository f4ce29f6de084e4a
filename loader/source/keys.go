// Package source makes keys and values: rows of a CSV file, generated keys, and
// bodies of fresh UUIDs.
package source

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Keys is a kind of generated keys.
type Keys uint8

// The kinds. The zero value is KeysSeq.
const (
	KeysSeq  Keys = iota // <prefix>_<n>, n counting from 0
	KeysUUID             // version-4 UUIDs
	KeysZipf             // <prefix>_<n>, n Zipf-distributed over the key space: few keys are written often
)

var keysNames = [...]string{KeysSeq: "seq", KeysUUID: "uuid", KeysZipf: "zipf"}

// KeysNames lists the kinds as ParseKeys takes them.
func KeysNames() []string { return append([]string(nil), keysNames[:]...) }

// ParseKeys reads a kind.
func ParseKeys(s string) (Keys, error) {
	for i, n := range keysNames {
		if n == s {
			return Keys(i), nil
		}
	}
	return 0, fmt.Errorf("keys %q: want one of %v", s, keysNames)
}

// String is the kind as ParseKeys reads it.
func (k Keys) String() string {
	if int(k) < len(keysNames) {
		return keysNames[k]
	}
	return fmt.Sprintf("keys(%d)", uint8(k))
}

// Valid says whether k is one of the kinds.
func (k Keys) Valid() bool { return int(k) < len(keysNames) }

// MarshalText spells the kind for JSON.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

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

// NewRandom is a cryptographic generator, seeded by the system.
func NewRandom() *rand.ChaCha8 {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	return rand.NewChaCha8(seed)
}

// NewSeeded is a repeatable one, for stream n of a seed.
func NewSeeded(seed, n uint64) *rand.ChaCha8 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	copy(b[16:], "bulk-load bodies")
	return rand.NewChaCha8(b)
}

// splitmix is the finaliser of Steele, Lea and Flood's SplitMix64: neighbouring
// inputs give unrelated outputs.
func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Generator makes one worker's generated keys. A seeded one gives the n-th key
// the same name whichever worker makes it.
type Generator struct {
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

// NewGenerator makes keys of a kind, with a prefix where the kind has one,
// and out of so many where it has a space. Not repeatable, UUIDs come from the
// system instead of the seed.
func NewGenerator(kind Keys, prefix string, space int64, seed uint64, repeatable bool) *Generator {
	g := &Generator{kind: kind, prefix: []byte(prefix + "_"), seed: seed}
	switch kind {
	case KeysUUID:
		if !repeatable {
			g.chacha = NewRandom()
		}
	case KeysZipf:
		g.pcg = rand.NewPCG(seed, 0)
		g.zipf = rand.NewZipf(rand.New(g.pcg), zipfExponent, 1, uint64(max(space, 1))-1)
	}
	return g
}

// Append appends the n-th key.
func (g *Generator) Append(dst []byte, n int64) []byte {
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

// UUIDLine is the length of a UUID and its line end, in bytes.
const UUIDLine = 37

// FillUUIDs overwrites body with n lines of fresh UUIDs.
func FillUUIDs(body []byte, n int, r *rand.ChaCha8) []byte {
	if cap(body) < n*UUIDLine {
		body = make([]byte, n*UUIDLine)
	}
	body = body[:n*UUIDLine]
	for i := 0; i < len(body); i += UUIDLine {
		line := body[i : i+UUIDLine : i+UUIDLine]
		putUUID(line, r.Uint64(), r.Uint64())
		line[36] = '\n'
	}
	return body
}
