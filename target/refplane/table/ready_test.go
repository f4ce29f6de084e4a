package table

import "testing"

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

// TestIndexReady: the slots set aside serve the splits that follow, and are set
// aside once.
func TestIndexReady(t *testing.T) {
	tag := func(i int) uint32 { return uint32(i) * 0x9e3779b1 }
	var ix index
	ix.init()
	const have, more = 5 * segMax, 10 * segMax
	for i := range have {
		ix.insert(tag(i), uint32(i+1))
	}
	ix.ready(more)
	spare := map[*slots]bool{}
	for _, s := range ix.spare {
		spare[s] = true
	}
	set := len(ix.spare)
	if set != len(spare) || set < more/segMax {
		t.Fatalf("%d slots set aside, %d different ones", set, len(spare))
	}
	if ix.ready(more); len(ix.spare) != set {
		t.Errorf("after a second ready %d are set aside, want %d", len(ix.spare), set)
	}
	segments := func() map[*slots]bool {
		out := map[*slots]bool{}
		for _, s := range ix.dir {
			out[s.slot] = true
		}
		return out
	}
	before := segments()
	for i := have; len(ix.spare) > 1 && i < have+more; i++ {
		ix.insert(tag(i), uint32(i+1))
	}
	used := 0
	for s := range segments() {
		switch {
		case spare[s]:
			used++
		case !before[s]:
			t.Fatal("a split made new slots while some were set aside")
		}
	}
	if want := set - len(ix.spare); used != want || used < 4 {
		t.Errorf("%d of the slots set aside are in use, want %d", used, want)
	}
	n := 0
	ix.each(func(got, ref uint32) bool {
		n++
		if got != tag(int(ref)-1) {
			t.Fatalf("record %d has tag %x", ref, got)
		}
		return true
	})
	if n != ix.count {
		t.Errorf("%d records, want %d", n, ix.count)
	}
}
