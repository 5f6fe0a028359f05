//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// COEFFICIENT fills the lanes of a vector with a number.
#define COEFFICIENT(from, f, v) \
	FMOVS from, f \
	VDUP  v.S[0], v.S4

// EXPONENT fills the lanes of V15 with the bits of an exponent.
#define EXPONENT \
	MOVD $0x7f800000, R7 \
	VDUP R7, V15.S4

// func stepMomentum(s *momentumStep)
TEXT ·stepMomentum(SB), NOSPLIT, $0-8
	MOVD  s+0(FP), R0
	MOVD  momentumStep_z(R0), R1
	MOVD  momentumStep_v(R0), R2
	MOVD  momentumStep_p(R0), R3
	MOVD  momentumStep_g(R0), R4
	MOVD  momentumStep_n(R0), R5
	MOVWU momentumStep_nesterov(R0), R6
	COEFFICIENT(momentumStep_rate(R0), F16, V16)
	COEFFICIENT(momentumStep_mu(R0), F17, V17)
	COEFFICIENT(momentumStep_decay(R0), F18, V18)
	EXPONENT

loop:
	VLD1.P 16(R3), [V4.S4]
	VLD1.P 16(R4), [V5.S4]
	VLD1  (R2), [V6.S4]
	WORD  $0x6e32dc87 // FMUL V7.4S, V4.4S, V18.4S
	WORD  $0x4e27d4a5 // FADD V5.4S, V5.4S, V7.4S
	WORD  $0x6e31dcc6 // FMUL V6.4S, V6.4S, V17.4S
	WORD  $0x4e25d4c6 // FADD V6.4S, V6.4S, V5.4S
	VAND  V6.B16, V15.B16, V12.B16
	WORD  $0x4ea0998c // CMEQ V12.4S, V12.4S, #0
	WORD  $0x4e6c1ccd // BIC V13.16B, V6.16B, V12.16B
	VST1.P [V13.S4], 16(R2)
	CBZ   R6, plain
	WORD  $0x6e31dcc6 // FMUL V6.4S, V6.4S, V17.4S
	WORD  $0x4e25d4c6 // FADD V6.4S, V6.4S, V5.4S

plain:
	WORD  $0x6e30dcc6 // FMUL V6.4S, V6.4S, V16.4S
	WORD  $0x4ea6d484 // FSUB V4.4S, V4.4S, V6.4S
	VST1.P [V4.S4], 16(R1)
	SUBS  $4, R5
	BGT   loop
	RET

// func stepAdam(s *adamStep)
TEXT ·stepAdam(SB), NOSPLIT, $0-8
	MOVD s+0(FP), R0
	MOVD adamStep_z(R0), R1
	MOVD adamStep_m(R0), R6
	MOVD adamStep_v(R0), R2
	MOVD adamStep_p(R0), R3
	MOVD adamStep_g(R0), R4
	MOVD adamStep_n(R0), R5
	ADD  $adamStep_Adam, R0
	COEFFICIENT(Adam_Beta1(R0), F16, V16)
	COEFFICIENT(Adam_Beta2(R0), F17, V17)
	COEFFICIENT(Adam_Rest1(R0), F18, V18)
	COEFFICIENT(Adam_Rest2(R0), F19, V19)
	COEFFICIENT(Adam_Size(R0), F20, V20)
	COEFFICIENT(Adam_Root(R0), F21, V21)
	COEFFICIENT(Adam_Epsilon(R0), F22, V22)
	COEFFICIENT(Adam_Decay(R0), F23, V23)
	EXPONENT

loop:
	VLD1.P 16(R3), [V4.S4]
	VLD1.P 16(R4), [V5.S4]
	VLD1  (R6), [V6.S4]
	VLD1  (R2), [V7.S4]
	WORD  $0x6e37dc88 // FMUL V8.4S, V4.4S, V23.4S
	WORD  $0x4e28d4a5 // FADD V5.4S, V5.4S, V8.4S
	WORD  $0x6e30dcc6 // FMUL V6.4S, V6.4S, V16.4S
	WORD  $0x6e32dca8 // FMUL V8.4S, V5.4S, V18.4S
	WORD  $0x4e28d4c6 // FADD V6.4S, V6.4S, V8.4S
	VAND  V6.B16, V15.B16, V12.B16
	WORD  $0x4ea0998c // CMEQ V12.4S, V12.4S, #0
	WORD  $0x4e6c1ccd // BIC V13.16B, V6.16B, V12.16B
	VST1.P [V13.S4], 16(R6)
	WORD  $0x6e33dca8 // FMUL V8.4S, V5.4S, V19.4S
	WORD  $0x6e25dd08 // FMUL V8.4S, V8.4S, V5.4S
	WORD  $0x6e31dce7 // FMUL V7.4S, V7.4S, V17.4S
	WORD  $0x4e28d4e7 // FADD V7.4S, V7.4S, V8.4S
	VAND  V7.B16, V15.B16, V12.B16
	WORD  $0x4ea0998c // CMEQ V12.4S, V12.4S, #0
	WORD  $0x4e6c1ced // BIC V13.16B, V7.16B, V12.16B
	VST1.P [V13.S4], 16(R2)
	WORD  $0x6ea1f8e7 // FSQRT V7.4S, V7.4S
	WORD  $0x6e35dce7 // FMUL V7.4S, V7.4S, V21.4S
	WORD  $0x4e36d4e7 // FADD V7.4S, V7.4S, V22.4S
	WORD  $0x6e27fcc6 // FDIV V6.4S, V6.4S, V7.4S
	WORD  $0x6e34dcc6 // FMUL V6.4S, V6.4S, V20.4S
	WORD  $0x4ea6d484 // FSUB V4.4S, V4.4S, V6.4S
	VST1.P [V4.S4], 16(R1)
	SUBS $4, R5
	BGT  loop
	RET
