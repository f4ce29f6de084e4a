package table

// index finds records by hash. It is extendible hashing (Fagin et al. 1979):
// a directory of small segments, each with open addressing, of which a full
// one splits and two sparse ones merge by themselves. Growth therefore costs
// a microsecond here and there and never a stall, memory follows the number
// of records in both directions, and the garbage collector sees one pointer
// for some 300 records.
//
// A slot is tag<<32 | ref, 0 when empty. Splitting, merging and deleting look
// at slots only, never at records.
type index struct {
	dir   []*segment // indexed by the tag's upper bits
	shift uint       // 32 − log2(len(dir))
	deep  int        // segments whose depth is the directory's
	count int
}

const (
	segSlots = 510 // with the two counters exactly 4096 bytes, an allocator's size class
	segMax   = segSlots * 4 / 5
	segMerge = segMax / 4 // a segment under this looks at its buddy
	maxDepth = 30
)

type segment struct {
	n, depth uint64
	slot     [segSlots]uint64
}

func (ix *index) init() {
	ix.dir = []*segment{{}}
	ix.shift = 32
	ix.deep = 1
	ix.count = 0
}

// home is the slot at which the search for tag starts. The multiplication
// spreads the bits that the directory left over.
func home(tag uint32) uint {
	return uint(uint64(tag*0x9e3779b1)>>16) * segSlots >> 16
}

func (ix *index) segmentOf(tag uint32) *segment { return ix.dir[tag>>ix.shift] }

// insert adds a record that is known not to be there.
func (ix *index) insert(tag, ref uint32) {
	s := ix.segmentOf(tag)
	for s.n >= segMax && s.depth < maxDepth {
		ix.split(tag)
		s = ix.segmentOf(tag)
	}
	s.put(uint64(tag)<<32 | uint64(ref))
	ix.count++
}

func (s *segment) put(v uint64) {
	i := home(uint32(v >> 32))
	for s.slot[i] != 0 {
		if i++; i == segSlots {
			i = 0
		}
	}
	s.slot[i] = v
	s.n++
}

// at is the position of a record that is known to be there.
func (s *segment) at(v uint64) uint {
	i := home(uint32(v >> 32))
	for s.slot[i] != v {
		if i++; i == segSlots {
			i = 0
		}
	}
	return i
}

// move says that the record now lives elsewhere.
func (ix *index) move(tag, from, to uint32) {
	s := ix.segmentOf(tag)
	s.slot[s.at(uint64(tag)<<32|uint64(from))] = uint64(tag)<<32 | uint64(to)
}

// remove takes out a record that is known to be there, and closes the gap so
// that no tombstones are needed.
func (ix *index) remove(tag, ref uint32) {
	s := ix.segmentOf(tag)
	gap := s.at(uint64(tag)<<32 | uint64(ref))
	for i := gap; ; {
		if i++; i == segSlots {
			i = 0
		}
		v := s.slot[i]
		if v == 0 {
			break
		}
		// v may move back to the gap unless its home lies behind it.
		h := home(uint32(v >> 32))
		if (gap < i && (h <= gap || h > i)) || (gap > i && h <= gap && h > i) {
			s.slot[gap] = v
			gap = i
		}
	}
	s.slot[gap] = 0
	s.n--
	ix.count--
	if s.n < segMerge && s.depth > 0 {
		ix.merge(tag)
	}
}

// split divides tag's segment by one more bit.
func (ix *index) split(tag uint32) {
	s := ix.segmentOf(tag)
	if s.depth == uint64(32-ix.shift) {
		wide := make([]*segment, 2*len(ix.dir))
		for i, s := range ix.dir {
			wide[2*i], wide[2*i+1] = s, s
		}
		ix.dir = wide
		ix.shift--
		ix.deep = 0
	}
	d := s.depth + 1
	a, b := &segment{depth: d}, &segment{depth: d}
	bit := uint64(1) << (64 - d)
	for _, v := range &s.slot {
		switch {
		case v == 0:
		case v&bit == 0:
			a.put(v)
		default:
			b.put(v)
		}
	}
	first, half := ix.span(tag, d-1)
	half /= 2
	for i := range half {
		ix.dir[first+i] = a
		ix.dir[first+half+i] = b
	}
	if d == uint64(32-ix.shift) {
		ix.deep += 2
	}
}

// span is the run of directory places that share tag's first depth bits.
func (ix *index) span(tag uint32, depth uint64) (first, n int) {
	n = len(ix.dir) >> depth
	return int(tag>>ix.shift) &^ (n - 1), n
}

// merge joins tag's segment with its buddy when both are sparse, and shrinks
// the directory when none of its segments needs the last bit.
func (ix *index) merge(tag uint32) {
	s := ix.segmentOf(tag)
	buddy := ix.segmentOf(tag ^ uint32(1)<<(32-s.depth))
	if buddy.depth != s.depth || s.n+buddy.n > segMax/2 {
		return
	}
	if s.depth == uint64(32-ix.shift) {
		ix.deep -= 2
	}
	m := &segment{depth: s.depth - 1}
	for _, from := range [2]*segment{s, buddy} {
		for _, v := range &from.slot {
			if v != 0 {
				m.put(v)
			}
		}
	}
	first, n := ix.span(tag, m.depth)
	for i := range n {
		ix.dir[first+i] = m
	}
	for ix.deep == 0 && len(ix.dir) > 1 {
		narrow := make([]*segment, len(ix.dir)/2)
		for i := range narrow {
			narrow[i] = ix.dir[2*i]
		}
		ix.dir = narrow
		ix.shift++
		depth := uint64(32 - ix.shift)
		for i := 0; i < len(narrow); {
			d := narrow[i].depth
			if d == depth {
				ix.deep++
			}
			i += len(narrow) >> d
		}
	}
}

// each calls f for every record until it returns false. The index must not
// change meanwhile.
func (ix *index) each(f func(tag, ref uint32) bool) {
	for i := 0; i < len(ix.dir); {
		s := ix.dir[i]
		for _, v := range &s.slot {
			if v != 0 && !f(uint32(v>>32), uint32(v)) {
				return
			}
		}
		i += len(ix.dir) >> s.depth
	}
}
