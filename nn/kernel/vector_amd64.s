//go:build !noasm

#include "textflag.h"

// LOAD32 and STORE32 move 32 elements between memory and Y1 to Y4.
#define LOAD32(from) \
	VMOVUPS (from), Y1   \
	VMOVUPS 32(from), Y2 \
	VMOVUPS 64(from), Y3 \
	VMOVUPS 96(from), Y4

#define STORE32(to) \
	VMOVUPS Y1, (to)   \
	VMOVUPS Y2, 32(to) \
	VMOVUPS Y3, 64(to) \
	VMOVUPS Y4, 96(to)

// BLOCKS32 sets BX to the blocks of 32 elements of CX, and goes on at rest if there are none.
#define BLOCKS32(rest) \
	MOVQ CX, BX \
	SHRQ $5, BX \
	JZ   rest   \
	PCALIGN $32

// func axpyAVX2(alpha float32, x, y, z *float32, n int)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-40
	VBROADCASTSS alpha+0(FP), Y0
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ z+24(FP), DI
	MOVQ n+32(FP), CX
	BLOCKS32(eights)

loop:
	LOAD32(SI)
	VFMADD213PS (DX), Y0, Y1
	VFMADD213PS 32(DX), Y0, Y2
	VFMADD213PS 64(DX), Y0, Y3
	VFMADD213PS 96(DX), Y0, Y4
	STORE32(DI)
	ADDQ        $128, SI
	ADDQ        $128, DX
	ADDQ        $128, DI
	DECQ        BX
	JNZ         loop

eights:
	MOVQ CX, BX
	ANDQ $31, BX
	SHRQ $3, BX
	JZ   ones

eight:
	VMOVUPS     (SI), Y1
	VFMADD213PS (DX), Y0, Y1
	VMOVUPS     Y1, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DX
	ADDQ        $32, DI
	DECQ        BX
	JNZ         eight

ones:
	ANDQ $7, CX
	JZ   done

one:
	VMOVSS      (SI), X1
	VFMADD213SS (DX), X0, X1
	VMOVSS      X1, (DI)
	ADDQ        $4, SI
	ADDQ        $4, DX
	ADDQ        $4, DI
	DECQ        CX
	JNZ         one

done:
	VZEROUPPER
	RET

// func axpyAVX512(alpha float32, x, y, z *float32, n int)
TEXT ·axpyAVX512(SB), NOSPLIT, $0-40
	VBROADCASTSS alpha+0(FP), Z0
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), R8
	MOVQ z+24(FP), DI
	MOVQ n+32(FP), CX
	MOVQ CX, BX
	SHRQ $6, BX
	JZ   sixteens
	PCALIGN $32

loop:
	VMOVUPS     (SI), Z1
	VMOVUPS     64(SI), Z2
	VMOVUPS     128(SI), Z3
	VMOVUPS     192(SI), Z4
	VFMADD213PS (R8), Z0, Z1
	VFMADD213PS 64(R8), Z0, Z2
	VFMADD213PS 128(R8), Z0, Z3
	VFMADD213PS 192(R8), Z0, Z4
	VMOVUPS     Z1, (DI)
	VMOVUPS     Z2, 64(DI)
	VMOVUPS     Z3, 128(DI)
	VMOVUPS     Z4, 192(DI)
	ADDQ        $256, SI
	ADDQ        $256, R8
	ADDQ        $256, DI
	DECQ        BX
	JNZ         loop

sixteens:
	ANDQ $63, CX

sixteen:
	MOVQ        $16, DX
	CMPQ        CX, DX
	CMOVQLT     CX, DX
	MOVL        $0xffff, AX
	BZHIL       DX, AX, AX
	JZ          done
	KMOVW       AX, K1
	VMOVUPS.Z   (SI), K1, Z1
	VMOVUPS.Z   (R8), K1, Z2
	VFMADD213PS Z2, Z0, Z1
	VMOVUPS     Z1, K1, (DI)
	ADDQ        $64, SI
	ADDQ        $64, R8
	ADDQ        $64, DI
	SUBQ        DX, CX
	JMP         sixteen

done:
	VZEROUPPER
	RET

// func scal(alpha float32, x *float32, n int)
TEXT ·scal(SB), NOSPLIT, $0-24
	VBROADCASTSS alpha+0(FP), Y0
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	BLOCKS32(rest)

loop:
	VMULPS  (SI), Y0, Y1
	VMULPS  32(SI), Y0, Y2
	VMULPS  64(SI), Y0, Y3
	VMULPS  96(SI), Y0, Y4
	STORE32(SI)
	ADDQ    $128, SI
	DECQ    BX
	JNZ     loop

rest:
	ANDQ $31, CX
	JZ   done

one:
	VMULSS (SI), X0, X1
	VMOVSS X1, (SI)
	ADDQ   $4, SI
	DECQ   CX
	JNZ    one

done:
	VZEROUPPER
	RET

// func sum(alpha float32, x, y, z *float32, n int)
TEXT ·sum(SB), NOSPLIT, $0-40
	VBROADCASTSS alpha+0(FP), Y0
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ z+24(FP), DI
	MOVQ n+32(FP), CX
	BLOCKS32(rest)

loop:
	LOAD32(SI)
	VADDPS  (DX), Y1, Y1
	VADDPS  32(DX), Y2, Y2
	VADDPS  64(DX), Y3, Y3
	VADDPS  96(DX), Y4, Y4
	VMULPS  Y0, Y1, Y1
	VMULPS  Y0, Y2, Y2
	VMULPS  Y0, Y3, Y3
	VMULPS  Y0, Y4, Y4
	STORE32(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, DI
	DECQ    BX
	JNZ     loop

rest:
	ANDQ $31, CX
	JZ   done

one:
	VMOVSS (SI), X1
	VADDSS (DX), X1, X1
	VMULSS X0, X1, X1
	VMOVSS X1, (DI)
	ADDQ   $4, SI
	ADDQ   $4, DX
	ADDQ   $4, DI
	DECQ   CX
	JNZ    one

done:
	VZEROUPPER
	RET

// func axpby(alpha, beta float32, x, y, z *float32, n int)
TEXT ·axpby(SB), NOSPLIT, $0-40
	VBROADCASTSS alpha+0(FP), Y0
	VBROADCASTSS beta+4(FP), Y5
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ z+24(FP), DI
	MOVQ n+32(FP), CX
	BLOCKS32(rest)

loop:
	VMULPS (SI), Y0, Y1
	VMULPS 32(SI), Y0, Y2
	VMULPS 64(SI), Y0, Y3
	VMULPS 96(SI), Y0, Y4
	VMULPS (DX), Y5, Y6
	VMULPS 32(DX), Y5, Y7
	VMULPS 64(DX), Y5, Y8
	VMULPS 96(DX), Y5, Y9
	VADDPS Y6, Y1, Y1
	VADDPS Y7, Y2, Y2
	VADDPS Y8, Y3, Y3
	VADDPS Y9, Y4, Y4
	STORE32(DI)
	ADDQ   $128, SI
	ADDQ   $128, DX
	ADDQ   $128, DI
	DECQ   BX
	JNZ    loop

rest:
	ANDQ $31, CX
	JZ   done

one:
	VMULSS (SI), X0, X1
	VMULSS (DX), X5, X2
	VADDSS X2, X1, X1
	VMOVSS X1, (DI)
	ADDQ   $4, SI
	ADDQ   $4, DX
	ADDQ   $4, DI
	DECQ   CX
	JNZ    one

done:
	VZEROUPPER
	RET

// func rectify(y, x *float32, n int)
TEXT ·rectify(SB), NOSPLIT, $0-24
	MOVQ   y+0(FP), DI
	MOVQ   x+8(FP), SI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	BLOCKS32(eights)

loop:
	// Not (0 ≥ x), which holds for NaN.
	VCMPPS  $0x19, (SI), Y0, Y1
	VCMPPS  $0x19, 32(SI), Y0, Y2
	VCMPPS  $0x19, 64(SI), Y0, Y3
	VCMPPS  $0x19, 96(SI), Y0, Y4
	VANDPS  (DI), Y1, Y1
	VANDPS  32(DI), Y2, Y2
	VANDPS  64(DI), Y3, Y3
	VANDPS  96(DI), Y4, Y4
	STORE32(DI)
	ADDQ    $128, SI
	ADDQ    $128, DI
	DECQ    BX
	JNZ     loop

eights:
	ANDQ $31, CX
	SHRQ $3, CX
	JZ   done

eight:
	VCMPPS  $0x19, (SI), Y0, Y1
	VANDPS  (DI), Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     eight

done:
	VZEROUPPER
	RET
