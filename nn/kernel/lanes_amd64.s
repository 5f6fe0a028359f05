//go:build !noasm

#include "textflag.h"

DATA numbers<>+0(SB)/4, $1
DATA numbers<>+4(SB)/4, $2
DATA numbers<>+8(SB)/4, $3
DATA numbers<>+12(SB)/4, $4
GLOBL numbers<>(SB), RODATA|NOPTR, $16

// BETTER puts x and its place where x is larger than the largest so far, or the first NaN: not less or equal, unless
// the largest so far is NaN.
#define BETTER(x, place) \
	VCMPPS    $0x07, Z0, Z0, K2     \
	VCMPPS    $0x16, Z0, x, K2, K2  \
	VMOVAPS   x, K2, Z0             \
	VMOVDQA32 place, K2, Z4

// func maxPairsAVX512(y *float32, places *uint16, above, below *float32, lanes, count int, rectify bool)
TEXT ·maxPairsAVX512(SB), NOSPLIT, $0-49
	MOVQ y+0(FP), DI
	MOVQ places+8(FP), DX
	MOVQ above+16(FP), SI
	MOVQ below+24(FP), BX
	MOVQ lanes+32(FP), R8
	MOVQ count+40(FP), CX
	MOVL $0xffff, AX
	BZHIL R8, AX, AX
	KMOVW AX, K1
	VPBROADCASTD numbers<>+0(SB), Z16
	VPBROADCASTD numbers<>+4(SB), Z17
	VPBROADCASTD numbers<>+8(SB), Z18
	VPBROADCASTD numbers<>+12(SB), Z19
	VPXORD Z20, Z20, Z20

	// K4 is set where nothing is rectified.
	MOVBLZX rectify+48(FP), AX
	DECL  AX
	KMOVW AX, K4

loop:
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS.Z (SI)(R8*4), K1, Z1
	VMOVUPS.Z (BX), K1, Z2
	VMOVUPS.Z (BX)(R8*4), K1, Z3
	VPXORD    Z4, Z4, Z4
	BETTER(Z1, Z16)
	BETTER(Z2, Z17)
	BETTER(Z3, Z18)
	VCMPPS    $0x16, Z20, Z0, K3
	KORW      K4, K3, K3
	VMOVAPS.Z Z0, K3, Z0
	VMOVDQA32 Z19, Z5
	VMOVDQA32 Z4, K3, Z5
	VMOVUPS   Z0, K1, (DI)
	VPMOVDW   Z5, K1, (DX)
	LEAQ      (SI)(R8*8), SI
	LEAQ      (BX)(R8*8), BX
	LEAQ      (DI)(R8*4), DI
	LEAQ      (DX)(R8*2), DX
	DECQ      CX
	JNZ       loop
	VZEROUPPER
	RET

// func routePairsAVX512(d *float32, places *uint16, above, below *float32, lanes, count int)
TEXT ·routePairsAVX512(SB), NOSPLIT, $0-48
	MOVQ d+0(FP), DI
	MOVQ places+8(FP), DX
	MOVQ above+16(FP), SI
	MOVQ below+24(FP), BX
	MOVQ lanes+32(FP), R8
	MOVQ count+40(FP), CX
	MOVL $0xffff, AX
	BZHIL R8, AX, AX
	KMOVW AX, K1
	VPBROADCASTD numbers<>+0(SB), Z16
	VPBROADCASTD numbers<>+4(SB), Z17
	VPBROADCASTD numbers<>+8(SB), Z18
	VPXORD Z20, Z20, Z20

loop:
	VMOVUPS.Z    (DI), K1, Z0
	VPMOVZXWD.Z  (DX), K1, Z1
	VPCMPEQD     Z1, Z20, K2
	VPCMPEQD     Z1, Z16, K3
	VPCMPEQD     Z1, Z17, K4
	VPCMPEQD     Z1, Z18, K5
	VMOVAPS.Z    Z0, K2, Z2
	VMOVAPS.Z    Z0, K3, Z3
	VMOVAPS.Z    Z0, K4, Z4
	VMOVAPS.Z    Z0, K5, Z5
	VMOVUPS      Z2, K1, (SI)
	VMOVUPS      Z3, K1, (SI)(R8*4)
	VMOVUPS      Z4, K1, (BX)
	VMOVUPS      Z5, K1, (BX)(R8*4)
	LEAQ         (SI)(R8*8), SI
	LEAQ         (BX)(R8*8), BX
	LEAQ         (DI)(R8*4), DI
	LEAQ         (DX)(R8*2), DX
	DECQ         CX
	JNZ          loop
	VZEROUPPER
	RET

// func copySixteensAVX2(to *float32, pitch int, from *float32, step, rows, sixteens int)
//
// Rows that are far apart are asked for eight ahead, since nothing else foresees them.
TEXT ·copySixteensAVX2(SB), NOSPLIT, $0-48
	MOVQ to+0(FP), DI
	MOVQ pitch+8(FP), R9
	MOVQ from+16(FP), SI
	MOVQ step+24(FP), R8
	MOVQ rows+32(FP), CX
	MOVQ sixteens+40(FP), BX
	SHLQ $2, R9
	SHLQ $2, R8
	CMPQ BX, $2
	JEQ  two

loop:
	PREFETCHT0 (SI)(R8*8)
	PREFETCHT0 (DI)(R9*8)
	VMOVUPS    (SI), Y0
	VMOVUPS    32(SI), Y1
	VMOVUPS    Y0, (DI)
	VMOVUPS    Y1, 32(DI)
	ADDQ       R8, SI
	ADDQ       R9, DI
	DECQ       CX
	JNZ        loop
	VZEROUPPER
	RET

two:
	PREFETCHT0 (SI)(R8*8)
	PREFETCHT0 64(SI)(R8*8)
	VMOVUPS    (SI), Y0
	VMOVUPS    32(SI), Y1
	VMOVUPS    64(SI), Y2
	VMOVUPS    96(SI), Y3
	VMOVUPS    Y0, (DI)
	VMOVUPS    Y1, 32(DI)
	VMOVUPS    Y2, 64(DI)
	VMOVUPS    Y3, 96(DI)
	ADDQ       R8, SI
	ADDQ       R9, DI
	DECQ       CX
	JNZ        two
	VZEROUPPER
	RET
