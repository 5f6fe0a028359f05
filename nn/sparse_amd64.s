//go:build !noasm

#include "textflag.h"

// Where the entries of the row at SI begin, R14, and end, R15.
#define NEXT \
	MOVLQSX (SI), AX \
	MOVL    (R13)(AX*4), R14 \
	MOVL    4(R13)(AX*4), R15 \
	LEAQ    (R9)(R14*8), R14 \
	LEAQ    (R9)(R15*8), R15

// Where the entries of this row begin, R12, and end, BX. Those of the next one, if CX says that
// there is one, are looked up already, lest a mispredicted end of the row wait for them.
#define ROW \
	MOVQ  R14, R12 \
	MOVQ  R15, BX \
	XORL  AX, AX \
	CMPQ  CX, $1 \
	SETGT AX \
	LEAQ  (SI)(AX*4), SI \
	NEXT

// The value of an entry that is a number of bytes behind the next one, in all lanes of Y8, and where
// the row of its column is, DX. Rows are a vector of 8 or a multiple of it.
#define ENTRY(behind, vectors) \
	MOVL         (behind+4)(R12), DX \
	VBROADCASTSS behind(R12), Y8 \
	LEAQ         (R10)(DX*vectors), DX

// func sparseProduct(z *float32, pitch int, rows *int32, n int, start *uint32,
//	entries *sparseEntry, weights, bias *float32, vectors int)
//
// The sums of a row are in Y0 to Y3, the bias in Y4 to Y7.
TEXT ·sparseProduct(SB), NOSPLIT, $0-72
	MOVQ    z+0(FP), DI
	MOVQ    pitch+8(FP), R8
	MOVQ    rows+16(FP), SI
	MOVQ    n+24(FP), CX
	MOVQ    start+32(FP), R13
	MOVQ    entries+40(FP), R9
	MOVQ    weights+48(FP), R10
	MOVQ    vectors+64(FP), R11
	SHLQ    $5, R11
	NEXT
	MOVQ       bias+56(FP), AX
	VMOVUPS    (AX), Y4
	CMPQ       R11, $64
	JLT        narrow
	VMOVUPS    32(AX), Y5
	JEQ     half
	VMOVUPS 64(AX), Y6
	VMOVUPS 96(AX), Y7

row:
	ROW
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

entry:
	ENTRY(0, 4)
	VFMADD231PS (DX), Y8, Y0
	VFMADD231PS 32(DX), Y8, Y1
	VFMADD231PS 64(DX), Y8, Y2
	VFMADD231PS 96(DX), Y8, Y3
	ENTRY(8, 4)
	VFMADD231PS (DX), Y8, Y0
	VFMADD231PS 32(DX), Y8, Y1
	VFMADD231PS 64(DX), Y8, Y2
	VFMADD231PS 96(DX), Y8, Y3
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         entry
	VADDPS      Y4, Y0, Y0
	VADDPS      Y5, Y1, Y1
	VADDPS      Y6, Y2, Y2
	VADDPS      Y7, Y3, Y3
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	VMOVUPS     Y2, 64(DI)
	VMOVUPS     Y3, 96(DI)
	ADDQ        R8, DI
	DECQ        CX
	JNZ         row
	VZEROUPPER
	RET

half:
	ROW
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

halfEntry:
	ENTRY(0, 2)
	VFMADD231PS (DX), Y8, Y0
	VFMADD231PS 32(DX), Y8, Y1
	ENTRY(8, 2)
	VFMADD231PS (DX), Y8, Y0
	VFMADD231PS 32(DX), Y8, Y1
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         halfEntry
	VADDPS      Y4, Y0, Y0
	VADDPS      Y5, Y1, Y1
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	ADDQ        R8, DI
	DECQ        CX
	JNZ         half
	VZEROUPPER
	RET

narrow:
	ROW
	VXORPS Y0, Y0, Y0

narrowEntry:
	ENTRY(0, 1)
	VFMADD231PS (DX), Y8, Y0
	ENTRY(8, 1)
	VFMADD231PS (DX), Y8, Y0
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         narrowEntry
	VADDPS      Y4, Y0, Y0
	VMOVUPS     Y0, (DI)
	ADDQ        R8, DI
	DECQ        CX
	JNZ         narrow
	VZEROUPPER
	RET

// func sparseGradient(sums, d *float32, pitch int, rows *int32, n int, start *uint32,
//	entries *sparseEntry, vectors int)
//
// The row of d is in Y0 to Y3.
TEXT ·sparseGradient(SB), NOSPLIT, $0-64
	MOVQ sums+0(FP), R10
	MOVQ d+8(FP), DI
	MOVQ pitch+16(FP), R8
	MOVQ rows+24(FP), SI
	MOVQ n+32(FP), CX
	MOVQ start+40(FP), R13
	MOVQ entries+48(FP), R9
	MOVQ vectors+56(FP), R11
	SHLQ $5, R11
	NEXT

row:
	ROW
	VMOVUPS (DI), Y0
	CMPQ    R11, $64
	JLT     narrow
	VMOVUPS 32(DI), Y1
	JEQ     half
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3

entry:
	ENTRY(0, 4)
	VMOVUPS     (DX), Y4
	VMOVUPS     32(DX), Y5
	VMOVUPS     64(DX), Y6
	VMOVUPS     96(DX), Y7
	VFMADD231PS Y8, Y0, Y4
	VFMADD231PS Y8, Y1, Y5
	VFMADD231PS Y8, Y2, Y6
	VFMADD231PS Y8, Y3, Y7
	VMOVUPS     Y4, (DX)
	VMOVUPS     Y5, 32(DX)
	VMOVUPS     Y6, 64(DX)
	VMOVUPS     Y7, 96(DX)
	ENTRY(8, 4)
	VMOVUPS     (DX), Y4
	VMOVUPS     32(DX), Y5
	VMOVUPS     64(DX), Y6
	VMOVUPS     96(DX), Y7
	VFMADD231PS Y8, Y0, Y4
	VFMADD231PS Y8, Y1, Y5
	VFMADD231PS Y8, Y2, Y6
	VFMADD231PS Y8, Y3, Y7
	VMOVUPS     Y4, (DX)
	VMOVUPS     Y5, 32(DX)
	VMOVUPS     Y6, 64(DX)
	VMOVUPS     Y7, 96(DX)
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         entry
	JMP         next

half:
	ENTRY(0, 2)
	VMOVUPS     (DX), Y4
	VMOVUPS     32(DX), Y5
	VFMADD231PS Y8, Y0, Y4
	VFMADD231PS Y8, Y1, Y5
	VMOVUPS     Y4, (DX)
	VMOVUPS     Y5, 32(DX)
	ENTRY(8, 2)
	VMOVUPS     (DX), Y4
	VMOVUPS     32(DX), Y5
	VFMADD231PS Y8, Y0, Y4
	VFMADD231PS Y8, Y1, Y5
	VMOVUPS     Y4, (DX)
	VMOVUPS     Y5, 32(DX)
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         half
	JMP         next

narrow:
	ENTRY(0, 1)
	VMOVUPS     (DX), Y4
	VFMADD231PS Y8, Y0, Y4
	VMOVUPS     Y4, (DX)
	ENTRY(8, 1)
	VMOVUPS     (DX), Y4
	VFMADD231PS Y8, Y0, Y4
	VMOVUPS     Y4, (DX)
	ADDQ        $16, R12
	CMPQ        R12, BX
	JLT         narrow

next:
	ADDQ R8, DI
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

// func fetchRows(rows *int32, n int, start *uint32, entries *sparseEntry)
TEXT ·fetchRows(SB), NOSPLIT, $0-32
	MOVQ rows+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ start+16(FP), R13
	MOVQ entries+24(FP), R9

loop:
	MOVLQSX    (SI), AX
	MOVL       (R13)(AX*4), R14
	MOVL       4(R13)(AX*4), R15
	PREFETCHT0 (R9)(R14*8)
	PREFETCHT0 -8(R9)(R15*8)
	ADDQ       $4, SI
	DECQ       CX
	JNZ        loop
	RET

// func zeroTimes(sums *[8]float32, x *float32, n int)
TEXT ·zeroTimes(SB), NOSPLIT, $0-24
	MOVQ   sums+0(FP), DI
	MOVQ   x+8(FP), SI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4

loop:
	VFMADD231PS (SI), Y4, Y0
	VFMADD231PS 32(SI), Y4, Y1
	VFMADD231PS 64(SI), Y4, Y2
	VFMADD231PS 96(SI), Y4, Y3
	ADDQ        $128, SI
	SUBQ        $32, CX
	JG          loop
	VADDPS      Y1, Y0, Y0
	VADDPS      Y3, Y2, Y2
	VADDPS      Y2, Y0, Y0
	VMOVUPS     Y0, (DI)
	VZEROUPPER
	RET
