package table

import "math/bits"

// record is the head of an entry, or of a subtable. Records are numbered, not
// pointed at, so that the garbage collector has nothing to follow in them.
//
// In a subtable's record the list fields are the ends of the list of its
// entries, keyLen is its name's length, touched counts its entries, the two
// timers together hold their bytes, and once it is deleted valLen is the next
// of its kind.
type record struct {
	sub         uint32 // the subtable's record; 0 in a subtable's own, ghost in a deleted one's, free in an unused one
	keyLen      uint32
	valLen      uint32
	created     uint32 // unix seconds
	touched     uint32 // unix seconds
	timeout     uint32 // idle seconds until death, or forever
	lifetime    uint32 // seconds from creation until death, or forever
	prev, next  uint32 // neighbours in the subtable; next chains the unused
	wprev, wnxt uint32 // neighbours in the wheel's bucket; 0: not in the wheel
}

const (
	recordBytes = 44
	pageBytes   = 4096 // of memory that the system has yet to find
	forever     = 1<<32 - 1
	free        = 1<<32 - 1
	ghost       = 1<<32 - 2
	slotBits    = 11
	slotMask    = 1<<slotBits - 1
	maxSlots    = 1 << slotBits // whole pages for heads and for every data size, so nothing is rounded away
	firstSlots  = 64            // of a class's first chunk: a small dataplane stays small
	classBytes  = 1 << 18       // aim for a chunk's data in the classes of large records
)

// chunk holds records of one size class: heads and, in a second array of
// equal length, room for key and value.
type chunk struct {
	head  []record
	data  []byte
	size  uint32 // bytes of data per record
	class uint16
	used  uint32 // records in use
	fresh uint32 // records from here on were never used
	freed uint32 // first of the chain of unused records, plus one
	place int32  // position in class.open, −1 when full
}

// class is the chunks for one size of key plus value.
type class struct {
	open  []uint32 // chunks with records in use and room for more
	idle  []uint32 // chunks without records in use
	total int      // chunks
}

// idleShare: one chunk in so many may stay idle, and one besides.
const idleShare = 16

// slab allocates records. Few of the chunks whose last record goes are kept,
// since those who come and go in turn would have them made again and again;
// the others are given back.
type slab struct {
	chunks  []chunk // 0 is the wheel's
	vacant  []uint32
	classes [classes]class
	recent  int   // class of the last record
	bytes   int64 // of all records in use
}

// Size classes: multiples of 8 up to 256, then eight steps per doubling up to
// 32 KiB, then one record per chunk of exactly its size.
const (
	fineClasses = 256/8 + 1
	coarseTop   = 1 << 15
	classes     = fineClasses + 7*8 + 1
	hugeClass   = classes - 1
)

// classOf is the class for n bytes of key and value, and its size.
func classOf(n int) (cl int, size uint32) {
	if n <= 256 {
		cl = (n + 7) / 8
		return cl, uint32(cl * 8)
	}
	if n > coarseTop {
		return hugeClass, uint32(n+7) &^ 7
	}
	e := bits.Len(uint(n-1)) - 1 // 2^e < n ≤ 2^(e+1)
	step := uint(1) << (e - 3)
	k := (uint(n) - 1<<e + step - 1) / step // 1..8
	return fineClasses + (e-8)*8 + int(k) - 1, uint32(1<<e + k*step)
}

// sizeOf is the size of a class but the last.
func sizeOf(cl int) uint32 {
	if cl < fineClasses {
		return uint32(cl * 8)
	}
	e, k := (cl-fineClasses)/8+8, (cl-fineClasses)%8+1
	return uint32(1<<e + k<<(e-3))
}

func (s *slab) init(sentinels int) {
	*s = slab{}
	s.chunks = append(s.chunks, chunk{head: make([]record, sentinels+1), place: -1})
}

func (s *slab) rec(ref uint32) *record {
	return &s.chunks[ref>>slotBits].head[ref&slotMask]
}

// room is the record's whole space for key and value.
func (s *slab) room(ref uint32) []byte {
	c := &s.chunks[ref>>slotBits]
	off := (ref & slotMask) * c.size
	return c.data[off : off+c.size : off+c.size]
}

// key is the record's key; the slice is valid until the record goes or moves.
func (s *slab) key(ref uint32) []byte { return s.room(ref)[:s.rec(ref).keyLen] }

// value likewise.
func (s *slab) value(ref uint32) []byte {
	r := s.rec(ref)
	return s.room(ref)[r.keyLen : r.keyLen+r.valLen]
}

// size is the memory that the record takes.
func (s *slab) size(ref uint32) int64 {
	return int64(s.chunks[ref>>slotBits].size) + recordBytes
}

// alloc finds a record with room for n bytes. Its head holds rubbish.
func (s *slab) alloc(n int) uint32 {
	k, size := classOf(n)
	cl := &s.classes[k]
	if len(cl.open) == 0 {
		s.reopen(k, size)
	}
	s.recent = k
	id := cl.open[len(cl.open)-1]
	c := &s.chunks[id]
	var slot uint32
	if c.freed != 0 {
		slot = c.freed - 1
		c.freed = c.head[slot].next
	} else {
		slot = c.fresh
		c.fresh++
	}
	c.used++
	if int(c.used) == len(c.head) {
		cl.open = cl.open[:len(cl.open)-1]
		c.place = -1
	}
	s.bytes += int64(c.size) + recordBytes
	return id<<slotBits | slot
}

// reopen gives a class a chunk with room: an idle one, or else a new one.
func (s *slab) reopen(k int, size uint32) {
	cl := &s.classes[k]
	if len(cl.idle) == 0 {
		s.grow(k, size)
	}
	last := len(cl.idle) - 1
	id := cl.idle[last]
	cl.idle = cl.idle[:last]
	s.chunks[id].place = int32(len(cl.open))
	cl.open = append(cl.open, id)
}

// grow adds an idle chunk to a class.
func (s *slab) grow(k int, size uint32) {
	cl := &s.classes[k]
	n := 1
	if k != hugeClass {
		n = maxSlots
		for n > 8 && n*int(size) > classBytes {
			n /= 2
		}
		n = min(n, firstSlots<<min(cl.total, slotBits))
	}
	var id uint32
	if v := len(s.vacant); v > 0 {
		id = s.vacant[v-1]
		s.vacant = s.vacant[:v-1]
	} else {
		id = uint32(len(s.chunks))
		s.chunks = append(s.chunks, chunk{})
	}
	c := chunk{
		head: make([]record, n), data: make([]byte, n*int(size)),
		size: size, class: uint16(k), place: -1,
	}
	if n == maxSlots { // not of the first
		largePages(c.head)
		largePages(c.data)
	}
	s.chunks[id] = c
	cl.idle = append(cl.idle, id)
	cl.total++
}

// ready makes room for n more records like the last one, within reason.
func (s *slab) ready(n int) {
	const reason = 8 // chunks
	cl := &s.classes[s.recent]
	if s.recent == hugeClass || cl.total == 0 {
		return
	}
	for _, id := range cl.open {
		n -= len(s.chunks[id].head) - int(s.chunks[id].used)
	}
	for _, id := range cl.idle {
		n -= len(s.chunks[id].head)
	}
	for range reason {
		if n <= 0 {
			return
		}
		s.grow(s.recent, sizeOf(s.recent))
		c := &s.chunks[cl.idle[len(cl.idle)-1]]
		n -= len(c.head)
		for i := 0; i < len(c.data); i += pageBytes {
			c.data[i] = 0
		}
		for i := 0; i < len(c.head); i += pageBytes / recordBytes {
			c.head[i].sub = free
		}
	}
}

// release gives a record back.
func (s *slab) release(ref uint32) {
	id := ref >> slotBits
	c := &s.chunks[id]
	cl := &s.classes[c.class]
	slot := ref & slotMask
	r := &c.head[slot]
	r.sub = free
	r.next = c.freed
	c.freed = slot + 1
	c.used--
	s.bytes -= int64(c.size) + recordBytes
	if c.place < 0 {
		c.place = int32(len(cl.open))
		cl.open = append(cl.open, id)
	}
	if c.used > 0 {
		return
	}
	last := len(cl.open) - 1
	cl.open[c.place] = cl.open[last]
	s.chunks[cl.open[last]].place = c.place
	cl.open = cl.open[:last]
	// From its start again: neighbours in time are neighbours in memory.
	c.place, c.fresh, c.freed = -1, 0, 0
	cl.idle = append(cl.idle, id)
	huge := c.class == hugeClass
	for n := len(cl.idle); n > 0 && (huge || n > 1+cl.total/idleShare); n-- {
		gone := cl.idle[n-1]
		cl.idle = cl.idle[:n-1]
		cl.total--
		s.chunks[gone] = chunk{place: -1}
		s.vacant = append(s.vacant, gone)
	}
}
