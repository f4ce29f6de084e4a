package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tbl/cmd/tbl/internal/app"
)

func TestMain(m *testing.M) {
	if raceEnabled {
		// Ten times as slow, and timings are what is judged: a longer click keeps
		// own writes far below the threshold, a delay others' far above.
		os.Setenv("TBL_CLICK", "200ns")
		os.Setenv("TBL_HANDOFF_DELAY", "1ms")
	}
	testscript.Main(m, map[string]func(){"tbl": main})
}

// TestScripts runs the commands as a user would, and looks at both streams
// and the exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			logs, err := filepath.Abs("../../testdata/logs")
			e.Setenv("LOGS", logs)
			e.Setenv("BIN", filepath.SplitList(e.Getenv("PATH"))[0]) // where tbl is
			e.Setenv("RUNS", filepath.Join(filepath.Dir(logs), "runs"))
			for _, v := range []string{"TBL_CLICK", "TBL_HANDOFF_DELAY"} {
				e.Setenv(v, os.Getenv(v))
			}
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"serve":     serve,
			"webserver": webserver,
			"oneline":   oneLine,
		},
	})
}

// exits CODE PROGRAM ARG… runs a program and wants that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exited %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// oneline STREAM wants exactly one line in the last command's stdout or stderr.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oneline stdout|stderr")
	}
	if s := ts.ReadFile(args[0]); strings.Count(s, "\n") != 1 || !strings.HasSuffix(s, "\n") {
		ts.Fatalf("%s is not one line: %q", args[0], s)
	}
}

// serve [FLAG…] starts `tbl serve` until the script ends and puts its address
// into $ADDR, $HOST and $PORT.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan int, 1)
	for i, a := range args {
		if args[i] = a; i > 0 && args[i-1] == "--log" {
			args[i] = ts.MkAbs(a)
		}
	}
	go func() {
		env := app.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: w, Getenv: func(string) string { return "" }}
		done <- app.Run(ctx, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
		w.Close()
	}()
	ts.Defer(func() {
		cancel()
		if code := <-done; code != 0 {
			ts.Logf("serve exited %d", code)
		}
	})
	var said []string
	for s := bufio.NewScanner(r); s.Scan(); {
		said = append(said, s.Text())
		if _, rest, ok := strings.Cut(s.Text(), " on http://"); ok {
			addr, _, _ := strings.Cut(rest, ",")
			host, port, err := net.SplitHostPort(addr)
			ts.Check(err)
			ts.Setenv("ADDR", addr)
			ts.Setenv("HOST", host)
			ts.Setenv("PORT", port)
			go io.Copy(io.Discard, r)
			return
		}
	}
	ts.Fatalf("serve did not start: %s", strings.Join(said, "; "))
}

// webserver KIND starts a server that is no dataplane: "ok" answers 200 to
// everything, "short" ends its answers early, "failing" says how many cores it
// has and nothing else, "refused" is a port where nobody listens. Its address
// goes into $ADDR.
func webserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || !slices.Contains([]string{"ok", "short", "failing", "refused"}, args[0]) {
		ts.Fatalf("usage: webserver ok|short|failing|refused")
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if args[0] == "short" {
			w.Header().Set("Content-Length", "100")
		}
		if args[0] == "failing" {
			if r.URL.Path == "/info" {
				fmt.Fprintln(w, "tmm=0 total_tmms=2")
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, "welcome")
	}))
	ts.Setenv("ADDR", srv.Listener.Addr().String())
	if args[0] == "refused" {
		srv.Close()
		return
	}
	ts.Defer(srv.Close)
}
