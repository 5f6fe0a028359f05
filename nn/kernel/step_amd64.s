//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// FLUSH stores x at to, its subnormals as 0. Y14 is 0, Y15 the exponent's bits. It uses Y12, Y13.
#define FLUSH(x, to) \
	VANDPS   x, Y15, Y12    \
	VPCMPEQD Y12, Y14, Y12  \
	VANDNPS  x, Y12, Y13    \
	VMOVUPS  Y13, to

// EXPONENT sets Y14 and Y15 for FLUSH.
#define EXPONENT \
	VXORPS   Y14, Y14, Y14  \
	VPCMPEQD Y15, Y15, Y15  \
	VPSRLD   $24, Y15, Y15  \
	VPSLLD   $23, Y15, Y15

// func stepMomentum(s *momentumStep)
TEXT ·stepMomentum(SB), NOSPLIT, $0-8
	MOVQ         s+0(FP), R8
	MOVQ         momentumStep_z(R8), DI
	MOVQ         momentumStep_v(R8), DX
	MOVQ         momentumStep_p(R8), SI
	MOVQ         momentumStep_g(R8), BX
	MOVQ         momentumStep_n(R8), CX
	VBROADCASTSS momentumStep_rate(R8), Y0
	VBROADCASTSS momentumStep_mu(R8), Y1
	VBROADCASTSS momentumStep_decay(R8), Y2
	VBROADCASTSS momentumStep_nesterov(R8), Y3
	EXPONENT
	XORQ         AX, AX
	PCALIGN      $32

loop:
	VMOVUPS   (SI)(AX*4), Y4
	VMULPS    Y4, Y2, Y5
	VADDPS    (BX)(AX*4), Y5, Y5 // g + λp
	VMULPS    (DX)(AX*4), Y1, Y6
	VADDPS    Y5, Y6, Y6         // v
	FLUSH(Y6, (DX)(AX*4))
	VMULPS    Y6, Y1, Y7
	VADDPS    Y5, Y7, Y7         // g + λp + μv
	VBLENDVPS Y3, Y7, Y6, Y6
	VMULPS    Y6, Y0, Y6
	VSUBPS    Y6, Y4, Y4
	VMOVUPS   Y4, (DI)(AX*4)
	ADDQ      $8, AX
	CMPQ      AX, CX
	JLT       loop
	VZEROUPPER
	RET

// func stepAdam(s *adamStep)
TEXT ·stepAdam(SB), NOSPLIT, $0-8
	MOVQ         s+0(FP), R8
	MOVQ         adamStep_z(R8), DI
	MOVQ         adamStep_m(R8), R9
	MOVQ         adamStep_v(R8), DX
	MOVQ         adamStep_p(R8), SI
	MOVQ         adamStep_g(R8), BX
	MOVQ         adamStep_n(R8), CX
	LEAQ         adamStep_Adam(R8), R8
	VBROADCASTSS Adam_Beta1(R8), Y0
	VBROADCASTSS Adam_Beta2(R8), Y1
	VBROADCASTSS Adam_Rest1(R8), Y2
	VBROADCASTSS Adam_Rest2(R8), Y3
	VBROADCASTSS Adam_Size(R8), Y4
	VBROADCASTSS Adam_Root(R8), Y5
	VBROADCASTSS Adam_Epsilon(R8), Y6
	VBROADCASTSS Adam_Decay(R8), Y7
	EXPONENT
	XORQ         AX, AX
	PCALIGN      $32

loop:
	VMOVUPS (SI)(AX*4), Y8
	VMULPS  Y8, Y7, Y9
	VADDPS  (BX)(AX*4), Y9, Y9   // g + λp
	VMULPS  (R9)(AX*4), Y0, Y10
	VMULPS  Y9, Y2, Y11
	VADDPS  Y11, Y10, Y10        // m
	FLUSH(Y10, (R9)(AX*4))
	VMULPS  Y9, Y3, Y11
	VMULPS  Y9, Y11, Y11
	VMULPS  (DX)(AX*4), Y1, Y9
	VADDPS  Y11, Y9, Y9          // v
	FLUSH(Y9, (DX)(AX*4))
	VSQRTPS Y9, Y9
	VMULPS  Y5, Y9, Y9
	VADDPS  Y6, Y9, Y9
	VDIVPS  Y9, Y10, Y10         // m ÷ (√v·root + ε)
	VMULPS  Y10, Y4, Y10
	VSUBPS  Y10, Y8, Y8
	VMOVUPS Y8, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     loop
	VZEROUPPER
	RET
