package metrics

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/timingstats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scrape is what a scrape says of us: the lines without comments whose names
// are ours, sorted as they come.
func scrape(t *testing.T, h http.Handler) []string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "tbl_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if !strings.Contains(w.Body.String(), "\ngo_goroutines ") {
		t.Error("nothing about the process")
	}
	var out []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "tbl_") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// wants fails for every line that a scrape misses.
func wants(t *testing.T, got []string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !slices.Contains(got, l) {
			t.Errorf("the scrape misses %s in\n%s", l, strings.Join(got, "\n"))
		}
	}
}

func TestDataplane(t *testing.T) {
	looks := 0
	h := Dataplane(DataplaneConfig{
		Stats: func(dst []target.CoreStats) []target.CoreStats {
			looks++
			return append(dst, target.CoreStats{Core: 0}, target.CoreStats{
				Core: 1, Subtables: 2, Entries: 3, Bytes: 120, WritesLocal: 50, WritesRemote: 7, Expired: 4, Connections: 57,
			})
		},
		Counts: func() httpserve.Counts { return httpserve.Counts{Accepted: 60, Evicted: 1, Open: 2, Requests: 61} },
		Slot:   3, Faults: []string{"stall=0:50ms:1s", "jitter=1%:400000"}, Version: "v9", Start: time.Unix(1_000_000_000, 500e6),
	})
	if looks != 0 {
		t.Errorf("read %d times before a scrape", looks)
	}
	got := scrape(t, h)
	wants(t, got,
		`tbl_core_writes_total{core="1",locality="local",slot="3"} 50`,
		`tbl_core_writes_total{core="1",locality="remote",slot="3"} 7`,
		`tbl_core_writes_total{core="0",locality="local",slot="3"} 0`,
		`tbl_core_entries{core="1",slot="3"} 3`,
		`tbl_core_storage_bytes{core="1",slot="3"} 120`,
		`tbl_core_subtables{core="1",slot="3"} 2`,
		`tbl_core_expired_entries_total{core="1",slot="3"} 4`,
		`tbl_core_connections_total{core="1",slot="3"} 57`,
		`tbl_http_requests_total 61`,
		`tbl_http_connections_accepted_total 60`,
		`tbl_http_connections_evicted_total 1`,
		`tbl_http_open_connections 2`,
		`tbl_fault_info{fault="stall=0:50ms:1s"} 1`,
		`tbl_fault_info{fault="jitter=1%:400000"} 1`,
		`tbl_start_time_seconds 1.0000000005e+09`,
	)
	if !slices.ContainsFunc(got, func(l string) bool {
		return strings.HasPrefix(l, "tbl_build_info{") && strings.Contains(l, `version="v9"`)
	}) {
		t.Error("no build info")
	}
	if looks != 1 {
		t.Errorf("read %d times for one scrape", looks)
	}
}

func TestRun(t *testing.T) {
	r := NewRun("v9", "load", "http://h")
	h := r.Handler()
	wants(t, scrape(t, h), `tbl_run_info{command="load",target="http://h"} 1`, `tbl_run_errors_total{class="timeout"} 0`, `tbl_run_request_duration_seconds_count 0`)

	load, bulk, probe := &target.Request{Op: target.OpLoad}, &target.Request{Op: target.OpBulkLoad}, &target.Request{Op: target.OpProbe}
	for range 3 {
		r.Observe(load, &target.Answer{Core: 1}, 40*time.Microsecond, nil)
	}
	r.Observe(bulk, &target.Answer{Core: 2, Slot: 1, Written: 500}, 3*time.Millisecond, nil)
	r.Observe(probe, &target.Answer{Core: 1}, 2*time.Second, nil)
	for range 2 {
		r.Observe(load, &target.Answer{Core: 1}, time.Second, &target.Error{Class: target.ClassTimeout})
	}
	r.Observe(load, &target.Answer{}, time.Minute, errors.New("some error of ours"))
	got := scrape(t, h)
	wants(t, got,
		`tbl_run_requests_total{class="ok",core="1",slot="0"} 4`,
		`tbl_run_requests_total{class="ok",core="2",slot="1"} 1`,
		`tbl_run_requests_total{class="timeout",core="",slot=""} 2`,
		`tbl_run_requests_total{class="client",core="",slot=""} 1`,
		`tbl_run_errors_total{class="timeout"} 2`,
		`tbl_run_errors_total{class="client"} 1`,
		`tbl_run_errors_total{class="reset"} 0`,
		`tbl_run_writes_total{core="1",slot="0"} 3`,
		`tbl_run_writes_total{core="2",slot="1"} 500`,
		`tbl_run_request_duration_seconds_bucket{le="5e-05"} 3`,
		`tbl_run_request_duration_seconds_bucket{le="0.005"} 4`,
		`tbl_run_request_duration_seconds_bucket{le="1"} 6`,
		`tbl_run_request_duration_seconds_bucket{le="10"} 7`,
		`tbl_run_request_duration_seconds_count 8`,
	)
	for _, l := range got {
		if strings.HasPrefix(l, "tbl_run_completed") || strings.HasPrefix(l, "tbl_log_") {
			t.Errorf("told without being known: %s", l)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Observe(load, &target.Answer{Core: 1}, time.Millisecond, nil) }); n > 0 {
		t.Errorf("%v allocations for a request", n)
	}
}

func TestWatch(t *testing.T) {
	r := NewRun("v9", "load", "x")
	r.Watch(func() Progress { return Progress{Completed: 1} })
	got := scrape(t, r.Handler())
	wants(t, got, `tbl_run_completed 1`)
	for _, l := range got {
		for _, name := range []string{"tbl_run_planned", "tbl_run_cores", "tbl_run_scheduled", "tbl_run_offered"} {
			if strings.HasPrefix(l, name) {
				t.Errorf("told without being known: %s", l)
			}
		}
	}
	r.Watch(func() Progress { return Progress{Completed: 40, Planned: 100, Known: 4, Heard: 3, Scheduled: 55} })
	got = scrape(t, r.Handler())
	wants(t, got, `tbl_run_completed 40`, `tbl_run_planned 100`, `tbl_run_cores_known 4`, `tbl_run_cores_heard 3`, `tbl_run_scheduled_requests_total 55`)
	for _, name := range []string{"tbl_run_achieved_per_second ", "tbl_run_offered_requests_per_second "} {
		if !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, name) && !strings.HasSuffix(l, " 0") }) {
			t.Errorf("no %s", name)
		}
	}
}

func TestLog(t *testing.T) {
	r := NewRun("v9", "stats", "ltm.log")
	r.Log([]LogCore{
		{"bigip1", timingstats.CoreSummary{Core: timingstats.CoreID{Core: 2}, N: 10, AtThreshold: 3, AvgClicks: 5.5, P50Clicks: 4, P95Clicks: 9, P99Clicks: 11, Disagreements: 1}},
		{"bigip2", timingstats.CoreSummary{Core: timingstats.CoreID{Slot: 1, Core: 2}, OutOfRange: 6}},
	})
	wants(t, scrape(t, r.Handler()),
		`tbl_log_samples_total{core="2",device="bigip1",slot="0",speed="fast"} 7`,
		`tbl_log_samples_total{core="2",device="bigip1",slot="0",speed="slow"} 3`,
		`tbl_log_write_clicks{core="2",device="bigip1",slot="0",quantile="0.99"} 11`,
		`tbl_log_write_clicks_sum{core="2",device="bigip1",slot="0"} 55`,
		`tbl_log_write_clicks_count{core="2",device="bigip1",slot="0"} 10`,
		`tbl_log_tag_disagreements_total{core="2",device="bigip1",slot="0"} 1`,
		`tbl_log_out_of_range_total{core="2",device="bigip2",slot="1"} 6`,
	)
}

// Scrapes and requests meet.
func TestRunConcurrently(t *testing.T) {
	r := NewRun("v9", "load", "x")
	h := r.Handler()
	const workers, each = 8, 500
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			req := &target.Request{Op: target.OpLoad}
			for n := range each {
				var err error
				if n%10 == 0 {
					err = &target.Error{Class: target.ClassReset}
				}
				r.Observe(req, &target.Answer{Core: (i + n) % 5}, time.Microsecond, err)
			}
		})
	}
	wg.Go(func() {
		r.Watch(func() Progress { return Progress{Completed: 5} })
		for range 5 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
			if w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		}
	})
	wg.Wait()
	wants(t, scrape(t, h), `tbl_run_request_duration_seconds_count 4000`, `tbl_run_errors_total{class="reset"} 400`, `tbl_run_requests_total{class="reset",core="",slot=""} 400`)
}

func TestServe(t *testing.T) {
	s, err := Serve(t.Context(), "127.0.0.1:0", NewRun("v9", "load", "x").Handler())
	if err != nil {
		t.Fatal(err)
	}
	addr := s.Addr().String()
	if _, err := Serve(t.Context(), addr, nil); err == nil {
		t.Error("two servers on one address")
	}
	client := &http.Client{Transport: &http.Transport{}}
	for path, want := range map[string]int{Path: 200, "/": 200, "/other": 404} {
		resp, err := client.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", path, resp.StatusCode, want, body)
		}
	}
	client.CloseIdleConnections()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

func BenchmarkObserve(b *testing.B) {
	r := NewRun("v9", "load", "x")
	req, ans := &target.Request{Op: target.OpLoad}, &target.Answer{Core: 1}
	b.ReportAllocs()
	for b.Loop() {
		r.Observe(req, ans, 40*time.Microsecond, nil)
	}
}
