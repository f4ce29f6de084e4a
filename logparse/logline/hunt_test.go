package logline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// wantedAt is what hunt looks for, written plainly.
func wantedAt(b []byte, i int) bool {
	for _, s := range []string{"m=", "pea", "Sup", gzipMagic} {
		if bytes.HasPrefix(b[i:], []byte(s)) {
			return true
		}
	}
	return bytes.HasPrefix(b[i:], []byte("; ")) && i+2 < len(b) && (b[i+2]^'h')&^('h'^'t') == 0
}

func TestHunt(t *testing.T) {
	if !canHunt {
		t.Skip("no AVX2 here")
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	const letters = "m=; peaSu\nxyzm=;pht\xf0\x80\xfb\x1f\x8b\x08"
	for round := range 20_000 {
		b := make([]byte, rng.IntN(300))
		from, every := letters, 1+round%20
		if round%100 == 0 { // more newlines in a place than a byte counts, and a find at the end
			b = make([]byte, 30_000+rng.IntN(100))
			from, every = "\n", []int{1, 2, 300}[rng.IntN(3)]
		}
		for i := range b {
			if b[i] = 'x'; rng.IntN(every) == 0 {
				b[i] = from[rng.IntN(len(from))]
			}
		}
		if len(b) > 300 {
			copy(b[len(b)-rng.IntN(200):], "Sup")
		}
		pos, lines, start, hit := hunt(b)
		for i := range pos {
			if wantedAt(b, i) {
				t.Fatalf("seed %d: %q: passed over %d", seed, b, i)
			}
		}
		if hit && !wantedAt(b, pos) {
			t.Fatalf("seed %d: %q: nothing at %d", seed, b, pos)
		}
		if !hit && len(b)-pos > 65 {
			t.Fatalf("seed %d: stopped at %d of %d", seed, pos, len(b))
		}
		if n := bytes.Count(b[:pos], []byte("\n")); lines != n || n > 0 && start != bytes.LastIndexByte(b[:pos], '\n')+1 || n == 0 && start != 0 {
			t.Fatalf("seed %d: %q: %d lines, start %d before %d", seed, b, lines, start, pos)
		}
	}
}

// Every line that the parser finds of interest must be found by hunting, too.
func TestHuntingFindsWhatParsingFinds(t *testing.T) {
	noise := strings.Repeat("May  6 16:02:12 bigip1 notice mcpd[6123]: Removed m= tmm= ; subscription pea Sup\n", 3)
	for _, line := range []string{
		"tmm=1 subtable=s writes=1 key=k clicks=5 SLOW (sampled 1/9)", "tmm=1 subtable=s", "tmm=12345 subtable=s", "tmm=x subtable=s writes=1", "tmm=0123456789 subtable=s",
		"tmm=1 subtable=s initialized after 3 probes (diff=11 clicks of 4 total TMMs)", "PROBE tmm=3 subtable=u clicks=2 entries=4 OWNER",
		"tmm=1 WARNING could not find local subtable after 200 probes; using s (last diff=5210)",
		"May  6 16:02:14 b notice tmm[1]: 01010201:2: Re-enabling general logging; held 26 messages.", "May  6 16:02:14 b last message repeated 5 times",
		"May  6 16:02:14 b warning tmm1[1]: 01010201:4: Per-invocation log rate exceeded; throttling.", "Suppressed 3 messages from x", "b rsyslogd: message repeated 4 times: [ x ]",
		"May  6 16:02:14 b rsyslogd: message repeated 4 times: [ x ]", gzipMagic, gzipMagic + "\x00rest",
		"x" + gzipMagic,
	} {
		var p Parser
		var l Line
		kind := p.Parse([]byte(line), &l)
		want := Line{Kind: kind, Held: l.Held}
		for shift := range 70 {
			var taken []Line
			lines := p.Each([]byte(strings.Repeat("y", shift)+"\n"+noise+line+"\n"+noise), &l, func(raw []byte) {
				if string(raw) != line {
					t.Errorf("%q behind %d bytes: taken as %q", line, shift, raw)
				}
				taken = append(taken, Line{Kind: l.Kind, Held: l.Held})
			})
			if lines != 8 || kind == KindOther && len(taken) != 0 || kind != KindOther && (len(taken) != 1 || !reflect.DeepEqual(taken[0], want)) {
				t.Fatalf("%q behind %d bytes: %d lines, taken %+v, want %+v", line, shift, lines, taken, want)
			}
		}
	}
}

func BenchmarkHunt(b *testing.B) {
	buf := bytes.Repeat([]byte("May  6 16:02:12 bigip1 notice mcpd[6123]: 01070410:5: Removed subscription with subscriber id 17.cli\n"), 2500)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		hunt(buf)
	}
}

func TestNumber(t *testing.T) {
	for _, digits := range []string{"", "0", "7", "12", "007", "1234567", "12345678", "123456789", "00000000123", "123456789012345", "1234567890123456", "123456789012345678", "1234567890123456789", "99999999999999999999999"} {
		for _, behind := range []string{"", " ", " key=x and more", "x", "/", ":", "\x00\x01\x02\x03", "\xb0\xb1\xff\x80 12345678", "-1 1 1 1 1 1 1"} {
			b := []byte("ab" + digits + behind)
			v, end, ok := number(b, 2)
			if end != 2+len(digits) || ok != (len(digits) > 0 && len(digits) <= 18) {
				t.Fatalf("%q: ends at %d, ok %v", b, end, ok)
			}
			if ok && fmt.Sprint(v) != strings.TrimLeft(digits[:len(digits)-1], "0")+digits[len(digits)-1:] {
				t.Fatalf("%q: %d", b, v)
			}
		}
	}
}
