package table

import "unsafe"

// index finds records by hash. It is extendible hashing (Fagin et al. 1979):
// a directory of small segments, each with open addressing, of which a full
// one splits and two sparse ones merge by themselves. Growth therefore costs
// a microsecond here and there and never a stall, memory follows the number
// of records in both directions, and the garbage collector sees one pointer
// for some 600 records.
//
// A slot is tag<<32 | ref, 0 when empty. Splitting, merging and deleting look
// at slots only, never at records. All else that an insertion needs to know
// stands in the directory, which stays in the processor's caches: of memory
// it touches one line.
type index struct {
	dir   []segment // indexed by the tag's upper bits
	shift uint      // 32 − log2(len(dir))
	deep  int       // segments whose depth is the directory's
	count int
	spare []*slots // empty, for splits to come
}

const (
	segBits  = 11
	segSlots = 1 << segBits // of 8 bytes
	segMax   = segSlots * 4 / 5
	segMerge = segMax / 4 // a segment under this looks at its buddy
	maxDepth = 30
)

type slots [segSlots]uint64

// at is slot i, for i < segSlots. Indexing the array would first read its
// beginning, for the nil check, and so wait for a second line of memory.
func (s *slots) at(i uint) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(s), i%segSlots*8))
}

// segment is one place of the directory. All places whose tags agree in their
// first depth bits have the same slots and depth; the first of them has n.
type segment struct {
	slot  *slots
	n     uint32 // records in it
	depth uint32
}

func (ix *index) init() {
	ix.dir = []segment{{slot: new(slots)}}
	ix.shift = 32
	ix.deep = 1
	ix.count = 0
	ix.spare = nil
}

// ready sets slots aside for n more records, within reason. Segments fill
// evenly, so that all of them come to be split at about the same time.
func (ix *index) ready(n int) {
	const reason = 64
	for range min(min(len(ix.dir), n)+n/segMax, reason) - len(ix.spare) {
		s := new(slots)
		for i := 0; i < segSlots; i += pageBytes / 8 {
			s[i] = 0
		}
		ix.spare = append(ix.spare, s)
	}
}

// fresh is an empty set of slots.
func (ix *index) fresh() *slots {
	last := len(ix.spare) - 1
	if last < 0 {
		return new(slots)
	}
	s := ix.spare[last]
	ix.spare[last] = nil
	ix.spare = ix.spare[:last]
	return s
}

// home is the slot at which the search for tag starts. The multiplication
// spreads the bits that the directory left over.
func home(tag uint32) uint { return uint(tag * 0x9e3779b1 >> (32 - segBits)) }

// next is the slot after i.
func next(i uint) uint { return (i + 1) % segSlots }

func (ix *index) slotsOf(tag uint32) *slots { return ix.dir[tag>>ix.shift].slot }

// first is the first place of tag's segment.
func (ix *index) first(tag uint32) *segment {
	at := tag >> ix.shift
	s := &ix.dir[at]
	if n := uint32(len(ix.dir)) >> s.depth; n > 1 {
		s = &ix.dir[at&^(n-1)]
	}
	return s
}

// insert adds a record that is known not to be there.
func (ix *index) insert(tag, ref uint32) {
	s := ix.first(tag)
	for s.n >= segMax && s.depth < maxDepth {
		ix.split(tag)
		s = ix.first(tag)
	}
	s.n++
	s.slot.put(uint64(tag)<<32 | uint64(ref))
	ix.count++
}

func (s *slots) put(v uint64) {
	i := home(uint32(v >> 32))
	for *s.at(i) != 0 {
		i = next(i)
	}
	*s.at(i) = v
}

// find is the position of a record that is known to be there.
func (s *slots) find(v uint64) uint {
	i := home(uint32(v >> 32))
	for *s.at(i) != v {
		i = next(i)
	}
	return i
}

// move says that the record now lives elsewhere.
func (ix *index) move(tag, from, to uint32) {
	s := ix.slotsOf(tag)
	*s.at(s.find(uint64(tag)<<32 | uint64(from))) = uint64(tag)<<32 | uint64(to)
}

// remove takes out a record that is known to be there, and closes the gap so
// that no tombstones are needed.
func (ix *index) remove(tag, ref uint32) {
	s := ix.slotsOf(tag)
	gap := s.find(uint64(tag)<<32 | uint64(ref))
	for i := next(gap); *s.at(i) != 0; i = next(i) {
		// What is here may move back to the gap unless its home lies behind it.
		v := *s.at(i)
		if h := home(uint32(v >> 32)); (i-h)%segSlots >= (i-gap)%segSlots {
			*s.at(gap) = v
			gap = i
		}
	}
	*s.at(gap) = 0
	ix.count--
	seg := ix.first(tag)
	seg.n--
	if seg.n < segMerge && seg.depth > 0 {
		ix.merge(tag)
	}
}

// split divides tag's segment by one more bit.
func (ix *index) split(tag uint32) {
	s := *ix.first(tag)
	if s.depth == uint32(32-ix.shift) {
		wide := make([]segment, 2*len(ix.dir))
		for i, s := range ix.dir {
			wide[2*i] = s
			s.n = 0
			wide[2*i+1] = s
		}
		ix.dir = wide
		ix.shift--
		ix.deep = 0
	}
	d := s.depth + 1
	a, b := segment{slot: ix.fresh(), depth: d}, segment{slot: ix.fresh(), depth: d}
	bit := uint64(1) << (64 - d)
	for _, v := range s.slot {
		switch {
		case v == 0:
		case v&bit == 0:
			a.slot.put(v)
			a.n++
		default:
			b.slot.put(v)
			b.n++
		}
	}
	first, half := ix.span(tag, s.depth)
	half /= 2
	ix.fill(first, half, a)
	ix.fill(first+half, half, b)
	if len(ix.spare) == 0 { // the old ones serve the next split
		*s.slot = slots{}
		ix.spare = append(ix.spare, s.slot)
	}
	if d == uint32(32-ix.shift) {
		ix.deep += 2
	}
}

// span is the run of directory places that share tag's first depth bits.
func (ix *index) span(tag, depth uint32) (first, n int) {
	n = len(ix.dir) >> depth
	return int(tag>>ix.shift) &^ (n - 1), n
}

// fill puts a segment into n places.
func (ix *index) fill(first, n int, s segment) {
	for i := range n {
		ix.dir[first+i] = s
		s.n = 0
	}
}

// merge joins tag's segment with its buddy when both are sparse, and shrinks
// the directory when none of its segments needs the last bit.
func (ix *index) merge(tag uint32) {
	s := *ix.first(tag)
	buddy := *ix.first(tag ^ uint32(1)<<(32-s.depth))
	if buddy.depth != s.depth || s.n+buddy.n > segMax/2 {
		return
	}
	if s.depth == uint32(32-ix.shift) {
		ix.deep -= 2
	}
	m := segment{slot: new(slots), depth: s.depth - 1, n: s.n + buddy.n}
	for _, from := range [2]*slots{s.slot, buddy.slot} {
		for _, v := range from {
			if v != 0 {
				m.slot.put(v)
			}
		}
	}
	first, n := ix.span(tag, m.depth)
	ix.fill(first, n, m)
	for ix.deep == 0 && len(ix.dir) > 1 {
		narrow := make([]segment, len(ix.dir)/2)
		for i := range narrow {
			narrow[i] = ix.dir[2*i]
		}
		ix.dir = narrow
		ix.shift++
		depth := uint32(32 - ix.shift)
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
		s := &ix.dir[i]
		for _, v := range s.slot {
			if v != 0 && !f(uint32(v>>32), uint32(v)) {
				return
			}
		}
		i += len(ix.dir) >> s.depth
	}
}
