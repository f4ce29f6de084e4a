package refplane

import (
	"strconv"

	"tbl/target"
)

// The message forms of the log. A line is made in the core's own buffer after
// the write has been timed.

// prefix starts a line with what comes before a rule's message.
func (c *core) prefix() []byte {
	if c.head == "" {
		c.head = c.p.log.head(c.id) + "Rule /Common/LOCALDB <HTTP_REQUEST>: "
	}
	return append(c.stamp.append(c.line[:0], c.p.wallTime(c)), c.head...)
}

// begin starts a line with the prefix and the core.
func (c *core) begin() []byte { return append(c.prefix(), "tmm="...) }

// end hands the line over.
func (c *core) end(b []byte) {
	b = append(b, '\n')
	c.p.log.add(b)
	c.line = b[:0]
}

func (c *core) logSample(key []byte, clicks int64, unique bool) {
	if c.p.log == nil {
		return
	}
	b := strconv.AppendInt(c.begin(), int64(c.id), 10)
	b = append(b, " subtable="...)
	b = append(b, c.name...)
	b = append(b, " writes="...)
	b = strconv.AppendInt(b, c.writes, 10)
	b = append(b, " key="...)
	b = appendEncoded(b, key)
	b = append(b, " clicks="...)
	b = strconv.AppendInt(b, clicks, 10)
	if clicks < c.p.cfg.Threshold {
		b = append(b, " FAST_LOCAL ("...)
	} else {
		b = append(b, " SLOW ("...)
	}
	if unique {
		b = append(b, "unique, "...)
	}
	b = append(b, "sampled 1/"...)
	b = strconv.AppendInt(b, int64(c.p.cfg.LogSample), 10)
	c.end(append(b, ')'))
}

func (c *core) logProbe(name []byte, clicks, entries int64, owner bool) {
	if c.p.log == nil {
		return
	}
	b := append(c.prefix(), "PROBE tmm="...)
	b = strconv.AppendInt(b, int64(c.id), 10)
	b = append(b, " subtable="...)
	b = appendEncoded(b, name)
	b = append(b, " clicks="...)
	b = strconv.AppendInt(b, clicks, 10)
	b = append(b, " entries="...)
	b = strconv.AppendInt(b, entries, 10)
	if owner {
		b = append(b, " OWNER"...)
	} else {
		b = append(b, " NON_OWNER"...)
	}
	c.end(b)
}

func (c *core) logFound(tries int, diff int64) {
	if c.p.log == nil {
		return
	}
	b := strconv.AppendInt(c.begin(), int64(c.id), 10)
	b = append(b, " subtable="...)
	b = append(b, c.name...)
	b = append(b, " initialized after "...)
	b = strconv.AppendInt(b, int64(tries), 10)
	b = append(b, " probes (diff="...)
	b = strconv.AppendInt(b, diff, 10)
	b = append(b, " clicks of "...)
	b = strconv.AppendInt(b, int64(c.p.cfg.Cores), 10)
	c.end(append(b, " total TMMs)"...))
}

func (c *core) logNotFound(diff int64) {
	if c.p.log == nil {
		return
	}
	b := strconv.AppendInt(c.begin(), int64(c.id), 10)
	b = append(b, " WARNING could not find local subtable after "...)
	b = strconv.AppendInt(b, int64(c.p.cfg.MaxTries), 10)
	b = append(b, " probes; using "...)
	b = append(b, c.name...)
	b = append(b, " (last diff="...)
	b = strconv.AppendInt(b, diff, 10)
	c.end(append(b, ')'))
}

// logChatty is chatty-log's line for a request.
func (c *core) logChatty(req *target.Request) {
	if c.p.log == nil {
		return
	}
	b := strconv.AppendInt(c.begin(), int64(c.id), 10)
	switch req.Op {
	case target.OpLoad:
		b = append(b, " /load key="...)
		b = appendEncoded(b, req.Key)
	default:
		b = append(b, " CLIENT_ACCEPTED accepts="...)
		b = strconv.AppendInt(b, c.conns, 10)
		if req.Conn.Src.IsValid() {
			b = append(b, " from "...)
			b = req.Conn.Src.AppendTo(b)
		}
	}
	c.end(b)
}
