package app

import (
	"runtime"
	"runtime/debug"
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
		set := 0
		a := &app{env: Env{HalveProcessors: func() { set++ }}}
		a.shareProcessors(&remote.Config{URL: target})
		if got := set == 1; got != want {
			t.Errorf("%s: halved %d times, want it: %v", target, set, want)
		}
		set = 0
		if a.shareProcessors(&remote.Config{URL: target, Portable: true}); set != 0 {
			t.Errorf("%s: the portable path was given fewer processors", target)
		}
	}
}

func TestProcessorsAreTheUsersToSay(t *testing.T) {
	was := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(was)
	halveProcessors(func(string) string { return "3" })()
	if now := runtime.GOMAXPROCS(0); now != 4 {
		t.Errorf("GOMAXPROCS became %d against the user's word", now)
	}
	halve := halveProcessors(func(string) string { return "" })
	halve()
	halve()
	if now := runtime.GOMAXPROCS(0); now != 2 {
		t.Errorf("half of 4 processors are %d", now)
	}
}

func TestCollectionIsTheUsersToSay(t *testing.T) {
	percent, limit := debug.SetGCPercent(90), debug.SetMemoryLimit(1<<30)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	for said, want := range map[string]struct {
		percent int
		limit   int64
	}{
		"":           {400, 48 << 20},
		"GOGC":       {90, 48 << 20},
		"GOMEMLIMIT": {400, 1 << 30},
	} {
		debug.SetGCPercent(90)
		debug.SetMemoryLimit(1 << 30)
		collectLater(func(name string) string {
			if name == said {
				return "7"
			}
			return ""
		})()
		if got := debug.SetGCPercent(90); got != want.percent {
			t.Errorf("with %q said, garbage is collected at %d %%, want %d", said, got, want.percent)
		}
		if got := debug.SetMemoryLimit(-1); got != want.limit {
			t.Errorf("with %q said, the limit is %d bytes, want %d", said, got, want.limit)
		}
	}
}
