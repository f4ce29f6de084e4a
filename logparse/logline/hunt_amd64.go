package logline

import "golang.org/x/sys/cpu"

// canHunt says that hunt is worth its call.
var canHunt = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT

//go:noescape
func huntAVX2(p *byte, n int) (pos, lines, start int, hit bool)

// hunt looks for the first place in b where a line of ours shows: "m=" as in "tmm=", "; h" or "; t"
// (or another whose third letter differs in the three bits in which these two do) as in
// "logging; held" and "exceeded; throttling", "pea" as in "repeated", "Sup" as
// in "Suppressed", and what a gzip file begins with. Every line that Parse finds of interest holds one of them; others may.
//
// With hit, pos is the place. Else nothing is before pos, and what follows pos was not
// looked at: up to 65 bytes. lines is the number of newlines before pos, start the
// place behind the last of them, 0 when there is none.
func hunt(b []byte) (pos, lines, start int, hit bool) {
	if len(b) < 66 {
		return 0, 0, 0, false
	}
	return huntAVX2(&b[0], len(b))
}

// prefetch asks for the three cache lines from 2 KiB behind p: a mapped file
// comes from memory, and line by line the processor doesn't look far enough ahead.
//
//go:noescape
func prefetch(p *byte)
