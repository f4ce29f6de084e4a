package cluster

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"tbl/target"
)

// silent is a target that answers everything with nothing.
type silent struct{ target.Target }

func (silent) Do(context.Context, *target.Request, *target.Answer) error { return nil }
func (silent) Clock() target.Clock                                       { return target.Wall{} }
func (silent) Name() string                                              { return "silent" }
func (silent) Close() error                                              { return nil }

func silentProxy(t testing.TB, nodes int, cfg Config) *Proxy {
	t.Helper()
	list := make([]Node, nodes)
	for i := range list {
		list[i] = NodeOf(fmt.Sprintf("node-%d", i), &silent{})
	}
	f, err := NewFamily(FamilyConfig{Name: "svc"}, list...)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Family = f
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkChoose(b *testing.B) {
	for policy := range NumPolicies {
		for _, nodes := range []int{3, 100} {
			b.Run(fmt.Sprintf("%v/nodes=%d", policy, nodes), func(b *testing.B) {
				p := silentProxy(b, nodes, Config{Policy: policy})
				b.ReportAllocs()
				for b.Loop() {
					m, h, _ := p.choose(nil, 0)
					p.settle(m, nil, h, outcomeOK)
				}
			})
		}
	}
}

// BenchmarkChoosePinned is a choice in a pinned transaction with what it
// takes to find the transaction and to give the claim back.
func BenchmarkChoosePinned(b *testing.B) {
	for _, live := range []int{1, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			p, txs := pinned(b, live)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				tx := FromContext(txs[i])
				m, h, _ := p.choose(tx, 0)
				p.settle(m, tx, h, outcomeOK)
				if i++; i == len(txs) {
					i = 0
				}
			}
		})
	}
}

func pinned(b testing.TB, live int) (*Proxy, []context.Context) {
	p := silentProxy(b, 3, Config{Sticky: true})
	txs := make([]context.Context, live)
	for i := range txs {
		ctx, tx := Begin(context.Background())
		txs[i] = ctx
		m, h, err := p.choose(tx, 0)
		if err != nil {
			b.Fatal(err)
		}
		p.settle(m, tx, h, outcomeOK)
	}
	return p, txs
}

// BenchmarkChooseParallel is to be run with -cpu 1,2: the time per choice
// must fall, but for round-robin and least-loaded, which share a counter.
func BenchmarkChooseParallel(b *testing.B) {
	for policy := range NumPolicies {
		b.Run(policy.String(), func(b *testing.B) {
			p := silentProxy(b, 3, Config{Policy: policy})
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m, h, _ := p.choose(nil, 0)
					p.settle(m, nil, h, outcomeOK)
				}
			})
		})
	}
	b.Run("pinned", func(b *testing.B) {
		p, txs := pinned(b, 10_000)
		b.RunParallel(func(pb *testing.PB) {
			own := make([]context.Context, 64)
			for i := range own {
				own[i] = txs[int(p.rng.next()%uint64(len(txs)))]
			}
			for i := 0; pb.Next(); i++ {
				tx := FromContext(own[i%64])
				m, h, _ := p.choose(tx, 0)
				p.settle(m, tx, h, outcomeOK)
			}
		})
	})
}

// BenchmarkDo is a whole invocation of a target that does nothing.
func BenchmarkDo(b *testing.B) {
	for _, sticky := range []bool{false, true} {
		b.Run(fmt.Sprintf("pinned=%v", sticky), func(b *testing.B) {
			p := silentProxy(b, 3, Config{Sticky: sticky})
			ctx, tx := Begin(context.Background())
			defer tx.End()
			var req target.Request
			var ans target.Answer
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Do(ctx, &req, &ans); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransaction is a transaction from beginning to end with one call.
func BenchmarkTransaction(b *testing.B) {
	p := silentProxy(b, 3, Config{Sticky: true})
	var req target.Request
	var ans target.Answer
	b.ReportAllocs()
	for b.Loop() {
		ctx, tx := Begin(context.Background())
		if err := p.Do(ctx, &req, &ans); err != nil {
			b.Fatal(err)
		}
		tx.End()
	}
}

// BenchmarkPins reports the memory of live pins, contexts not counted.
func BenchmarkPins(b *testing.B) {
	for range b.N {
		txs := make([]*Tx, 1_000_000)
		for i := range txs {
			_, txs[i] = Begin(context.Background())
		}
		before := heap()
		p := silentProxy(b, 3, Config{Sticky: true})
		for _, tx := range txs {
			m, h, err := p.choose(tx, 0)
			if err != nil {
				b.Fatal(err)
			}
			p.settle(m, tx, h, outcomeOK)
		}
		b.ReportMetric(float64(heap()-before)/1e6, "MB")
		b.ReportMetric(float64(p.pins.Len()), "pins")
		runtime.KeepAlive(txs)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
