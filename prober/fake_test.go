package prober

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"

	"tbl/target"
)

// fake is a dataplane whose behaviour a test sets knob by knob. Its clock is
// virtual and runs workers one after the other, so that every run is
// repeatable; it is not safe for concurrent use.
type fake struct {
	cores int
	rng   *rand.Rand
	now   time.Time

	owner    func(name string) int // −1: nobody
	own      func() int64          // clicks of an own write
	other    func() int64          // clicks of somebody else's
	dead     map[int]bool
	weights  []int // of connections; nil: equal
	names    func(core int) string
	noCount  bool // answers don't tell the number of cores
	noTable  bool
	knowsOwn bool          // table answers tell the owner
	slots    int           // blades, 0: none
	renames  bool          // clearing a name makes a new one
	busy     int           // core that somebody else writes to all the time, 0: none
	perEntry time.Duration // that a probe takes longer for each entry
	goneAt   int           // request from which nothing answers, 0: never
	failWith target.Class

	requests int
	tables   map[string]map[string]string
}

func newFake(cores int, seed uint64) *fake {
	f := &fake{cores: cores, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_700_000_000, 0), tables: make(map[string]map[string]string)}
	f.owner = func(name string) int {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s", seed, name)
		return int(h.Sum64() >> 17 % uint64(cores))
	}
	f.own = func() int64 { return 3 + f.rng.Int64N(16) }
	f.other = func() int64 { return 121 + f.rng.Int64N(5000) }
	found := make(map[int]string)
	f.names = func(core int) string {
		for i := 0; found[core] == ""; i++ {
			if n := fmt.Sprintf("localdb_tmm_%d_%d", core, i); f.owner(n) == core {
				found[core] = n
			}
		}
		return found[core]
	}
	return f
}

func (f *fake) Clock() target.Clock { return f }
func (f *fake) Name() string        { return "fake" }
func (f *fake) Close() error        { return nil }
func (f *fake) Now() time.Time      { return f.now }
func (f *fake) Virtual() bool       { return true }
func (f *fake) Run(n int, worker func(int)) {
	for i := range n {
		worker(i)
	}
}
func (f *fake) Sleep(ctx context.Context, d time.Duration) error {
	f.now = f.now.Add(d)
	return ctx.Err()
}

func (f *fake) accept() int {
	if f.weights == nil {
		return f.rng.IntN(f.cores)
	}
	total := 0
	for _, w := range f.weights {
		total += w
	}
	x := f.rng.IntN(total)
	for c, w := range f.weights {
		if x -= w; x < 0 {
			return c
		}
	}
	panic("unreachable")
}

func (f *fake) table(name string) map[string]string {
	t := f.tables[name]
	if t == nil {
		t = make(map[string]string)
		f.tables[name] = t
	}
	return t
}

func (f *fake) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	ans.Reset()
	const plain = 100 * time.Microsecond
	f.now = f.now.Add(plain)
	ans.Timing.Total = plain
	if err := ctx.Err(); err != nil {
		return &target.Error{Class: target.ClassCanceled, Err: err}
	}
	f.requests++
	if f.failWith != 0 {
		return &target.Error{Class: f.failWith, Err: errors.New("as told")}
	}
	core := f.accept()
	if f.dead[core] || f.goneAt > 0 && f.requests >= f.goneAt {
		return &target.Error{Class: target.ClassRefused, Completion: target.CompletionNotReached, Err: errors.New("nobody listens")}
	}
	ans.Core = core
	if f.slots > 0 {
		ans.Slot = 1 + f.rng.IntN(f.slots)
	}
	if !f.noCount {
		ans.Cores = f.cores
	}
	name := f.names(core)
	clicks := func(name string) int64 {
		if f.owner(name) == core {
			return f.own()
		}
		return f.other()
	}
	switch req.Op {
	case target.OpInfo:
	case target.OpWhoami:
		ans.Subtable = append(ans.Subtable, name...)
		ans.Entries = int64(len(f.table(name)))
	case target.OpLoad:
		f.table(name)[string(req.Key)] = string(req.Value)
	case target.OpBulkLoad:
		f.table(name)[string(req.Body)] = "1"
		ans.Written, ans.Clicks = 1, clicks(name)
	case target.OpDump:
		for k := range f.table(name) {
			ans.AppendList([]byte(k))
		}
		ans.Count = int64(len(ans.List))
	case target.OpProbe:
		ans.Cores = 0
		t := f.table(string(req.Subtable))
		t["probe_"+strconv.Itoa(core)] = strconv.Itoa(core)
		ans.Clicks, ans.Entries = clicks(string(req.Subtable)), int64(len(t))
		ans.Local = ans.Clicks < 100
		ans.Timing.Total += f.perEntry * time.Duration(len(t))
	case target.OpReset:
		ans.Deleted = int64(len(f.table(name)))
		clear(f.table(name))
		if core == f.busy && f.busy > 0 {
			f.table(name)["theirs"] = "1"
		}
	case target.OpTable, target.OpNames, target.OpResetName:
		if f.noTable {
			return &target.Error{Class: target.ClassHTTP4xx, Status: 404}
		}
		f.doTable(req, ans)
	default:
		return &target.Error{Class: target.ClassHTTP4xx, Status: 404}
	}
	return nil
}

func (f *fake) doTable(req *target.Request, ans *target.Answer) {
	t := f.table(string(req.Subtable))
	ans.OwnerKnown, ans.Owner = f.knowsOwn, f.owner(string(req.Subtable))
	switch {
	case req.Op == target.OpNames:
		for n, t := range f.tables {
			if len(t) > 0 {
				ans.AppendList([]byte(n))
			}
		}
	case req.Op == target.OpResetName:
		ans.Deleted = int64(len(t))
		clear(t)
		if f.renames {
			f.table(fmt.Sprint("app_", f.requests))["x"] = "1"
		}
	case req.Table == target.TableDelete:
		n := "0"
		if _, ok := t[string(req.Key)]; ok {
			n = "1"
			delete(t, string(req.Key))
		}
		ans.Result = append(ans.Result, n...)
	case req.Table == target.TableLookup:
		ans.Clicks = f.other()
		if f.owner(string(req.Subtable)) == ans.Core {
			ans.Clicks = f.own()
		}
		ans.Result = append(ans.Result, t[string(req.Key)]...)
	}
}
