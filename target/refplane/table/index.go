package table

import "math/bits"

// index finds records by hash. It is extendible hashing (Fagin et al. 1979):
// a directory of small segments, each with open addressing, of which a full
// one splits and two sparse ones merge by themselves. Growth therefore costs
// microseconds here and there and never a stall, memory follows the number of
// records in both directions, and the garbage collector sees one pointer for
// some 150,000 records.
//
// A slot is tag<<32 | ref, 0 when empty. Splitting, merging and deleting look
// at slots only, never at records. The directory and the counters stay in the
// processor's caches: of memory, a look-up or an insertion touches one line,
// or two where many records share it.
type index struct {
	dir    []uint32  // numbers of segments, by the tag's upper bits
	shift  uint      // 32 − log2(len(dir))
	seg    []segment // by number
	block  [][]line  // the lines of segment i are in block[i/blockSegs]
	deep   int       // segments whose depth is the directory's
	count  int
	warmed int // segments whose memory has been touched
}

const (
	lineSlots = 8
	segLines  = 1 << 8 // a uint8 counts them
	segSlots  = segLines * lineSlots
	segMax    = segSlots * 4 / 5
	segMerge  = segMax / 4 // a segment under this looks at its buddy
	maxDepth  = 30
	blockSegs = 1 << 7 // 2 MiB
)

// line is as much as memory delivers at a time. Its records stand at its
// front; those who find it full are in the next one that isn't.
type line [lineSlots]uint64

// full says that no slot is free.
func (l *line) full() bool { return l[lineSlots-1] != 0 }

// match is the slots with this tag, a bit each; for tag 0 the free ones too.
//
// It and used are without branches: which slot it is can't be predicted, and a
// wrong guess would come out only when the line has arrived from memory. As it
// is, the processor goes on with what follows while it waits.
func (l *line) match(tag uint32) (m uint8) {
	for j, v := range l {
		m |= uint8((uint64(uint32(v>>32)^tag)-1)>>63) << j
	}
	return m
}

// used is how many slots are taken.
func (l *line) used() (n int) {
	for _, v := range l {
		n += int((v | -v) >> 63)
	}
	return n
}

// segment is the records whose tags agree in the first depth bits. A segment's
// number may change when others go: there are no gaps.
type segment struct {
	tag   uint32 // the upper bits that they agree in
	n     uint16 // records
	depth uint16
}

func (ix *index) init() {
	*ix = index{dir: []uint32{0}, shift: 32, seg: []segment{{}}, block: [][]line{make([]line, segLines)}, deep: 1}
}

// home is the line at which the search for tag starts. The multiplication
// spreads the bits that the directory left over.
func home(tag uint32) uint8 { return uint8(tag * 0x9e3779b1 >> 24) }

// lines is the lines of segment i, segLines of them.
func (ix *index) lines(i uint32) []line {
	at := i % blockSegs * segLines
	return ix.block[i/blockSegs][at : at+segLines]
}

// linesOf is the lines of tag's segment.
func (ix *index) linesOf(tag uint32) []line { return ix.lines(ix.dir[tag>>ix.shift]) }

// insert adds a record that is known not to be there.
func (ix *index) insert(tag, ref uint32) {
	i := ix.dir[tag>>ix.shift]
	for ix.seg[i].n >= segMax && ix.seg[i].depth < maxDepth {
		ix.split(i)
		i = ix.dir[tag>>ix.shift]
	}
	ix.seg[i].n++
	put(ix.lines(i), uint64(tag)<<32|uint64(ref))
	ix.count++
}

// put adds a slot to a segment's lines.
func put(lines []line, v uint64) {
	for i := home(uint32(v >> 32)); ; i++ {
		if l := &lines[i]; !l.full() {
			l[l.used()%lineSlots] = v
			return
		}
	}
}

// find is where a slot is that is known to be there.
func find(lines []line, v uint64) (at uint8, slot int) {
	tag := uint32(v >> 32)
	for i := home(tag); ; i++ {
		for m := lines[i].match(tag); m != 0; m &= m - 1 {
			if j := bits.TrailingZeros8(m); lines[i][j] == v {
				return i, j
			}
		}
	}
}

// move says that the record now lives elsewhere.
func (ix *index) move(tag, from, to uint32) {
	lines := ix.linesOf(tag)
	i, j := find(lines, uint64(tag)<<32|uint64(from))
	lines[i][j] = uint64(tag)<<32 | uint64(to)
}

// remove takes out a record that is known to be there.
func (ix *index) remove(tag, ref uint32) {
	n := ix.dir[tag>>ix.shift]
	lines := ix.lines(n)
	i, j := find(lines, uint64(tag)<<32|uint64(ref))
	take(lines, i, j)
	ix.count--
	s := &ix.seg[n]
	s.n--
	if s.n < segMerge && s.depth > 0 {
		ix.merge(n)
	}
}

// take empties slot j of line i, and fills a gap in a full line from those
// behind, so that a search may end at a line that isn't full.
func take(lines []line, i uint8, j int) {
	for lines[i].close(j) {
		from, slot, ok := beyond(lines, i)
		if !ok {
			return
		}
		lines[i][lineSlots-1] = lines[from][slot]
		i, j = from, slot
	}
}

// beyond finds a slot behind line gap whose search comes by there.
func beyond(lines []line, gap uint8) (at uint8, slot int, ok bool) {
	for i := gap + 1; ; i++ {
		for j, v := range &lines[i] {
			if v == 0 {
				return 0, 0, false
			}
			if i-home(uint32(v>>32)) >= i-gap {
				return i, j, true
			}
		}
	}
}

// close takes out slot j, and says whether the line was full.
func (l *line) close(j int) (full bool) {
	last := l.used() - 1
	l[j] = l[last]
	l[last] = 0
	return last == lineSlots-1
}

// split divides segment i by one more bit; the upper half gets a new number.
func (ix *index) split(i uint32) {
	if s := ix.seg[i]; s.depth == uint16(32-ix.shift) {
		wide := make([]uint32, 2*len(ix.dir))
		for at, i := range ix.dir {
			wide[2*at], wide[2*at+1] = i, i
		}
		ix.dir = wide
		ix.shift--
		ix.deep = 0
	}
	up := ix.add()
	a, b := &ix.seg[i], &ix.seg[up]
	a.depth++
	bit := uint32(1) << (32 - a.depth)
	*b = segment{tag: a.tag | bit, depth: a.depth}
	low, high := ix.lines(i), ix.lines(up)
	clear(high)
	var old [segLines]line
	copy(old[:], low)
	clear(low)
	for at := range old {
		for _, v := range old[at] {
			switch {
			case v == 0:
			case uint32(v>>32)&bit == 0:
				put(low, v)
			default:
				put(high, v)
				b.n++
			}
		}
	}
	a.n -= b.n
	ix.point(up)
	if a.depth == uint16(32-ix.shift) {
		ix.deep += 2
	}
}

// add is a new segment's number. Its lines hold rubbish.
func (ix *index) add() uint32 {
	n := len(ix.seg)
	ix.seg = append(ix.seg, segment{})
	ix.room(n + 1)
	return uint32(n)
}

// room sees to it that there are blocks for n segments. The first block grows
// by doubling: a small dataplane stays small.
func (ix *index) room(n int) {
	for first := len(ix.block[0]) / segLines; first < min(n, blockSegs); first *= 2 {
		ix.resize(2 * first)
	}
	for len(ix.block)*blockSegs < n {
		b := make([]line, blockSegs*segLines)
		largePages(b)
		ix.block = append(ix.block, b)
	}
}

// resize gives the first block room for n segments.
func (ix *index) resize(n int) {
	b := make([]line, n*segLines)
	copy(b, ix.block[0])
	ix.block[0] = b
}

// point sets segment i's places in the directory.
func (ix *index) point(i uint32) {
	s := ix.seg[i]
	first := int(s.tag >> ix.shift)
	for at := range len(ix.dir) >> s.depth {
		ix.dir[first+at] = i
	}
}

// ready finds memory for the splits that n more records bring, within reason.
// Segments fill evenly, so that all of them come to be split at about the same
// time.
func (ix *index) ready(n int) {
	const reason = 64
	want := len(ix.seg) + min(min(len(ix.seg), n)+n/segMax, reason)
	ix.room(want)
	for i := max(ix.warmed, len(ix.seg)); i < want; i++ {
		lines := ix.lines(uint32(i))
		for at := 0; at < segLines; at += pageBytes / (8 * lineSlots) {
			lines[at][0] = 0
		}
	}
	ix.warmed = max(ix.warmed, want)
}

// merge joins segment i with its buddy when both are sparse, and shrinks the
// directory when none of its segments needs the last bit.
func (ix *index) merge(i uint32) {
	s := ix.seg[i]
	bit := uint32(1) << (32 - s.depth)
	j := ix.dir[(s.tag^bit)>>ix.shift]
	buddy := ix.seg[j]
	if buddy.depth != s.depth || s.n+buddy.n > segMax/2 {
		return
	}
	if s.depth == uint16(32-ix.shift) {
		ix.deep -= 2
	}
	lines := ix.lines(i)
	for _, l := range ix.lines(j) {
		for _, v := range l {
			if v != 0 {
				put(lines, v)
			}
		}
	}
	ix.seg[i] = segment{tag: s.tag &^ bit, n: s.n + buddy.n, depth: s.depth - 1}
	ix.point(i)
	ix.drop(j)
	for ix.deep == 0 && len(ix.dir) > 1 {
		narrow := make([]uint32, len(ix.dir)/2)
		for at := range narrow {
			narrow[at] = ix.dir[2*at]
		}
		ix.dir = narrow
		ix.shift++
		for _, s := range ix.seg {
			if s.depth == uint16(32-ix.shift) {
				ix.deep++
			}
		}
	}
}

// drop gives segment i up. The last one takes its number, so that blocks empty
// from the end, and go a while after.
func (ix *index) drop(i uint32) {
	last := uint32(len(ix.seg) - 1)
	if i != last {
		ix.seg[i] = ix.seg[last]
		copy(ix.lines(i), ix.lines(last))
		ix.point(i)
	}
	ix.seg = ix.seg[:last]
	if n := len(ix.block) - 1; n > 0 && int(last) <= n*blockSegs-blockSegs/4 {
		ix.block[n] = nil
		ix.block = ix.block[:n]
	}
	for n := ix.capacity(); n > 1 && n <= blockSegs && int(last) <= max(1, n/4); n /= 2 {
		ix.resize(n / 2)
	}
	ix.warmed = min(ix.warmed, ix.capacity())
}

// capacity is how many segments there is memory for.
func (ix *index) capacity() int {
	return len(ix.block[0])/segLines + (len(ix.block)-1)*blockSegs
}

// each calls f for every record until it returns false. The index must not
// change meanwhile.
func (ix *index) each(f func(tag, ref uint32) bool) {
	for i := range ix.seg {
		for _, l := range ix.lines(uint32(i)) {
			for _, v := range l {
				if v != 0 && !f(uint32(v>>32), uint32(v)) {
					return
				}
			}
		}
	}
}
