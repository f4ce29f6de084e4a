package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tbl/target"
)

const indefinite = "indefinite"

// statsBody is the JSON of /stats.
type statsBody struct {
	Core  int                `json:"tmm"`
	Slot  int                `json:"slot,omitempty"`
	Node  string             `json:"node,omitempty"`
	Cores []target.CoreStats `json:"cores"`
}

// AppendAnswer appends the line, '\n' included, that answers req with ans.
// node, when not empty, is added as the field node=.
func AppendAnswer(dst []byte, req *target.Request, ans *target.Answer, node string) []byte {
	if req.Op == target.OpStats {
		return appendStats(dst, ans, node)
	}
	if req.Op == target.OpWhoami {
		dst = appendInt(dst, "tmm ", int64(ans.Core))
		dst = append(dst, " subtable "...)
		dst = AppendEncoded(dst, ans.Subtable)
		dst = appendInt(dst, " total_tmms ", int64(ans.Cores))
		dst = appendInt(dst, " writes ", ans.Writes)
		dst = appendInt(dst, " entries ", ans.Entries)
		return appendSuffix(dst, ans, node)
	}
	dst = appendInt(dst, "tmm=", int64(ans.Core))
	switch req.Op {
	case target.OpInfo:
		dst = appendInt(dst, " total_tmms=", int64(ans.Cores))
	case target.OpLoad:
		dst = appendName(dst, " subtable=", ans.Subtable)
		dst = appendName(dst, " key=", ans.Key)
	case target.OpBulkLoad:
		dst = appendName(dst, " subtable=", ans.Subtable)
		dst = appendInt(dst, " written=", ans.Written)
		dst = appendInt(dst, " elapsed_clicks=", ans.Clicks)
		dst = appendInt(dst, " clicks_per_write=", ans.ClicksPerWrite)
	case target.OpDump:
		dst = appendInt(dst, " count=", ans.Count)
		dst = appendList(append(dst, " keys="...), ans.List, false)
	case target.OpProbe:
		dst = appendName(dst, " subtable=", ans.Subtable)
		dst = appendInt(dst, " clicks=", ans.Clicks)
		dst = appendInt(dst, " entries=", ans.Entries)
		dst = appendTag(dst, ans.Local)
	case target.OpReset, target.OpResetName:
		dst = appendInt(dst, " deleted=", ans.Deleted)
	case target.OpTable:
		if ans.OwnerKnown {
			dst = appendInt(dst, " owner=", int64(ans.Owner))
		}
		dst = appendInt(dst, " clicks=", ans.Clicks)
		dst = appendTag(dst, ans.Local)
		dst = append(dst, " result="...)
		if listed(req) {
			dst = AppendEncoded(dst, appendList(nil, ans.List, false))
		} else {
			dst = AppendEncoded(dst, ans.Result)
		}
	case target.OpMeta:
		dst = appendMeta(dst, &ans.Meta)
	case target.OpNames:
		dst = appendList(append(dst, " names="...), ans.List, true)
	case target.OpReload:
		dst = append(dst, " reloaded"...)
	}
	return appendSuffix(dst, ans, node)
}

// listed says that req's result is a list of keys.
func listed(req *target.Request) bool {
	return req.Table == target.TableKeys && req.Flags&target.FlagCount == 0
}

func appendStats(dst []byte, ans *target.Answer, node string) []byte {
	b, err := json.Marshal(statsBody{Core: ans.Core, Slot: ans.Slot, Node: node, Cores: ans.Stats})
	if err != nil { // integers and a string always marshal
		return append(dst, '\n')
	}
	return append(append(dst, b...), '\n')
}

func appendInt(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(dst, name...), v, 10)
}

func appendName(dst []byte, name string, v []byte) []byte {
	return AppendEncoded(append(dst, name...), v)
}

func appendTag(dst []byte, local bool) []byte {
	if local {
		return append(dst, " OWNER"...)
	}
	return append(dst, " NON_OWNER"...)
}

// appendList joins the encoded items. guard escapes the first letter of items
// that would be taken for a closing field in a list without a count.
func appendList(dst []byte, items [][]byte, guard bool) []byte {
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ' ')
		}
		if guard && (bytes.HasPrefix(item, []byte("slot=")) || bytes.HasPrefix(item, []byte("node="))) {
			dst = append(dst, '%', hexDigits[item[0]>>4], hexDigits[item[0]&15])
			item = item[1:]
		}
		dst = AppendEncoded(dst, item)
	}
	return dst
}

func appendMeta(dst []byte, m *target.Meta) []byte {
	if !m.Found {
		return append(dst, " missing"...)
	}
	dst = appendMoment(dst, " created=", m.Created)
	dst = appendMoment(dst, " touched=", m.Touched)
	dst = appendSeconds(append(dst, " timeout="...), m.Timeout)
	dst = appendSeconds(append(dst, " timeout_remaining="...), m.TimeoutRemaining)
	dst = appendSeconds(append(dst, " lifetime="...), m.Lifetime)
	return appendSeconds(append(dst, " lifetime_remaining="...), m.LifetimeRemaining)
}

func appendMoment(dst []byte, name string, unix int64) []byte {
	if unix < 0 {
		return append(append(dst, name...), "unknown"...)
	}
	return appendInt(dst, name, unix)
}

func appendSeconds(dst []byte, s target.Seconds) []byte {
	if s == target.Indefinite {
		return append(dst, indefinite...)
	}
	return strconv.AppendInt(dst, int64(s), 10)
}

func appendSuffix(dst []byte, ans *target.Answer, node string) []byte {
	if node != "" {
		dst = appendEncoded(append(dst, " node="...), node, plainAnswer)
	}
	if ans.Slot != 0 {
		dst = appendInt(dst, " slot=", int64(ans.Slot))
	}
	return append(dst, '\n')
}

// ErrMalformed is the cause of every error of ParseAnswer.
var ErrMalformed = errors.New("not an answer of a dataplane")

// malformed tells what came instead, shortened and quoted.
func malformed(body []byte) error {
	const show = 80
	if len(body) == 0 {
		return fmt.Errorf("%w: empty body", ErrMalformed)
	}
	more := ""
	if len(body) > show {
		body, more = body[:show], "…"
	}
	return fmt.Errorf("%w: %q%s", ErrMalformed, body, more)
}

// ParseAnswer fills ans from the body of a 200 answer to req. ans must have
// been reset; its buffers are reused and keep no reference to body. Fields
// are taken by position. The error wraps ErrMalformed.
func ParseAnswer(ans *target.Answer, req *target.Request, body []byte) error {
	line := body
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
	}
	if req.Op == target.OpStats {
		return parseStats(ans, line)
	}
	c := cursor{rest: line}
	if !parseFields(&c, ans, req) || len(c.rest) != 0 {
		return malformed(body)
	}
	return nil
}

func parseStats(ans *target.Answer, line []byte) error {
	b := statsBody{Core: -1, Cores: ans.Stats[:0]}
	if err := json.Unmarshal(line, &b); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if b.Core < 0 || b.Core > MaxCore || b.Slot < 0 || b.Slot > MaxCore || len(b.Cores) > MaxCore {
		return malformed(line)
	}
	ans.Core, ans.Slot, ans.Stats = b.Core, b.Slot, b.Cores
	ans.Cores = len(b.Cores)
	if b.Node != "" {
		ans.Node = append(ans.Node[:0], b.Node...)
	}
	return nil
}

// consistent refuses an answer of a core that the same answer says there is
// none of: how many cores there are could not be believed then.
func consistent(ans *target.Answer) bool { return ans.Core < ans.Cores }

func parseFields(c *cursor, ans *target.Answer, req *target.Request) bool {
	if req.Op == target.OpWhoami {
		return c.lit("tmm ") && c.core(&ans.Core) && c.whoami(ans) && c.suffix(ans) && consistent(ans)
	}
	if !c.lit("tmm=") || !c.core(&ans.Core) {
		return false
	}
	switch req.Op {
	case target.OpInfo:
		return c.lit(" total_tmms=") && c.core(&ans.Cores) && c.suffix(ans) && consistent(ans)
	case target.OpLoad:
		return c.lit(" subtable=") && c.loadSubtable(ans) && c.loadKey(ans, req)
	case target.OpBulkLoad:
		return c.lit(" subtable=") && c.name(&ans.Subtable) &&
			c.lit(" written=") && c.num(&ans.Written) &&
			c.lit(" elapsed_clicks=") && c.num(&ans.Clicks) &&
			c.lit(" clicks_per_write=") && c.num(&ans.ClicksPerWrite) && c.suffix(ans)
	case target.OpDump:
		return c.lit(" count=") && c.num(&ans.Count) && c.lit(" keys=") && c.counted(ans)
	case target.OpProbe:
		return c.lit(" subtable=") && c.probeName(ans, req) &&
			c.lit(" clicks=") && c.num(&ans.Clicks) &&
			c.lit(" entries=") && c.num(&ans.Entries) && c.tag(&ans.Local) && c.suffix(ans)
	case target.OpReset, target.OpResetName:
		return c.lit(" deleted=") && c.num(&ans.Deleted) && c.suffix(ans)
	case target.OpTable:
		if c.lit(" owner=") {
			if !c.core(&ans.Owner) {
				return false
			}
			ans.OwnerKnown = true
		}
		return c.lit(" clicks=") && c.num(&ans.Clicks) && c.tag(&ans.Local) &&
			c.lit(" result=") && c.name(&ans.Result) && c.tableList(ans, req) && c.suffix(ans)
	case target.OpMeta:
		return c.meta(&ans.Meta) && c.suffix(ans)
	case target.OpNames:
		return c.lit(" names=") && c.uncounted(ans)
	case target.OpReload:
		return c.lit(" reloaded") && c.suffix(ans)
	}
	return false
}
