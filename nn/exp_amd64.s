//go:build !noasm

#include "textflag.h"

#define CONSTANT(place, value) \
	DATA expConstants<>+(32*place+0)(SB)/8, value;  \
	DATA expConstants<>+(32*place+8)(SB)/8, value;  \
	DATA expConstants<>+(32*place+16)(SB)/8, value; \
	DATA expConstants<>+(32*place+24)(SB)/8, value

CONSTANT(0, $-150.0)
CONSTANT(1, $150.0)
CONSTANT(2, $0x3ff71547652b82fe)  // 1 / ln 2
CONSTANT(3, $0x4338000000000000)  // shift
CONSTANT(4, $0x3fe62e42fefa39ef)  // ln 2
CONSTANT(5, $1.0)
CONSTANT(6, $0.5)                 // c2
CONSTANT(7, $0x3fc5555555555555)  // c3
CONSTANT(8, $0x3fa5555555555555)  // c4
CONSTANT(9, $0x3f81111111111111)  // c5
CONSTANT(10, $0x3f56c16c16c16c17) // c6
CONSTANT(11, $0x3f2a01a01a01a01a) // c7
CONSTANT(12, $1023)
GLOBL expConstants<>(SB), RODATA|NOPTR, $416

// func expAVX2(x *float32, n int)
//
// The operations are those of reduce and expParts, on four elements at a time.
TEXT ·expAVX2(SB), NOSPLIT, $0-16
	MOVQ    x+0(FP), DI
	MOVQ    n+8(FP), CX
	LEAQ    expConstants<>(SB), SI
	VMOVUPD (SI), Y14
	VMOVUPD 32(SI), Y15
	VMOVUPD 96(SI), Y13
	VMOVUPD 160(SI), Y12
	PCALIGN $32

loop:
	VCVTPS2PD  (DI), Y0
	VMAXPD     Y0, Y14, Y0     // v; the second operand of these, here the first, is taken if it is NaN
	VMINPD     Y0, Y15, Y0
	VMULPD     64(SI), Y0, Y1
	VADDPD     Y13, Y1, Y1     // k
	VSUBPD     Y13, Y1, Y2
	VMULPD     128(SI), Y2, Y2
	VSUBPD     Y2, Y0, Y0      // r
	VMULPD     Y0, Y0, Y2      // r2
	VADDPD     Y0, Y12, Y3
	VMULPD     224(SI), Y0, Y4
	VADDPD     192(SI), Y4, Y4
	VMULPD     Y4, Y2, Y4
	VADDPD     Y4, Y3, Y3      // low
	VMULPD     288(SI), Y0, Y4
	VADDPD     256(SI), Y4, Y4
	VMULPD     352(SI), Y0, Y5
	VADDPD     320(SI), Y5, Y5
	VMULPD     Y5, Y2, Y5
	VADDPD     Y5, Y4, Y4      // high
	VMULPD     Y2, Y2, Y2
	VMULPD     Y4, Y2, Y2
	VADDPD     Y2, Y3, Y3
	VPADDQ     384(SI), Y1, Y1
	VPSLLQ     $52, Y1, Y1     // scale
	VMULPD     Y1, Y3, Y3
	VCVTPD2PSY Y3, X3
	VMOVUPS    X3, (DI)
	ADDQ       $16, DI
	SUBQ       $4, CX
	JNZ        loop
	VZEROUPPER
	RET
