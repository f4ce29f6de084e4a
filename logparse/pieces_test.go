package logparse_test

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tbl/logparse"
	"tbl/logparse/input"
)

// rotated writes n files of a log, oldest first, of lines lines each: cores log
// in turn, with discovery and probes at the start of each process; the process
// starts anew where restart says.
func rotated(rng *rand.Rand, hosts []string, n, lines int, restart func(file, line int) bool) []string {
	at := time.Date(2026, 5, 6, 10, 0, 0, 0, time.UTC)
	pid, fresh := 100, true
	writes := map[string]int{}
	var files []string
	for f := range n {
		var b strings.Builder
		for l := range lines {
			if rng.IntN(3) == 0 {
				at = at.Add(time.Second)
			}
			if restart(f, l) {
				pid, fresh = pid+1, true
				clear(writes)
			}
			host, core := hosts[rng.IntN(len(hosts))], rng.IntN(4)
			prefix := fmt.Sprintf("%s %s info tmm%d[%d]: Rule /Common/L <A>: ", at.Format("Jan _2 15:04:05"), host, core, pid)
			switch {
			case fresh:
				fresh = false
				for _, h := range hosts {
					p := fmt.Sprintf("%s %s info tmm%d[%d]: Rule /Common/L <A>: ", at.Format("Jan _2 15:04:05"), h, core, pid)
					fmt.Fprintf(&b, "%stmm=%d subtable=s%d initialized after 3 probes (diff=11 clicks of 4 total TMMs)\n", p, core, pid)
				}
			case rng.IntN(5) == 0:
				fmt.Fprintf(&b, "%s something else\n", prefix)
			default:
				k := fmt.Sprint(host, core)
				writes[k] += 1 + rng.IntN(3)
				fmt.Fprintf(&b, "%stmm=%d subtable=s writes=%d key=k%d clicks=%d FAST_LOCAL (sampled 1/1)\n", prefix, core, writes[k], l, rng.IntN(20))
			}
		}
		files = append(files, b.String())
		at = at.Add(5 * time.Second)
	}
	return files
}

// A rotated set gives through a pipe what it gives as files, in whatever order
// a listing puts it.
func TestRotatedSetThroughPipe(t *testing.T) {
	never := func(int, int) bool { return false }
	orders := map[string]func(n int) []int{ // the files' numbers by age, 0 the newest
		"newest first": func(n int) (o []int) {
			for i := range n {
				o = append(o, i)
			}
			return o
		},
		"by name": func(n int) []int { // ltm ltm.1 ltm.10 ltm.2
			var names []string
			for i := range n {
				names = append(names, fmt.Sprint(i))
			}
			slices.Sort(names)
			var o []int
			for _, s := range names {
				var i int
				fmt.Sscan(s, &i)
				o = append(o, i)
			}
			return o
		},
		"live last": func(n int) (o []int) { // ltm.1 ltm.2 ltm
			for i := range n - 1 {
				o = append(o, i+1)
			}
			return append(o, 0)
		},
		"oldest first": func(n int) (o []int) {
			for i := range n {
				o = append(o, n-1-i)
			}
			return o
		},
	}
	for _, c := range []struct {
		name     string
		hosts    []string
		n, lines int
		restart  func(file, line int) bool
		pieces   string
	}{
		{"one run", []string{"b1"}, 3, 40, never, "3 pieces"},
		{"two devices", []string{"b1", "b2"}, 12, 60, never, "12 pieces"},
		{"restart within a file", []string{"b1"}, 4, 60, func(f, l int) bool { return f == 1 && l == 30 }, "4 pieces"},
		{"restart between files", []string{"b1"}, 4, 60, func(f, l int) bool { return f == 2 && l == 0 }, "4 pieces"},
		{"long", []string{"b1"}, 3, 20_000, func(f, l int) bool { return f == 0 && l == 30 }, "3 pieces"},
	} {
		seed := uint64(time.Now().UnixNano())
		files := rotated(rand.New(rand.NewPCG(seed, 0)), c.hosts, c.n, c.lines, c.restart)
		opt := options()
		opt.Now = time.Date(2026, 5, 20, 0, 0, 0, 0, time.UTC)
		dir := t.TempDir()
		var paths []input.Input
		for i, f := range files {
			paths = append(paths, input.File(write(t, filepath.Join(dir, fmt.Sprintf("ltm.%d", len(files)-1-i)), []byte(f))))
		}
		want := scan(t, opt, paths...)
		for name, order := range orders {
			for _, pack := range []string{"none", "all but the newest"} {
				var parts []io.Reader
				for _, age := range order(len(files)) {
					text := files[len(files)-1-age]
					if pack != "none" && age > 0 {
						text = string(compress(t, "gzip", []byte(text)))
					}
					parts = append(parts, strings.NewReader(text))
				}
				if pack != "none" && name != "newest first" && name != "by name" {
					continue // a pipe that begins compressed is compressed as a whole
				}
				got := scan(t, opt, input.Reader("-", &odd{r: io.MultiReader(parts...), sizes: rand.New(rand.NewPCG(seed, 1))}))
				at := fmt.Sprintf("seed %d: %s, %s, compressed: %s", seed, c.name, name, pack)
				if name != "oldest first" && !strings.Contains(strings.Join(got.Warnings, "\n"), c.pieces) {
					t.Errorf("%s: warnings %q", at, got.Warnings)
				}
				if got.Counts != want.Counts || len(got.Devices) != len(want.Devices) {
					t.Fatalf("%s: counted %+v, want %+v", at, got.Counts, want.Counts)
				}
				for i, d := range got.Devices {
					w := want.Devices[i]
					if !reflect.DeepEqual(samples(d), samples(w)) {
						t.Errorf("%s: %d samples, want %d", at, len(samples(d)), len(samples(w)))
					}
					if d.Runs != w.Runs || d.Restarts != w.Restarts || !reflect.DeepEqual(d.Names, w.Names) || !reflect.DeepEqual(d.LastRuns, w.LastRuns) {
						t.Errorf("%s: %d runs %+v, %d restarts, names %+v\nwant %d runs %+v, %d restarts, names %+v", at,
							d.Runs, d.LastRuns, d.Restarts, d.Names, w.Runs, w.LastRuns, w.Restarts, w.Names)
					}
				}
			}
		}
	}
}

// odd reads across the ends of files, which a pipe doesn't keep, in odd sizes.
type odd struct {
	r     io.Reader
	sizes *rand.Rand
}

func (o *odd) Read(p []byte) (int, error) {
	n, err := io.ReadFull(o.r, p[:min(len(p), 1+o.sizes.IntN(300<<10))])
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// Where times leap without being a rotated set's, lines stay as they came.
func TestLeapsThatAreNone(t *testing.T) {
	stamp := func(at time.Time, host string, core, writes int) string {
		return fmt.Sprintf("%s %s info tmm%d[7]: Rule /Common/L <A>: tmm=%d subtable=s writes=%d key=k clicks=5 FAST_LOCAL (sampled 1/1)\n", at.Format("Jan _2 15:04:05"), host, core, core, writes)
	}
	at := time.Date(2026, 10, 25, 2, 30, 0, 0, time.UTC)
	var clocks, winter, glitch, hostless strings.Builder
	for i := range 200 {
		clocks.WriteString(stamp(at.Add(time.Duration(i)*time.Second), "b1", i%4, 1+i))
		clocks.WriteString(stamp(at.Add(time.Duration(i)*time.Second-time.Hour), "b2", i%4, 1+i))
		if i < 100 {
			winter.WriteString(stamp(at.Add(time.Duration(i)*time.Second), "b1", i%4, 1+i))
		} else { // clocks are set back
			winter.WriteString(stamp(at.Add(time.Duration(i)*time.Second-time.Hour), "b1", i%4, 1+i))
		}
		back := time.Duration(0)
		if i == 1 { // a line that was long under way
			back = time.Minute
		}
		// A line without a host is the only device's; its clock is another one.
		line := stamp(at.Add(time.Duration(i)*time.Second), "b1", 1, 1+i)
		if i >= 100 {
			line = (at.Add(time.Duration(i)*time.Second - 3*time.Hour)).Format("2006-01-02T15:04:05Z") + line[strings.Index(line, " info"):]
		}
		hostless.WriteString(line)
		glitch.WriteString(stamp(at.Add(time.Duration(i)*time.Second-back), "b1", i%4, 1+i))
	}
	for name, text := range map[string]string{"two clocks": clocks.String(), "winter time": winter.String(), "a late line": glitch.String(), "lines without a host": hostless.String()} {
		opt := options()
		opt.Now = time.Date(2026, 10, 26, 0, 0, 0, 0, time.UTC)
		want := scan(t, opt, input.File(write(t, filepath.Join(t.TempDir(), "x"), []byte(text))))
		got := scan(t, opt, input.Reader("-", strings.NewReader(text)))
		for i, d := range got.Devices {
			if w := want.Devices[i]; d.Runs != 1 || !reflect.DeepEqual(byWrites(d), byWrites(w)) || !d.LastRuns[0].Last.Equal(w.LastRuns[0].Last) {
				t.Errorf("%s: device %s: %d runs %+v, %d samples, want %d, %+v", name, d.Name, d.Runs, d.LastRuns, len(samples(d)), len(samples(w)), w.LastRuns)
			}
		}
	}
}

// byWrites is a device's samples by their counters: late lines may have found
// their place.
func byWrites(d *logparse.Device) []sample {
	return slices.SortedFunc(slices.Values(samples(d)), func(a, b sample) int { return cmp.Compare(a.Writes, b.Writes) })
}

// A file of text with a compressed one in its midst is refused, not half read.
func TestFileOfTextAndGzip(t *testing.T) {
	text := strings.Repeat(line(1), 1000) + string(compress(t, "gzip", []byte(line(2))))
	path := write(t, filepath.Join(t.TempDir(), "x"), []byte(text))
	for _, size := range []int64{0, 1000} {
		opt := options()
		opt.ChunkBytes = size
		_, err := logparse.Scan(t.Context(), []input.Input{input.File(path)}, opt)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "gzip") {
			t.Errorf("chunks of %d: %v", size, err)
		}
	}
}
