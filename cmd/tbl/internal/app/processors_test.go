package app

import (
	"runtime"
	"testing"

	"tbl/target/remote"
)

func TestProcessorsAreSharedWithAServerHere(t *testing.T) {
	for target, want := range map[string]bool{
		"http://127.0.0.1:8080":   true,
		"http://127.3.2.1":        true,
		"http://[::1]:443/prefix": true,
		"https://127.0.0.1":       false,
		"http://localhost:80":     true,
		"http://192.0.2.7:80":     false, // TEST-NET-1, RFC 5737
		"http://example.org":      false,
		"://":                     false,
	} {
		var set []int
		a := &app{env: Env{Processors: func(n int) { set = append(set, n) }}}
		a.shareProcessors(&remote.Config{URL: target})
		if got := len(set) == 1; got != want {
			t.Errorf("%s: processors set %v, want a change: %v", target, set, want)
		}
		if len(set) == 1 && (set[0] < 1 || set[0] > max(1, runtime.NumCPU()/2)) {
			t.Errorf("%s: %d of %d processors", target, set[0], runtime.NumCPU())
		}
		set = nil
		if a.shareProcessors(&remote.Config{URL: target, Portable: true}); set != nil {
			t.Errorf("%s: the portable path was given fewer processors", target)
		}
	}
}

func TestProcessorsAreTheUsersToSay(t *testing.T) {
	was := runtime.GOMAXPROCS(0)
	setProcessors(func(string) string { return "3" })(was + 1)
	if now := runtime.GOMAXPROCS(0); now != was {
		runtime.GOMAXPROCS(was)
		t.Errorf("GOMAXPROCS was set from %d to %d against the user's word", was, now)
	}
}
