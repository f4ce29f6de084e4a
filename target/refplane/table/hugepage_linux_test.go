package table

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// hugeBytes is how much of this process's memory is in large pages.
func hugeBytes(t *testing.T) (n int64) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "AnonHugePages:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += kb << 10
		}
	}
	return n
}

// TestLargePages: a system that gives large pages to those who ask gives them
// to a large store, and none for a small one.
func TestLargePages(t *testing.T) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || !bytes.Contains(mode, []byte("[madvise]")) {
		t.Skipf("large pages are not there for the asking: %s %v", bytes.TrimSpace(mode), err)
	}
	const child = "TBL_TEST_LARGE_PAGES"
	if os.Getenv(child) == "" { // memory that was in use before keeps its pages
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := hugeBytes(t)
	small := filled(1000)
	if n := hugeBytes(t); n != before {
		t.Errorf("%d bytes of large pages for a store of 1,000", n-before)
	}
	large := filled(1_000_000)
	if n := hugeBytes(t) - before; n < 8*hugePage {
		t.Errorf("%d bytes of large pages for a store of 100 MB", n)
	}
	// Each kind of memory asks for itself.
	before = hugeBytes(t)
	var ix index
	ix.init()
	ix.room(8 * blockSegs)
	for i := range uint32(8 * blockSegs) {
		clear(ix.lines(i))
	}
	if n := hugeBytes(t) - before; n < 4*hugePage {
		t.Errorf("%d bytes of large pages for an index of 16 MiB", n)
	}
	runtime.KeepAlive(small)
	runtime.KeepAlive(large)
	runtime.KeepAlive(ix)
}
