package refplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tbl/target"
)

var longRuns = flag.Bool("long", false, "run the simulations of ten million writes and of a day")

// trace is everything that a seeded run shows, as a digest.
func trace(t *testing.T, seed uint64, faults []Fault) [32]byte {
	h := sha256.New()
	p := start(t, Config{Cores: 8, Clock: Model, Seed: seed, Log: h, LogSample: 3, Faults: faults})
	answers := make([]bytes.Buffer, 16)
	p.Clock().Run(16, func(i int) {
		var ans target.Answer
		for j := range 300 {
			req := target.Request{Op: target.Op(j % 11), Key: fmt.Appendf(nil, "k%d-%d", i, j), Subtable: fmt.Appendf(nil, "s%d", j%5), Body: []byte("a\nb\n")}
			err := p.Do(context.Background(), &req, &ans)
			fmt.Fprintln(&answers[i], p.Clock().Now(), err, ans.Core, ans.Clicks, ans.Entries, ans.Count, ans.Deleted, ans.Timing)
			if j%50 == 0 {
				if err := p.Clock().Sleep(context.Background(), time.Duration(i)*time.Second); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err := p.FlushLog(); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		h.Write(answers[i].Bytes())
	}
	return [32]byte(h.Sum(nil))
}

func TestModelRepeatsBitForBit(t *testing.T) {
	flap := []Fault{{Name: Flap, Share: .1}, {Name: Stall, Core: 1, Pause: time.Millisecond, Every: time.Second}}
	for seed := uint64(1); seed <= 5; seed++ {
		a := trace(t, seed, flap)
		if b := trace(t, seed, flap); a != b {
			t.Errorf("seed %d: two runs differ", seed)
		}
		if b := trace(t, seed+100, flap); a == b {
			t.Errorf("seeds %d and %d: the same run", seed, seed+100)
		}
	}
}

func TestModelClock(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 1})
	clock := p.Clock()
	begin := clock.Now()
	if want := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); !begin.Equal(want) || !clock.Virtual() {
		t.Errorf("begins at %v, want %v", begin, want)
	}
	// Outside a Run, a pause and a request move the clock.
	if err := clock.Sleep(context.Background(), time.Hour); err != nil || clock.Now().Sub(begin) != time.Hour {
		t.Errorf("after an hour's sleep: %v, %v", clock.Now(), err)
	}
	ans := must(t, p, target.Request{})
	if d := clock.Now().Sub(begin) - time.Hour; d != ans.Timing.Total || d <= 0 {
		t.Errorf("a request took %v and moved the clock by %v", ans.Timing.Total, d)
	}
	// Inside, everybody waits at the same time, in the order of the times.
	begin = clock.Now()
	var order []int
	clock.Run(5, func(i int) {
		for range 3 {
			if err := clock.Sleep(context.Background(), time.Duration(10-i)*time.Minute); err != nil {
				t.Error(err)
			}
		}
		order = append(order, i)
	})
	if d := clock.Now().Sub(begin); d != 30*time.Minute || !slices.Equal(order, []int{4, 3, 2, 1, 0}) {
		t.Errorf("took %v, ended in order %v", d, order)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := clock.Sleep(ctx, time.Hour); err == nil || clock.Now().Sub(begin) != 30*time.Minute {
		t.Errorf("a cancelled sleep: %v at %v", err, clock.Now())
	}
	if err := p.Do(ctx, &target.Request{}, ans); target.ClassOf(err) != target.ClassCanceled {
		t.Errorf("a cancelled request: %v", err)
	}
}

func TestModelRunPassesPanicsOn(t *testing.T) {
	p := start(t, Config{Clock: Model, Seed: 1})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the worker's panic got lost")
			}
		}()
		p.Clock().Run(1, func(int) { panic("worker") })
	}()
	must(t, p, target.Request{}) // still usable
}

func TestModelExpiresOnItsOwnTime(t *testing.T) {
	p := start(t, Config{Cores: 2, Clock: Model, Seed: 1})
	for i := range 100 {
		must(t, p, target.Request{Op: target.OpLoad, Key: fmt.Appendf(nil, "k%d", i)})
	}
	entries := func() (n, expired int64) {
		for _, s := range must(t, p, target.Request{Op: target.OpStats}).Stats {
			n += s.Entries
			expired += s.Expired
		}
		return
	}
	ctx := context.Background()
	p.Clock().Sleep(ctx, (loadTimeout-2)*time.Second)
	if n, _ := entries(); n != 100 {
		t.Errorf("%d of 100 left before their time", n)
	}
	p.Clock().Sleep(ctx, 3*time.Second)
	if n, e := entries(); n != 0 || e != 100 {
		t.Errorf("%d left and %d expired after their time", n, e)
	}
}

// TestModelCosts compares the drawn costs with the figures that they are
// fitted to.
func TestModelCosts(t *testing.T) {
	r := rng{1}
	var own, far []float64
	sum := 0.0
	for range 200_000 {
		c := ownClicks(r.float())
		own = append(own, c)
		sum += c
		far = append(far, otherClicks(&r, 25_000))
	}
	slices.Sort(own)
	slices.Sort(far)
	n := len(own)
	if m := sum / float64(n); own[0] != 3 || m < 5.8 || m > 6.3 || own[n*95/100] != 11 || own[n*99/100] != 18 {
		t.Errorf("own: min %v mean %v p95 %v p99 %v", own[0], m, own[n*95/100], own[n*99/100])
	}
	if far[0] < 121 || far[n-1] != 300_000 || far[n/2] < 80_000 || far[n/2] > 120_000 {
		t.Errorf("other: min %v median %v max %v", far[0], far[n/2], far[n-1])
	}
}

// simulate runs n loads from 64 workers.
func simulate(tb testing.TB, p *Plane, n int64) {
	var next atomic.Int64
	p.Clock().Run(64, func(int) {
		var ans target.Answer
		var key [36]byte
		req := target.Request{Op: target.OpLoad, Key: key[:], Value: one}
		for i := next.Add(1); i <= n; i = next.Add(1) {
			putKey(&key, uint64(i))
			if err := p.Do(context.Background(), &req, &ans); err != nil {
				tb.Error(err)
				return
			}
		}
	})
}

func BenchmarkModelLoad(b *testing.B) {
	for _, cores := range []int{4, 64} {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			p := start(b, Config{Cores: cores, Clock: Model, Seed: 1})
			b.ReportAllocs()
			simulate(b, p, int64(b.N))
		})
	}
}

func TestTenMillionWritesOn64Cores(t *testing.T) {
	if !*longRuns {
		t.Skip("needs -long")
	}
	begin := time.Now()
	p := start(t, Config{Cores: 64, Clock: Model, Seed: 1})
	simulate(t, p, 10_000_000)
	t.Logf("10,000,000 writes on 64 cores: %v, virtual %v", time.Since(begin), p.Clock().Now().Sub(time.Unix(epoch, 0)))
}

// TestADayKeepsMemoryFlat runs a thousand operations per second for 24 hours:
// once the first entries have expired, nothing may grow any more.
func TestADayKeepsMemoryFlat(t *testing.T) {
	hours, rate := 24, 1000
	if !*longRuns {
		hours, rate = 4, 20
	}
	p := start(t, Config{Cores: 4, Clock: Model, Seed: 1})
	clock := p.Clock()
	var heap []int64
	key := uint64(0)
	for h := range hours {
		clock.Run(1, func(int) {
			var ans target.Answer
			var k [36]byte
			req := target.Request{Op: target.OpLoad, Key: k[:], Value: one}
			begin := clock.Now()
			for i := range 3600 * rate {
				clock.Sleep(context.Background(), begin.Add(time.Duration(i)*time.Second/time.Duration(rate)).Sub(clock.Now()))
				key++
				putKey(&k, key)
				if err := p.Do(context.Background(), &req, &ans); err != nil {
					t.Error(err)
					return
				}
			}
		})
		heap = append(heap, heapInuse())
		t.Logf("hour %d: %d MB", h+1, heap[h]>>20)
	}
	if last := float64(heap[hours-1]); last > 1.1*float64(heap[1]) {
		t.Errorf("heap in use by the hour: %v", heap)
	}
	runtime.KeepAlive(p)
}

// BenchmarkModelNew is what a short seeded simulation pays before its first
// request.
func BenchmarkModelNew(b *testing.B) {
	for _, cores := range []int{4, 64} {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				p, err := New(Config{Cores: cores, Clock: Model, Seed: uint64(i + 1)})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestModelRemoteCostGrowsWithTheSubtable compares look-ups and writes, from
// afar, in a small and in a large subtable.
func TestModelRemoteCostGrowsWithTheSubtable(t *testing.T) {
	p := start(t, Config{Cores: 2, Clock: Model, Seed: 1, Faults: []Fault{{Name: Jitter}}})
	name := []byte("shared")
	far := connTo(t, p, 1-p.OwnerOf(name))
	median := func(op target.TableOp) int64 {
		var clicks []int64
		for range 101 {
			clicks = append(clicks, must(t, p, target.Request{
				Op: target.OpTable, Table: op, Conn: far, Subtable: name, Key: []byte("k"), Value: one,
			}).Clicks)
		}
		slices.Sort(clicks)
		return clicks[50]
	}
	set, lookup := median(target.TableSet), median(target.TableLookup)
	for i := range 25_000 {
		must(t, p, target.Request{Op: target.OpTable, Subtable: name, Key: fmt.Appendf(nil, "k%d", i), Value: one, Timeout: target.Indefinite})
	}
	if s, l := median(target.TableSet), median(target.TableLookup); s < 20*set || l < 20*lookup || lookup < 1000 {
		t.Errorf("set %d then %d clicks, look-up %d then %d", set, s, lookup, l)
	}
}
