package refplane

import (
	"errors"
	"strconv"

	"tbl/target"
)

// verb is what a core is asked to do with a subtable: the table commands
// under their own numbers, and a few that are not commands of the table.
type verb uint8

const (
	verbMeta  verb = iota + 64 // fill ans.Meta
	verbDump                   // list all keys without touching them
	verbWalk                   // count by walking, as enumerate-count does
	verbStats                  // append this core's counters to ans.Stats
	verbNames                  // list subtables
)

// command is one operation on a subtable, sent to the core that owns it. The
// slices are only read.
type command struct {
	verb              verb
	flags             target.TableFlags
	sub, key, value   []byte
	timeout, lifetime target.Seconds // as given
	ans               *target.Answer // receives Result, List, Meta, Stats; nil where only the fields below matter

	// What came of it.
	err     error
	n       int64 // entries of the subtable afterwards, or deleted, or counted
	created bool  // a key appeared
	found   bool  // a key was there before
}

// writes says that the command is there to change data.
func (c *command) writes() bool {
	switch target.TableOp(c.verb) {
	case target.TableSet, target.TableAdd, target.TableReplace, target.TableIncr, target.TableAppend:
		return true
	}
	return false
}

// Errors of the table, answered as 400.
var (
	errNotNumber = errors.New("value is not an integer")
	errOverflow  = errors.New("integer out of range")
	errVerb      = errors.New("unknown table command")
)

const defaultTimeout = 180 // seconds

// timer turns a given timer into a stored one: the default when not given,
// the present one when told to keep it.
func timer(given target.Seconds, def, present uint32) uint32 {
	switch {
	case given == target.UnsetSeconds:
		return def
	case given == target.KeepSeconds:
		return present
	case given < 0 || given >= forever:
		return forever
	}
	return uint32(given)
}

// exec carries out c at time now (unix seconds).
//
// Rules where the documentation of the original leaves room, as chosen here:
// set on an existing key applies the default timers unless told to keep them,
// and never restarts the lifetime; add, replace and set with excl or
// mustexist that change nothing touch nothing; incr and append keep the
// timers and touch; setting a timer touches unless notouch, reading one
// doesn't; an entry dies in the second that its shortest timer names, counted
// in whole seconds of the clock.
func (st *store) exec(c *command, now uint32) {
	c.err, c.n, c.created, c.found = nil, 0, false, false
	if st.wheel.count == 0 {
		st.wheel.cur = uint64(now) + 1
	}
	switch c.verb {
	case verb(target.TableSet):
		st.set(c, now)
	case verb(target.TableAdd), verb(target.TableReplace), verb(target.TableIncr), verb(target.TableAppend):
		st.change(c, now)
	case verb(target.TableLookup), verb(target.TableTimeout), verb(target.TableLifetime), verbMeta:
		st.read(c, now)
	case verb(target.TableDelete):
		if sub := st.subtable(c.sub); sub != 0 {
			if ref := st.find(sub, c.key, st.keyTag(sub, c.key), now); ref != 0 {
				st.remove(ref)
				c.n = 1
			}
		}
		c.number(c.n)
	case verb(target.TableDeleteAll):
		c.n = st.deleteAll(c.sub, now)
		c.number(c.n)
	case verb(target.TableKeys):
		st.list(c, now)
		if c.flags&target.FlagCount != 0 {
			c.number(c.n)
		}
	case verbDump, verbWalk:
		st.list(c, now)
	case verbNames:
		st.names.each(func(_, ref uint32) bool {
			c.ans.AppendList(st.key(ref))
			return len(c.ans.List) < maxNames
		})
	default:
		c.err = errVerb
	}
}

// maxNames bounds the inventory of one answer.
const maxNames = 65536

// number puts n into the result.
func (c *command) number(n int64) {
	if c.ans != nil {
		c.ans.Result = strconv.AppendInt(c.ans.Result[:0], n, 10)
	}
}

// result puts b into the result.
func (c *command) result(b []byte) {
	if c.ans != nil {
		c.ans.Result = append(c.ans.Result[:0], b...)
	}
}

// set is the hot path: one look-up of subtable and key.
func (st *store) set(c *command, now uint32) {
	sub := st.subtable(c.sub)
	var ref, tag uint32
	if sub != 0 {
		tag = st.keyTag(sub, c.key)
		if ref = st.find(sub, c.key, tag, now); ref == 0 {
			sub = st.subtable(c.sub) // find may have removed the last entry
		}
	}
	if ref == 0 {
		if c.flags&target.FlagMustExist != 0 {
			c.n = st.size(sub)
			return
		}
		st.insert(c, sub, tag, c.value, now)
	} else {
		c.found = true
		if c.flags&target.FlagExcl != 0 {
			c.result(st.value(ref))
			c.n = st.size(sub)
			return
		}
		ref = st.setValue(ref, tag, c.value, nil)
		r := st.rec(ref)
		if c.flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		st.setTimers(ref, timer(c.timeout, defaultTimeout, r.timeout), timer(c.lifetime, forever, r.lifetime))
		c.n = st.size(sub)
	}
	c.result(c.value)
}

// size is the subtable's number of entries; 0 for none.
func (st *store) size(sub uint32) int64 {
	if sub == 0 {
		return 0
	}
	return int64(st.rec(sub).touched)
}

// insert creates c's key with the given value, and its subtable if need be
// (sub 0; tag is then worked out).
func (st *store) insert(c *command, sub, tag uint32, value []byte, now uint32) {
	if sub == 0 {
		sub = st.makeSubtable(c.sub)
		tag = st.keyTag(sub, c.key)
	}
	st.create(sub, c.key, value, tag, now,
		timer(c.timeout, defaultTimeout, defaultTimeout), timer(c.lifetime, forever, forever))
	c.created = true
	c.n = st.size(sub)
}

// change is add, replace, incr and append.
func (st *store) change(c *command, now uint32) {
	sub := st.subtable(c.sub)
	var ref, tag uint32
	if sub != 0 {
		tag = st.keyTag(sub, c.key)
		if ref = st.find(sub, c.key, tag, now); ref == 0 {
			sub = st.subtable(c.sub)
		}
	}
	c.found = ref != 0
	c.n = st.size(sub)
	var digits [20]byte
	switch target.TableOp(c.verb) {
	case target.TableAdd:
		if ref != 0 {
			c.result(st.value(ref))
			return
		}
		st.insert(c, sub, tag, c.value, now)
		c.result(c.value)
		return
	case target.TableReplace:
		if ref == 0 {
			return
		}
		ref = st.setValue(ref, tag, c.value, nil)
		r := st.rec(ref)
		if c.flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		st.setTimers(ref, timer(c.timeout, defaultTimeout, r.timeout), timer(c.lifetime, forever, r.lifetime))
		c.result(c.value)
		return
	case target.TableIncr:
		delta := int64(1)
		if len(c.value) > 0 {
			var err error
			if delta, err = strconv.ParseInt(string(c.value), 10, 64); err != nil {
				c.err = errNotNumber
				return
			}
		}
		sum := delta
		if ref != 0 {
			old, err := strconv.ParseInt(string(st.value(ref)), 10, 64)
			if err != nil {
				c.err = errNotNumber
				return
			}
			if sum = old + delta; (sum > old) != (delta > 0) && delta != 0 {
				c.err = errOverflow
				return
			}
		} else if c.flags&target.FlagMustExist != 0 {
			return
		}
		text := strconv.AppendInt(digits[:0], sum, 10)
		if ref == 0 {
			st.insert(c, sub, tag, text, now)
			c.result(text)
			return
		}
		ref = st.setValue(ref, tag, text, nil)
	case target.TableAppend:
		if ref == 0 {
			if c.flags&target.FlagMustExist != 0 {
				return
			}
			st.insert(c, sub, tag, c.value, now)
			c.result(c.value)
			return
		}
		ref = st.setValue(ref, tag, st.value(ref), c.value)
	}
	if c.flags&target.FlagNoTouch == 0 {
		st.rec(ref).touched = now
	}
	c.result(st.value(ref))
}

// read is lookup, timeout, lifetime and meta.
func (st *store) read(c *command, now uint32) {
	var ref uint32
	sub := st.subtable(c.sub)
	if sub != 0 {
		ref = st.find(sub, c.key, st.keyTag(sub, c.key), now)
	}
	timers := c.verb == verb(target.TableTimeout) || c.verb == verb(target.TableLifetime)
	if ref == 0 {
		if timers {
			c.number(-1)
		}
		return
	}
	c.found = true
	r := st.rec(ref)
	switch {
	case timers:
		st.timers(c, ref, now)
	case c.verb == verbMeta:
		m := &c.ans.Meta
		m.Found = true
		m.Created, m.Touched = int64(r.created), int64(r.touched)
		m.Timeout, m.TimeoutRemaining = seconds(r.timeout), remaining(r.timeout, r.touched, now)
		m.Lifetime, m.LifetimeRemaining = seconds(r.lifetime), remaining(r.lifetime, r.created, now)
	default:
		if c.flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		c.result(st.value(ref))
	}
}

// timers reads or sets one timer of an entry.
func (st *store) timers(c *command, ref, now uint32) {
	r := st.rec(ref)
	idle := c.verb == verb(target.TableTimeout)
	if idle && c.timeout != target.UnsetSeconds {
		if t := timer(c.timeout, r.timeout, r.timeout); t != r.timeout || c.timeout != target.KeepSeconds {
			if c.flags&target.FlagNoTouch == 0 {
				r.touched = now
			}
			st.setTimers(ref, t, r.lifetime)
		}
	}
	if !idle && c.lifetime != target.UnsetSeconds {
		st.setTimers(ref, r.timeout, timer(c.lifetime, r.lifetime, r.lifetime))
	}
	v, since := r.timeout, r.touched
	if !idle {
		v, since = r.lifetime, r.created
	}
	s := seconds(v)
	if c.flags&target.FlagRemaining != 0 {
		s = remaining(v, since, now)
	}
	if s == target.Indefinite {
		c.result([]byte("indefinite"))
	} else {
		c.number(int64(s))
	}
}

func seconds(v uint32) target.Seconds {
	if v == forever {
		return target.Indefinite
	}
	return target.Seconds(v)
}

func remaining(v, since, now uint32) target.Seconds {
	if v == forever {
		return target.Indefinite
	}
	return max(0, target.Seconds(since)+target.Seconds(v)-target.Seconds(now))
}

// list is keys, dump and walk: the living keys of a subtable in the order in
// which they were created.
func (st *store) list(c *command, now uint32) {
	sub := st.subtable(c.sub)
	if sub == 0 {
		return
	}
	names := c.verb == verbDump || c.verb == verb(target.TableKeys) && c.flags&target.FlagCount == 0
	touch := c.verb == verb(target.TableKeys) && c.flags&(target.FlagCount|target.FlagNoTouch) == 0
	for ref := st.rec(sub).next; ref != sub; {
		r := st.rec(ref)
		if !dead(r, now) {
			c.n++
			if names {
				c.ans.AppendList(st.key(ref))
			}
			if touch {
				r.touched = now
			}
		}
		ref = r.next
	}
}

// deleteAll removes a subtable and says how many living entries it had.
func (st *store) deleteAll(name []byte, now uint32) (n int64) {
	sub := st.subtable(name)
	if sub == 0 {
		return 0
	}
	for left := st.size(sub); left > 0; left-- {
		ref := st.rec(sub).next
		if dead(st.rec(ref), now) {
			st.expired++
		} else {
			n++
		}
		st.remove(ref)
	}
	return n
}
