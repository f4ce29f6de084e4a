package targettest

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"time"

	"tbl/target"
)

// Simple is the smallest target that passes the suite: plain maps behind one
// lock, on the wall clock. It stands in for a dataplane in tests of what is
// put in front of one, and takes no timings: an operation on a core's own
// subtable takes 7 clicks, another 7,000.
type Simple struct {
	mu     sync.Mutex
	seed   maphash.Seed
	cores  []simpleCore
	tables map[string]map[string]*simpleEntry
	next   uint16
	closed bool

	// Fail, when set, is asked before each request, outside the lock; its
	// error is returned and nothing is done.
	Fail func(req *target.Request) error
}

type simpleCore struct {
	gen             int
	writes, entries int64
	conns           int64
}

type simpleEntry struct {
	value             []byte
	created, touched  time.Time
	timeout, lifetime target.Seconds
}

var _ target.Target = (*Simple)(nil)

// NewSimple makes a target with that many cores.
func NewSimple(cores int) *Simple {
	return &Simple{
		seed: maphash.MakeSeed(), cores: make([]simpleCore, cores),
		tables: make(map[string]map[string]*simpleEntry),
	}
}

// Clock is the wall's.
func (p *Simple) Clock() target.Clock { return target.Wall{} }

// Name is "simple".
func (p *Simple) Name() string { return "simple" }

// Close makes every later Do fail.
func (p *Simple) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

func refuse(format string, args ...any) error {
	return &target.Error{
		Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: http.StatusBadRequest,
		Err: fmt.Errorf(format, args...),
	}
}

// Do serves req under the lock.
func (p *Simple) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Completion: target.CompletionUnsent, Err: err}
	}
	if p.Fail != nil {
		if err := p.Fail(req); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &target.Error{Class: target.ClassClosed, Completion: target.CompletionUnsent}
	}
	port := req.Conn.Src.Port()
	if port == 0 {
		p.next++
		port = p.next
	}
	ans.Core = int(maphash.Comparable(p.seed, port) % uint64(len(p.cores)))
	ans.Cores = len(p.cores)
	c := &p.cores[ans.Core]
	c.conns++
	own := fmt.Sprintf("localdb_tmm_%d_%d", ans.Core, 1000+c.gen)
	now := time.Now()
	p.expire(now)
	switch req.Op {
	case target.OpInfo:
	case target.OpWhoami:
		ans.Subtable = append(ans.Subtable, own...)
		ans.Writes, ans.Entries = c.writes, c.entries
	case target.OpLoad:
		if len(req.Key) == 0 {
			return refuse("key is missing or empty")
		}
		p.write(c, own, req.Key, req.Value, now)
		ans.Subtable = append(ans.Subtable, own...)
		ans.Key = append(ans.Key, req.Key...)
	case target.OpBulkLoad:
		if len(req.Body) == 0 || len(req.Body) > 16<<20 {
			return refuse("body of %d bytes", len(req.Body))
		}
		for line := range bytes.SplitSeq(req.Body, []byte("\n")) {
			if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 {
				p.write(c, own, line, []byte("1"), now)
				ans.Written++
			}
		}
		ans.Subtable = append(ans.Subtable, own...)
		ans.Clicks, ans.ClicksPerWrite = 7*ans.Written, 7
	case target.OpDump:
		p.list(ans, own)
		ans.Count = int64(len(ans.List))
	case target.OpProbe:
		name := string(req.Subtable)
		if name == "" {
			name = "uuid_01"
		}
		p.put(name, fmt.Sprintf("probe_%d", ans.Core), nil, now, 60, target.Indefinite)
		ans.Subtable = append(ans.Subtable, name...)
		ans.Entries = int64(len(p.tables[name]))
		ans.Local = p.owner(name) == ans.Core
		ans.Clicks = clicks(ans.Local)
	case target.OpReset:
		ans.Deleted = p.drop(own)
		c.writes, c.entries = 0, 0
	case target.OpResetName:
		ans.Deleted = p.drop(string(req.Subtable))
	case target.OpTable:
		return p.table(req, ans, now)
	case target.OpMeta:
		if e := p.tables[string(req.Subtable)][string(req.Key)]; e != nil {
			ans.Meta = target.Meta{
				Found: true, Created: e.created.Unix(), Touched: e.touched.Unix(),
				Timeout: e.timeout, TimeoutRemaining: left(e.timeout, e.touched, now),
				Lifetime: e.lifetime, LifetimeRemaining: left(e.lifetime, e.created, now),
			}
		}
	case target.OpNames:
		for n, t := range p.tables {
			if len(t) > 0 {
				ans.AppendList([]byte(n))
			}
		}
	case target.OpStats:
		for i := range p.cores {
			ans.Stats = append(ans.Stats, p.stats(i))
		}
	case target.OpReload:
		for i := range p.cores {
			p.cores[i].gen++
			p.cores[i].writes, p.cores[i].entries = 0, 0
		}
	default:
		return &target.Error{Class: target.ClassHTTP4xx, Completion: target.CompletionYes, Status: http.StatusNotFound}
	}
	return nil
}

func clicks(local bool) int64 {
	if local {
		return 7
	}
	return 7000
}

// owner of a subtable; a core's own name is its own.
func (p *Simple) owner(name string) int {
	var core int
	if n, _ := fmt.Sscanf(name, "localdb_tmm_%d_", &core); n == 1 && core < len(p.cores) {
		return core
	}
	return int(maphash.String(p.seed, name) % uint64(len(p.cores)))
}

func (p *Simple) stats(core int) target.CoreStats {
	s := target.CoreStats{Core: core, WritesLocal: p.cores[core].writes, Connections: p.cores[core].conns}
	for n, t := range p.tables {
		if p.owner(n) == core && len(t) > 0 {
			s.Subtables++
			s.Entries += int64(len(t))
		}
	}
	return s
}

func (p *Simple) write(c *simpleCore, own string, key, value []byte, now time.Time) {
	c.writes++
	if p.tables[own][string(key)] == nil {
		c.entries++
	}
	p.put(own, string(key), value, now, 3600, target.Indefinite)
}

func (p *Simple) put(name, key string, value []byte, now time.Time, timeout, lifetime target.Seconds) {
	t := p.tables[name]
	if t == nil {
		t = make(map[string]*simpleEntry)
		p.tables[name] = t
	}
	e := t[key]
	if e == nil {
		e = &simpleEntry{created: now, timeout: 180, lifetime: target.Indefinite}
		t[key] = e
	}
	e.value, e.touched = append([]byte(nil), value...), now
	setTimer(&e.timeout, timeout)
	setTimer(&e.lifetime, lifetime)
}

func setTimer(dst *target.Seconds, v target.Seconds) {
	if v != target.UnsetSeconds && v != target.KeepSeconds {
		*dst = v
	}
}

func (p *Simple) drop(name string) int64 {
	n := len(p.tables[name])
	delete(p.tables, name)
	return int64(n)
}

func (p *Simple) list(ans *target.Answer, name string) {
	keys := make([]string, 0, len(p.tables[name]))
	for k := range p.tables[name] {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		ans.AppendList([]byte(k))
	}
}

func left(s target.Seconds, since, now time.Time) target.Seconds {
	if s == target.Indefinite {
		return s
	}
	return max(0, s-target.Seconds(now.Sub(since)/time.Second))
}

func (p *Simple) expire(now time.Time) {
	for _, t := range p.tables {
		for k, e := range t {
			if left(e.timeout, e.touched, now) == 0 || left(e.lifetime, e.created, now) == 0 {
				delete(t, k)
			}
		}
	}
}

func (p *Simple) table(req *target.Request, ans *target.Answer, now time.Time) error {
	name, key := string(req.Subtable), string(req.Key)
	ans.OwnerKnown, ans.Owner = true, p.owner(name)
	ans.Local = ans.Owner == ans.Core
	ans.Clicks = clicks(ans.Local)
	e := p.tables[name][key]
	has := func(f target.TableFlags) bool { return req.Flags&f != 0 }
	store := func(v []byte) {
		p.put(name, key, v, now, req.Timeout, req.Lifetime)
		ans.Result = append(ans.Result, v...)
	}
	switch req.Table {
	case target.TableSet, target.TableAdd, target.TableReplace:
		switch {
		case e != nil && (has(target.FlagExcl) || req.Table == target.TableAdd):
			ans.Result = append(ans.Result, e.value...)
		case e == nil && (has(target.FlagMustExist) || req.Table == target.TableReplace):
		default:
			store(req.Value)
		}
	case target.TableLookup:
		if e != nil {
			ans.Result = append(ans.Result, e.value...)
			if !has(target.FlagNoTouch) {
				e.touched = now
			}
		}
	case target.TableIncr, target.TableAppend:
		if e == nil && has(target.FlagMustExist) {
			return nil
		}
		var old []byte
		if e != nil {
			old = e.value
		}
		if req.Table == target.TableAppend {
			store(append(append([]byte(nil), old...), req.Value...))
			return nil
		}
		delta, sum := int64(1), int64(0)
		var err1, err2 error
		if len(req.Value) > 0 {
			delta, err1 = strconv.ParseInt(string(req.Value), 10, 64)
		}
		if len(old) > 0 {
			sum, err2 = strconv.ParseInt(string(old), 10, 64)
		}
		if err1 != nil || err2 != nil {
			return refuse("incr: not a number")
		}
		store(strconv.AppendInt(nil, sum+delta, 10))
	case target.TableDelete:
		n := 0
		if e != nil {
			delete(p.tables[name], key)
			n = 1
		}
		ans.Result = strconv.AppendInt(ans.Result, int64(n), 10)
	case target.TableDeleteAll:
		ans.Result = strconv.AppendInt(ans.Result, p.drop(name), 10)
	case target.TableKeys:
		if has(target.FlagCount) {
			ans.Result = strconv.AppendInt(ans.Result, int64(len(p.tables[name])), 10)
			return nil
		}
		p.list(ans, name)
	case target.TableTimeout, target.TableLifetime:
		p.timer(req, ans, e, now)
	}
	return nil
}

func (p *Simple) timer(req *target.Request, ans *target.Answer, e *simpleEntry, now time.Time) {
	if e == nil {
		ans.Result = append(ans.Result, "-1"...)
		return
	}
	timer, since, v := &e.timeout, e.touched, req.Timeout
	if req.Table == target.TableLifetime {
		timer, since, v = &e.lifetime, e.created, req.Lifetime
	}
	setTimer(timer, v)
	s := *timer
	if req.Flags&target.FlagRemaining != 0 {
		s = left(s, since, now)
	}
	if s == target.Indefinite {
		ans.Result = append(ans.Result, "indefinite"...)
		return
	}
	ans.Result = strconv.AppendInt(ans.Result, int64(s), 10)
}
