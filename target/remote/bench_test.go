package remote_test

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"tbl/target"
	"tbl/target/remote"
)

// benchURL is where the benchmarks send to: TBL_BENCH_URL, or a server in
// this process that answers everything alike (and then takes its share of the
// time and of the allocations).
func benchURL(b *testing.B) string {
	if url := os.Getenv("TBL_BENCH_URL"); url != "" {
		return url
	}
	s := newScript(b, func(c *net.TCPConn) {
		c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 23\r\nConnection: close\r\n\r\n" + good))
	})
	return s.url()
}

func benchmarkFresh(b *testing.B, cfg remote.Config) {
	cfg.URL = benchURL(b)
	workers := 64
	if w, err := strconv.Atoi(os.Getenv("TBL_BENCH_WORKERS")); err == nil {
		workers = w
	}
	r := connect(b, cfg)
	var left atomic.Int64
	left.Store(int64(b.N))
	var failed atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	r.Clock().Run(workers, func(int) {
		var ans target.Answer
		req := load()
		for left.Add(-1) >= 0 {
			if err := r.Do(b.Context(), req, &ans); err != nil && failed.Add(1) == 1 {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func BenchmarkFreshConnection(b *testing.B)         { benchmarkFresh(b, remote.Config{}) }
func BenchmarkFreshConnectionReset(b *testing.B)    { benchmarkFresh(b, remote.Config{LingerReset: true}) }
func BenchmarkFreshConnectionPortable(b *testing.B) { benchmarkFresh(b, remote.Config{Portable: true}) }
