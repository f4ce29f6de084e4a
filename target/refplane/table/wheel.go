package table

import "math/bits"

// wheel is a hierarchical timing wheel (Varghese and Lauck 1987) of one core:
// six levels of 64 buckets, a second in the first, each level 64 times
// coarser. A bucket is a circular list through the records, headed by a
// sentinel in the slab's chunk 0, so that a record leaves it without knowing
// which one it is in.
//
// A touch does not move its record: when the bucket's time comes, the record
// that got a later deadline meanwhile is filed anew. So a record's bucket is
// never later than its deadline.
type wheel struct {
	cur   uint64 // the next second to work through
	count int    // records in it
	seen  uint64 // a bit for every bucket of the first level that may hold some
}

const (
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 6
	sentinels   = wheelLevels * wheelSlots
)

// bucketOf is the sentinel for a deadline.
func (w *wheel) bucketOf(due uint64) uint32 {
	if due < w.cur {
		due = w.cur
	}
	level := 0
	for d := due - w.cur; d >= wheelSlots && level < wheelLevels-1; d >>= wheelBits {
		level++
	}
	return bucket(level, due)
}

func bucket(level int, due uint64) uint32 {
	return 1 + uint32(level)*wheelSlots + uint32(due>>(wheelBits*level))&(wheelSlots-1)
}

func (st *Store) wheelInit(now uint32) {
	st.wheel = wheel{cur: uint64(now) + 1}
	for i := range uint32(sentinels) {
		r := st.rec(1 + i)
		r.wprev, r.wnxt = 1+i, 1+i
	}
}

// deadline is when the record dies; ok is false when it never does.
func deadline(r *record) (due uint64, ok bool) {
	due = 1 << 62
	if r.timeout != forever {
		due, ok = uint64(r.touched)+uint64(r.timeout), true
	}
	if r.lifetime != forever {
		due, ok = min(due, uint64(r.created)+uint64(r.lifetime)), true
	}
	return due, ok
}

// schedule files the record under its deadline, or nowhere when it has none.
func (st *Store) schedule(ref uint32, r *record) {
	due, ok := deadline(r)
	if !ok {
		r.wprev, r.wnxt = 0, 0
		return
	}
	b := st.wheel.bucketOf(due)
	h := st.rec(b)
	r.wprev, r.wnxt = b, h.wnxt
	st.rec(h.wnxt).wprev = ref
	h.wnxt = ref
	st.wheel.count++
	if b <= wheelSlots {
		st.wheel.seen |= 1 << (b - 1)
	}
}

// unschedule takes the record out of the wheel.
func (st *Store) unschedule(r *record) {
	if r.wnxt == 0 {
		return
	}
	st.rec(r.wprev).wnxt = r.wnxt
	st.rec(r.wnxt).wprev = r.wprev
	r.wprev, r.wnxt = 0, 0
	st.wheel.count--
}

// Expire works through the seconds up to now, at most budget records of them,
// and says whether it got through.
func (st *Store) Expire(now uint32, budget int) (done bool) {
	w := &st.wheel
	for w.cur <= uint64(now) {
		if w.count == 0 {
			w.cur = uint64(now) + 1
			return true
		}
		at := w.cur % wheelSlots
		for level := wheelLevels - 1; level > 0 && at == 0; level-- {
			if w.cur&(1<<(wheelBits*level)-1) == 0 && !st.drain(bucket(level, w.cur), now, &budget) {
				return false
			}
		}
		if ahead := w.seen >> at; ahead&1 == 0 { // nothing now: on to the next that may have some, or round
			w.cur = min(w.cur+min(uint64(bits.TrailingZeros64(ahead)), wheelSlots-at), uint64(now)+1)
			continue
		}
		if !st.drain(bucket(0, w.cur), now, &budget) {
			return false
		}
		w.seen &^= 1 << at
		w.cur++
	}
	return true
}

// drain empties a bucket whose time has come: the dead are removed, the
// others filed anew.
func (st *Store) drain(b, now uint32, budget *int) (done bool) {
	h := st.rec(b)
	for h.wnxt != b {
		if *budget == 0 {
			return false
		}
		*budget--
		ref := h.wnxt
		r := st.rec(ref)
		st.unschedule(r)
		if due, ok := deadline(r); ok && due <= uint64(now) {
			if !st.rec(r.sub).ghostly() {
				st.expired++
			}
			st.remove(ref)
		} else {
			st.schedule(ref, r)
		}
	}
	return true
}
