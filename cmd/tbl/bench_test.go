package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tools is a directory that stands for PATH: all that PATH holds, with some
// commands replaced by shell scripts, or hidden where the script is empty.
func tools(t *testing.T, instead map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range instead {
		if script != "" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		list, _ := os.ReadDir(from) // PATH may name what isn't there
		for _, e := range list {
			if _, ok := instead[e.Name()]; !ok {
				os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())) // the first one counts
			}
		}
	}
	return dir
}

// TestBenchScripts: a benchmark script holds nothing to be fast that fails,
// counts wrong or loses requests, says what it left out, and judges what it
// prints. The commands that it measures are scripts here, so that nothing
// depends on how fast they are or on what is installed.
func TestBenchScripts(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("shell scripts for Linux, which run no code of ours")
	}
	const (
		fails   = "echo broken >&2; exit 2\n"
		nothing = ":\n"
	)
	logs := map[string]string{
		"tbl": `if [ $# = 1 ]; then n=$(grep -c sampled); else n=$(grep -c sampled "${2%.*}.log"); fi
echo "Total: $n samples across 4 TMMs   FAST_LOCAL=$n  SLOW=0"
`,
		"rg":   "exec grep \"$@\"\n",
		"pigz": "exec gzip \"$@\"\n",
		"zstd": "for f; do :; done\nexec cat \"$f\"\n",
		"time": "o=$4\nshift 4\n\"$@\"\nrc=$?\necho 1000 >\"$o\"\nexit $rc\n",
	}
	redis := map[string]string{
		"tbl": `case $1 in
serve) exec sleep 60 ;;
reset) echo 'Total entries removed (first-hit): 31,250' ;;
esac
`,
		"redis-server":    "exec sleep 60\n",
		"redis-benchmark": nothing,
		"redis-cli":       "echo 31250\n",
	}
	load := map[string]string{
		"tbl": "echo '{\"ok\": 5000}'\n",
		"wrk": "echo '1000 requests in 1.00s, 1MB read'\n",
		"id":  "echo 0\n",
		// The server counts 5,001 further connections whenever it is asked.
		"ip": `case "$1 $2 $4 $5" in
"netns exec python3 -c") n=$(cat "${0%/*}/../count" 2>/dev/null || echo 0); echo $n; echo $((n + 5001)) >"${0%/*}/../count" ;;
"netns exec bash "*) ;;
"netns exec "*) shift 3; exec "$@" ;;
esac
`,
		"nginx": "exec sleep 60\n",
	}
	const (
		benchLogs  = "bench-logs.sh -b 200000 -r 1"
		benchRedis = "bench-redis.sh -r 1 -p 2"
		benchLoad  = "bench-load.sh -n 1 -c 5000 graceful"
	)
	for name, c := range map[string]struct {
		command  string
		tools    map[string]string
		name, as string // of these tools, this one is another
		fails    bool   // the script gives up
		says     []string
	}{
		"logs":                {command: benchLogs, tools: logs, says: []string{"all: zstd -dc", "one: pigz -dc", "many.log   "}},
		"logs, broken":        {command: benchLogs, tools: logs, name: "tbl", as: fails, fails: true, says: []string{"exit 2: ", "broken"}},
		"logs, does nothing":  {command: benchLogs, tools: logs, name: "tbl", as: nothing, fails: true, says: []string{"nothing counted in place of"}},
		"logs, counts wrong":  {command: benchLogs, tools: logs, name: "tbl", as: "echo 'Total: 17 samples across 4 TMMs'\n", fails: true, says: []string{"17 counted in place of"}},
		"logs, rival broken":  {command: benchLogs, tools: logs, name: "rg", as: fails, fails: true, says: []string{"exit 2: rg -c"}},
		"logs, rival differs": {command: benchLogs, tools: logs, name: "rg", as: "echo 3\n", fails: true, says: []string{"3 counted in place of"}},
		"logs, no rg":         {command: benchLogs, tools: logs, name: "rg", says: []string{"all: rg -c                   skipped: no rg", "one: rg -c                   skipped: no rg"}},
		"logs, no zstd":       {command: benchLogs, tools: logs, name: "zstd", says: []string{"all: zstd -dc                skipped: no zstd", "one.zst: memory              skipped: no zst file"}},
		"logs, no pigz":       {command: benchLogs, tools: logs, name: "pigz", says: []string{"all: pigz -dc                skipped: no pigz", "all: zcat | grep -c "}},
		"logs, no GNU time":   {command: benchLogs, tools: logs, name: "time", says: []string{"memory                       skipped: no GNU time"}},
		"logs, 66 MiB": {command: benchLogs, tools: logs, name: "time", as: strings.Replace(logs["time"], "1000", "67584", 1),
			says: []string{"all.log                         66.0 MiB resident   <= 65  MISSED", "66.0 MiB resident   <= 128  ok"}},

		"redis":               {command: benchRedis, tools: redis, says: []string{">= 2.00  "}},
		"redis, broken":       {command: benchRedis, tools: redis, name: "tbl", as: "echo broken >&2\n[ $1 = info ]\n", fails: true, says: []string{"broken"}},
		"redis, does nothing": {command: benchRedis, tools: redis, name: "tbl", as: nothing, fails: true, says: []string{"tbl stored  of 31250 keys"}},
		"redis, rival broken": {command: benchRedis, tools: redis, name: "redis-cli", as: "echo 17\n", fails: true, says: []string{"redis stored 17 keys"}},

		"load":                {command: benchLoad, tools: load, says: []string{">= 1.05 ", "<= 0.85 ", "as many"}},
		"load, broken":        {command: benchLoad, tools: load, name: "tbl", as: fails, fails: true, says: []string{"exit 2", "broken"}},
		"load, does nothing":  {command: benchLoad, tools: load, name: "tbl", as: nothing, fails: true, says: []string{"none of 5000 requests succeeded"}},
		"load, loses one":     {command: benchLoad, tools: load, name: "tbl", as: "echo '{\"ok\": 4999}'\nexit 1\n", fails: true, says: []string{"4999 of 5000 requests succeeded"}},
		"load, rival broken":  {command: benchLoad, tools: load, name: "wrk", as: nothing, fails: true, says: []string{"wrk graceful: had errors"}},
		"load, few connected": {command: benchLoad, tools: load, name: "ip", as: strings.Replace(load["ip"], "5001", "5", 1), says: []string{"NOT AS MANY [(5000, 4)]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			instead := maps.Clone(c.tools)
			if c.name != "" {
				instead[c.name] = c.as
			}
			path := tools(t, instead)
			args := strings.Fields(c.command)
			cmd := exec.Command("bash", append([]string{filepath.Join("..", "..", "scripts", args[0])}, args[1:]...)...)
			cmd.Env = append(os.Environ(), "PATH="+path, "TBL="+filepath.Join(path, "tbl"))
			b, err := cmd.CombinedOutput()
			out, code := string(b), cmd.ProcessState.ExitCode()
			for _, s := range c.says {
				if !strings.Contains(out, s) {
					t.Errorf("%q is not said", s)
				}
			}
			want := 0
			switch {
			case c.fails:
				want = 2
			case strings.Contains(out, "MISSED"), strings.Contains(out, "NOT AS MANY"):
				want = 1
			case strings.Contains(out, "skipped:"):
				want = 3
			}
			if code != want {
				t.Errorf("exit %d, %v, want %d", code, err, want)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
