package logparse_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tbl/logparse"
	"tbl/logparse/input"
	"tbl/logparse/logline"
)

// FuzzCounts builds a log from known samples and noise, and counts them again.
func FuzzCounts(f *testing.F) {
	f.Add(uint64(1), []byte("key with clicks=3 FAST_LOCAL (sampled 1/1)"), []byte("noise tmm=3 subtable=x"), uint16(100))
	f.Add(uint64(2), []byte("\x00\xff"), []byte("tmm=1 subtable=s writes=3 key=k clicks=5 SLOW (sampled 1/9)"), uint16(3))
	f.Add(uint64(4), []byte("\x1f\x8b\x08"), []byte("\x1f\x8b\x08\x00"), uint16(7))
	f.Add(uint64(3), []byte(""), []byte("Suppressed 3 messages from x\nmessage repeated 3 times: ["), uint16(5000))
	f.Fuzz(func(t *testing.T, seed uint64, key, noise []byte, size uint16) {
		key = bytes.ReplaceAll(key, []byte("\n"), []byte(" "))
		noise = bytes.ReplaceAll(noise, []byte("\n"), []byte(" "))
		rng := rand.New(rand.NewPCG(seed, 0))
		prefixes := []string{"", "May  6 16:02:11 bigip1 info tmm1[7]: Rule /Common/L <HTTP_REQUEST>: ", "2026-05-06T16:02:11.482+03:00 bigip1 tmm1[7]: ",
			"<134>1 2026-05-06T16:02:11Z bigip1 tmm 7 - [a b=\"]\"] ", "05-06 16:02:11 info bigip1 tmm1[7]: Rule L <A> ", "<134>May  6 16:02:11 slot1/bigip1 info tmm1[7]: "}
		var b strings.Builder
		want := 0
		var clicks []int64
		lines := 1 + rng.IntN(40)
		for i := range lines {
			if rng.IntN(2) == 0 { // noise, made harmless by what stands before it
				b.WriteString("May  6 16:02:11 bigip1 info tmm1[7]: Rule /Common/other <HTTP_REQUEST>: said ")
				b.Write(noise)
				b.WriteByte('\n')
				continue
			}
			c := rng.Int64N(1 << 31)
			fmt.Fprintf(&b, "%stmm=1 subtable=s writes=%d key=%s clicks=%d %s", prefixes[rng.IntN(len(prefixes))], i+1, key, c,
				[]string{"FAST_LOCAL (sampled 1/10)", "SLOW (unique, sampled 1/10)"}[rng.IntN(2)])
			b.WriteString([]string{"\n", "\r\n", "\x00\n"}[rng.IntN(3)])
			want++
			clicks = append(clicks, c)
		}
		opt := options()
		opt.Run = logparse.RunAll
		opt.Now = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		r, err := logparse.Scan(t.Context(), []input.Input{input.Reader("fuzz", &pieces{b.String(), 1 + int(size)})}, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Counts.Samples != int64(want) || r.Counts.Lines != int64(lines) || r.Counts.Other != int64(lines-want) {
			t.Fatalf("%d samples in %d lines, counted %+v\n%q", want, lines, r.Counts, b.String())
		}
		if want == 0 {
			return
		}
		// Where times leap, pieces are put in their order.
		got := byWrites(r.Devices[0])
		for i := range got {
			if got[i].Key != string(key) || got[i].Clicks != clicks[i] {
				t.Fatalf("sample %d: %+v, want key %q and %d clicks", i, got[i], key, clicks[i])
			}
		}
	})
}

// pieces gives text in pieces of n bytes.
type pieces struct {
	text string
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := strings.NewReader(p.text[:min(p.n, len(p.text))]).Read(b)
	p.text = p.text[n:]
	return n, err
}

func TestNoAllocationsPerLine(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString(line(i + 1))
		b.WriteString("May  6 16:02:12 bigip1 notice mcpd[6123]: 01070410:5: Removed subscription; appears in no report\n")
		b.WriteString(strings.ReplaceAll(line(i+1), "May  6 16:02:11 bigip1", fmt.Sprintf("2026-05-06T16:02:11.%03d+03:00 slot1/bigip2.example.net", i)))
		b.WriteString("<134>1 2026-05-06T16:02:11Z bigip3 tmm 7 - - tmm=3 subtable=s writes=x key=k\n")
		b.WriteString("PROBE tmm=3 subtable=uuid_01 clicks=2104 entries=4 NON_OWNER\n")
	}
	data := []byte(b.String())
	var buf logparse.Cutter
	opt := options()
	opt.Since = logline.MomentOf(now.AddDate(-2, 0, 0))
	opt.NewSamples = func() logparse.SampleCollector { return &digest{} }
	opt.NewProbes = nil
	few := testing.AllocsPerRun(5, func() { buf.Scan(opt, data[:len(data)/10], 0) })
	all := testing.AllocsPerRun(5, func() { buf.Scan(opt, data, 0) })
	if all > few+8 { // buffers grow a few times
		t.Errorf("%v allocations for 5,000 lines, %v for 500: lines allocate", all, few)
	}
	if few > 120 {
		t.Errorf("%v allocations for a scan", few)
	}
}
