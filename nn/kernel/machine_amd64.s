//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET

// func transposeAVX2(s *strip)
//
// Four elements of eight rows at a time: rows i and i+4 share a register, so that two shuffles do.
TEXT ·transposeAVX2(SB), NOSPLIT, $0-8
	MOVQ s+0(FP), DI
	MOVQ strip_from(DI), SI
	MOVQ strip_step(DI), BX
	MOVQ strip_rows(DI), CX

	// The addresses of the eight rows, the last one's again where there are fewer.
	LEAQ (SI)(BX*1), R8
	CMPQ CX, $2
	CMOVQLT SI, R8
	LEAQ (R8)(BX*1), R9
	CMPQ CX, $3
	CMOVQLT R8, R9
	LEAQ (R9)(BX*1), R10
	CMPQ CX, $4
	CMOVQLT R9, R10
	LEAQ (R10)(BX*1), R11
	CMPQ CX, $5
	CMOVQLT R10, R11
	LEAQ (R11)(BX*1), R12
	CMPQ CX, $6
	CMOVQLT R11, R12
	LEAQ (R12)(BX*1), R13
	CMPQ CX, $7
	CMOVQLT R12, R13
	LEAQ (R13)(BX*1), AX
	CMPQ CX, $8
	CMOVQLT R13, AX
	MOVQ strip_n(DI), CX
	MOVQ strip_to(DI), DX
	MOVQ strip_pitch(DI), BX
	XORQ DI, DI
	SUBQ $4, CX
	JLT  rest

loop:
	VMOVUPS (SI)(DI*1), X0
	VMOVUPS (R8)(DI*1), X1
	VMOVUPS (R9)(DI*1), X2
	VMOVUPS (R10)(DI*1), X3
	VINSERTF128 $1, (R11)(DI*1), Y0, Y0
	VINSERTF128 $1, (R12)(DI*1), Y1, Y1
	VINSERTF128 $1, (R13)(DI*1), Y2, Y2
	VINSERTF128 $1, (AX)(DI*1), Y3, Y3
	VUNPCKLPS Y1, Y0, Y4
	VUNPCKHPS Y1, Y0, Y5
	VUNPCKLPS Y3, Y2, Y6
	VUNPCKHPS Y3, Y2, Y7
	VSHUFPS $0x44, Y6, Y4, Y0
	VSHUFPS $0xee, Y6, Y4, Y1
	VSHUFPS $0x44, Y7, Y5, Y2
	VSHUFPS $0xee, Y7, Y5, Y3
	VMOVUPS Y0, (DX)
	ADDQ BX, DX
	VMOVUPS Y1, (DX)
	ADDQ BX, DX
	VMOVUPS Y2, (DX)
	ADDQ BX, DX
	VMOVUPS Y3, (DX)
	ADDQ BX, DX
	ADDQ $16, DI
	SUBQ $4, CX
	JGE  loop

rest:
	ADDQ $4, CX
	JZ   done

one:
	VMOVSS (SI)(DI*1), X0
	VMOVSS (R8)(DI*1), X1
	VMOVSS (R9)(DI*1), X2
	VMOVSS (R10)(DI*1), X3
	VMOVSS (R11)(DI*1), X4
	VMOVSS (R12)(DI*1), X5
	VMOVSS (R13)(DI*1), X6
	VMOVSS (AX)(DI*1), X7
	VMOVSS X0, 0(DX)
	VMOVSS X1, 4(DX)
	VMOVSS X2, 8(DX)
	VMOVSS X3, 12(DX)
	VMOVSS X4, 16(DX)
	VMOVSS X5, 20(DX)
	VMOVSS X6, 24(DX)
	VMOVSS X7, 28(DX)
	ADDQ BX, DX
	ADDQ $4, DI
	DECQ CX
	JNZ  one

done:
	VZEROUPPER
	RET
