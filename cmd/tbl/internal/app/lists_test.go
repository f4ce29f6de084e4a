package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListsAreLists: no list in any command's JSON is null, whatever went wrong
// or was not there; only means of nothing are.
func TestListsAreLists(t *testing.T) {
	dir := t.TempDir()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }))
	defer busy.Close()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var lines []string
	for _, target := range []string{
		"--target http://127.0.0.1:1", "--target " + busy.URL, "--clock model --seed 1 --cores 1", "--clock model --seed 1 --cores 2 --fault dead-core=1",
		"--clock model --seed 1 --fault flap=100%", "--clock model --seed 1 --fault flap=60%",
	} {
		for _, command := range []string{
			"load --count 20", "load --count 20 --runs 2", "load --count 1 --rate 10", "bulk-post --num-posts 2 --uuids-per-post 3", "validate --count 100", "validate --count 100 --step names",
			"validate --count 100 --step owners", "probe --name a", "probe --discovered", "info", "whoami", "dump", "reset", "reset --all-names", "find-names", "find-names --cores 7",
			"meta --subtable s --key k", "session --sessions 3", "sticky --transactions 3",
		} {
			own := target
			if strings.HasPrefix(command, "sticky") {
				own = strings.Replace(own, "--clock model", "", 1)
			}
			if strings.HasPrefix(command, "find-names") {
				own = strings.Replace(own, "--cores", "--dataplane-cores", 1)
			}
			lines = append(lines, command+" "+own)
		}
	}
	probed := "May  6 16:02:11 b info tmm[1]: Rule /Common/LOCALDB <HTTP_REQUEST>: PROBE tmm=0 subtable=a clicks=5 entries=1 OWNER\n"
	for _, log := range []string{write("probed.log", probed), write("empty.log", ""), write("other.log", "hello\n"), "../../../../testdata/logs/healthy.log"} {
		for _, flags := range []string{"", " --probes", " --host nobody", " --group-by host --show-slow", " --run 7", " --run all"} {
			lines = append(lines, "stats "+log+flags)
		}
	}
	var loads []string
	for i, prefix := range []string{"a", "a", "b"} {
		path := filepath.Join(dir, fmt.Sprint(i, ".json"))
		run(t, "", "load", "--count", "200", "--clock", "model", "--seed", fmt.Sprint(i+1), "--key-prefix", prefix, "--export", path)
		loads = append(loads, path)
	}
	lines = append(lines, "compare "+loads[0]+" "+loads[1], "merge "+loads[0]+" "+loads[2])
	seen := map[string]bool{}
	var walk func(line, path string, v any)
	walk = func(line, path string, v any) {
		switch v := v.(type) {
		case nil:
			at := strings.Fields(line)[0] + path
			if !seen[at] && !strings.HasSuffix(path, ".avg_clicks") && !strings.HasSuffix(path, ".avg_ns") {
				t.Errorf("tbl %s: %s is null", line, path)
			}
			seen[at] = true
		case map[string]any:
			for k, e := range v {
				walk(line, path+"."+k, e)
			}
		case []any:
			for _, e := range v {
				walk(line, path+"[]", e)
			}
		}
	}
	saved := map[string]bool{}
	for i, line := range lines {
		path := filepath.Join(dir, fmt.Sprintf("r%d.json", i))
		if code, _, stderr := run(t, "", append(strings.Fields(line), "--export", path, "--quiet")...); code == exitUsage {
			t.Errorf("tbl %s: %s", line, stderr)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // nothing came of it
		}
		var doc any
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		saved[strings.Fields(line)[0]] = true
		walk(line, "", doc)
	}
	for _, cmd := range (&app{}).cli().Commands {
		if hasFlag(cmd, "export") && !saved[cmd.Name] {
			t.Errorf("no run of %s was looked at", cmd.Name)
		}
	}
}
