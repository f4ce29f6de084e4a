package source

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func rows(t *testing.T, c *CSV) (out []string) {
	t.Helper()
	var k, v []byte
	for {
		var err error
		if k, v, err = c.Next(k, v); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(k)+"="+string(v))
	}
}

func TestCSV(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a,1\nb,2\n", "a=1|b=2"},
		{"no last line end", "a,1\nb,2", "a=1|b=2"},
		{"empty last value", "a,", "a="},
		{"crlf", "a,1\r\nb,\"2\"\r\n", "a=1|b=2"},
		{"header", "Key,Value\na,1\n", "a=1"},
		{"header only once", "key,value\nkey,value\n", "key=value"},
		{"mark", "\xef\xbb\xbfkey,value\na,1\n", "a=1"},
		{"comments and blanks", "# x,y\n\n\r\na,1\n#b\nc,3\n# end", "a=1|c=3"},
		{"quotes", "\"a,\"\"b\"\"\r\nc\",\"\"\n\"#\",x\n", "a,\"b\"\r\nc=|#=x"},
		{"spaces stay", " a , 1 \n", " a = 1 "},
		{"raw bytes", "\xff\x00,\x80\n", "\xff\x00=\x80"},
		{"lone cr", "a\rb,1\n", "a\rb=1"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		for _, gz := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/gzip=%v", tt.name, gz), func(t *testing.T) {
				in := []byte(tt.in)
				if gz {
					var b bytes.Buffer
					w := gzip.NewWriter(&b)
					w.Write(in)
					w.Close()
					in = b.Bytes()
				}
				// Once rewound, once kept.
				for _, r := range []io.Reader{bytes.NewReader(in), struct{ io.Reader }{bytes.NewReader(in)}} {
					c, err := OpenCSV(r, CSVOptions{})
					if err != nil {
						t.Fatal(err)
					}
					got := rows(t, c)
					if strings.Join(got, "|") != tt.want || int64(len(got)) != c.Rows() {
						t.Errorf("got %q (%d rows), want %q", got, c.Rows(), tt.want)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func TestCSVErrors(t *testing.T) {
	tests := []struct {
		in   string
		line int64
	}{
		{"a,1\nb\nc,3\n", 2},
		{"\n#\n\"a\nb\",1\nx\n", 5},
		{"a,1,2\n", 1},
		{",1\n", 1},
		{"a,\"1\n", 1},
		{"a,\"1\"x\n", 1},
		{"a,1\"\n", 1},
		{"a,1\nb", 2},
		{"a," + strings.Repeat("x", maxField+1) + "\n", 1},
	}
	for _, tt := range tests {
		_, err := OpenCSV(strings.NewReader(tt.in), CSVOptions{Name: "in.csv"})
		var bad *CSVError
		if !errors.As(err, &bad) || bad.Line != tt.line || bad.Name != "in.csv" {
			t.Errorf("%.40q: error %v, want line %d", tt.in, err, tt.line)
		}
	}
	if _, err := OpenCSV(strings.NewReader("\x1f\x8bnot really"), CSVOptions{}); err == nil {
		t.Error("broken gzip: no error")
	}
}

// Input that can't be rewound and is too large for memory goes through a file.
func TestCSVSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var in bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&in, "key_%d,%d\n", i, i)
	}
	c, err := OpenCSV(struct{ io.Reader }{&in}, CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.tmp == nil {
		t.Fatal("not kept in a file")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("the file has a name: %v", left)
	}
	if got := rows(t, c); len(got) != 200_000 || got[199_999] != "key_199999=199999" {
		t.Errorf("%d rows", len(got))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Next(nil, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestCSVNextAllocatesNothing(t *testing.T) {
	c, err := OpenCSV(strings.NewReader(strings.Repeat("some_key,\"some value\"\n", 2000)), CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k, v := make([]byte, 0, 64), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(1000, func() { k, v, _ = c.Next(k, v) }); n != 0 {
		t.Errorf("%v allocations per row", n)
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,1\n\"b\",\"2\"\"\"\r\n# c\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := OpenCSV(bytes.NewReader(in), CSVOptions{})
		if err != nil {
			return
		}
		n, k, v := int64(0), []byte(nil), []byte(nil)
		for {
			if k, v, err = c.Next(k, v); err != nil {
				break
			}
			if len(k) == 0 {
				t.Fatal("empty key")
			}
			n++
		}
		if err != io.EOF || n != c.Rows() {
			t.Fatalf("second pass: %d of %d rows, %v", n, c.Rows(), err)
		}
	})
}
