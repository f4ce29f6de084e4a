package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tbl/prober/stickiness"
	"tbl/target/cluster"
)

// TestStickyReference holds the policies and failures that USAGE.md lists
// against the tables that the program works from. UPDATE=1 writes them anew.
func TestStickyReference(t *testing.T) {
	var policies, failures strings.Builder
	policies.WriteString("| `--policy` | picks |\n|:---|:---|\n")
	for p := range cluster.NumPolicies {
		fmt.Fprintf(&policies, "| `%s` | %s |\n", p, p.Help())
	}
	failures.WriteString("| `--fail KIND@NODE[:P]` | the request |\n|:---|:---|\n")
	for k := range cluster.NumFaults {
		fmt.Fprintf(&failures, "| `%s` | %s |\n", k, k.Help())
	}
	raw, err := os.ReadFile(usageFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, want := range map[string]string{"policies": policies.String(), "failures": failures.String()} {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		before, rest, ok1 := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("USAGE.md has no place for the %s", name)
		}
		text = before + begin + want + end + after
	}
	if text == string(raw) {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatal("the lists in USAGE.md are not those of the program: UPDATE=1 go test ./cmd/tbl/... writes them anew")
	}
	if err := os.WriteFile(usageFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStickyEmbedded: 10,000 transactions of 5 invocations over three nodes.
func TestStickyEmbedded(t *testing.T) {
	base := []string{"--nodes", "3", "--policy", "round-robin", "--transactions", "10000", "--invocations", "5"}
	t.Run("sticky", func(t *testing.T) {
		code, r, line := stickyJSON(t, append(base, "--sticky")...)
		if code != 0 || line != "OK: 10,000 transactions, each served by one node; 3 nodes seen" {
			t.Errorf("exit %d, %s", code, line)
		}
		for _, n := range r.Nodes {
			if math.Abs(n.Share-1.0/3) > 0.03/3 {
				t.Errorf("node %s served %.4f of all", n.Name, n.Share)
			}
		}
	})
	t.Run("not sticky", func(t *testing.T) {
		code, r, line := stickyJSON(t, base...)
		if code != 1 || !strings.HasPrefix(line, "STICKINESS ISSUE:") || r.Split < 9800 {
			t.Errorf("exit %d, %d split, %s", code, r.Split, line)
		}
	})
	t.Run("not sticky, one worker", func(t *testing.T) {
		code, r, line := stickyJSON(t, append(base, "--workers", "1")...)
		if code != 1 || r.Split != 10000 {
			t.Errorf("exit %d, %d split, %s", code, r.Split, line)
		}
	})
	t.Run("one node", func(t *testing.T) {
		code, _, line := stickyJSON(t, "--nodes", "1", "--transactions", "100", "--sticky")
		if code != 0 || !strings.Contains(line, "one node proves nothing") {
			t.Errorf("exit %d, %s", code, line)
		}
	})
}

// TestStickyKill: with one worker, the node that serves the transaction in
// which it falls is known by the rotation; with many, some are in flight.
func TestStickyKill(t *testing.T) {
	for _, workers := range []string{"1", "64"} {
		// Every node in turn: whichever has the transaction half way through.
		var refused, moved int64
		for node := range 3 {
			kill := fmt.Sprintf("%d@50%%", node+1)
			args := []string{"--sticky", "--transactions", "2000", "--workers", workers, "--kill", kill, "--seed", "5"}
			code, r, line := stickyJSON(t, args...)
			if code != 0 || r.Split != 0 || !strings.HasPrefix(line, "OK:") {
				t.Errorf("exit %d, %d split, %s", code, r.Split, line)
			}
			refused += r.Refused
			if int64(len(r.RefusedExamples)) != min(r.Refused, 10) {
				t.Errorf("%d refused, %d named", r.Refused, len(r.RefusedExamples))
			}
			for _, e := range r.RefusedExamples {
				for _, n := range e.Nodes {
					if n != fmt.Sprint(node+1) {
						t.Errorf("refused, though on node %s: %v", n, e)
					}
				}
			}
			for _, n := range r.Nodes {
				if dead := n.Name == fmt.Sprint(node+1); dead != (n.Share < 0.25) {
					t.Errorf("node %d killed half way: node %s served %.3f", node+1, n.Name, n.Share)
				}
			}
			code, r, line = stickyJSON(t, append(args, "--repin")...)
			moved += r.Split
			if r.Split > 0 && (code != 1 || !strings.Contains(line, "STICKINESS ISSUE")) || r.Split == 0 && code != 0 {
				t.Errorf("--repin: exit %d, %d split, %s", code, r.Split, line)
			}
			for _, e := range r.SplitExamples {
				if e.Nodes[0] != fmt.Sprint(node+1) {
					t.Errorf("--repin: %v split, but its node lives", e)
				}
			}
		}
		if refused == 0 {
			t.Errorf("%s workers: nothing was refused", workers)
		}
		if moved == 0 {
			t.Errorf("%s workers: nothing moved with --repin", workers)
		}
	}
}

// TestStickyJoin: a node that joins later serves new transactions only, and
// one that is killed and joins again does too.
func TestStickyJoin(t *testing.T) {
	_, r, line := stickyJSON(t, "--sticky", "--transactions", "3000", "--workers", "1", "--join", "3@50%")
	if !strings.HasPrefix(line, "OK:") || len(r.Nodes) != 3 || math.Abs(r.Nodes[2].Share-1.0/6) > 0.01 {
		t.Errorf("%s; nodes %+v", line, r.Nodes)
	}
	_, r, line = stickyJSON(t, "--sticky", "--transactions", "3000", "--workers", "1", "--kill", "3@25%", "--join", "3@75%")
	if !strings.HasPrefix(line, "OK:") || len(r.Nodes) != 3 || math.Abs(r.Nodes[2].Share-1.0/6) > 0.01 || r.Refused > 1 {
		t.Errorf("%s; %d refused, nodes %+v", line, r.Refused, r.Nodes)
	}
}

// TestStickyWhen: what is to happen at the start happens before the first
// invocation; what is due shortly before the end happens, and so does what
// follows transactions that end early; what doesn't happen is owned up to.
func TestStickyWhen(t *testing.T) {
	const late = "the run was over before node "
	for _, c := range []struct {
		args   []string
		share  float64 // of the invocations served, by node 1
		whole  int64
		warned string
	}{
		{[]string{"--nodes", "2", "--kill", "1@0%"}, 0, 300, ""},
		{[]string{"--nodes", "2", "--workers", "8", "--kill", "1@0s"}, 0, 300, ""},
		{[]string{"--nodes", "2", "--workers", "8", "--join", "1@0%"}, 0.5, 300, ""},
		{[]string{"--nodes", "2", "--kill", "1@99.99%"}, 0.5, 300, ""},
		{[]string{"--nodes", "2", "--kill", "1@50%", "--join", "1@50.1%"}, 0.5, 300, ""},
		{[]string{"--nodes", "2", "--join", "1@50%", "--kill", "1@50.1%"}, 0, 300, ""},
		{[]string{"--nodes", "1", "--kill", "1@25%", "--join", "1@75%"}, 1, 150, ""},
		{[]string{"--nodes", "2", "--kill", "1@1h"}, 0.5, 300, late + "1 is killed after 1h0m0s"},
		{[]string{"--nodes", "2", "--kill", "1@0%", "--join", "1@1h"}, 0, 300, late + "1 joins after 1h0m0s"},
	} {
		_, r, line := stickyJSON(t, append([]string{"--sticky", "--transactions", "300", "--invocations", "10", "--workers", "1", "--seed", "1", "--max-errors", "100"}, c.args...)...)
		share := 0.0
		for _, n := range r.Nodes {
			if n.Name == "1" {
				share = n.Share
			}
		}
		if math.Abs(share-c.share) > 0.02 || share != 0 && c.share == 0 || r.Whole < c.whole-2 || r.Whole > c.whole {
			t.Errorf("%v: %s: node 1 served %.3f, %d transactions whole, want %.3f, %d", c.args, line, share, r.Whole, c.share, c.whole)
		}
		if warned := strings.Join(r.Warnings, "; "); c.warned != "" && !strings.Contains(warned, c.warned) || c.warned == "" && strings.Contains(warned, late) {
			t.Errorf("%v: warnings %q, want %q", c.args, warned, c.warned)
		}
	}
}

// TestStickyFail: every kind of failure, sticky: never a split.
func TestStickyFail(t *testing.T) {
	for k := range cluster.NumFaults {
		for _, pin := range []string{"first-call", "begin"} {
			code, r, line := stickyJSON(t, "--sticky", "--pin-at", pin, "--transactions", "1000", "--workers", "4", "--max-errors", "100",
				"--fail", k.String()+"@2:0.1", "--fail", k.String()+"@3:0.02", "--seed", "7")
			if code != 0 || r.Split != 0 || !strings.HasPrefix(line, "OK:") {
				t.Errorf("%v, pinned at %s: exit %d, %s", k, pin, code, line)
			}
			if r.Refused == 0 {
				t.Errorf("%v, pinned at %s: nothing failed", k, pin)
			}
		}
	}
}

// TestStickyTargets: nodes over HTTP, on fresh and on kept connections.
func TestStickyTargets(t *testing.T) {
	a, b := servedNode(t, "A"), servedNode(t, "B")
	for _, transport := range []string{"fresh", "pooled"} {
		args := []string{"--target", "http://" + a.addr, "--target", "http://" + b.addr, "--transactions", "200", "--transport", transport}
		code, r, line := stickyJSON(t, append(args, "--sticky")...)
		if code != 0 || len(r.Nodes) != 2 || r.Nodes[0].Name != "A" {
			t.Errorf("%s: exit %d, %s, nodes %+v", transport, code, line, r.Nodes)
		}
		if code, _, line := stickyJSON(t, args...); code != 1 {
			t.Errorf("%s, not sticky: exit %d, %s", transport, code, line)
		}
		code, r, line = stickyJSON(t, append(args, "--sticky", "--kill", "2@50%", "--max-errors", "100")...)
		if code != 0 || r.Split != 0 || r.Nodes[1].Share > 0.45 {
			t.Errorf("%s, node killed: exit %d, %s, nodes %+v", transport, code, line, r.Nodes)
		}
	}
}

// TestLoadOverNodes: load and bulk-post over several targets.
func TestLoadOverNodes(t *testing.T) {
	nodes := []*lbNode{countedNode(t, "A", 0), countedNode(t, "B", 0)}
	targets := []string{"--target", "http://" + nodes[0].addr, "--target", "http://" + nodes[1].addr, "--format", "json", "--quiet"}
	for _, cmd := range [][]string{{"load", "--count", "600"}, {"bulk-post", "--num-posts", "600", "--uuids-per-post", "5"}} {
		for _, mode := range [][]string{{"--policy", "round-robin"}, {"--policy", "random", "--sticky", "--tx-size", "6"}, {"--sticky", "--transport", "pooled"}} {
			before := nodes[0].served() + nodes[1].served()
			code, stdout, stderr := run(t, "", append(append(cmd, targets...), mode...)...)
			var r struct {
				Nodes []struct {
					OK, Failed, Sent int64
					Share            float64
				}
				Cores []struct{ Core string }
			}
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || len(r.Nodes) != 2 {
				t.Fatalf("%v %v: exit %d, %v, %s%s", cmd, mode, code, err, stdout, stderr)
			}
			if got := r.Nodes[0].OK + r.Nodes[1].OK; got != nodes[0].served()+nodes[1].served()-before {
				t.Errorf("%v %v: %d told, %d counted by the nodes", cmd, mode, got, nodes[0].served()+nodes[1].served()-before)
			}
			if s := r.Nodes[0].Share; s < 0.2 || s > 0.8 {
				t.Errorf("%v %v: node 1 got %.2f", cmd, mode, s)
			}
			seen := map[string]bool{}
			for _, c := range r.Cores {
				seen[c.Core] = true
			}
			if !seen["1/0"] || !seen["2/0"] {
				t.Errorf("%v %v: cores %v, want 1/0 and 2/0", cmd, mode, r.Cores)
			}
		}
	}
}

// TestStickyUsage: wrong use, one line on stderr, nothing on stdout, exit 2.
func TestStickyUsage(t *testing.T) {
	for _, args := range [][]string{
		{"sticky", "--transactions", "0"}, {"sticky", "--invocations", "1"}, {"sticky", "--workers", "0"}, {"sticky", "--nodes", "0"},
		{"sticky", "--nodes", "65"}, {"sticky", "--examples", "-1"}, {"sticky", "--policy", "best"}, {"sticky", "stray"},
		{"sticky", "--repin"}, {"sticky", "--pin-at", "begin"}, {"sticky", "--sticky", "--pin-at", "end"}, {"sticky", "--transport", "udp"},
		{"sticky", "--fail", "no"}, {"sticky", "--fail", "no@4"}, {"sticky", "--fail", "never@1"}, {"sticky", "--fail", "no@1:2"}, {"sticky", "--fail", "no@1:0"},
		{"sticky", "--kill", "1"}, {"sticky", "--kill", "1@101%"}, {"sticky", "--kill", "1@soon"}, {"sticky", "--kill", "1@100%"},
		{"sticky", "--kill", "1@50%", "--join", "1@50%"}, {"sticky", "--kill", "1@2s", "--join", "1@2s"}, {"sticky", "--join", "1@0s", "--kill", "1@0%"},
		{"sticky", "--transactions", "10", "--kill", "1@99.5%", "--join", "1@99.9%"}, {"sticky", "--join", "9@5s"},
		{"sticky", "--via", "http://127.0.0.1:1", "--nodes", "3"}, {"sticky", "--via", "http://127.0.0.1:1", "--sticky"}, {"sticky", "--via", "lb"},
		{"sticky", "--via", "http://127.0.0.1:1", "--node-from", "query:x"}, {"sticky", "--via", "http://127.0.0.1:1", "--target", "http://127.0.0.1:1"},
		{"sticky", "--node-from", "header:X"}, {"sticky", "--path", "/"}, {"sticky", "--clock", "model"}, {"sticky", "--log", "x.log"}, {"sticky", "--log-sample", "1"}, {"sticky", "--tx-size", "5"},
		{"sticky", "--target", "http://127.0.0.1:1", "--nodes", "3"},
		{"load", "--count", "1", "--policy", "random"}, {"load", "--count", "1", "--target", "http://127.0.0.1:1", "--sticky"},
		{"load", "--count", "1", "--target", "http://127.0.0.1:1", "--target", "http://127.0.0.1:2", "--tx-size", "5"},
		{"load", "--count", "1", "--target", "http://127.0.0.1:1", "--target", "http://127.0.0.1:2", "--steer"},
		{"bulk-post", "--target", "http://127.0.0.1:1", "--target", "http://127.0.0.1:2", "--sticky", "--tx-size", "0"},
	} {
		code, stdout, stderr := run(t, "", args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "tbl: ") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// TestStickyUnreachable: nobody behind the black box is too little evidence.
func TestStickyUnreachable(t *testing.T) {
	free := listen(t, "127.0.0.1:0")
	url := "http://" + free.Addr().String()
	free.Close()
	for _, args := range [][]string{{"--via", url}, {"--target", url}} {
		code, r, line := stickyJSON(t, append(args, "--transactions", "20")...)
		if code != 3 || !strings.HasPrefix(line, "INCOMPLETE:") || r.Refused != 20 {
			t.Errorf("%v: exit %d, %s", args, code, line)
		}
	}
}

// TestStickyForms: every form shows the result; a dry run sends nothing; an
// interrupted run prints what it has.
func TestStickyForms(t *testing.T) {
	dir := t.TempDir()
	xml, md := filepath.Join(dir, "out.xml"), filepath.Join(dir, "out.md")
	code, stdout, stderr := run(t, "", "sticky", "--transactions", "50", "--export", xml, "--export", md, "--workers", "2")
	if code != 1 || !strings.Contains(stdout, "NODE   transactions   invocations") || !strings.Contains(stdout, "served_by") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	for path, want := range map[string]string{xml: `name="STICKY"`, md: "| NODE |"} {
		if raw, err := os.ReadFile(path); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %v, %s", path, err, raw)
		}
	}
	free := listen(t, "127.0.0.1:0")
	defer free.Close()
	code, stdout, _ = run(t, "", "sticky", "--dry-run", "--via", "http://"+free.Addr().String())
	if code != 0 || !strings.Contains(stdout, "nothing was sent") {
		t.Errorf("dry run: exit %d, %s", code, stdout)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs syncBuffer
	code = Run(ctx, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }},
		[]string{"sticky", "--format", "json", "--transactions", "1000000"})
	var r stickiness.Result
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || code != 130 || !r.Interrupted {
		t.Errorf("interrupted: exit %d, %v, %s%s", code, err, out.String(), errs.String())
	}
}
