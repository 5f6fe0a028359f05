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

// func axpy(alpha float32, x, y, z *float32, n int)
TEXT ·axpy(SB), NOSPLIT, $0-40
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
	VFMLA  V1.S4, V2.S4, V6.S4
	VFMLA  V1.S4, V3.S4, V7.S4
	VFMLA  V1.S4, V4.S4, V8.S4
	VFMLA  V1.S4, V5.S4, V9.S4
	VST1.P [V6.S4, V7.S4, V8.S4, V9.S4], 64(R3)
	SUBS   $16, R2
	BGE    loop

rest:
	ADDS $16, R2
	BEQ  done

one:
	FMOVS.P 4(R0), F2
	FMOVS.P 4(R1), F3
	FMADDS  F0, F3, F2, F3
	FMOVS.P F3, 4(R3)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func scal(alpha float32, x *float32, n int)
TEXT ·scal(SB), NOSPLIT, $0-24
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

// func sum(alpha float32, x, y, z *float32, n int)
TEXT ·sum(SB), NOSPLIT, $0-40
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

// func axpby(alpha, beta float32, x, y, z *float32, n int)
TEXT ·axpby(SB), NOSPLIT, $0-40
	ALPHA
	FMOVS beta+4(FP), F11
	VDUP  V11.S[0], V10.S4
	MOVD  x+8(FP), R0
	MOVD  y+16(FP), R1
	MOVD  z+24(FP), R3
	MOVD  n+32(FP), R2
	SUBS  $16, R2
	BLT   rest

loop:
	VLD1.P 64(R0), [V2.S4, V3.S4, V4.S4, V5.S4]
	VLD1.P 64(R1), [V6.S4, V7.S4, V8.S4, V9.S4]
	SCALE16
	WORD   $0x6e2adcc6 // FMUL V6.4S, V6.4S, V10.4S
	WORD   $0x6e2adce7 // FMUL V7.4S, V7.4S, V10.4S
	WORD   $0x6e2add08 // FMUL V8.4S, V8.4S, V10.4S
	WORD   $0x6e2add29 // FMUL V9.4S, V9.4S, V10.4S
	WORD   $0x4e26d442 // FADD V2.4S, V2.4S, V6.4S
	WORD   $0x4e27d463 // FADD V3.4S, V3.4S, V7.4S
	WORD   $0x4e28d484 // FADD V4.4S, V4.4S, V8.4S
	WORD   $0x4e29d4a5 // FADD V5.4S, V5.4S, V9.4S
	VST1.P [V2.S4, V3.S4, V4.S4, V5.S4], 64(R3)
	SUBS   $16, R2
	BGE    loop

rest:
	ADDS $16, R2
	BEQ  done

one:
	FMOVS.P 4(R0), F2
	FMOVS.P 4(R1), F3
	FMULS   F0, F2, F2
	FMULS   F11, F3, F3
	FADDS   F3, F2, F2
	FMOVS.P F2, 4(R3)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func rectify(y, x *float32, n int)
TEXT ·rectify(SB), NOSPLIT, $0-24
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
