package loader

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"tbl/loader/source"
)

// The fault proxy leaves goroutines of its own behind its stalled connections.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}

// instant is a fake whose answers take no time and no memory.
func instant() *fake { return &fake{cores: 4} }

// mallocs is how many allocations a load of n writes makes.
func mallocs(t *testing.T, n int64, cfg LoadConfig) uint64 {
	t.Helper()
	cfg.Count = n
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := instant()
	if cfg.Steer {
		f.core = byPort(4)
	}
	r, err := Load(t.Context(), f, cfg)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	checkAccount(t, r.Accounting)
	return after.Mallocs - before.Mallocs
}

// An open loop that is ahead of its schedule pauses, and a pause of the wall
// clock makes a timer: that is the only difference, and not asserted here.
func TestLoadAllocatesNothingPerRequest(t *testing.T) {
	if RaceDetector {
		t.Skip("the race detector allocates")
	}
	for _, tt := range []struct {
		name string
		cfg  LoadConfig
	}{
		{"seq", LoadConfig{}},
		{"uuid", LoadConfig{Keys: source.KeysUUID}},
		{"zipf", LoadConfig{Keys: source.KeysZipf}},
		{"progress", LoadConfig{Progress: &Progress{}}},
		{"steer", LoadConfig{Steer: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Workers = 4
			short := mallocs(t, 50_000, tt.cfg)
			long := mallocs(t, 250_000, tt.cfg)
			// The distributions' buckets still grow a little, and it is the result's
			// histograms that are written out.
			if extra := int64(long) - int64(short); extra > 10_000 {
				t.Errorf("%d allocations for 200,000 requests more", extra)
			}
		})
	}
}

// A million requests leave no more behind than ten thousand.
func TestMemoryIsFlat(t *testing.T) {
	live := func(n int64) uint64 {
		var m runtime.MemStats
		r, err := Load(t.Context(), instant(), LoadConfig{Count: n})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(r)
		return m.HeapAlloc
	}
	many := int64(1_000_000)
	if RaceDetector {
		many /= 10
	}
	small, large := live(20_000), live(many)
	if large > small+1<<20 {
		t.Errorf("%d bytes after 20,000 requests, %d after %d", small, large, many)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	if _, err := Load(b.Context(), instant(), LoadConfig{Count: int64(b.N), Workers: 2}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCollector(b *testing.B) {
	f := instant()
	c := newCollector(nil, f, 4)
	c.beginRun(time.Time{})
	w := &loadWorker{}
	b.ReportAllocs()
	o := outcome{keys: 1}
	for b.Loop() {
		o.start, o.due = o.end, o.end
		o.end += 100 * time.Microsecond
		w.ans.Core = (w.ans.Core + 1) & 3
		w.ans.Timing.Connect = 50 * time.Microsecond
		w.ans.Timing.FirstByte = 50 * time.Microsecond
		c.add(&o, &w.ans)
	}
}
