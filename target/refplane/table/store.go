// Package table is the storage of one core: subtables of entries with two
// timers each, the commands on them, and their expiry.
//
// Nothing in it is a pointer per entry: records are numbered, heads and bytes
// lie in chunks, and the index holds numbers. The garbage collector's work
// does not grow with the number of entries, and memory follows it in both
// directions, without a stall at any size.
package table

import (
	"bytes"
	"math"
	"math/bits"
	"unsafe"

	"tbl/target"
)

// Store is one core's storage. Only that core's thread touches it, so it has
// no locks. Init makes it ready for use.
type Store struct {
	slab
	wheel wheel
	names index // subtables by name
	keys  index // entries by subtable and key
	seed  uint64
	// last is the subtable found last, 0: none. A core writes into the same
	// one for most of its life.
	last    uint32
	expired int64 // entries that went because their time was over

	// Deleting a whole subtable only takes it out of names; its records are
	// reclaimed bit by bit. Until then they are ghosts, which no counter shows.
	dropped    uint32 // chain of such subtables, 0: none
	ghosts     int64  // entries in them
	ghostBytes int64
}

// Init empties the store. The seed is that of its hashes; now is the present
// unix second, as everywhere.
func (st *Store) Init(seed uint64, now uint32) {
	st.slab.init(sentinels)
	st.names.init()
	st.keys.init()
	st.seed = seed
	st.last, st.dropped = 0, 0
	st.wheelInit(now)
}

// Entries is how many are stored, those past their deadline and not yet swept
// included.
func (st *Store) Entries() int64 { return int64(st.keys.count) - st.ghosts }

// Subtables is how many subtables have entries.
func (st *Store) Subtables() int64 { return int64(st.names.count) }

// Bytes is the memory of all records in use: heads, keys and values as they
// are stored, the subtables' included, the index not.
func (st *Store) Bytes() int64 { return st.bytes - st.ghostBytes }

// Expired is how many entries have gone because their time was over.
func (st *Store) Expired() int64 { return st.expired }

// Timed says that there are entries that will expire.
func (st *Store) Timed() bool { return st.wheel.count > 0 }

// Behind says that Tidy has something to do at now.
func (st *Store) Behind(now uint32) bool { return uint64(now) >= st.wheel.cur || st.dropped != 0 }

// Tidy expires entries and reclaims deleted ones, at most budget of either,
// and says whether it got through.
func (st *Store) Tidy(now uint32, budget int) (done bool) {
	expired := st.Expire(now, budget)
	return st.reclaim(budget) && expired
}

// Size is how many entries a subtable has, by its counter; 0 for none.
func (st *Store) Size(name []byte) int64 { return st.count(st.subtable(name)) }

// Rehearse does a plain set of a new key and undoes it. Of other commands it
// only looks up the key.
func (st *Store) Rehearse(c *Command, now uint32) {
	sub := st.subtable(c.Sub)
	if sub != 0 && st.lookup(sub, c.Key, st.keyTag(sub, c.Key)) != 0 || c.Verb != Verb(target.TableSet) || c.Flags != 0 {
		return
	}
	dry := Command{Verb: c.Verb, Sub: c.Sub, Key: c.Key, Value: c.Value, Timeout: c.Timeout, Lifetime: c.Lifetime}
	st.Exec(&dry, now)
	sub = st.subtable(c.Sub)
	st.remove(st.lookup(sub, c.Key, st.keyTag(sub, c.Key)))
}

func (st *Store) nameTag(name []byte) uint32 { return uint32(Hash(st.seed, name) >> 32) }

func (st *Store) keyTag(sub uint32, key []byte) uint32 {
	return uint32(Hash(st.seed+uint64(sub)*k1, key) >> 32)
}

// subtable finds a subtable's record, 0 when there is none.
func (st *Store) subtable(name []byte) uint32 {
	if st.last != 0 && bytes.Equal(st.key(st.last), name) {
		return st.last
	}
	tag := st.nameTag(name)
	lines := st.names.linesOf(tag)
	for i := home(tag); ; i++ {
		l := &lines[i]
		for m := l.match(tag); m != 0; m &= m - 1 {
			if ref := uint32(l[bits.TrailingZeros8(m)]); ref != 0 && bytes.Equal(st.key(ref), name) {
				st.last = ref
				return ref
			}
		}
		if !l.full() {
			return 0
		}
	}
}

// makeSubtable finds a subtable or makes it. An empty one must get an entry at
// once: subtables live as long as they have entries.
func (st *Store) makeSubtable(name []byte) uint32 {
	if ref := st.subtable(name); ref != 0 {
		return ref
	}
	ref := st.alloc(len(name))
	r := st.rec(ref)
	*r = record{keyLen: uint32(len(name)), prev: ref, next: ref}
	copy(st.room(ref), name)
	st.names.insert(st.nameTag(name), ref)
	st.last = ref
	return ref
}

// lookup finds an entry, dead or alive, 0 when there is none.
func (st *Store) lookup(sub uint32, key []byte, tag uint32) uint32 {
	lines := st.keys.linesOf(tag)
	for i := home(tag); ; i++ {
		l := &lines[i]
		for m := l.match(tag); m != 0; m &= m - 1 {
			ref := uint32(l[bits.TrailingZeros8(m)])
			if ref == 0 {
				return 0
			}
			c := &st.chunks[ref>>slotBits]
			slot := ref & slotMask
			r := &c.head[slot]
			if off := slot * c.size; r.sub == sub && bytes.Equal(c.data[off:off+r.keyLen], key) {
				return ref
			}
		}
		if !l.full() {
			return 0
		}
	}
}

// Ready makes room for n more entries like the last one. A chunk of memory that
// the system has yet to find takes as long as a thousand writes: where writes
// are timed, it is found before.
func (st *Store) Ready(n int) {
	st.slab.ready(n)
	st.keys.ready(n)
}

// Expect says that a key of the subtable used last will be looked up soon. The
// wait for memory, most of what a write into a large store costs, then passes
// while other keys are written.
func (st *Store) Expect(key []byte) {
	if st.last != 0 {
		tag := st.keyTag(st.last, key)
		prefetch(&st.keys.linesOf(tag)[home(tag)][0])
	}
}

// dead says that the record's time is over.
func dead(r *record, now uint32) bool {
	due, ok := deadline(r)
	return ok && due <= uint64(now)
}

// find is lookup without the dead: one that it meets is removed.
func (st *Store) find(sub uint32, key []byte, tag, now uint32) uint32 {
	ref := st.lookup(sub, key, tag)
	if ref != 0 && dead(st.rec(ref), now) {
		st.remove(ref)
		st.expired++
		return 0
	}
	return ref
}

// recordsAhead: records are mostly made one behind the other, in memory that
// left the caches long ago. So many ahead it is asked for.
const recordsAhead = 16

// create adds an entry that is known not to be there. The two parts of its
// value are joined.
func (st *Store) create(sub uint32, key, value []byte, tag, now, timeout, lifetime uint32) {
	ref := st.alloc(len(key) + len(value))
	c := &st.chunks[ref>>slotBits]
	slot := ref & slotMask
	off := slot * c.size
	room := c.data[off : off+c.size]
	copy(room[copy(room, key):], value)
	r := &c.head[slot]
	if next := slot + recordsAhead; int(next) < len(c.head) && c.size > 0 {
		prefetchWrite(unsafe.Pointer(&c.head[next]))
		prefetchWrite(unsafe.Pointer(&c.data[next*c.size]))
	}
	r.sub = sub
	r.keyLen, r.valLen = uint32(len(key)), uint32(len(value))
	r.created, r.touched = now, now
	r.timeout, r.lifetime = timeout, lifetime
	s := st.rec(sub)
	r.prev, r.next = s.prev, sub
	st.rec(s.prev).next = ref
	s.prev = ref
	s.touched++
	s.weigh(int64(c.size) + recordBytes)
	st.schedule(ref, r)
	st.keys.insert(tag, ref)
}

// setValue replaces an entry's value by head and tail joined; head may be the
// entry's present value. The entry may move: its new record is returned.
func (st *Store) setValue(ref uint32, tag uint32, head, tail []byte) uint32 {
	r := st.rec(ref)
	n := int(r.keyLen) + len(head) + len(tail)
	room := st.room(ref)
	if k, _ := classOf(n); k == int(st.chunks[ref>>slotBits].class) && n <= len(room) && k != hugeClass {
		v := room[r.keyLen:]
		copy(v[copy(v, head):], tail)
		r.valLen = uint32(len(head) + len(tail))
		return ref
	}
	to := st.alloc(n)
	r, room = st.rec(ref), st.room(ref) // alloc may have moved the chunks' table
	q := st.rec(to)
	*q = *r
	q.valLen = uint32(len(head) + len(tail))
	fresh := st.room(to)
	at := copy(fresh, room[:r.keyLen])
	at += copy(fresh[at:], head)
	copy(fresh[at:], tail)
	st.rec(q.prev).next = to
	st.rec(q.next).prev = to
	if q.wnxt != 0 {
		st.rec(q.wprev).wnxt = to
		st.rec(q.wnxt).wprev = to
	}
	st.keys.move(tag, ref, to)
	st.rec(q.sub).weigh(st.size(to) - st.size(ref))
	st.release(ref)
	return to
}

// setTimers changes an entry's timers.
func (st *Store) setTimers(ref, timeout, lifetime uint32) {
	r := st.rec(ref)
	if r.timeout == timeout && r.lifetime == lifetime {
		return
	}
	st.unschedule(r)
	r.timeout, r.lifetime = timeout, lifetime
	st.schedule(ref, r)
}

// weigh adds to the bytes that a subtable's entries take.
func (r *record) weigh(n int64) {
	sum := uint64(r.lifetime)<<32 | uint64(r.timeout)
	sum += uint64(n)
	r.lifetime, r.timeout = uint32(sum>>32), uint32(sum)
}

// weight is the bytes that a subtable's entries take.
func (r *record) weight() int64 { return int64(uint64(r.lifetime)<<32 | uint64(r.timeout)) }

// ghostly says that a subtable's record is of one that was deleted.
func (r *record) ghostly() bool { return r.sub != 0 }

// remove takes an entry out, and its subtable with the last one.
func (st *Store) remove(ref uint32) {
	r := st.rec(ref)
	sub := r.sub
	st.unschedule(r)
	st.keys.remove(st.keyTag(sub, st.key(ref)), ref)
	st.rec(r.prev).next = r.next
	st.rec(r.next).prev = r.prev
	size := st.size(ref)
	st.release(ref)
	s := st.rec(sub)
	s.touched--
	s.weigh(-size)
	switch {
	case s.ghostly(): // its record goes when reclaim comes to it
		st.ghosts--
		st.ghostBytes -= size
	case s.touched == 0:
		if st.last == sub {
			st.last = 0
		}
		st.names.remove(st.nameTag(st.key(sub)), sub)
		st.release(sub)
	}
}

// bury removes an entry whose new timers are over already.
func (st *Store) bury(ref, now uint32) {
	if dead(st.rec(ref), now) {
		st.remove(ref)
		st.expired++
	}
}

// drop deletes a subtable and says how many living entries it had. It takes
// no longer for many than for few, unless entries are due to expire first.
func (st *Store) drop(name []byte, now uint32) (n int64) {
	st.Expire(now, math.MaxInt)
	sub := st.subtable(name)
	if sub == 0 {
		return 0
	}
	st.names.remove(st.nameTag(name), sub)
	st.last = 0
	r := st.rec(sub)
	n = int64(r.touched)
	st.ghosts += n
	st.ghostBytes += r.weight() + st.size(sub)
	r.sub = ghost
	r.valLen = st.dropped
	st.dropped = sub
	return n
}

// reclaim frees at most budget records of deleted subtables, and says whether
// none is left.
func (st *Store) reclaim(budget int) (done bool) {
	for ; st.dropped != 0; budget-- {
		if budget <= 0 {
			return false
		}
		sub := st.dropped
		r := st.rec(sub)
		if r.next != sub {
			st.remove(r.next)
			continue
		}
		st.dropped = r.valLen
		st.ghostBytes -= st.size(sub)
		st.release(sub)
	}
	return true
}
