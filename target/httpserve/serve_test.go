package httpserve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tbl/target"
	"tbl/target/httpserve"
	"tbl/target/targettest"
)

func serve(t *testing.T, tgt target.Target, cfg httpserve.Config) (addr string, s *httpserve.Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s = httpserve.New(tgt, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return ln.Addr().String(), s
}

// exchange sends raw bytes on a new connection and returns all that comes
// until the server closes.
func exchange(t *testing.T, addr, raw string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, raw)
	b, err := io.ReadAll(c)
	return string(b), err
}

func get(target string, headers ...string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

func TestStatuses(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{})
	post := func(target, headers, body string) string {
		return "POST " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + headers + "\r\n" + body
	}
	for _, tc := range []struct {
		name, raw string
		status    int
		has       string
	}{
		{"info", get("/info"), 200, "tmm="},
		{"whoami", get("/whoami"), 200, "tmm "},
		{"load", get("/load?key=a%20b&val=1"), 200, " key=a%20b\n"},
		{"load with a form's space", get("/load?key=a+b&val=1"), 200, " key=a%20b\n"},
		{"load without a key", get("/load?val=1"), 400, "key"},
		{"load with an empty key", get("/load?key=&val=1"), 400, "key"},
		{"load with a broken escape", get("/load?key=%4&val=1"), 400, "escape"},
		{"bulk load", post("/bulk_load", "Content-Length: 6\r\n", "a\r\n\nb\n"), 200, " written=2 "},
		{"bulk load by GET", get("/bulk_load"), 405, "POST"},
		{"bulk load without a length", post("/bulk_load", "", ""), 411, "length"},
		{"bulk load of nothing", post("/bulk_load", "Content-Length: 0\r\n", ""), 411, "length"},
		{"bulk load in chunks", post("/bulk_load", "Transfer-Encoding: chunked\r\n", "2\r\na\n\r\n0\r\n\r\n"), 411, "length"},
		{"bulk load over the limit", post("/bulk_load", "Content-Length: 16777217\r\n", ""), 413, "16777216"},
		{"load by POST", post("/load?key=a", "Content-Length: 0\r\n", ""), 405, "GET"},
		{"load by HEAD", "HEAD /load?key=a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 405, ""},
		{"dump", get("/dump"), 200, " keys="},
		{"probe", get("/probe"), 200, " subtable=uuid_01 clicks="},
		{"probe by name", get("/probe?name=a%20b"), 200, " subtable=a%20b clicks="},
		{"reset", get("/reset"), 200, " deleted="},
		{"reset by name", get("/reset?name=uuid_01"), 200, " deleted="},
		{"reset by an empty name", get("/reset?name="), 400, "name"},
		{"table", get("/table?op=set&subtable=s&key=k&value=v"), 200, " result=v\n"},
		{"table without a command", get("/table?subtable=s&key=k"), 400, "op"},
		{"table, not a number", get("/table?op=incr&subtable=s&key=k&value=1"), 400, "number"},
		{"meta", get("/meta?subtable=s&key=k"), 200, " timeout=180 "},
		{"meta of nothing", get("/meta?subtable=s&key=none"), 200, " missing\n"},
		{"names", get("/names"), 200, " names="},
		{"stats", get("/stats"), 200, `"cores":[`},
		{"reload", post("/reload", "Content-Length: 0\r\n", ""), 200, " reloaded\n"},
		{"reload by GET", get("/reload"), 405, "POST"},
		{"the root", get("/"), 404, ""},
		{"a trailing slash", get("/info/"), 404, ""},
		{"anything else", get("/admin"), 404, ""},
		{"a broken request line", "NONSENSE\r\n\r\n", 400, ""},
		{"two lengths", post("/bulk_load", "Content-Length: 2\r\nContent-Length: 3\r\n", "a\n"), 400, ""},
		{"HTTP/1.0", "GET /info HTTP/1.0\r\n\r\n", 200, "tmm="},
		{"too large a header", get("/info", "X: "+strings.Repeat("x", 128<<10)), 431, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := exchange(t, addr, tc.raw) // a refused body may end in a reset, after the answer
			var status int
			if _, err := fmt.Sscanf(got, "HTTP/1.1 %d", &status); err != nil {
				if _, err := fmt.Sscanf(got, "HTTP/1.0 %d", &status); err != nil {
					t.Fatalf("no status in %q", got)
				}
			}
			if status != tc.status || !strings.Contains(got, tc.has) {
				t.Errorf("got %q, want status %d with %q", got, tc.status, tc.has)
			}
		})
	}
}

func TestToken(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{Token: "s3cret"})
	for _, tc := range []struct {
		target, header string
		status         int
	}{
		{"/info", "", 200},
		{"/whoami", "", 200},
		{"/stats", "", 200},
		{"/load?key=a", "", 401},
		{"/dump", "", 401},
		{"/probe", "", 401},
		{"/reset", "", 401},
		{"/reset?name=x", "", 401},
		{"/table?op=lookup&subtable=s&key=k", "", 401},
		{"/meta?subtable=s&key=k", "", 401},
		{"/names", "", 401},
		{"/load", "", 401}, // before anything is said about the request
		{"/load?key=a", "Authorization: Bearer wrong", 401},
		{"/load?key=a", "Authorization: Bearer s3cretx", 401},
		{"/load?key=a", "Authorization: s3cret", 401},
		{"/load?key=a", "Authorization: Bearer s3cret", 200},
		{"/names", "Authorization: Bearer s3cret", 200},
	} {
		raw := get(tc.target)
		if tc.header != "" {
			raw = get(tc.target, tc.header)
		}
		got, err := exchange(t, addr, raw)
		if err != nil || !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d", tc.status)) {
			t.Errorf("%s with %q: %v %q, want %d", tc.target, tc.header, err, got, tc.status)
		}
	}
	got, _ := exchange(t, addr, "POST /bulk_load HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 401") {
		t.Errorf("bulk load without a token, body not sent: %q", got)
	}
}

func TestAllow(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if got, _ := exchange(t, addr, get("/info")); !strings.HasPrefix(got, "HTTP/1.1 403") {
		t.Errorf("from outside: %q", got)
	}
	addr, _ = serve(t, targettest.NewSimple(2), httpserve.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.0/8")},
	})
	if got, _ := exchange(t, addr, get("/info")); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("from inside: %q", got)
	}
}

func TestNodeAndExtra(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{
		Node: "n1", NodeCookie: "route", NodeInBody: true,
		Extra: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "extra "+r.URL.Path) }),
	})
	got, _ := exchange(t, addr, get("/load?key=k"))
	for _, want := range []string{"X-Tbl-Node: n1\r\n", "Set-Cookie: route=n1; Path=/\r\n", " key=k node=n1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if got, _ = exchange(t, addr, get("/status")); !strings.HasSuffix(got, "extra /status") {
		t.Errorf("extra page: %q", got)
	}
}

// A kept connection serves many requests, all on the core of its 4-tuple.
func TestKeepAlive(t *testing.T) {
	addr, s := serve(t, targettest.NewSimple(16), httpserve.Config{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	br := bufio.NewReader(c)
	first := ""
	for i := range 20 {
		io.WriteString(c, "GET /info HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if i == 0 {
			first = string(b)
		}
		if string(b) != first || resp.ContentLength != int64(len(b)) {
			t.Fatalf("answer %d: %q, the first was %q", i, b, first)
		}
	}
	if n := s.Counts(); n.Accepted != 1 || n.Requests != 20 {
		t.Errorf("%+v, want 1 connection and 20 requests", n)
	}
}

// failing makes every request fail with err.
func failing(err error) *targettest.Simple {
	p := targettest.NewSimple(2)
	p.Fail = func(*target.Request) error { return err }
	return p
}

func TestFailuresAreActedOut(t *testing.T) {
	for _, tc := range []struct {
		err   error
		reset bool
		has   string
	}{
		{&target.Error{Class: target.ClassReset}, true, ""},
		{&target.Error{Class: target.ClassRefused}, true, ""},
		{&target.Error{Class: target.ClassTruncated}, false, "Content-Length: 64\r\nConnection: close\r\n\r\ntmm="},
		{&target.Error{Class: target.ClassMalformed}, false, "200 OK"},
		{&target.Error{Class: target.ClassHTTP5xx, Status: 503}, false, "503 "},
		{&target.Error{Class: target.ClassHTTP5xx}, false, "500 "},
		{&target.Error{Class: target.ClassHTTP4xx, Status: 404}, false, "404 "},
		{&target.Error{Class: target.ClassHTTP4xx}, false, "400 "},
		{&target.Error{Class: target.ClassClosed}, false, "503 "},
		{fmt.Errorf("wrapped: %w", &target.Error{Class: target.ClassHTTP5xx, Status: 507}), false, "507 "},
		{errors.New("plain\nerror"), false, "plain error"},
	} {
		addr, _ := serve(t, failing(tc.err), httpserve.Config{})
		got, err := exchange(t, addr, get("/info"))
		if tc.reset != errors.Is(err, syscall.ECONNRESET) || !strings.Contains(got, tc.has) {
			t.Errorf("%v: %q, %v", tc.err, got, err)
		}
	}
}

// Clients that say nothing, or half of something, hold up nobody: they are
// the first to go when there are too many.
func TestSlowClientsGiveWay(t *testing.T) {
	const limit = 8
	addr, s := serve(t, targettest.NewSimple(2), httpserve.Config{MaxConns: limit})
	var slow []net.Conn
	for i := range 3 * limit {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch i % 3 {
		case 1:
			io.WriteString(c, "GET /inf")
		case 2:
			io.WriteString(c, "POST /bulk_load HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nab")
		}
		slow = append(slow, c)
	}
	for range 20 {
		got, err := exchange(t, addr, get("/info"))
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Fatalf("beside slow clients: %v %q", err, got)
		}
	}
	n := s.Counts()
	if n.Open > limit || n.Evicted < int64(len(slow)-limit) {
		t.Errorf("%+v with a limit of %d", n, limit)
	}
}

func TestSlowHeaderTimesOut(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{HeaderTimeout: 50 * time.Millisecond, BodyTimeout: 50 * time.Millisecond})
	if got, err := exchange(t, addr, "GET /info HTTP/1.1\r\nHost:"); err != nil || strings.Contains(got, " 200 ") {
		t.Errorf("half a header: %q, %v", got, err)
	}
	got, _ := exchange(t, addr, "POST /bulk_load HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nab")
	if !strings.HasPrefix(got, "HTTP/1.1 408") {
		t.Errorf("half a body: %q", got)
	}
}

func TestTooManyBodies(t *testing.T) {
	addr, _ := serve(t, targettest.NewSimple(2), httpserve.Config{MaxInFlight: 1000})
	body := strings.Repeat("k\n", 1000)
	got, _ := exchange(t, addr, fmt.Sprintf("POST /bulk_load HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	if !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("over the bound: %q", got)
	}
	got, _ = exchange(t, addr, "POST /bulk_load HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nk\n")
	if !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("after it: %q", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The end of the context ends Serve, whatever clients are doing.
func TestServeEnds(t *testing.T) {
	release := make(chan struct{})
	tgt := targettest.NewSimple(2)
	entered := make(chan struct{}, 1)
	tgt.Fail = func(*target.Request) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- httpserve.New(tgt, httpserve.Config{}).Serve(ctx, ln) }()
	silent, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answered := make(chan string, 1)
	go func() {
		got, _ := exchange(t, ln.Addr().String(), get("/info"))
		answered <- got
	}()
	<-entered
	cancel()
	close(release)
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if got := <-answered; !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("the request under way got %q", got)
	}
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// A listener that fails is an error, not an end.
func TestServeFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := httpserve.New(targettest.NewSimple(1), httpserve.Config{}).Serve(t.Context(), ln); err == nil {
		t.Error("no error from a closed listener")
	}
}
