package remote_test

import (
	"bytes"
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

// benchmarkBulk sends bodies of 15,625 keys, 16 at a time.
func benchmarkBulk(b *testing.B, cfg remote.Config) {
	cfg.URL = benchURL(b)
	r := connect(b, cfg)
	body := bytes.Repeat([]byte("01234567-89ab-cdef-0123-456789abcdef\n"), 15625)
	var left, failed atomic.Int64
	left.Store(int64(b.N))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	b.ResetTimer()
	r.Clock().Run(16, func(int) {
		var ans target.Answer
		req := &target.Request{Op: target.OpBulkLoad, Body: body}
		for left.Add(-1) >= 0 {
			// The server of this process answers no bulk load; its bytes count.
			if err := r.Do(b.Context(), req, &ans); err != nil && target.ClassOf(err) != target.ClassMalformed && failed.Add(1) == 1 {
				b.Error(err)
			}
		}
	})
}

func BenchmarkBulkFresh(b *testing.B)     { benchmarkBulk(b, remote.Config{}) }
func BenchmarkBulkKeepAlive(b *testing.B) { benchmarkBulk(b, remote.Config{KeepAlive: true}) }
