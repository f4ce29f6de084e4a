package refplane

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"tbl/target"
)

// TestDiscoveryConfirmsTwice: a name is kept after its first fast write and two
// confirming ones. Reads and deletions are no writes.
func TestDiscoveryConfirmsTwice(t *testing.T) {
	healthy := []Fault{{Name: Jitter, Share: 0, Clicks: 1}} // every timing of the one core is an own one
	p := start(t, Config{Cores: 1, Clock: Model, Seed: 1, Faults: healthy})
	must(t, p, target.Request{Op: target.OpWhoami})
	if s := must(t, p, target.Request{Op: target.OpStats}).Stats[0]; s.WritesLocal != 3 || s.Entries != 0 {
		t.Errorf("discovery on the only core: %d writes and %d entries left, want 3 and 0", s.WritesLocal, s.Entries)
	}
}

// TestTimersOfProbes: entries that were written to time a write go by
// themselves: discovery's after 5 s without use, those of /probe after 60 s.
func TestTimersOfProbes(t *testing.T) {
	p := start(t, Config{Cores: 1, Clock: Model, Seed: 1})
	p.cores[0].attempt([]byte("found"))
	must(t, p, target.Request{Op: target.OpProbe, Subtable: []byte("probed")})
	for _, c := range []struct {
		sub, key string
		timeout  target.Seconds
	}{{"found", "probe", 5}, {"probed", "probe_0", 60}} {
		m := must(t, p, target.Request{Op: target.OpMeta, Subtable: []byte(c.sub), Key: []byte(c.key)}).Meta
		if !m.Found || m.Timeout != c.timeout || m.Lifetime != target.Indefinite {
			t.Errorf("%s: %+v, want a timeout of %d s and no lifetime", c.sub, m, c.timeout)
		}
	}
}

// TestCountersOfOneCore: a core counts its own writes one by one, and the
// entries of its subtable down to nothing when that is cleared by its name.
func TestCountersOfOneCore(t *testing.T) {
	p := start(t, Config{Cores: 3, Clock: Model, Seed: 9})
	c := connTo(t, p, 1)
	own := func() target.CoreStats { return must(t, p, target.Request{Op: target.OpStats}).Stats[1] }
	name := slices.Clone(must(t, p, target.Request{Op: target.OpWhoami, Conn: c}).Subtable)
	before := own()
	for i := range 10 {
		must(t, p, target.Request{Op: target.OpLoad, Conn: c, Key: fmt.Appendf(nil, "k%d", i)})
	}
	if s := own(); s.WritesLocal != before.WritesLocal+10 || s.WritesRemote != before.WritesRemote || s.Entries != 10 {
		t.Errorf("10 own writes: from %+v to %+v", before, s)
	}
	for _, want := range []struct {
		name    []byte
		deleted int64
		entries int64
	}{{[]byte("other"), 0, 10}, {name, 10, 0}} {
		r := must(t, p, target.Request{Op: target.OpResetName, Conn: c, Subtable: want.name})
		who := must(t, p, target.Request{Op: target.OpWhoami, Conn: c})
		if r.Deleted != want.deleted || who.Entries != want.entries || who.Writes != 10 || !bytes.Equal(who.Subtable, name) {
			t.Errorf("reset of %q deleted %d and left %d entries of %d writes under %q, want %d, %d and 10 under %q",
				want.name, r.Deleted, who.Entries, who.Writes, who.Subtable, want.deleted, want.entries, name)
		}
	}
}

// TestClicksOfTheTable: /table answers what the command took: 3 to 24 clicks on
// the core's own subtable, and 5 more for every key listed or deleted.
func TestClicksOfTheTable(t *testing.T) {
	p := start(t, Config{Cores: 1, Clock: Model, Seed: 2, Faults: []Fault{{Name: Jitter, Share: 0, Clicks: 1}}})
	const keys = 1000
	low, high := int64(1<<62), int64(0)
	for i := range keys {
		a := must(t, p, target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte("s"), Key: fmt.Appendf(nil, "k%d", i)})
		low, high = min(low, a.Clicks), max(high, a.Clicks)
	}
	if low != 3 || high < 19 || high > 24 {
		t.Errorf("%d own writes took %d to %d clicks, want 3 to 19–24", keys, low, high)
	}
	for _, op := range []target.TableOp{target.TableKeys, target.TableDeleteAll} {
		a := must(t, p, target.Request{Op: target.OpTable, Table: op, Subtable: []byte("s")})
		if extra := a.Clicks - 5*keys; extra < 3 || extra > 24 {
			t.Errorf("table command %d over %d keys took %d clicks, want 5 a key and 3 to 24 more", op, keys, a.Clicks)
		}
	}
}

// TestFlapDelays: what flap neither fails nor lets pass is 50 ms late.
func TestFlapDelays(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 3, Faults: []Fault{{Name: Flap, Share: 1}}})
	late := 0
	for range 100 {
		var ans target.Answer
		if err := p.Do(t.Context(), &target.Request{Op: target.OpInfo}, &ans); err != nil {
			continue
		}
		late++
		if d := ans.Timing.Total; d < 50*time.Millisecond || d > 51*time.Millisecond {
			t.Errorf("a delayed request took %v, want 50 ms and up to 1 ms of its own", d)
		}
	}
	if late < 10 {
		t.Errorf("%d of 100 were delayed, want a fifth", late)
	}
}

// TestOrphansNeedWrites: reload-orphans forgets the name of a core that wrote
// since the last reset, and of no other: there is nothing to orphan.
func TestOrphansNeedWrites(t *testing.T) {
	p := start(t, Config{Cores: 1, Clock: Model, Seed: 4, Faults: []Fault{{Name: ReloadOrphans}}})
	name := func() string { return string(must(t, p, target.Request{Op: target.OpWhoami}).Subtable) }
	first := name()
	must(t, p, target.Request{Op: target.OpReset})
	if got := name(); got != first {
		t.Errorf("a reset without a write before renamed %q to %q", first, got)
	}
	must(t, p, target.Request{Op: target.OpLoad, Key: []byte("k")})
	must(t, p, target.Request{Op: target.OpReset})
	if got := name(); got == first {
		t.Errorf("a reset after a write kept the name %q", got)
	}
}
