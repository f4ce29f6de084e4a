package wire

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tbl/target"
)

// AppendTarget appends req's path and query ("/load?key=k&val=v"), without
// the path of a base URL. The request must have passed Check.
func AppendTarget(dst []byte, req *target.Request) []byte {
	ep, _ := Of(req.Op)
	dst = append(dst, ep.Path...)
	switch req.Op {
	case target.OpLoad:
		dst = append(dst, "?key="...)
		dst = AppendQueryValue(dst, req.Key)
		dst = append(dst, "&val="...)
		dst = AppendQueryValue(dst, req.Value)
	case target.OpProbe:
		if len(req.Subtable) > 0 {
			dst = append(dst, "?name="...)
			dst = AppendQueryValue(dst, req.Subtable)
		}
	case target.OpResetName:
		dst = append(dst, "?name="...)
		dst = AppendQueryValue(dst, req.Subtable)
	case target.OpTable:
		dst = appendTable(dst, req)
	case target.OpMeta:
		dst = append(dst, "?subtable="...)
		dst = AppendQueryValue(dst, req.Subtable)
		dst = append(dst, "&key="...)
		dst = AppendQueryValue(dst, req.Key)
	}
	return dst
}

func appendTable(dst []byte, req *target.Request) []byte {
	dst = append(dst, "?op="...)
	dst = append(dst, tableOps[req.Table].name...)
	dst = append(dst, "&subtable="...)
	dst = AppendQueryValue(dst, req.Subtable)
	dst = append(dst, "&key="...)
	dst = AppendQueryValue(dst, req.Key)
	if len(req.Value) > 0 {
		dst = append(dst, "&value="...)
		dst = AppendQueryValue(dst, req.Value)
	}
	dst = appendSecondsParam(dst, "&timeout=", req.Timeout)
	dst = appendSecondsParam(dst, "&lifetime=", req.Lifetime)
	sep := "&flags="
	for _, f := range tableFlags {
		if req.Flags&f.flag != 0 {
			dst = append(append(dst, sep...), f.name...)
			sep = ","
		}
	}
	if req.Table == target.TableDeleteAll {
		dst = append(append(dst, sep...), flagAll...)
	}
	return dst
}

func appendSecondsParam(dst []byte, name string, s target.Seconds) []byte {
	switch s {
	case target.UnsetSeconds:
		return dst
	case target.KeepSeconds:
		return append(append(dst, name...), '0')
	}
	return appendSeconds(append(dst, name...), s)
}

// StatusError is a request that a server refuses, with the HTTP status that
// says so.
type StatusError struct {
	Status int
	Text   string // one line, lower case
}

// Error is the text with its status.
func (e *StatusError) Error() string { return fmt.Sprintf("%d: %s", e.Status, e.Text) }

func badRequest(format string, args ...any) *StatusError {
	return &StatusError{Status: http.StatusBadRequest, Text: fmt.Sprintf(format, args...)}
}

// params are the query parameters that some endpoint knows, still encoded.
// Absent and empty are different; of a repeated one the first counts; unknown
// ones are ignored.
type params struct {
	key, val, value, name, subtable, op, timeout, lifetime, flags param
}

type param struct {
	raw   string
	given bool
}

func (p *params) field(name string) *param {
	switch name {
	case "key":
		return &p.key
	case "val":
		return &p.val
	case "value":
		return &p.value
	case "name":
		return &p.name
	case "subtable":
		return &p.subtable
	case "op":
		return &p.op
	case "timeout":
		return &p.timeout
	case "lifetime":
		return &p.lifetime
	case "flags":
		return &p.flags
	}
	return nil
}

// ParseQuery fills req from the raw query of a request to req.Op's path. It
// reuses the slices of req. A request for OpReset with a name becomes
// OpResetName. A nil result means that req is complete (its Body apart) and
// would pass Check.
func ParseQuery(req *target.Request, rawQuery string) *StatusError {
	var p params
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		name, value, _ := strings.Cut(pair, "=")
		if f := p.field(name); f != nil && !f.given {
			*f = param{raw: value, given: true}
		}
	}
	switch req.Op {
	case target.OpLoad:
		return first(
			decodeParam(&req.Key, p.key, "key", true),
			decodeParam(&req.Value, p.val, "val", false))
	case target.OpProbe:
		if err := decodeParam(&req.Subtable, p.name, "name", false); err != nil {
			return err
		}
		if len(req.Subtable) == 0 {
			req.Subtable = append(req.Subtable, DefaultProbeName...)
		}
	case target.OpReset, target.OpResetName:
		if !p.name.given {
			req.Op = target.OpReset
			return nil
		}
		// An empty name is refused: it is far more often a script's unset
		// variable than the wish to empty the accepting core.
		req.Op = target.OpResetName
		return decodeParam(&req.Subtable, p.name, "name", true)
	case target.OpMeta:
		return first(
			decodeParam(&req.Subtable, p.subtable, "subtable", true),
			decodeParam(&req.Key, p.key, "key", true))
	case target.OpTable:
		return parseTable(req, &p)
	}
	return nil
}

func first(errs ...*StatusError) *StatusError {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func decodeParam(dst *[]byte, p param, name string, needed bool) *StatusError {
	out, ok := appendDecoded((*dst)[:0], p.raw, true)
	*dst = out
	switch {
	case !ok:
		return badRequest("%s: bad percent escape", name)
	case needed && len(out) == 0:
		return badRequest("%s is missing or empty", name)
	}
	return nil
}

func parseTable(req *target.Request, p *params) *StatusError {
	found := false
	for _, o := range tableOps {
		if o.name == p.op.raw {
			req.Table, found = o.op, true
			break
		}
	}
	if !found {
		return badRequest("op: no such table command")
	}
	req.Flags = 0
	flags, ok := appendDecoded(nil, p.flags.raw, true) // a client may encode the commas
	if !ok {
		return badRequest("flags: bad percent escape")
	}
	if err := parseFlags(req, string(flags)); err != nil {
		return err
	}
	for _, s := range []struct {
		dst  *target.Seconds
		p    param
		name string
	}{{&req.Timeout, p.timeout, "timeout"}, {&req.Lifetime, p.lifetime, "lifetime"}} {
		*s.dst = target.UnsetSeconds
		if s.p.raw == "" {
			continue
		}
		v, ok := ParseSeconds(s.p.raw)
		if !ok {
			return badRequest("%s: want seconds or indefinite", s.name)
		}
		*s.dst = v
	}
	return first(
		decodeParam(&req.Subtable, p.subtable, "subtable", true),
		decodeParam(&req.Key, p.key, "key", needsKey(req.Table)),
		decodeParam(&req.Value, p.value, "value", false))
}

func parseFlags(req *target.Request, list string) *StatusError {
next:
	for list != "" {
		var name string
		name, list, _ = strings.Cut(list, ",")
		if name == "" {
			continue
		}
		if name == flagAll {
			if req.Table != target.TableDelete {
				return badRequest("flags: all goes with delete only")
			}
			req.Table = target.TableDeleteAll
			continue
		}
		for _, f := range tableFlags {
			if f.name == name {
				req.Flags |= f.flag
				continue next
			}
		}
		return badRequest("flags: no such flag")
	}
	return nil
}

// maxSeconds bounds a timer: 2^31-1 seconds are 68 years.
const maxSeconds = 1<<31 - 1

// ParseSeconds reads a timer as a request gives it: whole seconds, "indef" or
// "indefinite", or 0 for KeepSeconds.
func ParseSeconds(s string) (target.Seconds, bool) {
	switch s {
	case "indef", "indefinite":
		return target.Indefinite, true
	}
	n, err := strconv.ParseUint(s, 10, 31)
	switch {
	case err != nil || n > maxSeconds:
		return 0, false
	case n == 0:
		return target.KeepSeconds, true
	}
	return target.Seconds(n), true
}
