#include "textflag.h"

// What hunt looks for, by the low four bits of its first byte, as VPSHUFB takes
// them: p, S, ;, m and 0x1f.
//
// The first byte. Where there is none stands a byte with other low bits, which
// is never found there.
DATA first<>+0(SB)/8, $0xffffffff53ffff70
DATA first<>+8(SB)/8, $0x1fff6dff3bffffff
GLOBL first<>(SB), RODATA|NOPTR, $16

// The second.
DATA second<>+0(SB)/8, $0x0000000075000065
DATA second<>+8(SB)/8, $0x8b003d0020000000
GLOBL second<>(SB), RODATA|NOPTR, $16

// The third, as far as care has bits set: all for "pea", "Sup" and gzip's, those in
// which h and t agree behind "; ", none behind "m=".
DATA third<>+0(SB)/8, $0x0000000070000061
DATA third<>+8(SB)/8, $0x0800000060000000
GLOBL third<>(SB), RODATA|NOPTR, $16
DATA care<>+0(SB)/8, $0x00000000ff0000ff
DATA care<>+8(SB)/8, $0xff000000e3000000
GLOBL care<>(SB), RODATA|NOPTR, $16

DATA newline<>+0(SB)/1, $0x0a
GLOBL newline<>(SB), RODATA|NOPTR, $1

// func huntAVX2(p *byte, n int) (pos, lines, start int, hit bool)
//
// Looks at 64 bytes at a time, each together with its two successors, for one
// of the beginnings that hunt names, and counts newlines on the way. n is at
// least 66.
TEXT ·huntAVX2(SB), NOSPLIT, $0-41
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTI128 first<>(SB), Y0
	VBROADCASTI128 second<>(SB), Y1
	VBROADCASTI128 third<>(SB), Y2
	VBROADCASTI128 care<>(SB), Y3
	VPBROADCASTB newline<>(SB), Y4
	VPXOR Y5, Y5, Y5 // zero
	VPXOR Y6, Y6, Y6 // newlines
	XORQ AX, AX      // position
	XORQ R11, R11    // newlines in the last 64 bytes
	SUBQ $66, CX     // last position that can be looked at

block:
	// 127 turns: more could overflow the count in a byte.
	LEAQ    8064(AX), DX
	CMPQ    DX, CX
	CMOVQGT CX, DX
	VPXOR   Y7, Y7, Y7 // newlines, by place

loop:
	CMPQ AX, DX
	JGT  fold
	// Far enough ahead for memory.
	PREFETCHT0 4096(SI)(AX*1)

	VMOVDQU  (SI)(AX*1), Y8
	VMOVDQU  1(SI)(AX*1), Y9
	VMOVDQU  2(SI)(AX*1), Y10
	VPSHUFB  Y8, Y0, Y11
	VPXOR    Y8, Y11, Y11
	VPSHUFB  Y8, Y1, Y12
	VPXOR    Y9, Y12, Y12
	VPOR     Y12, Y11, Y11
	VPSHUFB  Y8, Y2, Y12
	VPXOR    Y10, Y12, Y12
	VPSHUFB  Y8, Y3, Y13
	VPAND    Y13, Y12, Y12
	VPOR     Y12, Y11, Y11
	VPCMPEQB Y5, Y11, Y11  // beginnings
	VPCMPEQB Y8, Y4, Y15   // newlines

	VMOVDQU  32(SI)(AX*1), Y8
	VMOVDQU  33(SI)(AX*1), Y9
	VMOVDQU  34(SI)(AX*1), Y10
	VPSHUFB  Y8, Y0, Y12
	VPXOR    Y8, Y12, Y12
	VPSHUFB  Y8, Y1, Y13
	VPXOR    Y9, Y13, Y13
	VPOR     Y13, Y12, Y12
	VPSHUFB  Y8, Y2, Y13
	VPXOR    Y10, Y13, Y13
	VPSHUFB  Y8, Y3, Y14
	VPAND    Y14, Y13, Y13
	VPOR     Y13, Y12, Y12
	VPCMPEQB Y5, Y12, Y12
	VPCMPEQB Y8, Y4, Y14

	VPOR      Y11, Y12, Y13
	VPMOVMSKB Y13, R9
	TESTL     R9, R9
	JNE       found
	VPSUBB    Y15, Y7, Y7
	VPSUBB    Y14, Y7, Y7
	ADDQ      $64, AX
	JMP       loop

fold:
	VPSADBW Y7, Y5, Y7
	VPADDQ  Y7, Y6, Y6
	CMPQ    AX, CX
	JLE     block
	MOVB    $0, hit+40(FP)
	JMP     out

found:
	VPMOVMSKB Y11, R8
	VPMOVMSKB Y12, R9
	SHLQ      $32, R9
	ORQ       R8, R9
	BSFQ      R9, CX
	VPMOVMSKB Y15, R8
	VPMOVMSKB Y14, R9
	SHLQ      $32, R9
	ORQ       R9, R8
	MOVQ      $1, R13
	SHLQ      CX, R13
	DECQ      R13
	ANDQ      R13, R8      // newlines before it
	POPCNTQ   R8, R11
	ADDQ      CX, AX
	VPSADBW   Y7, Y5, Y7
	VPADDQ    Y7, Y6, Y6
	MOVB      $1, hit+40(FP)

out:
	VEXTRACTI128 $1, Y6, X7
	VPADDQ       X7, X6, X6
	VPSRLDQ      $8, X6, X7
	VPADDQ       X7, X6, X6
	VMOVQ        X6, R10
	ADDQ         R10, R11
	XORQ         R12, R12  // behind the last newline
	TESTQ        R11, R11
	JEQ          done
	MOVQ         AX, DX

back:
	SUBQ      $32, DX
	JLT       front
	VPCMPEQB  (SI)(DX*1), Y4, Y8
	VPMOVMSKB Y8, R8
	TESTL     R8, R8
	JEQ       back
	BSRL      R8, R10
	LEAQ      1(DX)(R10*1), R12
	JMP       done

front:
	// DX+32 bytes are left, fewer than 32, and a newline is among them.
	LEAQ      32(DX), CX
	VPCMPEQB  (SI), Y4, Y8
	VPMOVMSKB Y8, R8
	MOVL      $1, R13
	SHLL      CX, R13
	DECL      R13
	ANDL      R13, R8
	BSRL      R8, R10
	LEAQ      1(R10), R12

done:
	MOVQ AX, pos+16(FP)
	MOVQ R11, lines+24(FP)
	MOVQ R12, start+32(FP)
	VZEROUPPER
	RET

// func prefetch(p *byte)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 2048(AX)
	PREFETCHT0 2112(AX)
	PREFETCHT0 2176(AX)
	RET
