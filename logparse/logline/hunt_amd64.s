#include "textflag.h"

// "m=; peaSu\n", a byte of each to be compared with.
DATA wanted<>+0(SB)/8, $0x53616570203b3d6d
DATA wanted<>+8(SB)/8, $0x0000000000000a75
GLOBL wanted<>(SB), RODATA|NOPTR, $16

// func huntAVX2(p *byte, n int) (pos, lines, start int, hit bool)
//
// Looks at 32 bytes at a time, each together with its two successors, for one
// of the beginnings that hunt names, and counts newlines on the way.
TEXT ·huntAVX2(SB), NOSPLIT, $0-41
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VPBROADCASTB wanted<>+0(SB), Y0 // m
	VPBROADCASTB wanted<>+1(SB), Y1 // =
	VPBROADCASTB wanted<>+2(SB), Y2 // ;
	VPBROADCASTB wanted<>+3(SB), Y3 // blank
	VPBROADCASTB wanted<>+4(SB), Y4 // p
	VPBROADCASTB wanted<>+5(SB), Y5 // e
	VPBROADCASTB wanted<>+6(SB), Y6 // a
	VPBROADCASTB wanted<>+7(SB), Y7 // S
	VPBROADCASTB wanted<>+8(SB), Y8 // u
	VPBROADCASTB wanted<>+9(SB), Y9 // newline
	XORQ AX, AX             // position
	XORQ R11, R11           // newlines
	XORQ R12, R12           // behind the last newline
	SUBQ $34, CX            // last position that can be looked at

loop:
	CMPQ AX, CX
	JGT  none
	PREFETCHT0 2048(SI)(AX*1)
	VMOVDQU (SI)(AX*1), Y10
	VMOVDQU 1(SI)(AX*1), Y11
	VMOVDQU 2(SI)(AX*1), Y12

	VPCMPEQB Y10, Y0, Y13
	VPCMPEQB Y11, Y1, Y14
	VPAND    Y13, Y14, Y13 // m=

	VPCMPEQB Y10, Y2, Y14
	VPCMPEQB Y11, Y3, Y15
	VPAND    Y14, Y15, Y14 // "; "
	VPOR     Y13, Y14, Y13

	VPCMPEQB Y10, Y4, Y14
	VPCMPEQB Y11, Y5, Y15
	VPAND    Y14, Y15, Y14
	VPCMPEQB Y12, Y6, Y15
	VPAND    Y14, Y15, Y14 // pea
	VPOR     Y13, Y14, Y13

	VPCMPEQB Y10, Y7, Y14
	VPCMPEQB Y11, Y8, Y15
	VPAND    Y14, Y15, Y14
	VPCMPEQB Y12, Y4, Y15
	VPAND    Y14, Y15, Y14 // Sup
	VPOR     Y13, Y14, Y13

	VPCMPEQB  Y10, Y9, Y14
	VPMOVMSKB Y14, R8
	VPMOVMSKB Y13, R9
	TESTL     R9, R9
	JNE       found

	// Without a branch: whether a newline is among 32 bytes can't be predicted.
	POPCNTL R8, R10
	ADDQ    R10, R11
	BSRL    R8, R10
	LEAQ    1(AX)(R10*1), R10
	CMOVQNE R10, R12
	ADDQ    $32, AX
	JMP     loop

found:
	BSFL    R9, CX
	MOVL    $1, R13
	SHLL    CX, R13
	DECL    R13
	ANDL    R13, R8 // newlines before it
	POPCNTL R8, R10
	ADDQ    R10, R11
	BSRL    R8, R10
	LEAQ    1(AX)(R10*1), R10
	CMOVQNE R10, R12
	ADDQ    CX, AX
	MOVB    $1, hit+40(FP)
	JMP     out

none:
	MOVB $0, hit+40(FP)

out:
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
