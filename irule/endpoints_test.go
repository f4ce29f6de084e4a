package irule_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tbl/irule"
	"tbl/target"
	"tbl/target/remote"
)

// ask sends a request as written and returns the status and the first line.
func ask(t testing.TB, addr, request string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.80q: %v", request, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%.80q: %v", request, err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(body), "\n")
}

func TestErrorStatuses(t *testing.T) {
	b := start(t, 2, 11, irule.Options{BodyTimeoutMS: 300})
	for _, tc := range []struct {
		name, request string
		status        int
	}{
		{"unknown path", "GET /nothing HTTP/1.1\r\n\r\n", 404},
		{"root", "GET / HTTP/1.1\r\n\r\n", 404},
		{"stats", "GET /stats HTTP/1.1\r\n\r\n", 404},
		{"reload", "POST /reload HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404},
		{"no key", "GET /load HTTP/1.1\r\n\r\n", 400},
		{"empty key", "GET /load?key=&val=v HTTP/1.1\r\n\r\n", 400},
		{"other key", "GET /load?mykey=k HTTP/1.1\r\n\r\n", 400},
		{"bad escape", "GET /load?key=%zz HTTP/1.1\r\n\r\n", 400},
		{"escape cut", "GET /load?key=a%4 HTTP/1.1\r\n\r\n", 400},
		{"load by POST", "POST /load?key=k HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405},
		{"bulk by GET", "GET /bulk_load HTTP/1.1\r\n\r\n", 405},
		{"no length", "POST /bulk_load HTTP/1.1\r\n\r\n", 411},
		{"zero length", "POST /bulk_load HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 411},
		{"zeros", "POST /bulk_load HTTP/1.1\r\nContent-Length: 000\r\n\r\n", 411},
		{"no number", "POST /bulk_load HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 411},
		{"chunked", "POST /bulk_load HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 411},
		{"too large", "POST /bulk_load HTTP/1.1\r\nContent-Length: 16777217\r\n\r\n", 413},
		{"huge", "POST /bulk_load HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413},
		{"slow body", "POST /bulk_load HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc", 408},
		{"octal length", "POST /bulk_load HTTP/1.1\r\nContent-Length: 010\r\n\r\n123456789\n", 200},
		{"expect", "POST /bulk_load HTTP/1.1\r\nExpect: other\r\nContent-Length: 2\r\n\r\na\n", 200},
		{"blank lines only", "POST /bulk_load HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\r\n\n", 200},
		{"http/1.0", "GET /info HTTP/1.0\r\n\r\n", 200},
		{"table without op", "GET /table?subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"unknown op", "GET /table?op=drop&subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"op in brackets", "GET /table?op=%5Breject%5D&subtable=s&key=k HTTP/1.1\r\n\r\n", 400},
		{"no subtable", "GET /table?op=set&key=k HTTP/1.1\r\n\r\n", 400},
		{"no table key", "GET /table?op=set&subtable=s HTTP/1.1\r\n\r\n", 400},
		{"unknown flag", "GET /table?op=set&subtable=s&key=k&flags=touch HTTP/1.1\r\n\r\n", 400},
		{"all on keys", "GET /table?op=keys&subtable=s&flags=all HTTP/1.1\r\n\r\n", 400},
		{"bad timer", "GET /table?op=set&subtable=s&key=k&timeout=-1 HTTP/1.1\r\n\r\n", 400},
		{"word timer", "GET /table?op=set&subtable=s&key=k&lifetime=forever HTTP/1.1\r\n\r\n", 400},
		{"long timer", "GET /table?op=set&subtable=s&key=k&timeout=99999999999 HTTP/1.1\r\n\r\n", 400},
		{"incr by a word", "GET /table?op=incr&subtable=s&key=n&value=x HTTP/1.1\r\n\r\n", 400},
		{"flags with commas encoded", "GET /table?op=set&subtable=s&key=k&value=v&flags=notouch%2Cexcl HTTP/1.1\r\n\r\n", 200},
		{"meta without key", "GET /meta?subtable=s HTTP/1.1\r\n\r\n", 400},
		{"reset of an empty name", "GET /reset?name= HTTP/1.1\r\n\r\n", 400},
	} {
		if status, line := ask(t, b.Addr(), tc.request); status != tc.status {
			t.Errorf("%s: status %d %q, want %d", tc.name, status, line, tc.status)
		}
	}
	if status, line := ask(t, b.Addr(), "GET /load?key=a+b%2B&key=second HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " key=a%20b+") {
		t.Errorf("a plus sign: %d %q", status, line)
	}
	for timer, want := range map[string]string{"0090": "90", "indef": "indefinite", "0": "180"} {
		if status, line := ask(t, b.Addr(), "GET /table?op=set&subtable=timed&key="+timer+"&value=v&timeout="+timer+" HTTP/1.1\r\n\r\n"); status != 200 {
			t.Errorf("timeout %s: %d %q", timer, status, line)
		}
		for _, set := range []string{"", "&timeout=0"} {
			if status, line := ask(t, b.Addr(), "GET /table?op=timeout&subtable=timed&key="+timer+set+" HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " result="+want) {
				t.Errorf("timeout %s, read with %q: %d %q", timer, set, status, line)
			}
		}
	}
	if status, line := ask(t, b.Addr(), "GET /load?key=%2541 HTTP/1.1\r\n\r\n"); status != 200 || !strings.HasSuffix(line, " key=%2541") {
		t.Errorf("decoded twice: %d %q", status, line)
	}
	if status, line := ask(t, b.Addr(), "POST /bulk_load HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\r\n\n"); status != 200 || !strings.HasSuffix(line, " written=0 elapsed_clicks=0 clicks_per_write=0") {
		t.Errorf("blank lines: %d %q", status, line)
	}
}

// A body of exactly the limit is taken, one byte more is not, and the sender
// hears so.
func TestBodyLimit(t *testing.T) {
	b := start(t, 2, 12, irule.Options{MaxBody: 1 << 20})
	for extra, want := range []int{200, 413} {
		body := strings.Repeat(strings.Repeat("k", 1023)+"\n", 1024) + strings.Repeat("x", extra)
		resp, err := http.Post(b.URL()+"/bulk_load", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatalf("%d bytes: %v", len(body), err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: status %d, want %d", len(body), resp.StatusCode, want)
		}
	}
}

func TestAuthorization(t *testing.T) {
	guarded := []string{"/load?key=k", "/dump", "/probe", "/reset", "/reset?name=s", "/table?op=keys&subtable=s", "/meta?subtable=s&key=k", "/names"}
	open := []string{"/info", "/whoami"}
	for _, tc := range []struct {
		name   string
		o      irule.Options
		header string
		want   int
	}{
		{"default: loopback is private", irule.Options{}, "", 200},
		{"foreign addresses only", irule.Options{Allow: prefixes("192.0.2.0/24", "2001:db8::/32")}, "", 403},
		{"everybody", irule.Options{Allow: prefixes("::/0", "0.0.0.0/0")}, "", 200},
		{"no secret given", irule.Options{Secret: "s3cret"}, "", 401},
		{"wrong secret", irule.Options{Secret: "s3cret"}, "Authorization: Bearer s3cre\r\n", 401},
		{"other scheme", irule.Options{Secret: "s3cret"}, "Authorization: Basic s3cret\r\n", 401},
		{"secret", irule.Options{Secret: "s3cret"}, "Authorization: Bearer s3cret\r\n", 200},
		{"secret from a foreign address", irule.Options{Secret: "s3cret", Allow: prefixes("192.0.2.0/24")}, "Authorization: Bearer s3cret\r\n", 403},
		{"secret from an allowed address", irule.Options{Secret: "s3cret", Allow: prefixes("127.0.0.1/32")}, "Authorization: Bearer s3cret\r\n", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := start(t, 2, 13, tc.o)
			for _, path := range guarded {
				if status, line := ask(t, b.Addr(), "GET "+path+" HTTP/1.1\r\n"+tc.header+"\r\n"); status != tc.want {
					t.Errorf("%s: %d %q, want %d", path, status, line, tc.want)
				}
			}
			if status, line := ask(t, b.Addr(), "POST /bulk_load HTTP/1.1\r\n"+tc.header+"Content-Length: 2\r\n\r\na\n"); status != tc.want {
				t.Errorf("/bulk_load: %d %q, want %d", status, line, tc.want)
			}
			for _, path := range open {
				if status, line := ask(t, b.Addr(), "GET "+path+" HTTP/1.1\r\n\r\n"); status != 200 {
					t.Errorf("%s: %d %q", path, status, line)
				}
			}
			if tc.want != 200 {
				s, err := b.State()
				if err != nil || !strings.Contains(s, " entries=") {
					t.Fatalf("state %q: %v", s, err)
				}
			}
		})
	}
}

func prefixes(s ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(s))
	for i, p := range s {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// The client's token is the rule's secret.
func TestTokenIsTheSecret(t *testing.T) {
	b := start(t, 2, 14, irule.Options{Secret: "a-secret"})
	c := &client{t: t, tgt: connect(t, b, remote.Config{Token: "a-secret"})}
	c.do(target.Request{Op: target.OpLoad, Key: []byte("k")})
	var ans target.Answer
	err := connect(t, b, remote.Config{}).Do(context.Background(), &target.Request{Op: target.OpLoad, Key: []byte("k")}, &ans)
	if target.ClassOf(err) != target.ClassHTTP4xx {
		t.Errorf("without it: %v", err)
	}
}
