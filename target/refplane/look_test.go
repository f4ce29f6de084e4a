package refplane

import (
	"slices"
	"sync"
	"testing"
	"time"

	"tbl/target"
)

// Looking on tells what OpStats tells, and leaves no trace.
func TestAppendStats(t *testing.T) {
	p := start(t, Config{Cores: 5, Seed: 7, HandoffDelay: time.Hour, Faults: []Fault{{Name: Flap, Share: 1}}})
	first := p.AppendStats(nil)
	if len(first) != 5 {
		t.Fatalf("%d cores, want 5", len(first))
	}
	for i, c := range first {
		if want := (target.CoreStats{Core: i}); c != want {
			t.Errorf("untouched core: %+v, want %+v", c, want)
		}
	}
	if again := p.AppendStats(nil); !slices.Equal(again, first) {
		t.Errorf("looking changed %+v to %+v", first, again)
	}

	q := start(t, Config{Cores: 3, Seed: 7})
	for k := range 3 {
		must(t, q, target.Request{Op: target.OpLoad, Key: []byte("k"), Value: []byte("v"), Conn: connTo(t, q, k)})
	}
	kept := []target.CoreStats{{Core: 99}}
	got := q.AppendStats(kept)
	want := must(t, q, target.Request{Op: target.OpStats, Conn: connTo(t, q, 2)}).Stats
	want[2].Connections-- // the question itself
	if !slices.Equal(got, append(kept, want...)) {
		t.Errorf("looked on: %+v, asked: %+v", got, want)
	}
}

// Onlookers hold up nobody, nor does closing hold them.
func TestAppendStatsBesideWork(t *testing.T) {
	p := start(t, Config{Cores: 3, Seed: 1})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if n := len(p.AppendStats(nil)); n != 3 && n != 0 {
					t.Errorf("%d cores", n)
				}
			}
		})
	}
	for i := range 200 {
		must(t, p, target.Request{Op: target.OpTable, Table: target.TableSet, Subtable: []byte{'s', byte(i)}, Key: []byte("k"), Value: []byte("v")})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.AppendStats(nil); len(got) != 0 {
		t.Errorf("after Close: %+v", got)
	}
	m := start(t, Config{Clock: Model, Seed: 1})
	if got := m.AppendStats(nil); len(got) != 0 {
		t.Errorf("on the model clock: %+v", got)
	}
}
