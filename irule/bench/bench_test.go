package bench_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tbl/irule/bench"
)

// script is a rule that evaluates the request's body-less query in a proc and
// answers with the result.
func run(t *testing.T, cfg bench.Config) *bench.Bench {
	t.Helper()
	b, err := bench.Start(context.Background(), cfg)
	if errors.Is(err, bench.ErrNoTclsh) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if s := b.Stderr(); s != "" {
			t.Errorf("stderr: %s", s)
		}
	})
	return b
}

// console answers /?SCRIPT with what the script returns or its error.
const console = `when HTTP_REQUEST {
    if {[catch {eval [URI::decode [HTTP::query]]} got]} {
        HTTP::respond 500 content $got "Connection" "close"
    } else {
        HTTP::respond 200 content $got "Connection" "close"
    }
}
`

func get(t *testing.T, b *bench.Bench, script string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := client.Get(b.URL() + "/?" + url.PathEscape(script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == 500 {
		return "error: " + string(body)
	}
	return string(body)
}

func TestTable(t *testing.T) {
	b := run(t, bench.Config{TMMs: 3, Rules: []bench.Rule{{Name: "R", Text: console}}})
	for _, tc := range []struct{ script, want string }{
		{"table lookup k", ""},
		{"table set k v", "v"},
		{"table lookup k", "v"},
		{"table timeout k", "180"},
		{"table lifetime k", "indefinite"},
		{"table set -excl k w", "v"},
		{"table add k w", "v"},
		{"table replace none w", ""},
		{"table replace k w", "w"},
		{"table set -mustexist none w", ""},
		{"table lookup none", ""},
		{"table set k x 60 600", "x"},
		{"table timeout k", "60"},
		{"table lifetime k", "600"},
		{"table set k y 0 0", "y"},
		{"table timeout k", "60"},
		{"table lifetime k", "600"},
		{"table timeout k 70", "70"},
		{"table timeout none", "-1"},
		{"table incr n", "1"},
		{"table incr n 5", "6"},
		{"table incr n -2", "4"},
		{"table incr -mustexist m", ""},
		{"table incr k", "error: expected integer but got \"y\""},
		{"table append k z", "yz"},
		{"table append -mustexist m z", ""},
		{"table set -subtable s a 1", "1"},
		{"table set -subtable s b 2", "2"},
		{"table keys -subtable s -count", "2"},
		{"lsort [table keys -subtable s -notouch]", "a b"},
		{"table lookup -subtable s a", "1"},
		{"table lookup a", ""},
		{"table delete -subtable s a", ""},
		{"table keys -subtable s -count", "1"},
		{"table delete -subtable s -all", ""},
		{"table keys -subtable s -count", "0"},
		{"table keys -count", "error: table keys: -subtable is needed"},
		{"table set -subtable s -foo bar", "error: table set: bad option \"-foo\""},
		{"table get k", "error: bad option \"get\": must be set, add, replace, lookup, incr, append, delete, timeout, lifetime, or keys"},
		{"table set k v -1", "error: invalid timer \"-1\": must be indefinite or a positive integer"},
	} {
		if got := get(t, b, tc.script); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.script, got, tc.want)
		}
	}
}

func TestTimers(t *testing.T) {
	b := run(t, bench.Config{TMMs: 2, Rules: []bench.Rule{{Name: "R", Text: console}}})
	get(t, b, "table set idle v 100 indefinite")
	get(t, b, "table set life v indefinite 100")
	get(t, b, "table set quiet v 100 indefinite")
	get(t, b, "table set -subtable s k v 100 indefinite")
	advance := func(s int) {
		t.Helper()
		if err := b.Advance(time.Duration(s) * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	advance(60)
	get(t, b, "table lookup idle")
	get(t, b, "table lookup life")
	get(t, b, "table lookup -notouch quiet")
	get(t, b, "table keys -subtable s -count")
	advance(60)
	for script, want := range map[string]string{
		"table lookup idle":             "v", // touched in between
		"table lookup life":             "",  // a touch restarts no lifetime
		"table lookup quiet":            "",  // -notouch doesn't touch
		"table keys -subtable s -count": "0", // neither does -count
	} {
		if got := get(t, b, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	rule := console + `
proc set {a b} { return "$a-$b" }
when RULE_INIT { set static::x 5; set static::failed [catch {table set k v} static::why] }
`
	b := run(t, bench.Config{TMMs: 2, Rules: []bench.Rule{{Name: "R", Text: rule}, {Name: "S", Text: "proc twice {x} {\n set y 2\n return [expr {$x * $y}] }\n"}}})
	for _, tc := range []struct{ script, want string }{
		{"call R::set 1 2", "1-2"},
		{"call set 1 2", "1-2"},
		{"call /Common/S::twice 21", "42"},
		{"call S::none", "error: call: no proc \"S.none\""},
		{"set static::failed", "1"},
		{"set static::why", "command is not valid in current event context (RULE_INIT)"},
		{"TMM::cmp_count", "2"},
		{"dict create a 1", "error: invalid command name \"dict\""},
		{"lassign {1 2} a b", "error: invalid command name \"lassign\""},
		{"exec ls", "error: invalid command name \"exec\""},
		{"open /etc/passwd", "error: invalid command name \"open\""},
		{"getfield a%b % 2", "b"},
		{"IP::addr 10.1.2.3 equals 10.0.0.0/8", "1"},
		{"IP::addr 11.1.2.3 equals 10.0.0.0/8", "0"},
		{"IP::addr 10.1.2.3 equals fc00::/7", "0"},
		{"IP::addr 10.1.2.3 equals 0.0.0.0/0", "1"},
		{"IP::client_addr", "127.0.0.1"},
		{"HTTP::header exists hOsT", "1"},
		{"string length [URI::decode %25%00%ff%]", "4"},
	} {
		if got := get(t, b, tc.script); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.script, got, tc.want)
		}
	}
}

func TestOperators(t *testing.T) {
	for expr, want := range map[string]string{
		`"abc" starts_with "ab"`:                         "1",
		`"abc" starts_with "b"`:                          "0",
		`"abc" starts_with ""`:                           "1",
		`"abc" ends_with "bc"`:                           "1",
		`"c" ends_with "bc"`:                             "0",
		`"abc" contains "b"`:                             "1",
		`"abc" contains "d" or "abc" equals "abc"`:       "1",
		`not ("abc" equals "abc") or 1 == 2`:             "0",
		`"abc" matches_glob "a*" and "abc" contains "c"`: "1",
		`"abc" matches_regex {^a.c$}`:                    "1",
		`[string range "abcd" 1 end] starts_with "bc"`:   "1",
		`not [string match a* b]`:                        "1",
		`1 + 1 == 2 and 3 > 2`:                           "1",
		`(1 or 0) and ("a b" contains " ")`:              "1",
		`"and or not" contains "or"`:                     "1",
		`$x starts_with "va" and ${x} ends_with "ue"`:    "1",
		`int(2.5) == 2 and [llength [list a b]] == 2`:    "1",
		`"[HTTP::path]" equals "/e"`:                     "1",
		`1 ? "a" eq "a" : 0`:                             "1",
	} {
		rule := "when HTTP_REQUEST {\n set x value\n if {" + expr + "} {\n HTTP::respond 200 content 1\n } else {\n HTTP::respond 200 content 0\n }\n}\n"
		b := run(t, bench.Config{TMMs: 1, Rules: []bench.Rule{{Name: "R", Text: rule}}})
		resp, err := http.Get(b.URL() + "/e")
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// A remote command suspends its connection and lets others run; a local one
// doesn't. Costs tell the two apart.
func TestSuspension(t *testing.T) {
	rule := `when RULE_INIT { set static::inside 0; set static::most 0 }
when HTTP_REQUEST {
    incr static::inside
    if {$static::inside > $static::most} { set static::most $static::inside }
    set start [clock clicks]
    for {set i 0} {$i < 20} {incr i} { table set -subtable [HTTP::query] k v }
    set diff [expr {[clock clicks] - $start}]
    incr static::inside -1
    HTTP::respond 200 content "$diff $static::most [TMM::cmp_unit]" "Connection" "close"
}
`
	b := run(t, bench.Config{TMMs: 2, Rules: []bench.Rule{{Name: "R", Text: rule}}})
	names := map[int]string{}
	for i := 0; len(names) < 2; i++ {
		n := fmt.Sprintf("n%d", i)
		owner, err := b.Owner(n)
		if err != nil {
			t.Fatal(err)
		}
		names[owner] = n
	}
	var local, remote, most int
	for i := 0; i < 400 && (local == 0 || remote == 0 || most < 2); i++ {
		type answer struct{ diff, most, tmm int }
		answers := make(chan answer, 8)
		for range 8 {
			go func() {
				var a answer
				if resp, err := http.Get(b.URL() + "/?" + names[0]); err == nil {
					fmt.Fscan(resp.Body, &a.diff, &a.most, &a.tmm)
					resp.Body.Close()
				}
				answers <- a
			}()
		}
		for range 8 {
			a := <-answers
			if a.tmm == 0 {
				if a.diff > 20*19+1 {
					t.Errorf("20 local writes took %d clicks", a.diff)
				}
				if a.most > 1 {
					t.Errorf("%d connections were inside a local write", a.most)
				}
				local++
			} else {
				if a.diff < 20*121 {
					t.Errorf("20 remote writes took %d clicks", a.diff)
				}
				most = max(most, a.most)
				remote++
			}
		}
	}
	if local == 0 || remote == 0 || most < 2 {
		t.Errorf("%d local, %d remote, at most %d at a time", local, remote, most)
	}
}

func raw(t *testing.T, b *bench.Bench, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(conn, request)
	got, _ := io.ReadAll(bufio.NewReader(conn))
	return string(got)
}

// Requests that no rule answers, Tcl errors and what is no HTTP end in a
// closed connection; an error is logged.
func TestConnectionsEnd(t *testing.T) {
	rule := "when HTTP_REQUEST {\n switch -exact -- [HTTP::path] {\n \"/fail\" { error \"on purpose\" }\n \"/reject\" { reject }\n \"/ok\" { HTTP::respond 200 content ok }\n }\n}\n"
	b := run(t, bench.Config{TMMs: 2, Rules: []bench.Rule{{Name: "R", Text: rule}}})
	for _, request := range []string{"GET /nothing HTTP/1.1\r\n\r\n", "GET /fail HTTP/1.1\r\n\r\n", "GET /reject HTTP/1.1\r\n\r\n", "hello\r\n\r\n", "GET /\r\n\r\n"} {
		if got := raw(t, b, request); got != "" {
			t.Errorf("%q was answered %q", request, got)
		}
	}
	// Two requests on one connection.
	if got := raw(t, b, "GET /ok HTTP/1.1\r\n\r\n"+"GET /ok HTTP/1.1\r\nConnection: close\r\n\r\n"); strings.Count(got, "HTTP/1.1 200 OK") < 1 {
		t.Errorf("answered %q", got)
	}
	logged := strings.Join(b.Log(), "\n")
	if !strings.Contains(logged, "TCL error: /Common/R <HTTP_REQUEST> - on purpose") {
		t.Errorf("logged %q", logged)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := bench.Start(context.Background(), bench.Config{Tclsh: "no-such-tclsh"}); !errors.Is(err, bench.ErrNoTclsh) {
		t.Errorf("without an interpreter: %v", err)
	}
	_, err := bench.Start(context.Background(), bench.Config{Rules: []bench.Rule{{Name: "R", Text: "when HTTP_REQUEST {"}}})
	if errors.Is(err, bench.ErrNoTclsh) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "missing close brace") {
		t.Errorf("with half a rule: %v", err)
	}
}
