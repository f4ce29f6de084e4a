package wire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tbl/target"
	"tbl/target/wire"
)

// sameAnswer ignores the buffer behind lists, and nil against empty.
var sameAnswer = cmp.Options{cmpopts.IgnoreUnexported(target.Answer{}), cmpopts.EquateEmpty()}

// vector is one line of testdata/answers.jsonl: an answer as it comes over
// the wire and what it means. Strings are Go-quoted where they hold bytes
// that JSON can't.
type vector struct {
	Comment string           `json:"comment"`
	Op      string           `json:"op"` // the endpoint's path, or table:COMMAND
	Asked   string           `json:"asked"`
	Flags   string           `json:"flags"`
	Body    string           `json:"body"`
	Want    *json.RawMessage `json:"want"` // absent: malformed
	// Canonical says that AppendAnswer writes exactly this body.
	Canonical bool `json:"canonical"`
}

func request(t *testing.T, v vector) target.Request {
	t.Helper()
	path, query, _ := strings.Cut(v.Op, "?")
	ep, ok := wire.Find(path)
	if !ok {
		t.Fatalf("%s: no such endpoint", v.Op)
	}
	req := target.Request{Op: ep.Op}
	if ep.Op == target.OpBulkLoad {
		req.Body = []byte("k\n")
		return req
	}
	if err := wire.ParseQuery(&req, query); err != nil {
		t.Fatalf("%s: %v", v.Op, err)
	}
	return req
}

// fields are an answer's fields as the vectors spell them.
func fields(a *target.Answer) map[string]any {
	m := map[string]any{"core": float64(a.Core)}
	num := func(name string, v int64) {
		if v != 0 {
			m[name] = float64(v)
		}
	}
	text := func(name string, v []byte) {
		if len(v) > 0 {
			m[name] = string(v)
		}
	}
	num("slot", int64(a.Slot))
	num("cores", int64(a.Cores))
	text("node", a.Node)
	text("subtable", a.Subtable)
	text("key", a.Key)
	num("writes", a.Writes)
	num("entries", a.Entries)
	num("written", a.Written)
	num("deleted", a.Deleted)
	num("count", a.Count)
	num("clicks", a.Clicks)
	num("clicks_per_write", a.ClicksPerWrite)
	if a.Local {
		m["local"] = true
	}
	if a.OwnerKnown {
		m["owner"] = float64(a.Owner)
	}
	text("result", a.Result)
	if len(a.List) > 0 {
		var l []any
		for _, k := range a.List {
			l = append(l, string(k))
		}
		m["list"] = l
	}
	if a.Meta != (target.Meta{}) {
		m["meta"] = fmt.Sprint(a.Meta)
	}
	if len(a.Stats) > 0 {
		m["stats"] = float64(len(a.Stats))
	}
	return m
}

func TestAnswerVectors(t *testing.T) {
	f, err := os.Open("testdata/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		t.Run(fmt.Sprintf("%d %s", n, v.Comment), func(t *testing.T) {
			req := request(t, v)
			var ans target.Answer
			err := wire.ParseAnswer(&ans, &req, []byte(v.Body))
			if v.Want == nil {
				if err == nil {
					t.Fatalf("%q was taken for an answer: %v", v.Body, fields(&ans))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal(*v.Want, &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, fields(&ans)); d != "" {
				t.Errorf("%q means (-want +got):\n%s", v.Body, d)
			}
			if v.Canonical {
				if got := wire.AppendAnswer(nil, &req, &ans, string(ans.Node)); string(got) != v.Body {
					t.Errorf("written again: %q, want %q", got, v.Body)
				}
			}
		})
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestRequestVectors(t *testing.T) {
	for _, tc := range []struct {
		req  target.Request
		want string
	}{
		{target.Request{}, "/info"},
		{target.Request{Op: target.OpWhoami}, "/whoami"},
		{target.Request{Op: target.OpLoad, Key: []byte("a b&c=%+\n\xff"), Value: []byte("v")}, "/load?key=a%20b%26c%3D%25%2B%0A%FF&val=v"},
		{target.Request{Op: target.OpProbe}, "/probe"},
		{target.Request{Op: target.OpProbe, Subtable: []byte("n/1")}, "/probe?name=n%2F1"},
		{target.Request{Op: target.OpReset}, "/reset"},
		{target.Request{Op: target.OpResetName, Subtable: []byte("n")}, "/reset?name=n"},
		{target.Request{Op: target.OpMeta, Subtable: []byte("s"), Key: []byte("k")}, "/meta?subtable=s&key=k"},
		{
			target.Request{Op: target.OpTable, Subtable: []byte("s"), Key: []byte("k"), Value: []byte("v"), Timeout: 60, Lifetime: target.Indefinite, Flags: target.FlagNoTouch | target.FlagExcl},
			"/table?op=set&subtable=s&key=k&value=v&timeout=60&lifetime=indefinite&flags=notouch,excl",
		},
		{target.Request{Op: target.OpTable, Table: target.TableTimeout, Subtable: []byte("s"), Key: []byte("k"), Timeout: target.KeepSeconds}, "/table?op=timeout&subtable=s&key=k&timeout=0"},
		{target.Request{Op: target.OpTable, Table: target.TableDeleteAll, Subtable: []byte("s")}, "/table?op=delete&subtable=s&key=&flags=all"},
		{target.Request{Op: target.OpTable, Table: target.TableKeys, Subtable: []byte("s"), Flags: target.FlagCount}, "/table?op=keys&subtable=s&key=&flags=count"},
	} {
		got := string(wire.AppendTarget(nil, &tc.req))
		if got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
		path, query, _ := strings.Cut(got, "?")
		ep, ok := wire.Find(path)
		if !ok {
			t.Fatalf("%s: path not found", got)
		}
		back := target.Request{Op: ep.Op}
		if err := wire.ParseQuery(&back, query); err != nil {
			t.Errorf("%s: %v", got, err)
		}
		want := tc.req
		if want.Op == target.OpProbe && len(want.Subtable) == 0 {
			want.Subtable = []byte(wire.DefaultProbeName)
		}
		if d := cmp.Diff(want, back, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(target.Request{}, "Conn")); d != "" {
			t.Errorf("%s: read back (-want +got):\n%s", got, d)
		}
	}
}

func TestQueryForms(t *testing.T) {
	for _, tc := range []struct {
		op     target.Op
		query  string
		status int // 0: fine
		check  func(*target.Request) bool
	}{
		{target.OpLoad, "", 400, nil},
		{target.OpLoad, "val=1", 400, nil},
		{target.OpLoad, "key=", 400, nil},
		{target.OpLoad, "key=%", 400, nil},
		{target.OpLoad, "key=%4", 400, nil},
		{target.OpLoad, "key=%zz&val=1", 400, nil},
		{target.OpLoad, "key=a&val=%f", 400, nil},
		{target.OpLoad, "key=a", 0, func(r *target.Request) bool { return string(r.Key) == "a" && len(r.Value) == 0 }},
		{target.OpLoad, "key=a+b", 0, func(r *target.Request) bool { return string(r.Key) == "a b" }},
		{target.OpLoad, "key=a=b=c", 0, func(r *target.Request) bool { return string(r.Key) == "a=b=c" }},
		{target.OpLoad, "key=first&key=second", 0, func(r *target.Request) bool { return string(r.Key) == "first" }},
		{target.OpLoad, "&&x=1&key=a&nokey=b&", 0, func(r *target.Request) bool { return string(r.Key) == "a" }},
		{target.OpLoad, "keyx=b&key=a", 0, func(r *target.Request) bool { return string(r.Key) == "a" }},
		{target.OpProbe, "name=", 0, func(r *target.Request) bool { return string(r.Subtable) == "uuid_01" }},
		{target.OpReset, "", 0, func(r *target.Request) bool { return r.Op == target.OpReset }},
		{target.OpReset, "name=", 400, nil},
		{target.OpReset, "name", 400, nil},
		{target.OpReset, "name=x", 0, func(r *target.Request) bool { return r.Op == target.OpResetName }},
		{target.OpMeta, "subtable=s", 400, nil},
		{target.OpTable, "op=set&subtable=s", 400, nil},
		{target.OpTable, "op=nonsense&subtable=s&key=k", 400, nil},
		{target.OpTable, "subtable=s&key=k", 400, nil},
		{target.OpTable, "op=set&key=k", 400, nil},
		{target.OpTable, "op=set&subtable=s&key=k&timeout=-1", 400, nil},
		{target.OpTable, "op=set&subtable=s&key=k&timeout=x", 400, nil},
		{target.OpTable, "op=set&subtable=s&key=k&flags=all", 400, nil},
		{target.OpTable, "op=set&subtable=s&key=k&flags=bogus", 400, nil},
		{target.OpTable, "op=set&subtable=s&key=k&flags=excl%2Cnotouch", 0, func(r *target.Request) bool {
			return r.Flags == target.FlagExcl|target.FlagNoTouch
		}},
		{target.OpTable, "op=set&subtable=s&key=k&timeout=0&lifetime=indef", 0, func(r *target.Request) bool {
			return r.Timeout == target.KeepSeconds && r.Lifetime == target.Indefinite
		}},
		{target.OpTable, "op=delete&subtable=s&flags=all", 0, func(r *target.Request) bool { return r.Table == target.TableDeleteAll }},
		{target.OpTable, "op=keys&subtable=s", 0, func(r *target.Request) bool { return r.Table == target.TableKeys }},
	} {
		req := target.Request{Op: tc.op}
		err := wire.ParseQuery(&req, tc.query)
		switch {
		case tc.status == 0 && err != nil:
			t.Errorf("%q: %v", tc.query, err)
		case tc.status != 0 && (err == nil || err.Status != tc.status):
			t.Errorf("%q: %v, want status %d", tc.query, err, tc.status)
		case tc.check != nil && !tc.check(&req):
			t.Errorf("%q: understood as %+v", tc.query, req)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		req target.Request
		ok  bool
	}{
		{target.Request{Op: target.OpLoad}, false},
		{target.Request{Op: target.OpLoad, Key: []byte("k")}, true},
		{target.Request{Op: target.OpBulkLoad}, false},
		{target.Request{Op: target.OpBulkLoad, Body: make([]byte, wire.MaxBody)}, true},
		{target.Request{Op: target.OpBulkLoad, Body: make([]byte, wire.MaxBody+1)}, false},
		{target.Request{Op: target.OpResetName}, false},
		{target.Request{Op: target.OpMeta, Key: []byte("k")}, false},
		{target.Request{Op: target.OpTable, Subtable: []byte("s")}, false},
		{target.Request{Op: target.OpTable, Subtable: []byte("s"), Table: target.TableKeys}, true},
		{target.Request{Op: target.OpTable, Subtable: []byte("s"), Table: 200}, false},
		{target.Request{Op: 200}, false},
	} {
		if err := wire.Check(&tc.req); (err == nil) != tc.ok {
			t.Errorf("op %d table %d: %v", tc.req.Op, tc.req.Table, err)
		}
	}
}

// Every endpoint, its number and its row agree.
func TestEndpoints(t *testing.T) {
	for i, ep := range wire.Endpoints() {
		if int(ep.Op) != i {
			t.Errorf("row %d is of op %d", i, ep.Op)
		}
		if got, ok := wire.Of(ep.Op); !ok || got != ep {
			t.Errorf("%s: found %v by its op", ep.Path, got)
		}
	}
	if _, ok := wire.Find("/nothing"); ok {
		t.Error("an endpoint was found under a path that there isn't")
	}
}

func TestLoadAllocatesNothing(t *testing.T) {
	req := target.Request{Op: target.OpLoad, Key: []byte("a key with % odd bytes \xff"), Value: []byte("value")}
	var ans target.Answer
	var buf []byte
	line := []byte("tmm=1 subtable=localdb_tmm_1_922743 key=a%20key%20with%20%25%20odd%20bytes%20%FF\n")
	n := testing.AllocsPerRun(1000, func() {
		buf = wire.AppendTarget(buf[:0], &req)
		ans.Reset()
		if err := wire.ParseAnswer(&ans, &req, line); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	if string(ans.Key) != string(req.Key) {
		t.Errorf("key %q", ans.Key)
	}
}
