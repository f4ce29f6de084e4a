package table

import (
	"errors"
	"strconv"

	"tbl/target"
)

// Verb is what is asked of a Store: the table commands under their own
// numbers, and a few that are not commands of the table.
type Verb uint8

// The verbs beside target.TableOp's.
const (
	Meta     Verb = iota + 64 // fill Ans.Meta
	Dump                      // list all keys without touching them
	Walk                      // count the living by walking
	Names                     // list subtables, at most maxNames
	NumVerbs                  // from here on the numbers are the caller's
)

// Command is one operation on a subtable. The slices are only read.
type Command struct {
	Verb              Verb
	Flags             target.TableFlags
	Sub, Key, Value   []byte
	Timeout, Lifetime target.Seconds // as given
	// Ans receives Result, List and Meta; nil where only the fields below
	// matter. Meta, Dump, Names and the keys command need it.
	Ans *target.Answer

	// What came of it.
	Err     error
	N       int64 // entries of the subtable afterwards, or deleted, or counted
	Created bool  // a key appeared
	Found   bool  // a key was there before
}

// Writes says that the command is there to change data.
func (c *Command) Writes() bool {
	switch target.TableOp(c.Verb) {
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

// Exec carries out c at time now (unix seconds).
//
// Rules where the documentation of the original leaves room, as chosen here:
// set on an existing key applies the default timers unless told to keep them,
// and never restarts the lifetime; add, replace and set with excl or
// mustexist that change nothing touch nothing; incr and append keep the
// timers and touch; setting a timer touches unless notouch, reading one
// doesn't; an entry dies in the second that its shortest timer names, counted
// in whole seconds of the clock.
func (st *Store) Exec(c *Command, now uint32) {
	c.Err, c.N, c.Created, c.Found = nil, 0, false, false
	if st.wheel.count == 0 {
		st.wheel.cur = uint64(now) + 1
	}
	switch c.Verb {
	case Verb(target.TableSet):
		st.set(c, now)
	case Verb(target.TableAdd), Verb(target.TableReplace), Verb(target.TableIncr), Verb(target.TableAppend):
		st.change(c, now)
	case Verb(target.TableLookup), Verb(target.TableTimeout), Verb(target.TableLifetime), Meta:
		st.read(c, now)
	case Verb(target.TableDelete):
		if sub := st.subtable(c.Sub); sub != 0 {
			if ref := st.find(sub, c.Key, st.keyTag(sub, c.Key), now); ref != 0 {
				st.remove(ref)
				c.N = 1
			}
		}
		c.number(c.N)
	case Verb(target.TableDeleteAll):
		c.N = st.drop(c.Sub, now)
		c.number(c.N)
	case Verb(target.TableKeys):
		st.list(c, now)
		if c.Flags&target.FlagCount != 0 {
			c.number(c.N)
		}
	case Dump, Walk:
		st.list(c, now)
	case Names:
		st.names.each(func(_, ref uint32) bool {
			c.Ans.AppendList(st.key(ref))
			return len(c.Ans.List) < maxNames
		})
	default:
		c.Err = errVerb
	}
}

// maxNames bounds the inventory of one answer.
const maxNames = 65536

// number puts n into the result.
func (c *Command) number(n int64) {
	if c.Ans != nil {
		c.Ans.Result = strconv.AppendInt(c.Ans.Result[:0], n, 10)
	}
}

// result puts b into the result.
func (c *Command) result(b []byte) {
	if c.Ans != nil {
		c.Ans.Result = append(c.Ans.Result[:0], b...)
	}
}

// set is the hot path: one look-up of subtable and key.
func (st *Store) set(c *Command, now uint32) {
	sub := st.subtable(c.Sub)
	var ref, tag uint32
	if sub != 0 {
		tag = st.keyTag(sub, c.Key)
		if ref = st.find(sub, c.Key, tag, now); ref == 0 {
			sub = st.subtable(c.Sub) // find may have removed the last entry
		}
	}
	if ref == 0 {
		if c.Flags&target.FlagMustExist != 0 {
			c.N = st.count(sub)
			return
		}
		st.insert(c, sub, tag, c.Value, now)
	} else {
		c.Found = true
		if c.Flags&target.FlagExcl != 0 {
			c.result(st.value(ref))
			c.N = st.count(sub)
			return
		}
		ref = st.setValue(ref, tag, c.Value, nil)
		r := st.rec(ref)
		if c.Flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		c.N = st.count(sub)
		st.setTimers(ref, timer(c.Timeout, defaultTimeout, r.timeout), timer(c.Lifetime, forever, r.lifetime))
		st.bury(ref, now)
	}
	c.result(c.Value)
}

// count is the subtable's number of entries; 0 for none.
func (st *Store) count(sub uint32) int64 {
	if sub == 0 {
		return 0
	}
	return int64(st.rec(sub).touched)
}

// insert creates c's key with the given value, and its subtable if need be
// (sub 0; tag is then worked out).
func (st *Store) insert(c *Command, sub, tag uint32, value []byte, now uint32) {
	if sub == 0 {
		sub = st.makeSubtable(c.Sub)
		tag = st.keyTag(sub, c.Key)
	}
	st.create(sub, c.Key, value, tag, now,
		timer(c.Timeout, defaultTimeout, defaultTimeout), timer(c.Lifetime, forever, forever))
	c.Created = true
	c.N = st.count(sub)
}

// change is add, replace, incr and append.
func (st *Store) change(c *Command, now uint32) {
	sub := st.subtable(c.Sub)
	var ref, tag uint32
	if sub != 0 {
		tag = st.keyTag(sub, c.Key)
		if ref = st.find(sub, c.Key, tag, now); ref == 0 {
			sub = st.subtable(c.Sub)
		}
	}
	c.Found = ref != 0
	c.N = st.count(sub)
	var digits [20]byte
	switch target.TableOp(c.Verb) {
	case target.TableAdd:
		if ref != 0 {
			c.result(st.value(ref))
			return
		}
		st.insert(c, sub, tag, c.Value, now)
		c.result(c.Value)
		return
	case target.TableReplace:
		if ref == 0 {
			return
		}
		ref = st.setValue(ref, tag, c.Value, nil)
		r := st.rec(ref)
		if c.Flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		st.setTimers(ref, timer(c.Timeout, defaultTimeout, r.timeout), timer(c.Lifetime, forever, r.lifetime))
		st.bury(ref, now)
		c.result(c.Value)
		return
	case target.TableIncr:
		delta := int64(1)
		if len(c.Value) > 0 {
			var err error
			if delta, err = strconv.ParseInt(string(c.Value), 10, 64); err != nil {
				c.Err = errNotNumber
				return
			}
		}
		sum := delta
		if ref != 0 {
			old, err := strconv.ParseInt(string(st.value(ref)), 10, 64)
			if err != nil {
				c.Err = errNotNumber
				return
			}
			if sum = old + delta; (sum > old) != (delta > 0) && delta != 0 {
				c.Err = errOverflow
				return
			}
		} else if c.Flags&target.FlagMustExist != 0 {
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
			if c.Flags&target.FlagMustExist != 0 {
				return
			}
			st.insert(c, sub, tag, c.Value, now)
			c.result(c.Value)
			return
		}
		ref = st.setValue(ref, tag, st.value(ref), c.Value)
	}
	if c.Flags&target.FlagNoTouch == 0 {
		st.rec(ref).touched = now
	}
	c.result(st.value(ref))
}

// read is lookup, timeout, lifetime and meta.
func (st *Store) read(c *Command, now uint32) {
	var ref uint32
	sub := st.subtable(c.Sub)
	if sub != 0 {
		ref = st.find(sub, c.Key, st.keyTag(sub, c.Key), now)
	}
	timers := c.Verb == Verb(target.TableTimeout) || c.Verb == Verb(target.TableLifetime)
	if ref == 0 {
		if timers {
			c.number(-1)
		}
		return
	}
	c.Found = true
	r := st.rec(ref)
	switch {
	case timers:
		st.timers(c, ref, now)
	case c.Verb == Meta:
		m := &c.Ans.Meta
		m.Found = true
		m.Created, m.Touched = int64(r.created), int64(r.touched)
		m.Timeout, m.TimeoutRemaining = seconds(r.timeout), remaining(r.timeout, r.touched, now)
		m.Lifetime, m.LifetimeRemaining = seconds(r.lifetime), remaining(r.lifetime, r.created, now)
	default:
		if c.Flags&target.FlagNoTouch == 0 {
			r.touched = now
		}
		c.result(st.value(ref))
	}
}

// timers reads or sets one timer of an entry.
func (st *Store) timers(c *Command, ref, now uint32) {
	r := st.rec(ref)
	idle := c.Verb == Verb(target.TableTimeout)
	if idle && c.Timeout != target.UnsetSeconds {
		if t := timer(c.Timeout, r.timeout, r.timeout); t != r.timeout || c.Timeout != target.KeepSeconds {
			if c.Flags&target.FlagNoTouch == 0 {
				r.touched = now
			}
			st.setTimers(ref, t, r.lifetime)
		}
	}
	if !idle && c.Lifetime != target.UnsetSeconds {
		st.setTimers(ref, r.timeout, timer(c.Lifetime, r.lifetime, r.lifetime))
	}
	v, since := r.timeout, r.touched
	if !idle {
		v, since = r.lifetime, r.created
	}
	s := seconds(v)
	if c.Flags&target.FlagRemaining != 0 {
		s = remaining(v, since, now)
	}
	if s == target.Indefinite {
		c.result([]byte("indefinite"))
	} else {
		c.number(int64(s))
	}
	st.bury(ref, now)
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
func (st *Store) list(c *Command, now uint32) {
	sub := st.subtable(c.Sub)
	if sub == 0 {
		return
	}
	names := c.Verb == Dump || c.Verb == Verb(target.TableKeys) && c.Flags&target.FlagCount == 0
	touch := c.Verb == Verb(target.TableKeys) && c.Flags&(target.FlagCount|target.FlagNoTouch) == 0
	for ref := st.rec(sub).next; ref != sub; {
		r := st.rec(ref)
		if !dead(r, now) {
			c.N++
			if names {
				c.Ans.AppendList(st.key(ref))
			}
			if touch {
				r.touched = now
			}
		}
		ref = r.next
	}
}
