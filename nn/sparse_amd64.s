//go:build !noasm

#include "textflag.h"

// func sparseProduct(z *float32, pitch, rows int, start *uint32, entries *sparseEntry, weights, bias *float32)
//
// The sums of a row are in Y0 to Y3, the bias in Y4 to Y7.
TEXT ·sparseProduct(SB), NOSPLIT, $0-56
	MOVQ    z+0(FP), DI
	MOVQ    pitch+8(FP), R8
	MOVQ    rows+16(FP), CX
	MOVQ    start+24(FP), SI
	MOVQ    entries+32(FP), R9
	MOVQ    weights+40(FP), R10
	MOVQ    bias+48(FP), R11
	VMOVUPS (R11), Y4
	VMOVUPS 32(R11), Y5
	VMOVUPS 64(R11), Y6
	VMOVUPS 96(R11), Y7
	MOVL    (SI), AX
	LEAQ    (R9)(AX*8), R12

row:
	ADDQ    $4, SI
	MOVL    (SI), BX
	LEAQ    (R9)(BX*8), R13
	VXORPS  Y0, Y0, Y0
	VXORPS  Y1, Y1, Y1
	VXORPS  Y2, Y2, Y2
	VXORPS  Y3, Y3, Y3
	CMPQ    R12, R13
	JGE     store

entry:
	MOVL         4(R12), DX
	VBROADCASTSS (R12), Y8
	ADDQ         R10, DX
	VFMADD231PS  (DX), Y8, Y0
	VFMADD231PS  32(DX), Y8, Y1
	VFMADD231PS  64(DX), Y8, Y2
	VFMADD231PS  96(DX), Y8, Y3
	ADDQ         $8, R12
	CMPQ         R12, R13
	JLT          entry

store:
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VADDPS  Y6, Y2, Y2
	VADDPS  Y7, Y3, Y3
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    R8, DI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET
