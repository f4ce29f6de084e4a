package irule_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
