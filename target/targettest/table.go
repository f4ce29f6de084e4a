package targettest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"tbl/target"
)

const sub = "suite_subtable"

// tbl runs one table command on sub.
func (s *suite) tbl(op target.TableOp, key, value string, more ...func(*target.Request)) *target.Answer {
	s.Helper()
	req := target.Request{Op: target.OpTable, Table: op, Subtable: []byte(sub), Key: []byte(key), Value: []byte(value)}
	for _, f := range more {
		f(&req)
	}
	return s.do(req)
}

func flags(f target.TableFlags) func(*target.Request) {
	return func(r *target.Request) { r.Flags |= f }
}

func timers(timeout, lifetime target.Seconds) func(*target.Request) {
	return func(r *target.Request) { r.Timeout, r.Lifetime = timeout, lifetime }
}

// result runs a command and compares its result.
func (s *suite) result(want string, op target.TableOp, key, value string, more ...func(*target.Request)) {
	s.Helper()
	if got := string(s.tbl(op, key, value, more...).Result); got != want {
		s.Errorf("table command %d on %q with %q: result %q, want %q", op, key, value, got, want)
	}
}

func (s *suite) table() {
	s.result("", target.TableLookup, "k", "")
	s.result("v1", target.TableSet, "k", "v1")
	s.result("v1", target.TableLookup, "k", "")
	s.result("v1", target.TableLookup, "k", "", flags(target.FlagNoTouch))
	s.result("v1", target.TableSet, "k", "v2", flags(target.FlagExcl))
	s.result("v1", target.TableLookup, "k", "")
	s.result("v1", target.TableAdd, "k", "v3")
	s.result("", target.TableSet, "none", "v", flags(target.FlagMustExist))
	s.result("", target.TableLookup, "none", "")
	s.result("", target.TableReplace, "none", "v")
	s.result("v4", target.TableReplace, "k", "v4")
	s.result("new", target.TableAdd, "added", "new")
	s.result("5", target.TableIncr, "n", "5")
	s.result("7", target.TableIncr, "n", "2")
	s.result("6", target.TableIncr, "n", "-1")
	s.result("", target.TableIncr, "none", "1", flags(target.FlagMustExist))
	s.result("v4+", target.TableAppend, "k", "+")
	s.result("start", target.TableAppend, "s", "start")
	s.result("", target.TableAppend, "none", "x", flags(target.FlagMustExist))

	req := target.Request{Op: target.OpTable, Table: target.TableIncr, Subtable: []byte(sub), Key: []byte("k"), Value: []byte("1")}
	err := s.tgt.Do(s.Context(), &req, &s.ans)
	var te *target.Error
	if !errors.As(err, &te) || te.Class != target.ClassHTTP4xx && te.Class != target.ClassClient {
		s.Errorf("incr of a value that is no number: %v, want a refusal", err)
	}

	for i, k := range Keys() {
		v := Keys()[len(Keys())-1-i]
		s.result(string(v), target.TableSet, string(k), string(v))
		s.result(string(v), target.TableLookup, string(k), "")
	}
	s.result("1", target.TableDelete, "k", "")
	s.result("0", target.TableDelete, "k", "")
	s.result("", target.TableLookup, "k", "")
}

func (s *suite) tableKeys() {
	if list := s.tbl(target.TableKeys, "", "").List; len(list) != 0 {
		s.Errorf("keys of an empty subtable: %q", list)
	}
	want := make(map[string]bool)
	for _, k := range Keys() {
		s.tbl(target.TableSet, string(k), "v")
		want[string(k)] = true
	}
	for _, k := range s.tbl(target.TableKeys, "", "").List {
		if !want[string(k)] {
			s.Errorf("key %.60q is listed and should not be, or twice", k)
		}
		delete(want, string(k))
	}
	for k := range want {
		s.Errorf("key %.60q is not listed", k)
	}
	n := fmt.Sprint(len(Keys()))
	s.result(n, target.TableKeys, "", "", flags(target.FlagCount))
	s.result(n, target.TableDeleteAll, "", "")
	s.result("0", target.TableKeys, "", "", flags(target.FlagCount))
	s.result("0", target.TableDeleteAll, "", "")
}

// near allows for a second that passes between two requests on a real clock.
func near(got string, want ...int) bool {
	for _, w := range want {
		if got == fmt.Sprint(w) {
			return true
		}
	}
	return false
}

func (s *suite) tableTimers() {
	s.result("-1", target.TableTimeout, "none", "")
	s.result("-1", target.TableLifetime, "none", "")
	s.tbl(target.TableSet, "default", "v")
	s.result("180", target.TableTimeout, "default", "")
	s.result("indefinite", target.TableLifetime, "default", "")
	s.tbl(target.TableSet, "k", "v", timers(60, 600))
	s.result("60", target.TableTimeout, "k", "")
	s.result("600", target.TableLifetime, "k", "")
	if got := string(s.tbl(target.TableTimeout, "k", "", flags(target.FlagRemaining)).Result); !near(got, 60, 59, 58) {
		s.Errorf("remaining timeout %s of 60", got)
	}
	if got := string(s.tbl(target.TableLifetime, "k", "", flags(target.FlagRemaining)).Result); !near(got, 600, 599, 598) {
		s.Errorf("remaining lifetime %s of 600", got)
	}
	s.tbl(target.TableSet, "k", "v2", timers(target.KeepSeconds, target.KeepSeconds))
	s.result("60", target.TableTimeout, "k", "")
	s.tbl(target.TableTimeout, "k", "", timers(90, 0))
	s.result("90", target.TableTimeout, "k", "")
	s.tbl(target.TableLifetime, "k", "", timers(0, target.Indefinite))
	s.result("indefinite", target.TableLifetime, "k", "")
	s.tbl(target.TableSet, "short", "v", timers(1, target.Indefinite))
	s.tbl(target.TableSet, "short-lived", "v", timers(target.Indefinite, 1))
	s.pause(2200 * time.Millisecond)
	s.result("", target.TableLookup, "short", "")
	s.result("", target.TableLookup, "short-lived", "")
	s.result("v2", target.TableLookup, "k", "")
}

func (s *suite) meta() {
	m := s.do(target.Request{Op: target.OpMeta, Subtable: []byte(sub), Key: []byte("none")}).Meta
	if m.Found {
		s.Errorf("meta of a missing entry: %+v", m)
	}
	for _, key := range []string{"k", "a b&c=%+\n\xff"} {
		s.tbl(target.TableSet, key, "v", timers(60, target.Indefinite))
		m = s.do(target.Request{Op: target.OpMeta, Subtable: []byte(sub), Key: []byte(key)}).Meta
		if !m.Found || m.Timeout != 60 || m.Lifetime != target.Indefinite || m.LifetimeRemaining != target.Indefinite ||
			m.TimeoutRemaining > 60 || m.TimeoutRemaining < 57 {
			s.Errorf("meta of %q: %+v", key, m)
		}
		if m.Created >= 0 && m.Touched >= 0 && m.Touched < m.Created {
			s.Errorf("meta of %q: touched before it was created: %+v", key, m)
		}
	}
}

func (s *suite) resetName() {
	for i := range 7 {
		s.tbl(target.TableSet, fmt.Sprint("k", i), "v")
	}
	for _, want := range []int64{7, 0} {
		if got := s.do(target.Request{Op: target.OpResetName, Subtable: []byte(sub)}).Deleted; got != want {
			s.Errorf("%d deleted, want %d", got, want)
		}
	}
	odd := []byte("a b&c=%+\n\xff")
	s.do(target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: odd, Key: []byte("k"), Value: []byte("v")})
	if got := s.do(target.Request{Op: target.OpResetName, Subtable: odd}).Deleted; got != 1 {
		s.Errorf("%d deleted under a name of odd bytes, want 1", got)
	}
}

func (s *suite) names() {
	want := []string{"n1", "slot=4", "node=x", "a b", "100%", strings.Repeat("n", 500)}
	for _, n := range want {
		s.do(target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte(n), Key: []byte("k"), Value: []byte("v")})
	}
	got := make(map[string]bool)
	s.everyCore(target.Request{Op: target.OpNames}, func(_ int, ans *target.Answer) {
		for _, n := range ans.List {
			got[string(n)] = true
		}
	})
	for _, n := range want {
		if !got[n] {
			s.Errorf("no core knows %.40q among %v", n, got)
		}
	}
}

func (s *suite) stats() {
	const n = 60
	for i := range n {
		s.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
	}
	cores := s.do(target.Request{Op: target.OpInfo}).Cores
	ans := s.do(target.Request{Op: target.OpStats})
	var entries, writes int64
	for i, c := range ans.Stats {
		if c.Core != i {
			s.Errorf("row %d is of core %d", i, c.Core)
		}
		entries += c.Entries
		writes += c.WritesLocal + c.WritesRemote
	}
	if len(ans.Stats) != cores || entries < n || writes < n {
		s.Errorf("%d rows for %d cores, %d entries and %d writes for %d written", len(ans.Stats), cores, entries, writes, n)
	}
}

func (s *suite) reload() {
	const n = 60
	for i := range n {
		s.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
	}
	s.do(target.Request{Op: target.OpReload})
	s.everyCore(target.Request{Op: target.OpWhoami}, func(core int, ans *target.Answer) {
		if ans.Writes != 0 {
			s.Errorf("core %d: %d writes counted after a reload", core, ans.Writes)
		}
	})
	var entries int64
	for _, c := range s.do(target.Request{Op: target.OpStats}).Stats {
		entries += c.Entries
	}
	if entries < n {
		s.Errorf("%d entries after a reload, %d were written", entries, n)
	}
}
