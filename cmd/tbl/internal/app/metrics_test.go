package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what comes from sockets.
const patience = 60 * time.Second

// running is a command under way.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	code chan int
	says chan string // the lines of stderr; closed at the end
}

// start runs a command until stop, or its own end.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	c := &running{t: t, stop: stop, code: make(chan int, 1), says: make(chan string, 1000)}
	go func() {
		env := Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: w, Getenv: func(string) string { return "" }}
		c.code <- Run(ctx, env, args)
		w.Close()
	}()
	go func() {
		defer close(c.says)
		for s := bufio.NewScanner(r); s.Scan(); {
			select {
			case c.says <- s.Text():
			default: // nobody reads any more
			}
		}
	}()
	t.Cleanup(stop)
	return c
}

// address is that of the first URL it prints.
func (c *running) address() string {
	c.t.Helper()
	timeout := time.After(patience)
	var all []string
	for {
		select {
		case line, ok := <-c.says:
			if m := regexp.MustCompile(`http://([0-9.:]+)`).FindStringSubmatch(line); m != nil {
				return m[1]
			}
			if !ok {
				c.t.Fatalf("ended without an address: %s", strings.Join(all, "; "))
			}
			all = append(all, line)
		case <-timeout:
			c.t.Fatalf("no address in %v: %s", patience, strings.Join(all, "; "))
		}
	}
}

// get asks over a connection of its own.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// awaitLine scrapes until a line matches.
func awaitLine(t *testing.T, addr, pattern string) {
	t.Helper()
	re := regexp.MustCompile("(?m)^" + pattern + "$")
	for deadline := time.Now().Add(patience); ; {
		_, body := get(t, "http://"+addr+"/metrics")
		if re.MatchString(body) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v no line is %s:\n%s", patience, pattern, regexp.MustCompile("(?m)^(#|go_|process_).*\n").ReplaceAllString(body, ""))
		}
		time.Sleep(20 * time.Millisecond) // another goroutine's sockets: nothing to be told by
	}
}

// A run tells how far it is, and its metrics go with it.
func TestMetricsOfRuns(t *testing.T) {
	log := filepath.Join(t.TempDir(), "ltm.log")
	healthy, err := os.ReadFile("../../../../testdata/logs/healthy.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, healthy, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		lines []string
		code  int
	}{
		{[]string{"load", "--rate", "500", "--duration", "10m"}, []string{
			`tbl_run_info\{command="load",target="the embedded dataplane, 4 cores"\} 1`,
			`tbl_run_requests_total\{class="ok",core="3",slot="0"\} [1-9].*`, `tbl_run_writes_total\{core="0",slot="0"\} [1-9].*`,
			`tbl_run_errors_total\{class="timeout"\} 0`, `tbl_run_request_duration_seconds_count [1-9].*`,
			`tbl_run_scheduled_requests_total [1-9].*`, `tbl_run_offered_requests_per_second [1-9].*`, `tbl_run_achieved_per_second [1-9].*`,
			`tbl_run_cores_known 4`, `tbl_run_planned 300000`,
		}, exitInterrupted},
		{[]string{"load", "--duration", "10m", "--fault", "flap=50%", "--max-errors", "100"}, []string{
			`tbl_run_errors_total\{class="reset"\} [1-9].*`, `tbl_run_requests_total\{class="http-5xx",core="",slot=""\} [1-9].*`,
		}, exitInterrupted},
		{[]string{"bulk-post", "--num-posts", "1000000", "--uuids-per-post", "100", "--quiet"}, nil, exitInterrupted},
		{[]string{"session", "--sessions", "1000000", "--arrivals", "1000"}, []string{`tbl_run_completed [1-9].*`, `tbl_run_requests_total\{class="ok",core="0",slot="0"\} [1-9].*`}, exitInterrupted},
		{[]string{"probe", "--exhaust", "--requests", "10000000"}, []string{`tbl_run_info\{command="probe",.*`, `tbl_run_planned 1\.0000[0-9]*e\+07`, `tbl_run_requests_total\{class="ok",core="0",slot="0"\} [1-9].*`}, exitInterrupted},
		{[]string{"sticky", "--nodes", "3", "--transactions", "100000000"}, []string{`tbl_run_info\{command="sticky",target="3 embedded nodes"\} 1`, `tbl_run_planned 1e\+08`, `tbl_run_completed [1-9].*`}, exitInterrupted},
		{[]string{"stats", "--follow", log}, []string{`tbl_log_samples_total\{core="0",device="[^"]*",slot="0",speed="fast"\} 25`, `tbl_log_write_clicks\{core="0",device="[^"]*",slot="0",quantile="0.5"\} 5`}, exitOK},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			r := start(t, append(c.args, "--metrics", "127.0.0.1:0")...)
			if c.lines == nil { // told to be quiet, it doesn't say where
				r.stop()
				if code := <-r.code; code != c.code {
					t.Errorf("exit %d, want %d", code, c.code)
				}
				for line := range r.says {
					if strings.Contains(line, "/metrics") {
						t.Errorf("said %q", line)
					}
				}
				return
			}
			addr := r.address()
			for _, l := range c.lines {
				awaitLine(t, addr, l)
			}
			r.stop()
			if code := <-r.code; code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
				conn.Close()
				t.Error("the metrics outlive the run")
			}
		})
	}
}

func TestMetricsAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for addr, want := range map[string]string{
		taken.Addr().String(): "choose another address",
		"9400":                "want HOST:PORT",
		"127.0.0.1:99999":     "--metrics",
	} {
		r := start(t, "load", "--count", "1", "--metrics", addr)
		var lines []string
		for l := range r.says {
			lines = append(lines, l)
		}
		if code := <-r.code; code != exitUsage || len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("--metrics %s: exit %d, %q, want one line with %q", addr, code, lines, want)
		}
	}
}

// The pages stand beside the endpoints and change nothing about them.
func TestStatusPages(t *testing.T) {
	s := start(t, "serve", "--listen", "127.0.0.1:0", "--token", "secret", "--seed", "7", "--fault", "jitter", "--fault", "jitter=2%:500000")
	addr := s.address()
	url := "http://" + addr
	for path, want := range map[string]int{"/": 200, "/metrics": 200, "/info": 200, "/stats": 200, "/dump": 401, "/events/": 404, "/index.html": 404, "/metrics/": 404, "/info/": 404} {
		status, body := get(t, url+path)
		if status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
		if want == 404 && body != "no such endpoint\n" {
			t.Errorf("%s says %q", path, body)
		}
	}
	_, page := get(t, url+"/")
	for _, want := range []string{"<dd>7</dd>", "jitter=2%:500000", "a share P of timings is inflated"} {
		if !strings.Contains(page, want) {
			t.Errorf("the status page misses %q", want)
		}
	}
	_, metrics := get(t, url+"/metrics")
	for _, want := range []string{`tbl_fault_info{fault="jitter=2%:500000"} 1`, `tbl_core_entries{core="3",slot="0"} 0`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics miss %q:\n%s", want, metrics)
		}
	}
	// Our own; one that was just closed may still count.
	if !regexp.MustCompile(`(?m)^tbl_http_open_connections [1-9]`).MatchString(metrics) {
		t.Error("the metrics count no open connection")
	}
	// /info and /stats, one connection each, were served by cores; nothing else.
	connections := 0.
	for _, m := range regexp.MustCompile(`(?m)^tbl_core_connections_total.* ([0-9.e+]+)$`).FindAllStringSubmatch(metrics, -1) {
		var n float64
		fmt.Sscan(m[1], &n)
		connections += n
	}
	if connections != 2 {
		t.Errorf("the cores served %v connections, want 2: looking on is no request", connections)
	}
	resp, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			t.Fatalf("no event: %v", lines.Err())
		}
		if strings.HasPrefix(lines.Text(), `data: {"uptime_ns":`) {
			break
		}
	}
	// A stream that is open doesn't hold the end up.
	s.stop()
	select {
	case code := <-s.code:
		if code != exitOK {
			t.Errorf("exit %d", code)
		}
	case <-time.After(patience):
		t.Error("the server doesn't end while somebody watches")
	}
}

// What is shown of a target keeps its password.
func TestDescribeKeepsPasswords(t *testing.T) {
	o := &targetOptions{urls: []string{"http://user:secret@10.0.0.5:80", "http://10.0.0.6"}}
	if got, want := o.describe(), "http://user:xxxxx@10.0.0.5:80, http://10.0.0.6"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
