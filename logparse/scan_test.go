package logparse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
)

func scan(t testing.TB, opt logparse.Options, inputs ...input.Input) *logparse.Result {
	t.Helper()
	r, err := logparse.Scan(t.Context(), inputs, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func scanText(t testing.TB, opt logparse.Options, text string) *logparse.Result {
	t.Helper()
	return scan(t, opt, input.Reader("text", strings.NewReader(text)))
}

func samples(d *logparse.Device) []sample {
	if d.Samples == nil {
		return nil
	}
	return d.Samples.(*tally).Samples
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// compress packs data; bzip2 can only be read by the standard library, so the tool packs it.
func compress(t testing.TB, format string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch format {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "xz":
		w, err = xz.NewWriter(&out)
	case "bzip2":
		cmd := exec.Command("bzip2", "-c")
		cmd.Stdin = bytes.NewReader(data)
		packed, err := cmd.Output()
		if err != nil {
			t.Skipf("bzip2: %v", err)
		}
		return packed
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var formats = []string{"gzip", "zstd", "bzip2", "xz"}

func TestCompressedByContent(t *testing.T) {
	for _, name := range caseNames(t) {
		data, err := os.ReadFile(name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range formats {
			t.Run(filepath.Base(name)+"/"+format, func(t *testing.T) {
				path := write(t, filepath.Join(t.TempDir(), "ltm.log"), compress(t, format, data))
				r := scan(t, options(), input.File(path))
				check(t, name, r)
				if got := r.Inputs[0].Compression; got != format {
					t.Errorf("compression %q", got)
				}
				f, err := os.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				check(t, name, scan(t, options(), input.Stdin(f)))
				check(t, name, scan(t, options(), input.Reader("r", f2reader{f, new(int64)})))
			})
		}
	}
}

// f2reader reads f from its start, in small pieces, and is no file.
type f2reader struct {
	f  *os.File
	at *int64
}

func (r f2reader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(p[:min(len(p), 777)], *r.at)
	*r.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func TestCutAndCorruptCompression(t *testing.T) {
	data, err := os.ReadFile("../testdata/logs/broken.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range formats {
		packed := compress(t, format, data)
		path := filepath.Join(t.TempDir(), "x")
		for _, n := range []int{6, len(packed) / 2, len(packed) - 1} {
			write(t, path, packed[:n])
			r, err := logparse.Scan(t.Context(), []input.Input{input.File(path)}, options())
			if !errors.Is(err, input.ErrTruncated) || r == nil {
				t.Errorf("%s cut at %d of %d: %v", format, n, len(packed), err)
			} else if !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %q does not name its input in one line", format, err)
			}
			// Beside another file, so that it is read ahead.
			_, err = logparse.Scan(t.Context(), []input.Input{input.File(path), input.File("../testdata/logs/healthy.log")}, options())
			if !errors.Is(err, input.ErrTruncated) {
				t.Errorf("%s cut at %d, two files: %v", format, n, err)
			}
		}
		bad := slices.Clone(packed)
		for i := len(bad) / 3; i < len(bad)/3+20; i++ {
			bad[i] ^= 0x5a
		}
		write(t, path, bad)
		if _, err := logparse.Scan(t.Context(), []input.Input{input.File(path)}, options()); !errors.Is(err, input.ErrCorrupt) && !errors.Is(err, input.ErrTruncated) {
			t.Errorf("%s damaged: %v", format, err)
		}
	}
}

func TestInputsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := logparse.Scan(t.Context(), []input.Input{input.File(dir)}, options()); !errors.Is(err, input.ErrDirectory) {
		t.Errorf("directory: %v", err)
	}
	_, err := logparse.Scan(t.Context(), []input.Input{input.File(filepath.Join(dir, "none"))}, options())
	if !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none") != 1 {
		t.Errorf("missing: %v", err)
	}
	empty := write(t, filepath.Join(dir, "empty"), nil)
	if r := scan(t, options(), input.File(empty)); r.Counts.Lines != 0 || len(r.Devices) != 0 {
		t.Errorf("empty: %+v", r)
	}
}

// cutting cuts the file when the first sample comes.
type cutting struct{ path string }

func (c cutting) Add(*logline.Line)              { os.Truncate(c.path, 1000) }
func (c cutting) Merge(logparse.SampleCollector) {}
func (c cutting) Reset()                         {}

func TestFileThatBecomesShorter(t *testing.T) {
	text := strings.Repeat(line(1), 20_000)
	for _, workers := range []int{1, 3} {
		path := write(t, filepath.Join(t.TempDir(), "ltm"), []byte(text))
		opt := options()
		opt.Workers, opt.ChunkBytes = workers, 1<<20
		opt.NewSamples = func() logparse.SampleCollector { return cutting{path} }
		if _, err := logparse.Scan(t.Context(), []input.Input{input.File(path)}, opt); !errors.Is(err, input.ErrChanged) {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}

// A file system that states no sizes: its files are not empty.
func TestFileWithoutSize(t *testing.T) {
	st, err := os.Stat("/proc/self/status")
	if err != nil || st.Size() != 0 {
		t.Skip("no such file here")
	}
	if r := scan(t, options(), input.File("/proc/self/status")); r.Counts.Lines < 10 {
		t.Errorf("%+v", r.Counts)
	}
}

// What was read when the user interrupted it is named.
func TestInterrupted(t *testing.T) {
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for range 100 {
			pw.WriteString(line(1))
		}
		cancel()
	}()
	r, err := logparse.Scan(ctx, []input.Input{input.Stdin(pr)}, options())
	if !errors.Is(err, context.Canceled) || len(r.Inputs) != 1 || r.Inputs[0].Name == "" {
		t.Errorf("%v: read %+v", err, r.Inputs)
	}
}

func TestPipe(t *testing.T) {
	for _, name := range caseNames(t) {
		data, err := os.ReadFile(name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		pr, pw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for len(data) > 0 {
				n := min(len(data), 1000)
				pw.Write(data[:n])
				data = data[n:]
			}
			pw.Close()
		}()
		check(t, name, scan(t, options(), input.Stdin(pr)))
		pr.Close()
	}
}

func TestStdinFileFromItsOffset(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "x"), []byte(line(1)+line(2)+line(3)))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(len(line(1))), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 1, 50} {
		opt := options()
		opt.ChunkBytes = size
		if r := scan(t, opt, input.Stdin(f)); r.Counts.Samples != 2 || r.Counts.Lines != 2 {
			t.Errorf("chunks of %d: %+v", size, r.Counts)
		}
	}
}

func TestRotatedSetInTimeOrder(t *testing.T) {
	dir := t.TempDir()
	old := write(t, filepath.Join(dir, "ltm.2.gz"), compress(t, "gzip", []byte(strings.ReplaceAll(line(1), "May  6", "Dec 31"))))
	mid := write(t, filepath.Join(dir, "ltm.1"), []byte(strings.ReplaceAll(line(2), "May  6", "Jan  1")))
	live := write(t, filepath.Join(dir, "ltm"), []byte(strings.ReplaceAll(line(3), "May  6", "Jan  2")))
	begun := write(t, filepath.Join(dir, "ltm.0"), nil)
	opt := options()
	opt.Now = time.Date(2027, 1, 3, 0, 0, 0, 0, time.UTC)
	for _, in := range [][]string{{live, mid, old}, {mid, live, old}, {old, mid, live}} {
		for _, p := range in {
			if err := os.Chtimes(p, opt.Now, opt.Now); err != nil {
				t.Fatal(err)
			}
		}
		// A file that was just begun has no line yet, and changes nothing.
		r := scan(t, opt, input.File(in[0]), input.File(in[1]), input.File(begun), input.File(in[2]))
		if r.Devices[0].Runs != 1 || len(samples(r.Devices[0])) != 3 {
			t.Errorf("%v: read in the order %v: %d runs", in, r.Inputs, r.Devices[0].Runs)
		}
	}
	// Without times the number in the name decides.
	bare := func(n int) []byte {
		return fmt.Appendf(nil, "tmm=1 subtable=s writes=%d key=k clicks=5 SLOW (sampled 1/100)\n", n)
	}
	a := write(t, filepath.Join(dir, "x"), bare(12))
	b := write(t, filepath.Join(dir, "x.9"), bare(3))
	c := write(t, filepath.Join(dir, "x.10"), bare(2))
	r := scan(t, options(), input.File(a), input.File(b), input.File(c))
	if r.Devices[0].Runs != 1 {
		t.Errorf("order %v", r.Inputs)
	}
}

func TestLineEndsAndNoise(t *testing.T) {
	l := strings.TrimSuffix(line(1), "\n")
	for name, text := range map[string]string{
		"no final newline": l, "CRLF": l + "\r\n", "BOM": "\ufeff" + l + "\n", "NULs before": strings.Repeat("\x00", 5000) + l + "\n",
		"NULs behind": l + "\x00\x00\n", "CR CR LF": l + "\r\r\n", "invalid UTF-8": "\xff\xfe\x80\n" + l + "\n",
		"empty lines": "\n\n\r\n" + l + "\n\n", "blank behind": l + " \n", "a long line": strings.Repeat("x", 3<<20) + "\n" + l + "\n",
	} {
		r := scanText(t, options(), text)
		if r.Counts.Samples != 1 || r.Devices[0].Name != "bigip1" || r.Counts.Lines != int64(strings.Count(text, "\n"))+b2i(!strings.HasSuffix(text, "\n")) {
			t.Errorf("%s: %+v", name, r.Counts)
		}
		if r.Counts.Bytes != int64(len(text)) {
			t.Errorf("%s: %d bytes of %d", name, r.Counts.Bytes, len(text))
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func longKey(writes, n int) string {
	return fmt.Sprintf("May  6 16:02:11 bigip1 info tmm1[16963]: tmm=1 subtable=s writes=%d key=%s clicks=5 SLOW (sampled 1/100)\n", writes, strings.Repeat("k", n))
}

func TestLinesOfMegabytes(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		b.WriteString(longKey(i+1, 1<<20))
		b.WriteString(line(100 + i)) // the same core, so a run each
	}
	b.WriteString(longKey(200, 20<<20))
	b.WriteString(line(201))
	path := write(t, filepath.Join(t.TempDir(), "long"), []byte(b.String()))
	var first *logparse.Result
	for _, size := range []int64{0, 1 << 20, 300_001, 5 << 20} {
		opt := options()
		opt.Run, opt.ChunkBytes = logparse.RunAll, size
		r := scan(t, opt, input.File(path))
		if r.Counts.Samples != 26 || r.Counts.Shortened != 1 || r.Counts.Bytes != int64(b.Len()) || r.Counts.Malformed+r.Counts.Truncated != 0 {
			t.Errorf("chunks of %d: %+v", size, r.Counts)
		}
		if first == nil {
			first = r
		} else if !same(first, r) {
			t.Errorf("chunks of %d differ", size)
		}
	}
	r := scanText(t, options(), b.String())
	if r.Counts != first.Counts {
		t.Errorf("as a stream %+v, as a file %+v", r.Counts, first.Counts)
	}
}

// history writes a random log: devices, blades, resets, restarts, lines without a host,
// lies and noise, so that chunks begin in every situation.
func history(rng *rand.Rand, lines int) string {
	var b strings.Builder
	type core struct{ host, slot, n int }
	writes := map[core]int{}
	hosts := 1 + rng.IntN(3)
	pid := []int{100, 200, 300}
	cores := 1 + rng.IntN(5)
	blades := rng.IntN(3)
	hostless := rng.IntN(4) == 0
	at := time.Date(2026, 5, 6, 16, 0, 0, 0, time.UTC)
	for range lines {
		at = at.Add(time.Duration(rng.IntN(3)) * time.Second)
		c := core{rng.IntN(hosts), 0, rng.IntN(cores)}
		host := fmt.Sprintf("bigip%d", c.host)
		if blades > 0 {
			c.slot = 1 + rng.IntN(blades)
			host = fmt.Sprintf("slot%d/%s", c.slot, host)
		}
		proc := "tmm"
		if c.n > 0 {
			proc = fmt.Sprintf("tmm%d", c.n)
		}
		prefix := fmt.Sprintf("%s %s info %s[%d]: ", at.Format(time.Stamp), host, proc, pid[c.host])
		if hostless && rng.IntN(10) == 0 {
			prefix = ""
		} else if rng.IntN(20) > 0 {
			prefix += "Rule /Common/LOCALDB <HTTP_REQUEST>: "
		}
		switch p := rng.IntN(1000); {
		case p < 10: // a reset
			for k := range writes {
				if k.host == c.host {
					delete(writes, k)
				}
			}
		case p < 15:
			pid[c.host]++
		case p < 100:
			b.WriteString(prefix + "something else; held nothing, appears so\n")
		case p < 130:
			fmt.Fprintf(&b, "%sPROBE tmm=%d subtable=uuid %d clicks=%d entries=4 NON_OWNER\n", prefix, c.n, rng.IntN(9), rng.IntN(3000))
		case p < 150:
			fmt.Fprintf(&b, "%stmm=%d subtable=localdb_tmm_%d_%d initialized after 3 probes (diff=11 clicks of 4 total TMMs)\n", prefix, c.n, c.n, rng.IntN(1e6))
		case p < 160:
			fmt.Fprintf(&b, "%stmm=%d subtable=x writes=z key=k\n", prefix, c.n)
		case p < 165:
			fmt.Fprintf(&b, "%s last message repeated %d times\n", at.Format(time.Stamp), rng.IntN(9))
		default:
			writes[c] += 10
			clicks := int64(rng.IntN(20))
			if rng.IntN(50) == 0 {
				clicks = -5
			}
			tag := []string{"FAST_LOCAL (sampled 1/10)", "SLOW (unique, sampled 1/20)"}[rng.IntN(2)]
			fmt.Fprintf(&b, "%stmm=%d subtable=s%d writes=%d key=k clicks=1 clicks=%d %s\n", prefix, c.n, c.n, writes[c], clicks, tag)
		}
	}
	return b.String()
}

func TestChunksGiveWhatOnePassGives(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	for round := range 60 {
		s := seed + uint64(round)
		rng := rand.New(rand.NewPCG(s, 1))
		text := history(rng, 50+rng.IntN(600))
		path := write(t, filepath.Join(t.TempDir(), "h"), []byte(text))
		for _, run := range []logparse.RunSelect{logparse.RunLast, logparse.RunAll, 2} {
			opt := options()
			opt.Run = run
			opt.AllLines = round%2 == 0
			if round%5 == 4 {
				opt.Host = "bigip0"
			}
			if round%3 == 0 {
				opt.Since = logline.MomentOf(time.Date(2026, 5, 6, 16, 1, 0, 0, time.UTC))
			}
			one := opt
			one.Workers = 1
			whole := scan(t, one, input.File(path))
			if pass := scan(t, opt, input.Reader(path, iotestOneByte{strings.NewReader(text)})); !same(whole, pass) {
				t.Fatalf("seed %d, run %d: byte by byte: -whole +bytes\n%s", s, run, cmp.Diff(whole, pass))
			}
			for range 4 {
				cut := opt
				cut.Workers = 3
				cut.ChunkBytes = 1 + rng.Int64N(int64(len(text)))
				parts := scan(t, cut, input.File(path))
				if !same(whole, parts) {
					t.Fatalf("seed %d, run %d, chunks of %d: -whole +chunks\n%s", s, run, cut.ChunkBytes, cmp.Diff(whole, parts))
				}
			}
		}
	}
}

// iotestOneByte gives one byte per read.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

func TestSeveralCompressedFilesSideBySide(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	text := history(rng, 3000)
	dir := t.TempDir()
	var inputs []input.Input
	lines := strings.SplitAfter(text, "\n")[:2700]
	for i := range 6 {
		part := strings.Join(lines[i*450:(i+1)*450], "")
		inputs = append(inputs, input.File(write(t, filepath.Join(dir, fmt.Sprintf("ltm.%d", 9-i)), compress(t, formats[i%2], []byte(part)))))
	}
	whole := scan(t, options(), input.Reader("whole", strings.NewReader(strings.Join(lines, ""))))
	for _, workers := range []int{1, 2, 4} {
		opt := options()
		opt.Workers = workers
		if got := scan(t, opt, inputs...); !same(whole, got) {
			t.Errorf("%d workers: -whole +files\n%s", workers, cmp.Diff(whole, got))
		}
	}
}
