package table

import (
	"math/rand/v2"
	"testing"
)

// sizes are numbers of bytes in every class: its smallest, its largest.
func sizes() (out [][2]int) {
	last := -1
	for n := 0; n <= coarseTop; n++ {
		cl, _ := classOf(n)
		if cl != last {
			out = append(out, [2]int{n, n})
			last = cl
		}
		out[len(out)-1][1] = n
	}
	return out
}

// TestSizeOf: sizeOf says of a class what classOf says of its records.
func TestSizeOf(t *testing.T) {
	all := sizes()
	if len(all) != hugeClass {
		t.Fatalf("%d classes, want %d", len(all), hugeClass)
	}
	for cl, ends := range all {
		for _, n := range ends {
			k, size := classOf(n)
			if k != cl || size != sizeOf(cl) || int(size) < n {
				t.Errorf("%d bytes: class %d of %d bytes, want class %d of %d", n, k, size, cl, sizeOf(cl))
			}
		}
		if top := uint32(ends[1]); top != sizeOf(cl) {
			t.Errorf("class %d holds up to %d bytes, and is of %d", cl, top, sizeOf(cl))
		}
	}
	if cl, _ := classOf(coarseTop + 1); cl != hugeClass {
		t.Errorf("%d bytes: class %d, want %d", coarseTop+1, cl, hugeClass)
	}
}

// inUse is how many chunks a slab has memory for, the sentinels too.
func (s *slab) inUse() int { return len(s.chunks) - len(s.vacant) }

// TestSlabReady: what ready found serves the records that follow; it counts as
// nobody's, and is found once.
func TestSlabReady(t *testing.T) {
	for _, n := range []int{1, 100, 3000} {
		for _, bytes := range []int{0, 1, 40, 256, 300, 5000, coarseTop} {
			var s slab
			s.init(0)
			first := s.alloc(bytes)
			each := s.size(first)
			_, size := classOf(bytes)
			if each != int64(size)+recordBytes {
				t.Errorf("a record of %d bytes takes %d", bytes, each)
			}
			before := s.inUse()
			s.ready(n)
			if s.bytes != each {
				t.Errorf("%d × %d bytes: %d bytes in use after ready, want %d", n, bytes, s.bytes, each)
			}
			found := s.inUse()
			room := 0
			for i := range s.chunks[1:] {
				room += len(s.chunks[i+1].head) - int(s.chunks[i+1].used)
			}
			if found-before < 8 && room < n {
				t.Errorf("%d × %d bytes: room for %d in %d chunks", n, bytes, room, found)
			}
			m := min(n, room)
			if m == n { // all is there
				if s.ready(n); s.inUse() != found {
					t.Errorf("%d × %d bytes: a second ready has %d chunks, want %d", n, bytes, s.inUse(), found)
				}
			}
			seen := map[uint32]bool{first: true}
			for range m {
				ref := s.alloc(bytes)
				if seen[ref] {
					t.Fatalf("%d × %d bytes: record %d twice", n, bytes, ref)
				}
				seen[ref] = true
				if got := s.size(ref); got != each {
					t.Fatalf("%d × %d bytes: a record takes %d, want %d", n, bytes, got, each)
				}
			}
			if s.inUse() != found || s.bytes != int64(m+1)*each {
				t.Errorf("%d × %d bytes: %d chunks, %d bytes, want %d and %d", n, bytes, s.inUse(), s.bytes, found, int64(m+1)*each)
			}
			for ref := range seen {
				s.release(ref)
			}
			if s.bytes != 0 {
				t.Errorf("%d × %d bytes: %d bytes in use of nothing", n, bytes, s.bytes)
			}
		}
	}
	// Of a class that has no chunks, nothing is known; a huge one has one record
	// to a chunk, of no size that another would have.
	var s slab
	s.init(0)
	s.ready(100)
	if s.inUse() != 1 {
		t.Errorf("%d chunks of nothing", s.inUse())
	}
	s.alloc(coarseTop + 1)
	if s.ready(100); s.inUse() != 2 {
		t.Errorf("%d chunks after one huge record", s.inUse())
	}
}

// TestIndexReady: the splits that follow find their memory there, and it is
// found once.
func TestIndexReady(t *testing.T) {
	tag := func(i int) uint32 { return uint32(i) * 0x9e3779b1 }
	var ix index
	ix.init()
	const have, more = 250 * segMax, 10 * segMax
	for i := range have {
		ix.insert(tag(i), uint32(i+1))
	}
	ix.ready(more)
	blocks, warmed := len(ix.block), ix.warmed
	if warmed < len(ix.seg)+more/segMax || ix.capacity() < warmed {
		t.Fatalf("%d segments, room for %d in %d blocks", len(ix.seg), warmed, blocks)
	}
	// Found once: what was found stays as it is.
	ix.lines(uint32(warmed - 1))[0][0] = 1
	if ix.ready(more); len(ix.block) != blocks || ix.warmed != warmed || ix.lines(uint32(warmed - 1))[0][0] != 1 {
		t.Errorf("after a second ready room for %d in %d blocks, want %d in %d", ix.warmed, len(ix.block), warmed, blocks)
	}
	before := len(ix.seg)
	for i := have; i < have+more && len(ix.seg) < warmed; i++ {
		ix.insert(tag(i), uint32(i+1))
	}
	if len(ix.block) != blocks || len(ix.seg) < before+4 {
		t.Errorf("from %d to %d segments in %d blocks, want more in %d", before, len(ix.seg), len(ix.block), blocks)
	}
	checkIndex(t, &ix)
	for i := len(refsOf(&ix)); i > 0; i-- { // given back, it must be found anew
		ix.remove(tag(i-1), uint32(i))
	}
	checkIndex(t, &ix)
}

// refsOf is every record.
func refsOf(ix *index) (refs []uint32) {
	ix.each(func(_, ref uint32) bool {
		refs = append(refs, ref)
		return true
	})
	return refs
}

// TestIndexKeepsItsSize: at the limit of a size, records that come and go in
// turn make no segments and no blocks.
func TestIndexKeepsItsSize(t *testing.T) {
	tag := func(i int) uint32 { return uint32(i) * 0x9e3779b1 }
	for _, segments := range []int{1, 2, 64, blockSegs, 2 * blockSegs} {
		var ix index
		ix.init()
		n := 0
		for len(ix.seg) <= segments {
			n++
			ix.insert(tag(n), uint32(n))
		}
		allocs := testing.AllocsPerRun(100, func() {
			for range 10 {
				ix.remove(tag(n), uint32(n))
				n--
			}
			for range 10 {
				n++
				ix.insert(tag(n), uint32(n))
			}
		})
		if allocs != 0 {
			t.Errorf("%d segments: %v allocations where ten records come and go", len(ix.seg), allocs)
		}
		checkIndex(t, &ix)
	}
}

// checkIndex holds an index against what its parts say of each other.
func checkIndex(t *testing.T, ix *index) {
	t.Helper()
	records, deep := 0, 0
	for i := range ix.seg {
		s := &ix.seg[i]
		n := 0
		lines := ix.lines(uint32(i))
		for at := range lines {
			for j, v := range lines[at] {
				if v == 0 {
					continue
				}
				n++
				if j > 0 && lines[at][j-1] == 0 {
					t.Fatalf("segment %d, line %d: a gap before slot %d", i, at, j)
				}
				if s.depth > 0 && (uint32(v>>32)^s.tag)>>(32-s.depth) != 0 {
					t.Fatalf("segment %d of %x/%d holds %x", i, s.tag, s.depth, v>>32)
				}
				for h := home(uint32(v >> 32)); h != uint8(at); h++ {
					if lines[h][lineSlots-1] == 0 {
						t.Fatalf("segment %d: a search for %x ends at line %d, it is in %d", i, v, h, at)
					}
				}
			}
		}
		if n != int(s.n) {
			t.Fatalf("segment %d has %d records, says %d", i, n, s.n)
		}
		records += n
		if s.depth == uint16(32-ix.shift) {
			deep++
		}
	}
	if records != ix.count || deep != ix.deep {
		t.Fatalf("%d records, %d deepest segments; says %d and %d", records, deep, ix.count, ix.deep)
	}
	for at, i := range ix.dir {
		s := ix.seg[i]
		if s.depth > 0 && (uint32(at)<<ix.shift^s.tag)>>(32-s.depth) != 0 {
			t.Fatalf("place %d has segment %d, of %x/%d", at, i, s.tag, s.depth)
		}
	}
	if ix.warmed > ix.capacity() {
		t.Fatalf("memory for %d segments is said to be found, there is room for %d", ix.warmed, ix.capacity())
	}
	if n, room := len(ix.seg), ix.capacity(); room < n || room > max(4*n, n+2*blockSegs) {
		t.Fatalf("room for %d segments, has %d", room, n)
	}
}

// TestIndex puts records in, moves them and takes them out, up and down through
// all sizes, and looks for each of them.
func TestIndex(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var ix index
		ix.init()
		tags := map[uint32]uint32{} // by record
		var refs []uint32
		next := uint32(1)
		spread := ^uint32(0)
		if seed%4 == 3 { // segments that fill unevenly
			spread = 0x00ffffff
		}
		for phase, most := range []int{3000, 0, 600_000 >> (seed % 4), 1000, 20_000, 0} {
			for len(refs) != most {
				grow := len(refs) < most
				if rng.IntN(4) == 0 {
					grow = !grow
				}
				switch at := rng.IntN(len(refs) + 1); {
				case grow:
					tag := rng.Uint32() & spread
					if at < len(refs) && rng.IntN(50) == 0 {
						tag = tags[refs[at]] // as another
					}
					ix.insert(tag, next)
					tags[next] = tag
					refs = append(refs, next)
					next++
				case len(refs) == 0:
				case rng.IntN(10) == 0:
					at %= len(refs)
					ref := refs[at]
					ix.move(tags[ref], ref, next)
					tags[next] = tags[ref]
					delete(tags, ref)
					refs[at] = next
					next++
				default:
					at %= len(refs)
					ref := refs[at]
					ix.remove(tags[ref], ref)
					delete(tags, ref)
					refs[at] = refs[len(refs)-1]
					refs = refs[:len(refs)-1]
				}
			}
			checkIndex(t, &ix)
			n := 0
			ix.each(func(tag, ref uint32) bool {
				n++
				if want, ok := tags[ref]; !ok || want != tag {
					t.Fatalf("seed %d, phase %d: record %d with tag %x, want %x (%v)", seed, phase, ref, tag, want, ok)
				}
				return true
			})
			if n != len(tags) {
				t.Fatalf("seed %d, phase %d: %d records, want %d", seed, phase, n, len(tags))
			}
		}
		if len(ix.seg) != 1 || len(ix.dir) != 1 || len(ix.block) != 1 || len(ix.block[0]) != segLines {
			t.Errorf("seed %d: empty, with %d segments, %d places, %d blocks, the first of %d lines",
				seed, len(ix.seg), len(ix.dir), len(ix.block), len(ix.block[0]))
		}
	}
}
