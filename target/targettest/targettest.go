// Package targettest is one conformance suite for every target.Target: what
// the tools rely on, asked through the contract alone. It judges no timings.
package targettest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tbl/target"
)

// Options says what a target can't be held to. The zero value asks for all.
type Options struct {
	// NoTable: the target has no OpTable, OpMeta, OpNames, OpResetName.
	NoTable bool
	// NoReload: the target has no OpReload and no OpStats.
	NoReload bool
	// NoSteering: the same Request.Conn need not reach the same core.
	NoSteering bool
	// Shared: writes of one core are seen by others (a target made of several
	// is no plane of its own); leaves out what counts entries per core.
	Shared bool
}

// Run runs the suite. newTarget makes a fresh, empty target and registers its
// own clean-up with t; targets are not shared between subtests.
func Run(t *testing.T, newTarget func(t *testing.T) target.Target, opts Options) {
	t.Helper()
	tests := []struct {
		name string
		skip bool
		run  func(*suite)
	}{
		{"identity", false, (*suite).identity},
		{"steering", opts.NoSteering, (*suite).steering},
		{"keys of any bytes", opts.Shared, (*suite).anyKeys},
		{"load and whoami", opts.Shared, (*suite).loadWhoami},
		{"bulk load", opts.Shared, (*suite).bulk},
		{"probe", opts.NoTable, (*suite).probe},
		{"reset", opts.Shared, (*suite).reset},
		{"reset by name", opts.NoTable, (*suite).resetName},
		{"names", opts.NoTable || opts.Shared, (*suite).names},
		{"table", opts.NoTable, (*suite).table},
		{"table keys", opts.NoTable, (*suite).tableKeys},
		{"table timers", opts.NoTable, (*suite).tableTimers},
		{"meta", opts.NoTable, (*suite).meta},
		{"stats", opts.NoReload || opts.Shared, (*suite).stats},
		{"reload", opts.NoReload || opts.Shared, (*suite).reload},
		{"bad requests", false, (*suite).badRequests},
		{"answers are reused", false, (*suite).reuse},
		{"requests are not kept", opts.Shared, (*suite).notKept},
		{"workers", opts.Shared, (*suite).workers},
		{"cancelled", false, (*suite).cancelled},
		{"closed", false, (*suite).closed},
	}
	for _, tc := range tests {
		if tc.skip {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			tc.run(&suite{T: t, tgt: newTarget(t), opts: opts})
		})
	}
}

// Keys are keys of every troublesome kind, all different, none empty.
func Keys() [][]byte {
	keys := []string{
		"plain", "with space", " leading and trailing ", "a&b", "a=b&val=2", "100%", "%41", "%2541", "%zz", "a+b", "a%20b",
		"line\nbreak", "cr\rhere", "crlf\r\n", "\n", "tab\there", `"quoted"`, "'single'", "{brace", "brace}", "[exec]", "$var", `back\slash`,
		"tmm=9", "clicks=1", "OWNER", "NON_OWNER", "key=x slot=3", "slot=7", "node=evil", "x tmm=9 clicks=1 OWNER", "elapsed_clicks=5",
		"a?b#c", "a;b", "a/b/../c", "../..", "grüße", "日本語", "\u202eevil", "nul\x00byte", "\x00", "\x7f", "\xff\xfe not utf-8", "\x80", "|pipe|",
		"k1 k2 k3", "count=0 keys=", "<b>html</b>", "key", strings.Repeat("long", 1024), strings.Repeat("\xfe ", 512),
	}
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = []byte(k)
	}
	return out
}

type suite struct {
	*testing.T
	tgt  target.Target
	opts Options
	ans  target.Answer // of the last do
}

// do asks and fails the test when that fails. The answer is s.ans.
func (s *suite) do(req target.Request) *target.Answer {
	s.Helper()
	if err := s.tgt.Do(s.Context(), &req, &s.ans); err != nil {
		s.Fatalf("%s: %v", describe(&req), err)
	}
	return &s.ans
}

func describe(req *target.Request) string {
	return fmt.Sprintf("op %d table %d subtable %.40q key %.40q value %.40q", req.Op, req.Table, req.Subtable, req.Key, req.Value)
}

// maxAsks bounds how often a core is waited for: with 16 cores one is missed
// with a probability below 1e-50.
const maxAsks = 2000

// everyCore asks req until the answers came from every core, and calls each
// with the first answer of each core.
func (s *suite) everyCore(req target.Request, each func(core int, ans *target.Answer)) {
	s.Helper()
	cores := s.do(target.Request{Op: target.OpInfo}).Cores
	seen := make(map[int]bool)
	for range maxAsks {
		ans := s.do(req)
		id := ans.Slot<<16 | ans.Core
		if !seen[id] {
			seen[id] = true
			each(id, ans)
		}
		if len(seen) == cores {
			return
		}
	}
	s.Fatalf("%d of %d cores answered %d requests", len(seen), cores, maxAsks)
}

func (s *suite) identity() {
	if s.tgt.Name() == "" {
		s.Error("the target has no name")
	}
	for range 50 {
		ans := s.do(target.Request{Op: target.OpInfo})
		if ans.Cores < 1 || ans.Core < 0 || ans.Core >= ans.Cores {
			s.Fatalf("core %d of %d", ans.Core, ans.Cores)
		}
		if ans.Timing.Total < 0 || ans.Timing.FirstByte > ans.Timing.Total || ans.Timing.Connect > ans.Timing.Total {
			s.Fatalf("timing out of order: %+v", ans.Timing)
		}
	}
	s.everyCore(target.Request{Op: target.OpInfo}, func(int, *target.Answer) {})
}

func (s *suite) steering() {
	cores := s.do(target.Request{Op: target.OpInfo}).Cores
	seen := make(map[int]bool)
	// Ports below the usual ephemeral range, so that nobody else holds them.
	for port := uint16(21000); port < 21064; port++ {
		req := target.Request{Op: target.OpInfo, Conn: target.Conn{Src: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}}
		var first, second target.Answer
		err := s.tgt.Do(s.Context(), &req, &first)
		if target.ClassOf(err) == target.ClassAddressExhausted {
			continue // in use by somebody else
		}
		if err == nil {
			err = s.tgt.Do(s.Context(), &req, &second)
		}
		if target.ClassOf(err) == target.ClassAddressExhausted {
			continue
		}
		if err != nil {
			s.Fatalf("port %d: %v", port, err)
		}
		if first.Core != second.Core {
			s.Fatalf("port %d reached core %d, then %d", port, first.Core, second.Core)
		}
		seen[first.Core] = true
	}
	if cores > 1 && cores <= 8 && len(seen) < 2 {
		s.Errorf("64 ports reached %d of %d cores", len(seen), cores)
	}
}

// dumpAll returns how often each key is stored, over all cores.
func (s *suite) dumpAll() map[string]int {
	s.Helper()
	got := make(map[string]int)
	s.everyCore(target.Request{Op: target.OpDump}, func(core int, ans *target.Answer) {
		if int64(len(ans.List)) != ans.Count {
			s.Fatalf("core %d: count %d, %d keys listed", core, ans.Count, len(ans.List))
		}
		for _, k := range ans.List {
			got[string(k)]++
		}
	})
	return got
}

func (s *suite) anyKeys() {
	keys := Keys()
	for i, k := range keys {
		ans := s.do(target.Request{Op: target.OpLoad, Key: k, Value: keys[len(keys)-1-i]})
		if string(ans.Key) != string(k) {
			s.Errorf("key %.60q was understood as %.60q", k, ans.Key)
		}
	}
	got := s.dumpAll()
	for _, k := range keys {
		if got[string(k)] != 1 {
			s.Errorf("key %.60q is stored %d times", k, got[string(k)])
		}
		delete(got, string(k))
	}
	for k := range got {
		s.Errorf("key %.60q was never written", k)
	}
}

func (s *suite) loadWhoami() {
	const n = 200
	for i := range n {
		ans := s.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "key-%d", i), Value: []byte("v")})
		if len(ans.Subtable) == 0 {
			s.Fatal("no subtable in the answer to a write")
		}
	}
	var writes, entries int64
	names := make(map[string]int)
	s.everyCore(target.Request{Op: target.OpWhoami}, func(core int, ans *target.Answer) {
		writes += ans.Writes
		entries += ans.Entries
		if other, taken := names[string(ans.Subtable)]; taken {
			s.Errorf("cores %d and %d share the subtable %q", core, other, ans.Subtable)
		}
		names[string(ans.Subtable)] = core
	})
	if writes != n || entries != n {
		s.Errorf("%d writes and %d entries counted, %d written", writes, entries, n)
	}
}

func (s *suite) bulk() {
	body := []byte("a\n\nb\r\n\r\nc d\n" + "last without a line end")
	ans := s.do(target.Request{Op: target.OpBulkLoad, Body: body})
	if ans.Written != 4 {
		s.Errorf("written %d of 4", ans.Written)
	}
	if ans.Clicks < 0 || ans.ClicksPerWrite != ans.Clicks/4 {
		s.Errorf("%d clicks for 4 writes, %d per write", ans.Clicks, ans.ClicksPerWrite)
	}
	var big []byte
	const n = 5000
	for i := range n {
		big = fmt.Appendf(big, "bulk-key-%d\n", i)
	}
	if ans = s.do(target.Request{Op: target.OpBulkLoad, Body: big}); ans.Written != n {
		s.Errorf("written %d of %d", ans.Written, n)
	}
	got := s.dumpAll()
	for _, k := range []string{"a", "b", "c d", "last without a line end", "bulk-key-0", "bulk-key-4999"} {
		if got[k] != 1 {
			s.Errorf("key %q is stored %d times", k, got[k])
		}
	}
	if len(got) != n+4 {
		s.Errorf("%d keys stored, want %d", len(got), n+4)
	}
}

func (s *suite) probe() {
	if ans := s.do(target.Request{Op: target.OpProbe}); string(ans.Subtable) != "uuid_01" {
		s.Errorf("without a name %q was probed", ans.Subtable)
	}
	for _, name := range []string{"some_name", "a name with spaces clicks=1 entries=9 OWNER", "100%", "n\nl", "\xff"} {
		ans := s.do(target.Request{Op: target.OpProbe, Subtable: []byte(name)})
		if string(ans.Subtable) != name || ans.Entries < 1 || ans.Clicks < 0 {
			s.Errorf("probe of %q: subtable %q, entries %d, clicks %d", name, ans.Subtable, ans.Entries, ans.Clicks)
		}
	}
}

func (s *suite) reset() {
	const n = 100
	for i := range n {
		s.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
	}
	before := make(map[int]string)
	s.everyCore(target.Request{Op: target.OpWhoami}, func(core int, ans *target.Answer) { before[core] = string(ans.Subtable) })
	var deleted int64
	s.everyCore(target.Request{Op: target.OpReset}, func(_ int, ans *target.Answer) { deleted += ans.Deleted })
	if deleted != n {
		s.Errorf("%d deleted of %d", deleted, n)
	}
	s.everyCore(target.Request{Op: target.OpReset}, func(core int, ans *target.Answer) {
		if ans.Deleted != 0 {
			s.Errorf("core %d: %d deleted by a second reset", core, ans.Deleted)
		}
	})
	s.everyCore(target.Request{Op: target.OpWhoami}, func(core int, ans *target.Answer) {
		if string(ans.Subtable) != before[core] {
			s.Errorf("core %d: %q became %q", core, before[core], ans.Subtable)
		}
		if ans.Writes != 0 || ans.Entries != 0 {
			s.Errorf("core %d: %d writes and %d entries after a reset", core, ans.Writes, ans.Entries)
		}
	})
}

func (s *suite) workers() {
	const workers, each = 8, 50
	errs := make([]error, workers)
	s.tgt.Clock().Run(workers, func(w int) {
		var req target.Request
		var ans target.Answer
		for i := range each {
			req = target.Request{Op: target.OpLoad, Key: fmt.Appendf(req.Key[:0], "w%d-%d", w, i)}
			if err := s.tgt.Do(s.Context(), &req, &ans); err != nil {
				errs[w] = err
				return
			}
			if string(ans.Key) != string(req.Key) {
				errs[w] = fmt.Errorf("asked for %q, answered for %q", req.Key, ans.Key)
				return
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
	if got := len(s.dumpAll()); got != workers*each {
		s.Errorf("%d keys stored of %d", got, workers*each)
	}
}

func (s *suite) badRequests() {
	big := make([]byte, 16<<20+1)
	for _, req := range []target.Request{
		{Op: target.OpLoad},
		{Op: target.OpBulkLoad},
		{Op: target.OpBulkLoad, Body: big},
	} {
		err := s.tgt.Do(s.Context(), &req, &s.ans)
		var te *target.Error
		if !errors.As(err, &te) || te.Class != target.ClassClient && te.Class != target.ClassHTTP4xx {
			s.Errorf("%s: error %v, want a refusal", describe(&req), err)
		}
	}
	s.do(target.Request{Op: target.OpInfo})
}

func (s *suite) reuse() {
	s.do(target.Request{Op: target.OpLoad, Key: []byte("one")})
	s.do(target.Request{Op: target.OpDump})
	s.do(target.Request{Op: target.OpWhoami})
	ans := s.do(target.Request{Op: target.OpInfo})
	if len(ans.Key) != 0 || len(ans.List) != 0 || len(ans.Subtable) != 0 || ans.Count != 0 || ans.Writes != 0 || len(ans.Result) != 0 {
		s.Errorf("fields of earlier answers are left: %+v", *ans)
	}
}

func (s *suite) notKept() {
	key := []byte("original")
	s.do(target.Request{Op: target.OpLoad, Key: key, Value: key})
	copy(key, "tampered")
	body := []byte("bulk-one\n")
	s.do(target.Request{Op: target.OpBulkLoad, Body: body})
	copy(body, "BULK-ONE")
	got := s.dumpAll()
	if got["original"] != 1 || got["bulk-one"] != 1 || len(got) != 2 {
		s.Errorf("stored keys %v changed with the caller's buffers", got)
	}
}

func (s *suite) cancelled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	err := s.tgt.Do(ctx, &target.Request{Op: target.OpInfo}, &s.ans)
	if target.ClassOf(err) != target.ClassCanceled {
		s.Errorf("under a cancelled context: %v", err)
	}
	s.do(target.Request{Op: target.OpInfo})
}

func (s *suite) closed() {
	if err := s.tgt.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	err := s.tgt.Do(s.Context(), &target.Request{Op: target.OpInfo}, &s.ans)
	if target.ClassOf(err) != target.ClassClosed {
		s.Errorf("after Close: %v", err)
	}
	if err := s.tgt.Close(); err != nil {
		s.Errorf("second close: %v", err)
	}
}

// pause lets d pass on the target's clock.
func (s *suite) pause(d time.Duration) {
	s.Helper()
	var err error
	s.tgt.Clock().Run(1, func(int) { err = s.tgt.Clock().Sleep(s.Context(), d) })
	if err != nil {
		s.Fatal(err)
	}
}
