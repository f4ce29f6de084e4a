package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tbl/prober/stickiness"
	"tbl/target"
	"tbl/target/cluster"
	"tbl/target/httpserve"
	"tbl/target/refplane"
)

// lbNode is a node behind somebody else's balancer, with its own count of
// what it served.
type lbNode struct {
	name   string
	addr   string
	served func() int64
	stop   func() // ends it; its listener is closed when it returns
}

// countedNode runs a reference dataplane behind a listener. It stops by
// itself right after it has served killAfter requests; 0: never.
func countedNode(t *testing.T, name string, killAfter int64) *lbNode {
	t.Helper()
	// A long click: no write is slow, however busy the machine.
	plane, err := refplane.New(refplane.Config{Cores: 1, Seed: 1, Click: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(context.Background())
	named := &countdown{Named: cluster.NewNamed(name, plane), fire: cancel}
	named.left.Store(killAfter)
	done := make(chan error, 1)
	go func() { done <- httpserve.New(named, httpserve.Config{Node: name}).Serve(ctx, ln) }()
	n := &lbNode{name: name, addr: ln.Addr().String(), served: named.Served}
	n.stop = func() {
		cancel()
		if err, ok := <-done; ok {
			close(done)
			if err != nil {
				t.Errorf("node %s: %v", name, err)
			}
			plane.Close()
		}
	}
	t.Cleanup(n.stop)
	return n
}

// countdown calls fire with the request that makes left 0.
type countdown struct {
	*cluster.Named
	left atomic.Int64
	fire func()
}

func (c *countdown) Do(ctx context.Context, req *target.Request, ans *target.Answer) error {
	err := c.Named.Do(ctx, req, ans)
	if c.left.Add(-1) == 0 {
		c.fire()
	}
	return err
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// servedNode runs `tbl serve --node`.
func servedNode(t *testing.T, name string) *lbNode {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stderr := &syncBuffer{}
	done := make(chan int, 1)
	go func() {
		env := Env{Stdin: strings.NewReader(""), Stdout: stderr, Stderr: stderr, Getenv: func(string) string { return "" }}
		done <- Run(ctx, env, []string{"serve", "--listen", "127.0.0.1:0", "--cores", "1", "--node", name, "--node-cookie", "NODE", "--node-in-body"})
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("serve --node %s: exit %d: %s", name, code, stderr)
		}
	})
	re := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)
	var addr string
	eventually(t, "serve names its address", func() bool {
		if m := re.FindStringSubmatch(stderr.String()); m != nil {
			addr = m[1]
		}
		return addr != ""
	})
	return &lbNode{name: name, addr: addr}
}

// eventually polls a condition that a real process or socket brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("in 20 s: no %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// balancer starts HAProxy or nginx with a configuration of testdata/balancers
// in front of the nodes, and returns its URL.
func balancer(t *testing.T, config string, nodes ...*lbNode) string {
	t.Helper()
	program := "nginx"
	if strings.HasPrefix(config, "haproxy") {
		program = "haproxy"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		path = filepath.Join("/usr/sbin", program)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	raw, err := os.ReadFile(filepath.Join("../../../../testdata/balancers", config))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// A port that was free a moment ago can be taken by the time it is used.
	for range 5 {
		free := listen(t, "127.0.0.1:0")
		addr := free.Addr().String()
		free.Close()
		text := strings.Replace(string(raw), "127.0.0.1:8080", addr, 1)
		for i := range 3 {
			old := fmt.Sprintf("127.0.0.1:%d", 8081+i)
			if !strings.Contains(text, old) {
				t.Fatalf("%s does not name %s", config, old)
			}
			if i < len(nodes) {
				text = strings.Replace(text, old, nodes[i].addr, 1)
			} else {
				text = dropLine(text, old)
			}
		}
		file := filepath.Join(dir, config)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "-db", "-f", file)
		if program == "nginx" {
			cmd = exec.Command(path, "-p", dir, "-e", "stderr", "-c", file)
		}
		var out syncBuffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		up, gone := false, false
		eventually(t, program+" on its port", func() bool {
			select {
			case <-ended:
				gone = true
			default:
				if c, err := net.Dial("tcp", addr); err == nil {
					c.Close()
					up = true
				}
			}
			return up || gone
		})
		if gone {
			t.Logf("%s ended: %s", program, out.String())
			continue
		}
		t.Cleanup(func() {
			cmd.Process.Signal(os.Interrupt)
			<-ended
			if t.Failed() {
				t.Logf("%s: %s", program, out.String())
			}
		})
		return "http://" + addr
	}
	t.Fatalf("%s did not start", program)
	return ""
}

func dropLine(text, with string) string {
	var keep []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, with) {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}

// stickyJSON runs `tbl sticky` and returns its exit code, its result and the
// line of the STICKY verdict.
func stickyJSON(t *testing.T, args ...string) (int, *stickiness.Result, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := Env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }}
	code := Run(context.Background(), env, append([]string{"sticky", "--format", "json", "--quiet"}, args...))
	var r stickiness.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("exit %d, stdout %q, stderr %q: %v", code, stdout.String(), stderr.String(), err)
	}
	for _, v := range r.Verdicts {
		if v.Name == "STICKY" {
			if r.Whole+r.Split+r.Refused+r.Cut != r.Transactions {
				t.Errorf("%d transactions: %d whole, %d split, %d refused, %d cut", r.Transactions, r.Whole, r.Split, r.Refused, r.Cut)
			}
			return code, &r, v.Line
		}
	}
	t.Fatalf("no STICKY verdict in %s", stdout.String())
	return 0, nil, ""
}

// agree holds the answers' word against the nodes' own counts. Answers that
// got lost make a node's own count higher: none was lost when nothing failed.
func agree(t *testing.T, r *stickiness.Result, nodes []*lbNode, lost bool) {
	t.Helper()
	told := map[string]int64{}
	for _, n := range r.Nodes {
		told[n.Name] = n.Invocations
	}
	for _, n := range nodes {
		own := n.served()
		if own != told[n.name] && !(lost && own > told[n.name]) {
			t.Errorf("node %s: answers tell of %d invocations, its own count is %d", n.name, told[n.name], own)
		}
	}
}

// TestBalancers runs real balancers in front of three nodes.
func TestBalancers(t *testing.T) {
	for _, c := range []struct {
		config string
		args   []string
		code   int
		line   string // start of the STICKY line
		nodes  int    // that serve something
	}{
		{"haproxy-plain.cfg", nil, 1, "STICKINESS ISSUE:", 3},
		{"haproxy-cookie.cfg", nil, 0, "OK:", 3},
		{"haproxy-stick-table.cfg", nil, 0, "OK:", 3},
		{"haproxy-source.cfg", nil, 0, "OK:", 1},
		{"haproxy-source.cfg", binds(40), 0, "OK:", 3},
		{"nginx-plain.conf", nil, 1, "STICKINESS ISSUE:", 3},
		{"nginx-ip-hash.conf", nil, 0, "OK:", 1},
		{"nginx-ip-hash.conf", binds(40), 0, "OK:", 3},
		{"nginx-hash-cookie.conf", nil, 0, "OK:", 3},
		{"nginx-hash-cookie-naive.conf", nil, 1, "STICKINESS ISSUE:", 3},
	} {
		t.Run(fmt.Sprintf("%s/%d addresses", c.config, max(1, len(c.args)/2)), func(t *testing.T) {
			nodes := []*lbNode{countedNode(t, "A", 0), countedNode(t, "B", 0), countedNode(t, "C", 0)}
			url := balancer(t, c.config, nodes...)
			code, r, line := stickyJSON(t, append([]string{"--via", url, "--transactions", "120", "--workers", "8"}, c.args...)...)
			if code != c.code || !strings.HasPrefix(line, c.line) || len(r.Nodes) != c.nodes {
				t.Errorf("exit %d, %d nodes, %s; want %d, %d, %s", code, len(r.Nodes), line, c.code, c.nodes, c.line)
			}
			if one := strings.Contains(line, "proves nothing"); one != (c.nodes == 1) {
				t.Errorf("%d nodes: %s", c.nodes, line)
			}
			if r.Served != 600 || r.Unnamed != 0 {
				t.Errorf("%d served, %d without a name, errors %v", r.Served, r.Unnamed, r.Errors)
			}
			agree(t, r, nodes, false)
		})
	}
}

// binds are source addresses that differ also in their first three numbers,
// which is all that nginx's ip_hash looks at.
func binds(n int) []string {
	var args []string
	for i := range n {
		args = append(args, "--bind", fmt.Sprintf("127.0.%d.1", i+1))
	}
	return args
}

// TestBalancerOneNode: a balancer with one node behind it.
func TestBalancerOneNode(t *testing.T) {
	for _, config := range []string{"haproxy-plain.cfg", "nginx-plain.conf"} {
		t.Run(config, func(t *testing.T) {
			node := countedNode(t, "A", 0)
			code, r, line := stickyJSON(t, "--via", balancer(t, config, node), "--transactions", "30")
			if code != 0 || !strings.HasPrefix(line, "OK:") || !strings.Contains(line, "one node proves nothing") {
				t.Errorf("exit %d, %s", code, line)
			}
			agree(t, r, []*lbNode{node}, false)
		})
	}
}

// TestBalancerKilledNode kills a node in mid-run. What the balancer makes of
// its transactions, refusals or splits, is told and agrees with the nodes.
func TestBalancerKilledNode(t *testing.T) {
	for _, config := range []string{"haproxy-stick-table.cfg", "haproxy-cookie.cfg", "nginx-hash-cookie.conf"} {
		t.Run(config, func(t *testing.T) {
			nodes := []*lbNode{countedNode(t, "A", 100), countedNode(t, "B", 0), countedNode(t, "C", 0)}
			url := balancer(t, config, nodes...)
			code, r, line := stickyJSON(t, "--via", url, "--transactions", "400", "--workers", "16", "--max-errors", "100")
			if r.Split+r.Refused == 0 {
				t.Fatalf("the node's transactions were neither refused nor split: %s", line)
			}
			want := 0
			if r.Split > 0 {
				want = 1
			}
			if code != want {
				t.Errorf("exit %d with %d split and %d refused: %s", code, r.Split, r.Refused, line)
			}
			for _, e := range r.SplitExamples {
				if e.Nodes[0] != "A" {
					t.Errorf("%v split, but began on a live node", e)
				}
			}
			agree(t, r, nodes, true)
			t.Logf("%d split, %d refused; %s", r.Split, r.Refused, line)
		})
	}
}

// TestBalancerNodeFrom: `tbl serve --node` names itself in a header, in a
// cookie and in the body.
func TestBalancerNodeFrom(t *testing.T) {
	nodes := []*lbNode{servedNode(t, "A"), servedNode(t, "B"), servedNode(t, "C")}
	url := balancer(t, "haproxy-cookie.cfg", nodes...)
	for _, from := range []string{"header:X-Tbl-Node", "cookie:NODE", `body:node=(\S+)`} {
		code, r, line := stickyJSON(t, "--via", url, "--transactions", "30", "--node-from", from)
		if code != 0 || len(r.Nodes) != 3 || r.Nodes[0].Name != "A" {
			t.Errorf("%s: exit %d, nodes %v, %s", from, code, r.Nodes, line)
		}
	}
	code, r, line := stickyJSON(t, "--via", url, "--transactions", "30", "--node-from", "header:X-Served-By")
	if code != 3 || r.Unnamed != 150 || !strings.HasPrefix(line, "INCOMPLETE:") {
		t.Errorf("no such header: exit %d, %s", code, line)
	}
}

// syncBuffer is a buffer that several goroutines may use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
