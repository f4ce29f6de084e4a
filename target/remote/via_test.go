package remote_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"tbl/target"
	"tbl/target/remote"
)

// TestParseNodeFrom checks the three sources and what is refused.
func TestParseNodeFrom(t *testing.T) {
	for _, s := range []string{"header:X-Served-By", "cookie:SRV", `body:node=(\w+)`} {
		if n, err := remote.ParseNodeFrom(s); err != nil || n.String() != s {
			t.Errorf("%s: %v, %v", s, n, err)
		}
	}
	for _, s := range []string{"", "header", "header:", "X-Tbl-Node", "body:(", "query:x"} {
		if _, err := remote.ParseNodeFrom(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	if s := (remote.NodeFrom{}).String(); s != "header:X-Tbl-Node" {
		t.Errorf("default %s", s)
	}
}

// TestVia asks a server that names itself in every way, behind a counter of
// connections and a cookie of a balancer's.
func TestVia(t *testing.T) {
	var mu sync.Mutex
	var peers, cookies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers = append(peers, r.RemoteAddr)
		c, err := r.Cookie("LB")
		if err != nil {
			http.SetCookie(w, &http.Cookie{Name: "LB", Value: r.RemoteAddr})
			cookies = append(cookies, "")
		} else {
			cookies = append(cookies, c.Value)
		}
		http.SetCookie(w, &http.Cookie{Name: "SRV", Value: "by-cookie"})
		w.Header().Set("X-Tbl-Node", "by-header")
		w.Write([]byte("tmm=2 total_tmms=4 node=by-body\n"))
	}))
	defer srv.Close()
	for from, want := range map[string]string{
		"header:x-tbl-node": "by-header", "cookie:SRV": "by-cookie", `body:node=(\S+)`: "by-body", `body:by-b\w+`: "by-body",
		"header:X-Other": "", "cookie:LB": "", "body:absent": "",
	} {
		peers, cookies = nil, nil
		nf, err := remote.ParseNodeFrom(from)
		if err != nil {
			t.Fatal(err)
		}
		v, err := remote.NewVia(remote.ViaConfig{URL: srv.URL + "/info", NodeFrom: nf})
		if err != nil {
			t.Fatal(err)
		}
		var ans target.Answer
		for range 2 { // two sessions, each with a jar of its own
			ctx := v.Session(context.Background())
			for i := range 3 {
				if err := v.Do(ctx, &target.Request{}, &ans); err != nil {
					t.Fatal(err)
				}
				// The balancer's cookie is set by the first answer only.
				if got := string(ans.Node); got != want && !(from == "cookie:LB" && i == 0) {
					t.Errorf("%s: node %q, want %q", from, got, want)
				}
				if ans.Core != 2 || ans.Cores != 4 || ans.Timing.Total <= 0 || ans.Timing.Connect <= 0 {
					t.Errorf("%s: core %d of %d, timing %+v", from, ans.Core, ans.Cores, ans.Timing)
				}
			}
		}
		want := []string{"", peers[0], peers[0], "", peers[3], peers[3]}
		if slices.Sort(peers); len(slices.Compact(peers)) != 6 {
			t.Errorf("%s: 6 requests on fewer connections", from)
		}
		if !slices.Equal(cookies, want) {
			t.Errorf("%s: cookies %q, want %q", from, cookies, want)
		}
	}
}

// TestViaErrors checks the classes.
func TestViaErrors(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("short"))
		case "/reset":
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "no", http.StatusServiceUnavailable)
		}
	}))
	gone := httptest.NewServer(nil)
	gone.Close()
	defer srv.Close()
	for url, want := range map[string]target.Class{
		srv.URL + "/":      target.ClassHTTP5xx,
		srv.URL + "/cut":   target.ClassTruncated,
		srv.URL + "/reset": target.ClassReset,
		gone.URL:           target.ClassRefused,
	} {
		v, err := remote.NewVia(remote.ViaConfig{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		var ans target.Answer
		if err := v.Do(context.Background(), &target.Request{}, &ans); target.ClassOf(err) != want {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
		v.Close()
		if err := v.Do(context.Background(), &target.Request{}, &ans); target.ClassOf(err) != target.ClassClosed {
			t.Errorf("closed: %v", err)
		}
	}
	for _, u := range []string{"", "lb", "ftp://lb", "http://"} {
		if _, err := remote.NewVia(remote.ViaConfig{URL: u}); err == nil {
			t.Errorf("URL %q was accepted", u)
		}
	}
}
