package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tbl/target"
	"tbl/target/wire"
)

// Whatever the key, it comes through the query, the answer and a harness that
// echoes it raw, and none of it is taken for a field.
func FuzzKey(f *testing.F) {
	for _, k := range []string{"k", "a b", "slot=3", "x slot=3", "x node=y slot=1", "%41", "100%", "tmm=9 key=", "\n", "\xff", "key=k"} {
		f.Add([]byte(k), []byte(k), "", 0)
		f.Add([]byte(k), []byte{}, "node a", 3)
	}
	f.Fuzz(func(t *testing.T, key, value []byte, node string, slot int) {
		if len(key) == 0 {
			return
		}
		slot &= 0xFF
		req := target.Request{Op: target.OpLoad, Key: key, Value: value}
		_, query, _ := strings.Cut(string(wire.AppendTarget(nil, &req)), "?")
		for _, c := range []byte(query) {
			if c <= ' ' || c >= 0x7F || c == '#' {
				t.Fatalf("byte %#x in the query %q", c, query)
			}
		}
		back := target.Request{Op: target.OpLoad}
		if err := wire.ParseQuery(&back, query); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Key, key) || !bytes.Equal(back.Value, value) {
			t.Fatalf("key %q value %q came through as %q and %q", key, value, back.Key, back.Value)
		}
		ans := target.Answer{Core: 1, Slot: slot, Subtable: []byte("localdb_tmm_1_5"), Key: key}
		line := wire.AppendAnswer(nil, &req, &ans, node)
		if bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not one line: %q", line)
		}
		var got target.Answer
		if err := wire.ParseAnswer(&got, &req, line); err != nil {
			t.Fatal(err)
		}
		ans.Node = []byte(node)
		if d := cmp.Diff(ans, got, sameAnswer); d != "" {
			t.Fatalf("%q (-want +got):\n%s", line, d)
		}
		raw := append(append([]byte("tmm=1 subtable=tmm 1 subtable localdb_tmm_1_5 total_tmms 4 writes 1 entries 1 key="), key...), '\n')
		got.Reset()
		if err := wire.ParseAnswer(&got, &req, raw); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Key, key) || got.Slot != 0 || len(got.Node) != 0 || string(got.Subtable) != "localdb_tmm_1_5" {
			t.Fatalf("raw echo %q: %+v", raw, got)
		}
	})
}

// No answer, however broken, brings the parser down, and what it accepts is
// the same when written and read again.
func FuzzAnswer(f *testing.F) {
	for op := range len(wire.Endpoints()) {
		for _, b := range []string{
			"tmm=2 total_tmms=4\n", "tmm 2 subtable localdb_tmm_2_5946 total_tmms 4 writes 24832 entries 24832\n",
			"tmm=1 subtable=localdb_tmm_1_922743 key=K\n", "tmm=2 subtable=x written=3 elapsed_clicks=42 clicks_per_write=14 slot=1\n",
			"tmm=3 count=3 keys=k1 k5 k9\n", "tmm=3 subtable=N clicks=21 entries=4 NON_OWNER\n", "tmm=1 deleted=24832\n",
			"tmm=1 owner=0 clicks=12 NON_OWNER result=a%2520b%20c\n", "tmm=1 names=a b slot=2\n", "tmm=1 missing\n", "tmm=1 reloaded node=n\n",
			"tmm=1 created=1 touched=unknown timeout=180 timeout_remaining=171 lifetime=indefinite lifetime_remaining=indefinite\n",
			`{"tmm":1,"cores":[{"core":0}]}`, "", "\n", "tmm=", "tmm=99999999999999999999 total_tmms=4",
		} {
			f.Add(uint8(op), uint8(target.TableKeys), []byte("K"), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, op, table uint8, asked, body []byte) {
		req := target.Request{Op: target.Op(op), Table: target.TableOp(table), Key: asked, Subtable: asked}
		var ans target.Answer
		if err := wire.ParseAnswer(&ans, &req, body); err != nil {
			return
		}
		if ans.Core < 0 || ans.Core > wire.MaxCore || ans.Slot < 0 || ans.Slot > wire.MaxCore || ans.Cores < 0 || ans.Cores > wire.MaxCore {
			t.Fatalf("identity out of range: %+v", ans)
		}
		if len(ans.List) > len(body) {
			t.Fatalf("%d items out of %d bytes", len(ans.List), len(body))
		}
		if req.Op == target.OpStats && len(ans.Stats) == 0 {
			return // JSON null is no list
		}
		again := wire.AppendAnswer(nil, &req, &ans, string(ans.Node))
		var got target.Answer
		if err := wire.ParseAnswer(&got, &req, again); err != nil {
			t.Fatalf("%q was accepted, written again as %q it is not: %v", body, again, err)
		}
		if d := cmp.Diff(ans, got, sameAnswer); d != "" {
			t.Fatalf("%q, again %q (-first +second):\n%s", body, again, d)
		}
	})
}

// No query brings the server down, and one that is accepted passes the
// client's own check.
func FuzzQuery(f *testing.F) {
	f.Add(uint8(target.OpLoad), "key=a&val=b")
	f.Add(uint8(target.OpReset), "name=x")
	f.Add(uint8(target.OpTable), "op=set&subtable=s&key=k&timeout=0&lifetime=indef&flags=excl,notouch")
	f.Add(uint8(target.OpTable), "op=delete&subtable=s&flags=all")
	f.Add(uint8(target.OpMeta), "subtable=s&key=%ff")
	f.Fuzz(func(t *testing.T, op uint8, query string) {
		if int(op) >= len(wire.Endpoints()) || target.Op(op) == target.OpBulkLoad {
			return
		}
		req := target.Request{Op: target.Op(op)}
		if err := wire.ParseQuery(&req, query); err != nil {
			if err.Status < 400 || err.Status > 499 || err.Text == "" {
				t.Fatalf("%q: refused with %v", query, err)
			}
			return
		}
		if err := wire.Check(&req); err != nil {
			t.Fatalf("%q was accepted: %v", query, err)
		}
		_, again, _ := strings.Cut(string(wire.AppendTarget(nil, &req)), "?")
		got := target.Request{Op: target.Op(op)}
		if err := wire.ParseQuery(&got, again); err != nil {
			t.Fatalf("%q, sent again as %q: %v", query, again, err)
		}
		if d := cmp.Diff(req, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(target.Request{}, "Conn")); d != "" {
			t.Fatalf("%q, again %q (-first +second):\n%s", query, again, d)
		}
	})
}
