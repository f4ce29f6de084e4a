package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tbl/target"
	"tbl/target/httpserve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting is a dataplane of two cores that writes rate times a second, nine
// in ten of them locally, and counts how often it is looked at.
type counting struct {
	start time.Time
	rate  float64
	looks atomic.Int64
}

func (c *counting) stats(dst []target.CoreStats) []target.CoreStats {
	c.looks.Add(1)
	n := c.rate * time.Since(c.start).Seconds()
	for i := range 2 {
		dst = append(dst, target.CoreStats{Core: i, WritesLocal: int64(n * 0.9), WritesRemote: int64(n * 0.1), Entries: int64(n), Bytes: int64(40 * n), Connections: int64(i)})
	}
	return dst
}

func newCounting(rate float64) *counting { return &counting{start: time.Now(), rate: rate} }

// stream is a client of the events: what it was sent, and whether it reads.
type stream struct {
	header http.Header

	mu     sync.Mutex
	status int
	buf    bytes.Buffer

	stuck    chan struct{} // non-nil: the client doesn't read
	deadline time.Time
}

func newStream() *stream { return &stream{header: http.Header{}} }

func (s *stream) Header() http.Header { return s.header }
func (s *stream) WriteHeader(n int)   { s.status = n }
func (s *stream) Flush()              {}

func (s *stream) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

// Write blocks until the deadline when the client doesn't read, as a full
// socket does.
func (s *stream) Write(b []byte) (int, error) {
	if s.stuck != nil && bytes.HasPrefix(b, []byte("data:")) {
		select {
		case <-s.stuck:
		case <-time.After(time.Until(s.deadline)):
			return 0, errors.New("i/o timeout")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

// states are the states that were sent.
func (s *stream) states(t *testing.T) []State {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []State
	for line := range strings.SplitSeq(s.buf.String(), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var st State
			if err := json.Unmarshal([]byte(data), &st); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			out = append(out, st)
		}
	}
	return out
}

// open starts a stream; done is closed when its handler has returned.
func open(ctx context.Context, p *Page, s *stream) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		p.ServeHTTP(s, httptest.NewRequestWithContext(ctx, http.MethodGet, PathEvents, nil))
	}()
	return done
}

func TestNothingIsReadWhileNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(100)
		p := New(t.Context(), Config{Stats: c.stats})
		time.Sleep(time.Hour)
		if n := c.looks.Load(); n != 0 {
			t.Errorf("%d readings before the first look", n)
		}
		ctx, leave := context.WithCancel(t.Context())
		one, two := newStream(), newStream()
		first, second := open(ctx, p, one), open(ctx, p, two)
		time.Sleep(10*time.Second + time.Millisecond)
		leave()
		<-first
		<-second
		// One for each who comes, then one a second for all.
		if n := c.looks.Load(); n != 12 {
			t.Errorf("%d readings in ten seconds with two watchers, want 12", n)
		}
		if a, b := len(one.states(t)), len(two.states(t)); a != 11 || b != 11 {
			t.Errorf("%d and %d events, want 11 each", a, b)
		}
		time.Sleep(time.Hour)
		if n := c.looks.Load(); n != 12 {
			t.Errorf("%d readings after the last one left, want 12", n)
		}
	})
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(1000)
		p := New(t.Context(), Config{Stats: c.stats, Counts: func() httpserve.Counts { return httpserve.Counts{Open: 3, Requests: 7} }})
		time.Sleep(2 * time.Hour)
		check := func(when string, window time.Duration, perSecond float64) {
			t.Helper()
			s := p.read()
			got := s.Cores[1].WritesLocalPerS + s.Cores[1].WritesRemotePerS
			if time.Duration(s.WindowNS) != window || got < perSecond*0.99 || got > perSecond*1.01 {
				t.Errorf("%s: %v writes per second over %v, want %v over %v", when, got, time.Duration(s.WindowNS), perSecond, window)
			}
		}
		check("first look: since the start", 2*time.Hour, 1000)
		c.rate = 2000 // as if it had been so from the start
		time.Sleep(5 * time.Second)
		check("five seconds later", 5*time.Second, (2000*7205.-1000*7200)/5)
		time.Sleep(50 * time.Millisecond)
		check("too early for a rate of its own", 5050*time.Millisecond, (2000*7205.05-1000*7200)/5.05)
		time.Sleep(time.Second)
		check("a second later", 1050*time.Millisecond, 2000)
		time.Sleep(2 * time.Minute)
		check("after a long time", time.Since(c.start), 2000)
		c.rate = 0 // counters that began anew
		time.Sleep(time.Second)
		check("counters that fell", time.Second, 0)
		if s := p.read(); s.Server == nil || s.Server.Open != 3 {
			t.Errorf("the server's counters are missing: %+v", s.Server)
		}
	})
}

func TestSlowWatcherHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(10)
		p := New(t.Context(), Config{Stats: c.stats, Patience: 4 * time.Second})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		slow, quick := newStream(), newStream()
		slow.stuck = make(chan struct{})
		gone, there := open(ctx, p, slow), open(ctx, p, quick)
		time.Sleep(20*time.Second + time.Millisecond)
		select {
		case <-gone:
		default:
			t.Error("who takes no event in the time given is still served")
		}
		if n := len(quick.states(t)); n != 21 {
			t.Errorf("the other one got %d events in 20 seconds, want 21", n)
		}

		// One that is late now and then misses what it was late for, and goes on.
		late := newStream()
		late.stuck = make(chan struct{})
		lateDone := open(ctx, p, late)
		for range 3 {
			time.Sleep(3500 * time.Millisecond)
			late.stuck <- struct{}{}
		}
		synctest.Wait()
		got := late.states(t)
		if len(got) != 3 {
			t.Fatalf("%d events, want 3", len(got))
		}
		if gap := time.Duration(got[2].UptimeNS - got[1].UptimeNS); gap < 3*time.Second {
			t.Errorf("events that nobody took were kept: %v between two", gap)
		}
		leave()
		close(late.stuck)
		<-there
		<-lateDone
	})
}

func TestStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		p := New(ctx, Config{Stats: newCounting(1).stats, MaxWatchers: 2})
		one, two, three := newStream(), newStream(), newStream()
		alone, leave := context.WithCancel(t.Context())
		a, b := open(alone, p, one), open(t.Context(), p, two)
		synctest.Wait()
		<-open(t.Context(), p, three)
		if three.status != http.StatusServiceUnavailable || three.header.Get("Retry-After") == "" {
			t.Errorf("one too many: status %d, %v", three.status, three.header)
		}
		leave() // the client has gone
		<-a
		p.mu.Lock()
		if len(p.watchers) != 1 || p.stop == nil {
			t.Errorf("%d watchers left, want 1 and its readings", len(p.watchers))
		}
		p.mu.Unlock()
		end()
		<-b
		p.mu.Lock()
		if len(p.watchers) != 0 || p.stop != nil {
			t.Errorf("%d watchers after the end", len(p.watchers))
		}
		p.mu.Unlock()
	})
}

// A client that vanishes without a word frees its place.
func TestVanishedClient(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	p := New(ctx, Config{Stats: newCounting(1).stats, Every: 10 * time.Millisecond})
	srv := httptest.NewServer(p)
	defer srv.Close()
	defer end()
	resp, err := http.Get(srv.URL + PathEvents)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	lines := bufio.NewScanner(resp.Body)
	for n := 0; n < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			n++
		}
	}
	resp.Body.Close() // with the stream under way: the connection goes too
	http.DefaultClient.CloseIdleConnections()
	for deadline := time.Now().Add(30 * time.Second); ; {
		p.mu.Lock()
		n := len(p.watchers)
		p.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d watchers 30 s after the client has gone", n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting(2000)
		p := New(t.Context(), Config{
			Stats: c.stats, Counts: func() httpserve.Counts { return httpserve.Counts{Open: 12345} },
			Facts:  []Fact{{"Seed", "<script>alert(1)</script>"}},
			Faults: []Fact{{"dead-core=1", "core K accepts no connection"}},
		})
		time.Sleep(10 * time.Second)
		ask := func(method, path string) *http.Response {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			return w.Result()
		}
		resp := ask(http.MethodGet, "/")
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		html := string(raw)
		for _, want := range []string{
			"<noscript>", "http-equiv=\"refresh\"", `<dd data-total="Writes per second">4,000</dd>`, `<dd data-total="Open connections">12,345</dd>`,
			"90.0 % of the writes lately were local, 10.0 % went to other cores", "dead-core=1", "&lt;script&gt;alert(1)",
			`<td data-key="writes_local">18,000</td>`, "the highest is core 0 with 2,000",
		} {
			if !strings.Contains(html, want) {
				t.Errorf("the page misses %q", want)
			}
		}
		if strings.Contains(html, "<script>alert") {
			t.Error("a fact is not escaped")
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("policy %q", csp)
		}
		for _, c := range []struct {
			method, path string
			want         int
		}{
			{"HEAD", "/", 200}, {"HEAD", "/events", 200}, {"POST", "/", 405}, {"DELETE", "/events", 405}, {"GET", "/other", 404}, {"GET", "/index.html", 404},
		} {
			if got := ask(c.method, c.path).StatusCode; got != c.want {
				t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
			}
		}
	})
}

func TestDraw(t *testing.T) {
	cores := make([]Core, 256)
	for i := range cores {
		cores[i].Core = i
		cores[i].WritesLocalPerS, cores[i].WritesRemotePerS = float64(i), float64(i)
	}
	d := draw(charts()[0], cores)
	if len(d.Bars) != 512 || len(d.Ticks) > 16 {
		t.Errorf("%d bars and %d labels for 256 cores", len(d.Bars), len(d.Ticks))
	}
	if last := d.Bars[511]; last.Y != "26" || last.Height != "71" || last.Class != "bar second" || d.Most != "510" {
		t.Errorf("the highest core's upper bar %+v, most %s", last, d.Most)
	}
	if first := d.Bars[0]; first.Height != "0" {
		t.Errorf("a core that does nothing: %+v", first)
	}
	if d := draw(charts()[1], nil); len(d.Bars) != 0 || d.Desc != "no core has any" {
		t.Errorf("no cores: %+v", d)
	}
}
