package wire

import (
	"bytes"

	"tbl/target"
)

// cursor walks over an answer field by field. Every method returns false, and
// may have moved, when the field is not what it should be.
type cursor struct {
	rest []byte
}

// lit steps over s.
func (c *cursor) lit(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

// num reads a decimal number of at most 18 digits, up to a space or the end.
func (c *cursor) num(v *int64) bool {
	var n int64
	i := 0
	for ; i < len(c.rest) && c.rest[i] != ' '; i++ {
		d := c.rest[i] - '0'
		if d > 9 || i == 18 {
			return false
		}
		n = n*10 + int64(d)
	}
	c.rest = c.rest[i:]
	*v = n
	return i > 0
}

// core reads a core, slot or count of cores.
func (c *cursor) core(v *int) bool {
	var n int64
	if !c.num(&n) || n > MaxCore {
		return false
	}
	*v = int(n)
	return true
}

// token returns the bytes up to the next space, which no control character
// may be among.
func (c *cursor) token() ([]byte, bool) {
	i := 0
	for ; i < len(c.rest) && c.rest[i] != ' '; i++ {
		if c.rest[i] < ' ' {
			return nil, false
		}
	}
	t := c.rest[:i]
	c.rest = c.rest[i:]
	return t, true
}

// name reads an encoded name, perhaps an empty one.
func (c *cursor) name(dst *[]byte) bool {
	t, ok := c.token()
	if ok {
		*dst = AppendDecoded((*dst)[:0], t)
	}
	return ok
}

func (c *cursor) tag(local *bool) bool {
	if !c.lit(" ") {
		return false
	}
	t, ok := c.token()
	if !ok {
		return false
	}
	switch string(t) {
	case "OWNER":
		*local = true
	case "NON_OWNER":
		*local = false
	default:
		return false
	}
	return true
}

// suffix reads the closing fields: node= and slot=, both optional. It leaves
// the cursor at the end exactly when nothing else is left.
func (c *cursor) suffix(ans *target.Answer) bool {
	if c.lit(" node=") && !c.name(&ans.Node) {
		return false
	}
	if c.lit(" slot=") || c.lit(" slot ") {
		if !c.core(&ans.Slot) {
			return false
		}
	}
	return len(c.rest) == 0
}

// whoami reads the flat pairs after the core's number.
func (c *cursor) whoami(ans *target.Answer) bool {
	return c.lit(" subtable ") && c.name(&ans.Subtable) &&
		c.lit(" total_tmms ") && c.core(&ans.Cores) &&
		c.lit(" writes ") && c.num(&ans.Writes) &&
		c.lit(" entries ") && c.num(&ans.Entries)
}

// loadSubtable reads the subtable of /load. Older harnesses put the whole
// answer of /whoami there: "subtable=tmm 1 subtable NAME total_tmms …".
func (c *cursor) loadSubtable(ans *target.Answer) bool {
	t, ok := c.token()
	if !ok {
		return false
	}
	if string(t) != "tmm" || bytes.HasPrefix(c.rest, []byte(" key=")) {
		ans.Subtable = AppendDecoded(ans.Subtable[:0], t)
		return true
	}
	var core int
	return c.lit(" ") && c.core(&core) && c.whoami(ans)
}

// loadKey reads the key of /load and what follows. The key that was sent says
// where it ends: harnesses that do not encode echo spaces and newlines, and
// what looks like a field in there is none. A server that understood another
// key is believed about it, so that the caller can see the difference.
func (c *cursor) loadKey(ans *target.Answer, req *target.Request) bool {
	if !c.lit(" key=") || len(c.rest) == 0 {
		return false
	}
	all := c.rest
	node := ans.Node
	if n, ok := matchEncoded(all, req.Key); ok {
		if c.rest = all[n:]; c.suffix(ans) {
			ans.Key = append(ans.Key[:0], req.Key...)
			return true
		}
	}
	if bytes.HasPrefix(all, req.Key) {
		ans.Node, ans.Slot = node, 0
		if c.rest = all[len(req.Key):]; c.suffix(ans) {
			ans.Key = append(ans.Key[:0], req.Key...)
			return true
		}
	}
	ans.Node, ans.Slot = node, 0
	c.rest = all
	if t, ok := c.token(); ok && len(t) > 0 && c.suffix(ans) {
		ans.Key = AppendDecoded(ans.Key[:0], t)
		return true
	}
	ans.Node, ans.Slot = node, 0
	ans.Key = append(ans.Key[:0], all...)
	c.rest = nil
	return true
}

// probeName reads the name that /probe echoes, which the one that was asked
// for delimits where a harness does not encode.
func (c *cursor) probeName(ans *target.Answer, req *target.Request) bool {
	if n := len(req.Subtable); n > 0 && bytes.HasPrefix(c.rest, req.Subtable) &&
		bytes.HasPrefix(c.rest[n:], []byte(" clicks=")) {
		ans.Subtable = append(ans.Subtable[:0], req.Subtable...)
		c.rest = c.rest[n:]
		return true
	}
	return c.name(&ans.Subtable)
}

// counted reads a list of ans.Count encoded keys and what follows.
func (c *cursor) counted(ans *target.Answer) bool {
	if ans.Count > int64(len(c.rest))+1 {
		return false // not even as many separators
	}
	for i := range ans.Count {
		if i > 0 && !c.lit(" ") {
			return false
		}
		if !c.item(ans) {
			return false
		}
	}
	return c.suffix(ans)
}

// item reads one encoded item of a list.
func (c *cursor) item(ans *target.Answer) bool {
	t, ok := c.token()
	if !ok || len(t) == 0 {
		return false
	}
	appendItem(ans, t)
	return true
}

// appendItem decodes in place when there is nothing to decode, and through
// the Key buffer (unused by answers with lists) otherwise.
func appendItem(ans *target.Answer, t []byte) {
	if bytes.IndexByte(t, '%') >= 0 {
		ans.Key = AppendDecoded(ans.Key[:0], t)
		t = ans.Key
	}
	ans.AppendList(t)
	ans.Key = ans.Key[:0]
}

// uncounted reads a list without a count: all items up to the closing fields.
func (c *cursor) uncounted(ans *target.Answer) bool {
	for i := 0; len(c.rest) > 0; i++ {
		if bytes.HasPrefix(c.rest, []byte(" node=")) || bytes.HasPrefix(c.rest, []byte(" slot=")) {
			break
		}
		if i > 0 && !c.lit(" ") || !c.item(ans) {
			return false
		}
	}
	return c.suffix(ans)
}

// tableList splits the decoded result of a table command that lists keys.
func (c *cursor) tableList(ans *target.Answer, req *target.Request) bool {
	if !listed(req) {
		return true
	}
	in := cursor{rest: ans.Result}
	for i := 0; len(in.rest) > 0; i++ {
		if i > 0 && !in.lit(" ") || !in.item(ans) {
			return false
		}
	}
	ans.Result = ans.Result[:0]
	return true
}

func (c *cursor) meta(m *target.Meta) bool {
	if c.lit(" missing") {
		*m = target.Meta{}
		return true
	}
	if !(c.lit(" created=") && c.moment(&m.Created) && c.lit(" touched=") && c.moment(&m.Touched)) {
		return false
	}
	m.Found = true
	if !(c.lit(" timeout=") && c.seconds(m, &m.Timeout) &&
		c.lit(" timeout_remaining=") && c.seconds(m, &m.TimeoutRemaining) &&
		c.lit(" lifetime=") && c.seconds(m, &m.Lifetime) &&
		c.lit(" lifetime_remaining=") && c.seconds(m, &m.LifetimeRemaining)) {
		return false
	}
	if !m.Found {
		*m = target.Meta{}
	}
	return true
}

func (c *cursor) moment(unix *int64) bool {
	if c.lit("unknown") {
		*unix = -1
		return true
	}
	return c.num(unix)
}

// seconds reads a timer; -1, the table's word for a missing entry, takes back
// that it was found.
func (c *cursor) seconds(m *target.Meta, s *target.Seconds) bool {
	switch {
	case c.lit("-1"):
		m.Found = false
		return true
	case c.lit(indefinite), c.lit("indef"):
		*s = target.Indefinite
		return true
	}
	var n int64
	if !c.num(&n) || n > maxSeconds {
		return false
	}
	*s = target.Seconds(n)
	return true
}
