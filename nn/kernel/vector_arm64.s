//go:build !noasm

#include "textflag.h"

// ALPHA puts the coefficient into F0 and all lanes of V1.
#define ALPHA \
	FMOVS alpha+0(FP), F0 \
	VDUP  V0.S[0], V1.S4

// SCALE16 multiplies the 16 elements in V2 to V5 by the coefficient.
#define SCALE16 \
	WORD $0x6e21dc42 \ // FMUL V2.4S, V2.4S, V1.4S
	WORD $0x6e21dc63 \ // FMUL V3.4S, V3.4S, V1.4S
	WORD $0x6e21dc84 \ // FMUL V4.4S, V4.4S, V1.4S
	WORD $0x6e21dca5 // FMUL V5.4S, V5.4S, V1.4S

// func axpyNEON(alpha float32, x, y *float32, n int)
TEXT ·axpyNEON(SB), NOSPLIT, $0-32
	ALPHA
	MOVD  x+8(FP), R0
	MOVD  y+16(FP), R1
	MOVD  n+24(FP), R2
	SUBS  $16, R2
	BLT   rest

loop:
	VLD1.P 64(R0), [V2.S4, V3.S4, V4.S4, V5.S4]
	VLD1   (R1), [V6.S4, V7.S4, V8.S4, V9.S4]
	VFMLA  V1.S4, V2.S4, V6.S4
	VFMLA  V1.S4, V3.S4, V7.S4
	VFMLA  V1.S4, V4.S4, V8.S4
	VFMLA  V1.S4, V5.S4, V9.S4
	VST1.P [V6.S4, V7.S4, V8.S4, V9.S4], 64(R1)
	SUBS   $16, R2
	BGE    loop

rest:
	ADDS $16, R2
	BEQ  done

one:
	FMOVS.P 4(R0), F2
	FMOVS   (R1), F3
	FMADDS  F0, F3, F2, F3
	FMOVS.P F3, 4(R1)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func scalNEON(alpha float32, x *float32, n int)
TEXT ·scalNEON(SB), NOSPLIT, $0-24
	ALPHA
	MOVD  x+8(FP), R0
	MOVD  n+16(FP), R2
	SUBS  $16, R2
	BLT   rest

loop:
	VLD1   (R0), [V2.S4, V3.S4, V4.S4, V5.S4]
	SCALE16
	VST1.P [V2.S4, V3.S4, V4.S4, V5.S4], 64(R0)
	SUBS   $16, R2
	BGE    loop

rest:
	ADDS $16, R2
	BEQ  done

one:
	FMOVS   (R0), F2
	FMULS   F0, F2, F2
	FMOVS.P F2, 4(R0)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func sumNEON(alpha float32, x, y, z *float32, n int)
TEXT ·sumNEON(SB), NOSPLIT, $0-40
	ALPHA
	MOVD  x+8(FP), R0
	MOVD  y+16(FP), R1
	MOVD  z+24(FP), R3
	MOVD  n+32(FP), R2
	SUBS  $16, R2
	BLT   rest

loop:
	VLD1.P 64(R0), [V2.S4, V3.S4, V4.S4, V5.S4]
	VLD1.P 64(R1), [V6.S4, V7.S4, V8.S4, V9.S4]
	WORD   $0x4e26d442 // FADD V2.4S, V2.4S, V6.4S
	WORD   $0x4e27d463 // FADD V3.4S, V3.4S, V7.4S
	WORD   $0x4e28d484 // FADD V4.4S, V4.4S, V8.4S
	WORD   $0x4e29d4a5 // FADD V5.4S, V5.4S, V9.4S
	SCALE16
	VST1.P [V2.S4, V3.S4, V4.S4, V5.S4], 64(R3)
	SUBS   $16, R2
	BGE    loop

rest:
	ADDS $16, R2
	BEQ  done

one:
	FMOVS.P 4(R0), F2
	FMOVS.P 4(R1), F3
	FADDS   F3, F2, F2
	FMULS   F0, F2, F2
	FMOVS.P F2, 4(R3)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func dotNEON(x, y *float32, n int) float32
//
// The sums are those of dotAVX2: V16 to V23 hold its 32 chains, which are halved in its order.
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD x+0(FP), R0
	MOVD y+8(FP), R1
	MOVD n+16(FP), R2
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	VEOR V21.B16, V21.B16, V21.B16
	VEOR V22.B16, V22.B16, V22.B16
	VEOR V23.B16, V23.B16, V23.B16
	SUBS $32, R2
	BLT  sum

loop:
	VLD1.P 64(R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R0), [V4.S4, V5.S4, V6.S4, V7.S4]
	VLD1.P 64(R1), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1.P 64(R1), [V28.S4, V29.S4, V30.S4, V31.S4]
	VFMLA  V0.S4, V24.S4, V16.S4
	VFMLA  V1.S4, V25.S4, V17.S4
	VFMLA  V2.S4, V26.S4, V18.S4
	VFMLA  V3.S4, V27.S4, V19.S4
	VFMLA  V4.S4, V28.S4, V20.S4
	VFMLA  V5.S4, V29.S4, V21.S4
	VFMLA  V6.S4, V30.S4, V22.S4
	VFMLA  V7.S4, V31.S4, V23.S4
	SUBS   $32, R2
	BGE    loop

sum:
	WORD $0x4e34d610 // FADD V16.4S, V16.4S, V20.4S
	WORD $0x4e35d631 // FADD V17.4S, V17.4S, V21.4S
	WORD $0x4e36d652 // FADD V18.4S, V18.4S, V22.4S
	WORD $0x4e37d673 // FADD V19.4S, V19.4S, V23.4S
	WORD $0x4e32d610 // FADD V16.4S, V16.4S, V18.4S
	WORD $0x4e33d631 // FADD V17.4S, V17.4S, V19.4S
	WORD $0x4e31d610 // FADD V16.4S, V16.4S, V17.4S
	VEXT $8, V16.B16, V16.B16, V17.B16
	WORD $0x4e31d610 // FADD V16.4S, V16.4S, V17.4S
	VMOV V16.S[1], V17.S[0]
	FADDS F17, F16, F0
	ADDS $32, R2
	BEQ  done

one:
	FMOVS.P 4(R0), F2
	FMOVS.P 4(R1), F3
	FMADDS  F3, F0, F2, F0
	SUBS    $1, R2
	BNE     one

done:
	FMOVS F0, ret+24(FP)
	RET

// func rectifyNEON(y, x *float32, n int)
TEXT ·rectifyNEON(SB), NOSPLIT, $0-24
	MOVD y+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R2

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1   (R0), [V2.S4, V3.S4]
	WORD   $0x6ea0d800 // FCMLE V0.4S, V0.4S, #0
	WORD   $0x6ea0d821 // FCMLE V1.4S, V1.4S, #0
	WORD   $0x4e601c42 // BIC V2.16B, V2.16B, V0.16B
	WORD   $0x4e611c63 // BIC V3.16B, V3.16B, V1.16B
	VST1.P [V2.S4, V3.S4], 32(R0)
	SUBS   $8, R2
	BNE    loop
	RET
