package refplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"tbl/logparse/logline"
	"tbl/target"
)

// TestLogReadsBack writes every kind of line and reads each as logparse does.
func TestLogReadsBack(t *testing.T) {
	for _, slot := range []int{0, 3} {
		var log bytes.Buffer
		p := start(t, Config{Cores: 4, Clock: Model, Seed: 8, Slot: slot, Log: &log, LogSample: 2})
		r := rand.New(rand.NewPCG(1, 1))
		keys := map[string]int{}
		const n = 400
		for i := range n {
			key := make([]byte, 1+r.IntN(40))
			for j := range key {
				key[j] = byte(r.Uint32())
			}
			if i%7 == 0 {
				key = append(key, " clicks=1 FAST_LOCAL (sampled 1/1)\ntmm=9"...)
			}
			keys[string(key)]++
			must(t, p, target.Request{Op: target.OpLoad, Key: key})
			must(t, p, target.Request{Op: target.OpBulkLoad, Body: fmt.Appendf(nil, "bulk%d\n", i)})
		}
		must(t, p, target.Request{Op: target.OpProbe, Subtable: []byte("a b")})
		if err := p.FlushLog(); err != nil {
			t.Fatal(err)
		}
		var kinds [logline.NumKinds]int
		unique, last := 0, map[int]int64{}
		var parser logline.Parser
		for line := range bytes.Lines(log.Bytes()) {
			var l logline.Line
			kinds[parser.Parse(line, &l)]++
			if l.Slot != slot || l.ProcCore != l.Core || string(l.Host) != "tbl" {
				t.Fatalf("slot %d, process %d, host %q of %q", l.Slot, l.ProcCore, l.Host, line)
			}
			switch l.Kind {
			case logline.KindSample:
				if l.Rate != 2 || l.Writes != last[l.Core]+2 || p.OwnerOf(l.Subtable) != l.Core || l.Fast != (l.Clicks < 100) {
					t.Fatalf("%+v of %q", l, line)
				}
				last[l.Core] = l.Writes
				if l.Unique {
					unique++
				} else if string(appendEncoded(nil, unescape(t, l.Key))) != string(l.Key) || keys[string(unescape(t, l.Key))] == 0 {
					t.Fatalf("key %q was never written", l.Key)
				}
			case logline.KindDiscovery:
				if l.TMMs != 4 || l.Clicks >= 100 || l.Warning {
					t.Fatalf("%+v of %q", l, line)
				}
			case logline.KindProbe:
				if string(l.Subtable) != "a%20b" && string(l.Subtable) != "a b" {
					t.Fatalf("probe of %q", l.Subtable)
				}
			}
		}
		if kinds[logline.KindDiscovery] != 4 || kinds[logline.KindProbe] != 1 || kinds[logline.KindOther] != 0 ||
			kinds[logline.KindSample] < n-8 || kinds[logline.KindSample] > n || unique == 0 {
			t.Errorf("kinds %v, %d unique", kinds, unique)
		}
	}
}

func unescape(t *testing.T, b []byte) (out []byte) {
	for i := 0; i < len(b); i++ {
		if b[i] != '%' {
			out = append(out, b[i])
			continue
		}
		var c byte
		if _, err := fmt.Sscanf(string(b[i+1:i+3]), "%02X", &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
		i += 2
	}
	return out
}

// gate is a writer that waits until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	buf  bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(b)
}

func TestSlowWriterHoldsUpNobodyAndOwnsUp(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	l := newSampleLog(g, 0, 1, false)
	l.full = 1000
	line := []byte(strings.Repeat("x", 99) + "\n")
	for range 100 {
		l.add(line) // must return although nothing is written
	}
	close(g.open)
	if err := l.flush(); err != nil {
		t.Fatal(err)
	}
	l.add(line)
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	written, dropped := l.counts()
	if dropped == 0 || written+dropped != 101 {
		t.Errorf("%d written and %d dropped of 101", written, dropped)
	}
	var held int64
	var parser logline.Parser
	for line := range bytes.Lines(g.buf.Bytes()) {
		var parsed logline.Line
		if parser.Parse(line, &parsed) == logline.KindHeld {
			held += parsed.Held
		}
	}
	if held != dropped {
		t.Errorf("the log admits to %d of %d dropped lines", held, dropped)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriterErrorIsReported(t *testing.T) {
	p, err := New(Config{Clock: Model, Seed: 1, Log: broken{}, LogSample: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ans target.Answer
	for range 10 {
		if err := p.Do(t.Context(), &target.Request{Op: target.OpLoad, Key: []byte("k")}, &ans); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.FlushLog(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("flush: %v", err)
	}
	if err := p.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("close: %v", err)
	}
}
