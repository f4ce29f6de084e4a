package irule_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tbl/irule"
	"tbl/prober/proof"
	"tbl/target"
	"tbl/target/remote"
	"tbl/target/targettest"
	"tbl/timingstats/verdict"
)

func TestConformance(t *testing.T) {
	targettest.Run(t, func(t *testing.T) target.Target {
		return connect(t, start(t, 4, 1, irule.DefaultOptions()), remote.Config{})
	}, targettest.Options{NoReload: true})
}

// The five steps hold for the rules as deployed, with any number of TMMs.
func TestProof(t *testing.T) {
	for _, tmms := range []int{2, 8} {
		t.Run(fmt.Sprint(tmms), func(t *testing.T) {
			b := start(t, tmms, int64(tmms), irule.DefaultOptions())
			res, err := proof.Run(context.Background(), connect(t, b, remote.Config{}), proof.Config{Count: 400 * tmms, Workers: 16})
			if err != nil {
				t.Fatal(err)
			}
			if res.Overall.State != verdict.Pass {
				t.Errorf("overall: %+v", res.Overall)
				for _, s := range res.Steps {
					t.Logf("%d %s: %v %s", s.Step, s.Word, s.State, s.Line)
				}
			}
			// Each name that was found is really its TMM's own.
			c := &client{t: t, tgt: connect(t, b, remote.Config{})}
			c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) {
				owner, err := b.Owner(string(ans.Subtable))
				if err != nil || owner != tmm {
					t.Errorf("tmm %d uses %s, which is of tmm %d (%v)", tmm, ans.Subtable, owner, err)
				}
			})
		})
	}
}

// The same rules with names that are built and not found fail the proof.
func TestProofOfFixedNames(t *testing.T) {
	o := irule.DefaultOptions()
	o.Candidates, o.MaxTries = 1, 1
	b := start(t, 4, 2, o)
	res, err := proof.Run(context.Background(), connect(t, b, remote.Config{}), proof.Config{Count: 1600, Workers: 16})
	if err != nil {
		t.Fatal(err)
	}
	if res.Overall.State != verdict.Fail {
		t.Errorf("overall: %+v", res.Overall)
	}
	wrong := 0
	for tmm := range 4 {
		owner, err := b.Owner(fmt.Sprintf("localdb_tmm_%d_0", tmm))
		if err != nil {
			t.Fatal(err)
		}
		if owner != tmm {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("the seed makes every fixed name its TMM's own: choose another")
	}
}

// randomKey is 1 to 60 bytes of any kind; line leaves out CR and LF.
func randomKey(r *rand.Rand, line bool) []byte {
	k := make([]byte, 1+r.IntN(60))
	for i := range k {
		k[i] = byte(r.Uint32())
		for line && (k[i] == '\r' || k[i] == '\n') {
			k[i] = byte(r.Uint32())
		}
	}
	return k
}

// Ten thousand keys of random bytes are stored and found again exactly.
func TestKeysOfRandomBytes(t *testing.T) {
	const seed = 7
	n := 10_000
	if testing.Short() {
		n = 500
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b := start(t, 4, seed, irule.Options{Sample: 1})
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	want := make(map[string]string)
	for range n {
		k := randomKey(r, false)
		v := randomKey(r, false)
		ans := c.do(target.Request{Op: target.OpLoad, Key: k, Value: v})
		if string(ans.Key) != string(k) {
			t.Fatalf("key %q was understood as %q", k, ans.Key)
		}
		want[string(k)] = string(v)
	}
	var body []byte
	for range n {
		k := randomKey(r, true)
		if _, taken := want[string(k)]; taken {
			continue
		}
		want[string(k)] = "1"
		body = append(append(body, k...), '\n')
	}
	c.do(target.Request{Op: target.OpBulkLoad, Body: body})
	names := make(map[int]string)
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) { names[tmm] = string(ans.Subtable) })
	found := 0
	c.everyTMM(target.Request{Op: target.OpDump}, func(tmm int, ans *target.Answer) {
		for _, k := range ans.List {
			if _, ok := want[string(k)]; !ok {
				t.Errorf("key %q was never written", k)
			}
			found++
		}
	})
	// A key of one byte may have been written by several TMMs.
	if found < len(want) {
		t.Errorf("%d of %d keys listed", found, len(want))
	}
	for i := range n {
		k := randomKey(r, false)
		v := randomKey(r, false)
		if i%16 == 0 { // what could be taken for an option
			k = append([]byte("-subtable "), k...)
		}
		sub := []byte("random")
		ans := c.do(target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: sub, Key: k, Value: v})
		if string(ans.Result) != string(v) {
			t.Fatalf("value %q of key %q came back as %q", v, k, ans.Result)
		}
		if i%4 == 0 {
			ans = c.do(target.Request{Op: target.OpTable, Table: target.TableLookup, Subtable: sub, Key: k})
			if string(ans.Result) != string(v) {
				t.Fatalf("value %q of key %q was read as %q", v, k, ans.Result)
			}
		}
	}
}

// What looks like code is stored as data, changes nothing and forges no line
// of the log.
func TestInjection(t *testing.T) {
	attempts := []string{
		"[exec touch /tmp/x]", "[table delete -subtable localdb_inventory -all]", "[HTTP::respond 500]", "$static::harness_secret",
		"$x", "${x}", "}", "{", "\\", "\\}", "} ; log local0. evil ; {", "\"", "\" ; reject ; \"", "a;reject", "[", "]",
		"x\r\nMay  6 16:02:11 bench info tmm9[1]: Rule /Common/LOCALDB <HTTP_REQUEST>: tmm=9 subtable=evil writes=1 key=k clicks=1 FAST_LOCAL (sampled 1/1)",
		"k\nLOG forged", "-all", "-subtable", "-notouch", "--", "=", "=-all", "-excl", "\x00", "%5Bexec%5D", "#", "set", "static::localdb_name",
	}
	b := start(t, 4, 3, irule.Options{Sample: 1})
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	names := make(map[int]string)
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) { names[tmm] = string(ans.Subtable) })
	for i, a := range attempts {
		for _, at := range []struct {
			what string
			req  target.Request
		}{
			{"key", target.Request{Op: target.OpLoad, Key: []byte(a), Value: []byte(a)}},
			{"table key", target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte("s"), Key: []byte(a), Value: []byte(a)}},
			{"subtable", target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte(a), Key: []byte("k"), Value: []byte("v")}},
			{"append", target.Request{Op: target.OpTable, Table: target.TableAppend, Subtable: []byte("appended"), Key: []byte(a), Value: []byte(a)}},
			{"meta", target.Request{Op: target.OpMeta, Subtable: []byte(a), Key: []byte(a)}},
			{"probe", target.Request{Op: target.OpProbe, Subtable: []byte(a)}},
			{"timeout", target.Request{Op: target.OpTable, Table: target.TableTimeout, Subtable: []byte(a), Key: []byte(a)}},
		} {
			ans := c.do(at.req)
			if at.what == "key" && string(ans.Key) != a || at.what == "table key" && string(ans.Result) != a {
				t.Errorf("%s %q came back as %q %q", at.what, a, ans.Key, ans.Result)
			}
		}
		if !strings.ContainsAny(a, "\r\n") {
			c.do(target.Request{Op: target.OpBulkLoad, Body: []byte(fmt.Sprintf("%s%d\n", a, i))})
		}
		if ans := c.do(target.Request{Op: target.OpTable, Table: target.TableLookup, Subtable: []byte("s"), Key: []byte(a)}); string(ans.Result) != a {
			t.Errorf("key %q holds %q", a, ans.Result)
		}
	}
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) {
		if string(ans.Subtable) != names[tmm] {
			t.Errorf("tmm %d: %s became %s", tmm, names[tmm], ans.Subtable)
		}
	})
	// Deleting under each of the names deletes that and nothing else.
	for _, a := range attempts {
		if ans := c.do(target.Request{Op: target.OpResetName, Subtable: []byte(a)}); ans.Deleted < 1 || ans.Deleted > 5 {
			t.Errorf("%d deleted under the name %q", ans.Deleted, a)
		}
	}
	if ans := c.do(target.Request{Op: target.OpTable, Table: target.TableKeys, Subtable: []byte("s"), Flags: target.FlagCount}); string(ans.Result) != fmt.Sprint(len(attempts)) {
		t.Errorf("%s entries left of %d", ans.Result, len(attempts))
	}
	for _, l := range b.Log() {
		if strings.Contains(l, " subtable=evil ") || strings.Contains(l, ": evil") || !strings.Contains(l, "bench info tmm") {
			t.Errorf("log line %q", l)
		}
	}
}

// A rule is killed and loaded again in the middle of a load: the TMMs find
// new names, the entries left behind are listed and cleared.
func TestReloadInMidLoad(t *testing.T) {
	b := start(t, 4, 4, irule.DefaultOptions())
	tgt := connect(t, b, remote.Config{})
	c := &client{t: t, tgt: tgt}
	before := make(map[string]bool)
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(_ int, ans *target.Answer) { before[string(ans.Subtable)] = true })

	const workers, each = 8, 300
	var ok, failed atomic.Int64
	halfway := make(chan struct{})
	reloaded := make(chan error, 1)
	go func() {
		<-halfway
		err := b.Unload(irule.LocaldbName)
		if err == nil {
			err = b.Reload(rules(t, irule.DefaultOptions())[0])
		}
		reloaded <- err
	}()
	var once atomic.Bool
	tgt.Clock().Run(workers, func(w int) {
		var ans target.Answer
		for i := range each {
			req := target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "w%d-%d", w, i)}
			if err := tgt.Do(context.Background(), &req, &ans); err != nil {
				failed.Add(1)
			} else {
				ok.Add(1)
			}
			if ok.Load()+failed.Load() > workers*each/2 && once.CompareAndSwap(false, true) {
				close(halfway)
			}
		}
	})
	if err := <-reloaded; err != nil {
		t.Fatal(err)
	}
	if failed.Load() > workers*each/4 {
		t.Errorf("%d of %d writes failed around the reload", failed.Load(), workers*each)
	}

	var entries int64
	after := make(map[string]bool)
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) {
		after[string(ans.Subtable)] = true
		entries += ans.Entries
		if before[string(ans.Subtable)] {
			t.Errorf("tmm %d has its old name %s again", tmm, ans.Subtable)
		}
		if owner, err := b.Owner(string(ans.Subtable)); err != nil || owner != tmm {
			t.Errorf("tmm %d found %s, which is of tmm %d (%v)", tmm, ans.Subtable, owner, err)
		}
	})
	if entries == 0 {
		t.Error("nothing was written after the reload")
	}
	orphans := make(map[string]bool)
	c.everyTMM(target.Request{Op: target.OpNames}, func(_ int, ans *target.Answer) {
		for _, n := range ans.List {
			if !after[string(n)] {
				orphans[string(n)] = true
			}
		}
	})
	for n := range before {
		if !orphans[n] {
			t.Errorf("%s was left behind and is not listed among %v", n, orphans)
		}
	}
	var cleared int64
	for n := range orphans {
		cleared += c.do(target.Request{Op: target.OpResetName, Subtable: []byte(n)}).Deleted
	}
	// A failed request may have been written all the same.
	if total := cleared + entries; total < ok.Load() || total > ok.Load()+failed.Load() {
		t.Errorf("%d entries cleared and %d kept, %d written (and %d failed)", cleared, entries, ok.Load(), failed.Load())
	}
	c.everyTMM(target.Request{Op: target.OpNames}, func(tmm int, ans *target.Answer) {
		for _, n := range ans.List {
			if orphans[string(n)] {
				t.Errorf("tmm %d still lists %s", tmm, n)
			}
		}
	})
}

// Names are only lost with the TMM: it starts with nothing and recovers.
func TestRestartOfOneTMM(t *testing.T) {
	b := start(t, 4, 5, irule.DefaultOptions())
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	c.everyTMM(target.Request{Op: target.OpLoad, Key: []byte("k")}, func(int, *target.Answer) {})
	names := make(map[int]string)
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) { names[tmm] = string(ans.Subtable) })
	if err := b.Restart(2); err != nil {
		t.Fatal(err)
	}
	c.everyTMM(target.Request{Op: target.OpWhoami}, func(tmm int, ans *target.Answer) {
		if changed := string(ans.Subtable) != names[tmm]; changed != (tmm == 2) {
			t.Errorf("tmm %d: %s became %s", tmm, names[tmm], ans.Subtable)
		}
		if tmm == 2 && ans.Entries != 0 {
			t.Errorf("tmm 2 counts %d entries after its restart", ans.Entries)
		}
	})
}

// A TMM that owns none of the names says so and goes on.
func TestNoLocalName(t *testing.T) {
	o := irule.DefaultOptions()
	o.MaxTries = 1
	b := start(t, 16, 6, o)
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	c.everyTMM(target.Request{Op: target.OpLoad, Key: []byte("k")}, func(int, *target.Answer) {})
	warned := 0
	for _, l := range b.Log() {
		if strings.Contains(l, "WARNING could not find local subtable after 1 probes; using localdb_tmm_") {
			warned++
		}
	}
	if warned == 0 {
		t.Errorf("no warning among %q", b.Log())
	}
}

// The inventory is bounded, and says when it is full.
func TestInventoryIsBounded(t *testing.T) {
	rs := rules(t, irule.DefaultOptions())
	b := start(t, 4, 8, irule.DefaultOptions())
	small := rs[0]
	small.Text = strings.Replace(small.Text, "set static::localdb_max_names 512", "set static::localdb_max_names 20", 1)
	if small.Text == rs[0].Text {
		t.Fatal("the bound isn't where the test looks for it")
	}
	if err := b.Reload(small); err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	for i := range 60 {
		c.do(target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: fmt.Appendf(nil, "s%d", i), Key: []byte("k"), Value: []byte("v")})
	}
	ans := c.do(target.Request{Op: target.OpTable, Table: target.TableKeys, Subtable: []byte("localdb_inventory"), Flags: target.FlagCount})
	if string(ans.Result) != "20" {
		t.Errorf("%s names in an inventory of 20", ans.Result)
	}
	full := false
	for _, l := range b.Log() {
		full = full || strings.Contains(l, "WARNING inventory is full (20 names)")
	}
	if !full {
		t.Errorf("no warning among %q", b.Log())
	}
}

// Idle entries go after an hour, and the counter then is an upper bound.
func TestEntriesExpire(t *testing.T) {
	b := start(t, 1, 9, irule.DefaultOptions())
	c := &client{t: t, tgt: connect(t, b, remote.Config{})}
	for i := range 10 {
		c.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
	}
	if err := b.Advance(3599 * time.Second); err != nil {
		t.Fatal(err)
	}
	// The second may pass meanwhile; nothing is asked of the exact one.
	if err := b.Advance(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if ans := c.do(target.Request{Op: target.OpDump}); ans.Count != 0 {
		t.Errorf("%d entries after an hour", ans.Count)
	}
	if ans := c.do(target.Request{Op: target.OpWhoami}); ans.Entries != 10 || ans.Writes != 10 {
		t.Errorf("%d entries and %d writes counted, want the upper bound 10", ans.Entries, ans.Writes)
	}
}

// One write in N is logged, none with 0.
func TestSampling(t *testing.T) {
	for _, sample := range []int{0, 1, 5} {
		b := start(t, 1, 10, irule.Options{Sample: sample})
		c := &client{t: t, tgt: connect(t, b, remote.Config{})}
		for i := range 20 {
			c.do(target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
		}
		got, want := 0, 0
		if sample > 0 {
			want = 20 / sample
		}
		for _, l := range b.Log() {
			if strings.Contains(l, fmt.Sprintf("FAST_LOCAL (sampled 1/%d)", sample)) {
				got++
			}
		}
		if got != want {
			t.Errorf("1 in %d of 20 writes: %d lines, want %d", sample, got, want)
		}
	}
}

// ask sends a request as written and returns the status and the first line.
func ask(t testing.TB, addr, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.80q: %v", request, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%.80q: %v", request, err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(body), "\n")
}

func TestErrorStatuses(t *testing.T) {
	b := start(t, 2, 11, irule.Options{BodyTimeoutMS: 300})
	for _, tc := range []struct {
		name, request string
		status        int
	}{
		{"unknown path", "GET /nothing HTTP/1.1\r\n\r\n", 404},
		{"root", "GET / HTTP/1.1\r\n\r\n", 404},
		{"stats", "GET /stats HTTP/1.1\r\n\r\n", 404},
		{"reload", "POST /reload HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404},
		{"no key", "GET /load HTTP/1.1\r\n\r\n", 400},
		{"empty key", "GET /load?key=&val=v HTTP/1.1\r\n\r\n", 400},
		{"other key", "GET /load?mykey=k HTTP/1.1\r\n\r\n", 400},
		{"bad escape", "GET /load?key=%zz HTTP/1.1\r\n\r\n", 400},
		{"escape cut", "GET /load?key=a%4 HTTP/1.1\r\n\r\n", 400},
		{"load by POST", "POST /load?key=k HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405},
		{"bulk by GET", "GET /bulk_load HTTP/1.1\r\n\r\n", 405},
		{"no length", "POST /bulk_load HTTP/1.1\r\n\r\n", 411},
		{"zero length", "POST /bulk_load HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 411},
		{"zeros", "POST /bulk_load HTTP/1.1\r\nContent-Length: 000\r\n\r\n", 411},
		{"no number", "POST /bulk_load HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 411},
		{"chunked", "POST /bulk_load HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 411},
		{"too large", "POST /bulk_load HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n", 413},
		{"huge", "POST /bulk_load HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
		{"slow body", "POST /bulk_load HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", 408},
		{"octal length", "POST /bulk_load HTTP/1.1\r\nContent-Length: 010\r\n\r\n123456789\n", 200},
		{"expect", "POST /bulk_load HTTP/1.1\r\nExpect: other\r\nContent-Length: 2\r\n\r\na\n", 200},
		{"blank lines only", "POST /bulk_load HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\r\n\n", 200},
		{"http/1.0", "GET /info HTTP/1.0\r\n\r\n", 200},
		{"table without op", "GET /table?subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"unknown op", "GET /table?op=drop&subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"op in brackets", "GET /table?op=%5Breject%5D&subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"no subtable", "GET /table?op=set&key=k HTTP/1.1\r\n\r\n", 400},
		{"no table key", "GET /table?op=set&subtable=s HTTP/1.1\r\n\r\n", 400},
		{"unknown flag", "GET /table?op=set&subtable=s&key=k&flags=touch HTTP/1.1\r\n\r\n", 400},
		{"all on keys", "GET /table?op=keys&subtable=s&flags=all HTTP/1.1\r\n\r\n", 400},
		{"bad timer", "GET /table?op=set&subtable=s&key=k&timeout=-1 HTTP/1.1\r\n\r\n", 400},
		{"word timer", "GET /table?op=set&subtable=s&key=k&lifetime=forever HTTP/1.1\r\n\r\n", 400},
		{"long timer", "GET /table?op=set&subtable=s&key=k&timeout=99999999999 HTTP/1.1\r\n\r\n", 400},
		{"incr by a word", "GET /table?op=incr&subtable=s&key=n&value=x HTTP/1.1\r\n\r\n", 400},
		{"flags with commas encoded", "GET /table?op=set&subtable=s&key=k&value=v&flags=notouch%2Cexcl HTTP/1.1\r\n\r\n", 200},
		{"meta without key", "GET /meta?subtable=s HTTP/1.1\r\n\r\n", 400},
		{"reset of an empty name", "GET /reset?name= HTTP/1.1\r\n\r\n", 400},
	} {
		if status, line := ask(t, b.Addr(), tc.request); status != tc.status {
			t.Errorf("%s: status %d %q, want %d", tc.name, status, line, tc.status)
		}
	}
	if status, line := ask(t, b.Addr(), "GET /load?key=a+b%2B&key=second HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " key=a%20b+") {
		t.Errorf("a plus sign: %d %q", status, line)
	}
	for timer, want := range map[string]string{"0090": "90", "indef": "indefinite", "0": "180"} {
		if status, line := ask(t, b.Addr(), "GET /table?op=set&subtable=timed&key="+timer+"&value=v&timeout="+timer+" HTTP/1.1\r\n\r\n"); status != 200 {
			t.Errorf("timeout %s: %d %q", timer, status, line)
		}
		for _, set := range []string{"", "&timeout=0"} {
			if status, line := ask(t, b.Addr(), "GET /table?op=timeout&subtable=timed&key="+timer+set+" HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " result="+want) {
				t.Errorf("timeout %s, read with %q: %d %q", timer, set, status, line)
			}
		}
	}
	if status, line := ask(t, b.Addr(), "GET /load?key=%2541 HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " key=%2541") {
		t.Errorf("decoded twice: %d %q", status, line)
	}
	if status, line := ask(t, b.Addr(), "POST /bulk_load HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\r\n\n"); status != 200 || !strings.HasSuffix(line, " written=0 elapsed_clicks=0 clicks_per_write=0") {
		t.Errorf("blank lines: %d %q", status, line)
	}
}

// A body of exactly the limit is taken, one byte more is not, and the sender
// hears so.
func TestBodyLimit(t *testing.T) {
	b := start(t, 2, 12, irule.Options{MaxBody: 1 << 20})
	for extra, want := range []int{200, 413} {
		body := strings.Repeat(strings.Repeat("k", 1023)+"\n", 1024) + strings.Repeat("x", extra)
		resp, err := http.Post(b.URL()+"/bulk_load", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatalf("%d bytes: %v", len(body), err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: status %d, want %d", len(body), resp.StatusCode, want)
		}
	}
}

func TestAuthorization(t *testing.T) {
	guarded := []string{"/load?key=k", "/dump", "/probe", "/reset", "/reset?name=s", "/table?op=keys&subtable=s", "/meta?subtable=s&key=k", "/names"}
	open := []string{"/info", "/whoami"}
	for _, tc := range []struct {
		name   string
		o      irule.Options
		header string
		want   int
	}{
		{"default: loopback is private", irule.Options{}, "", 200},
		{"foreign addresses only", irule.Options{Allow: prefixes("192.0.2.0/24", "2001:db8::/32")}, "", 403},
		{"everybody", irule.Options{Allow: prefixes("::/0", "0.0.0.0/0")}, "", 200},
		{"no secret given", irule.Options{Secret: "s3cret"}, "", 401},
		{"wrong secret", irule.Options{Secret: "s3cret"}, "Authorization: Bearer s3cre\r\n", 401},
		{"other scheme", irule.Options{Secret: "s3cret"}, "Authorization: Basic s3cret\r\n", 401},
		{"secret", irule.Options{Secret: "s3cret"}, "Authorization: Bearer s3cret\r\n", 200},
		{"secret from a foreign address", irule.Options{Secret: "s3cret", Allow: prefixes("192.0.2.0/24")}, "Authorization: Bearer s3cret\r\n", 403},
		{"secret from an allowed address", irule.Options{Secret: "s3cret", Allow: prefixes("127.0.0.1/32")}, "Authorization: Bearer s3cret\r\n", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := start(t, 2, 13, tc.o)
			for _, path := range guarded {
				if status, line := ask(t, b.Addr(), "GET "+path+" HTTP/1.1\r\n"+tc.header+"\r\n"); status != tc.want {
					t.Errorf("%s: %d %q, want %d", path, status, line, tc.want)
				}
			}
			if status, line := ask(t, b.Addr(), "POST /bulk_load HTTP/1.1\r\n"+tc.header+"Content-Length: 2\r\n\r\na\n"); status != tc.want {
				t.Errorf("/bulk_load: %d %q, want %d", status, line, tc.want)
			}
			for _, path := range open {
				if status, line := ask(t, b.Addr(), "GET "+path+" HTTP/1.1\r\n\r\n"); status != 200 {
					t.Errorf("%s: %d %q", path, status, line)
				}
			}
			if tc.want != 200 {
				s, err := b.State()
				if err != nil || !strings.Contains(s, " entries=") {
					t.Fatalf("state %q: %v", s, err)
				}
			}
		})
	}
}

func prefixes(s ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(s))
	for i, p := range s {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// The client's token is the rule's secret.
func TestTokenIsTheSecret(t *testing.T) {
	b := start(t, 2, 14, irule.Options{Secret: "a-secret"})
	c := &client{t: t, tgt: connect(t, b, remote.Config{Token: "a-secret"})}
	c.do(target.Request{Op: target.OpLoad, Key: []byte("k")})
	var ans target.Answer
	err := connect(t, b, remote.Config{}).Do(context.Background(), &target.Request{Op: target.OpLoad, Key: []byte("k")}, &ans)
	if target.ClassOf(err) != target.ClassHTTP4xx {
		t.Errorf("without it: %v", err)
	}
}
