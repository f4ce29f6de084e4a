package input

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

func decode(format string, packed []byte) ([]byte, error) {
	d, err := decoder(context.Background(), NewRoom(), format, bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

// tool packs data with a program, or skips the test.
func tool(t *testing.T, data []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%s: %v", name, err)
	}
	return out
}

// packer packs with a library.
func packer[W io.WriteCloser](t *testing.T, data []byte, open func(io.Writer) (W, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func noise(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = "abc \n"[rng.IntN(5)]
	}
	return b
}

// Two files behind each other, each of several parts: wherever they are cut,
// but between the two and in xz's padding, they are known to be cut.
func TestEveryCutIsSeen(t *testing.T) {
	text := noise(1000)
	const padding = 8
	xzBlocks := func(w io.Writer) (*xz.Writer, error) {
		return xz.WriterConfig{BlockSize: 300, DictCap: 4096}.NewWriter(w)
	}
	pack := map[string]func() []byte{
		"gzip": func() []byte {
			return packer(t, text, func(w io.Writer) (*gzip.Writer, error) {
				z := gzip.NewWriter(w)
				z.Name, z.Comment = "ltm", "a log"
				return z, nil
			})
		},
		"zstd": func() []byte {
			return packer(t, text, func(w io.Writer) (*zstd.Encoder, error) { return zstd.NewWriter(w) })
		},
		"xz":         func() []byte { return packer(t, text, xzBlocks) },
		"xz, padded": func() []byte { return append(packer(t, text, xzBlocks), make([]byte, padding)...) },
	}
	for _, args := range []string{"bzip2", "zstd", "zstd --no-check", "xz -T1", "xz --block-size=300", "xz -T2 --block-size=300 --check=sha256", "xz --check=crc32", "xz --check=none"} {
		f := strings.Fields(args)
		if f[0] == "xz" {
			f = append(f, "--lzma2=dict=4KiB") // a large one takes its time
		}
		pack[args+" tool"] = func() []byte { return tool(t, text, f[0], append(f[1:], "-c")...) }
	}
	for name, pack := range pack {
		t.Run(name, func(t *testing.T) {
			one := pack()
			two := slices.Concat(one, one)
			wholes := map[int]int{len(one): 1, len(two): 2} // the texts in so many bytes
			if strings.Contains(name, "padded") {
				for k := 4; k <= padding; k += 4 {
					wholes[len(one)-k], wholes[len(two)-k] = 1, 2
				}
			}
			format, _, _ := strings.Cut(strings.ReplaceAll(name, ",", " "), " ")
			for n := 6; n <= len(two); n++ {
				got, err := decode(format, two[:n])
				if texts, ok := wholes[n]; ok {
					if err != nil || !bytes.Equal(got, bytes.Repeat(text, texts)) {
						t.Fatalf("whole at %d of %d: %d bytes, %v", n, len(two), len(got), err)
					}
				} else if !errors.Is(err, ErrTruncated) {
					t.Fatalf("cut at %d of %d: %d bytes, %v", n, len(two), len(got), err)
				}
			}
		})
	}
}

// Any damaged byte of an xz file is found, or does no harm.
func TestDamagedXZ(t *testing.T) {
	text := noise(3000)
	packed := packer(t, text, func(w io.Writer) (*xz.Writer, error) {
		return xz.WriterConfig{BlockSize: 1000, DictCap: 4096}.NewWriter(w)
	})
	for i := range packed {
		bad := slices.Clone(packed)
		bad[i] ^= 0x10
		if got, err := decode("xz", bad); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrHistory) && (err != nil || !bytes.Equal(got, text)) {
			t.Errorf("byte %d of %d damaged: %v", i, len(packed), err)
		}
	}
}

// xzHistory states another size of the history in the header of the first block.
func xzHistory(t *testing.T, packed []byte, bits byte) []byte {
	t.Helper()
	b := slices.Clone(packed)
	head := b[12 : 12+4*(int(b[12])+1)]
	at := bytes.Index(head, []byte{xzLZMA2, 1})
	if at < 0 {
		t.Fatal("no filter")
	}
	head[at+2] = bits
	binary.LittleEndian.PutUint32(head[len(head)-4:], crc32.ChecksumIEEE(head[:len(head)-4]))
	return b
}

func TestHistory(t *testing.T) {
	text := noise(3000)
	plain := packer(t, text, func(w io.Writer) (*xz.Writer, error) { return xz.NewWriter(w) })
	zst := packer(t, text, func(w io.Writer) (*zstd.Encoder, error) { return zstd.NewWriter(w, zstd.WithWindowSize(maxHistory)) })
	// A frame header of no stated content size with a window of 256 MiB.
	huge := []byte("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00")
	for _, c := range []struct {
		name, format string
		data         []byte
		ok           bool
	}{
		{"xz as it is", "xz", plain, true},
		{"xz of 128 MiB", "xz", xzHistory(t, plain, 30), true},
		{"xz of 192 MiB", "xz", xzHistory(t, plain, 31), false},
		{"xz of 4 GiB", "xz", xzHistory(t, plain, 40), false},
		{"xz of 4 GiB behind another", "xz", slices.Concat(plain, xzHistory(t, plain, 40)), false},
		{"zstd of 128 MiB", "zstd", zst, true},
		{"zstd of 256 MiB", "zstd", huge, false},
		{"zstd of 256 MiB behind another", "zstd", slices.Concat(zst, huge), false},
	} {
		got, err := decode(c.format, c.data)
		if c.ok && (err != nil || !bytes.Equal(got, text)) || !c.ok && !errors.Is(err, ErrHistory) {
			t.Errorf("%s: %d bytes, %v", c.name, len(got), err)
		}
	}
}

// Two that need all of the room are not decoded at a time; a small one beside a
// small one is.
func TestRoomIsShared(t *testing.T) {
	text := noise(3000)
	small := packer(t, text, func(w io.Writer) (*xz.Writer, error) { return xz.NewWriter(w) }) // 8 MiB
	large := xzHistory(t, small, 28)                                                           // 64 MiB
	room := NewRoom()
	ctx, cancel := context.WithCancel(t.Context())
	open := func(data []byte) io.ReadCloser {
		d, err := decoder(ctx, room, "xz", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b, c := open(small), open(small), open(large)
	for _, d := range []io.Reader{a, b} {
		if _, err := d.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(room.parts) != roomParts {
		t.Errorf("two of 8 MiB hold %d MiB", len(room.parts))
	}
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(c)
		done <- err
	}()
	a.Close()
	select {
	case err := <-done:
		t.Errorf("a large one beside a small one: %v", err)
	default: // it waits, or has not begun
	}
	b.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	d := open(large)
	go func() {
		_, err := io.ReadAll(d)
		done <- err
	}()
	cancel() // c still holds the room
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it waited: %v", err)
	}
	c.Close()
	d.Close()
	if len(room.parts) != 0 {
		t.Errorf("%d MiB are still held", len(room.parts))
	}
}
