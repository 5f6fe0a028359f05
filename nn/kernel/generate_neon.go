//go:build ignore

package main

import (
	"fmt"
	"strings"
)

// The tiles of arm64: up to 6 rows of up to 4 vectors of 4 lanes. V0 to V3 hold a row of op(B), V4
// to V7 elements of op(A), V8 on the accumulators; R4 to R9 are the addresses of the rows of op(A).
const (
	neonRows    = 6
	neonVectors = 4
)

func vectorList(first, count int) string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("V%d.S4", first+i))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func neonRoutine(s *source, rows, vectors int) {
	s.load("MOVD tile_%s(R0), %s", "a", "R4", "rowStep", "R1", "columnStep", "R2", "b", "R3", "bStep", "R10",
		"k", "R11")
	for row := 1; row < rows; row++ {
		s.op("ADD  R1, R%d, R%d", 3+row, 4+row)
	}
	for i := range rows * vectors {
		s.op("VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", 8+i)
	}
	s.line("loop:")
	s.op("VLD1 (R3), %s", vectorList(0, vectors))
	s.op("ADD  R10, R3")
	for row := range rows {
		s.op("VLD1R.P (R%d)(R2), [V%d.S4]", 4+row, 4+row%4)
		for v := range vectors {
			s.op("VFMLA V%d.S4, V%d.S4, V%d.S4", v, 4+row%4, 8+row*vectors+v)
		}
	}
	s.op("SUBS $1, R11")
	s.op("BNE  loop")
	neonEnd(s, rows, vectors)
}

func neonEnd(s *source, rows, vectors int) {
	s.op("MOVD tile_c(R0), R4")
	s.op("MOVD tile_cStep(R0), R1")
	s.op("MOVD $tile_alpha(R0), R2")
	s.op("VLD1R (R2), [V4.S4]")
	s.op("MOVWU tile_add(R0), R2")
	s.op("CBZ  R2, store")
	for row := range rows {
		s.op("VLD1 (R4), %s", vectorList(0, vectors))
		for v := range vectors {
			s.op("VFMLA V4.S4, V%d.S4, V%d.S4", 8+row*vectors+v, v)
		}
		s.op("VST1 %s, (R4)", vectorList(0, vectors))
		s.op("ADD  R1, R4")
	}
	s.op("RET")
	s.line("store:")
	for row := range rows {
		for v := range vectors {
			// FMUL Vv.4S, V(acc).4S, V4.4S, which the assembler does not know.
			s.op("WORD $%#08x // FMUL V%d.4S, V%d.4S, V4.4S", 0x6e20dc00|4<<16|(8+row*vectors+v)<<5|v, v,
				8+row*vectors+v)
		}
		s.op("VST1 %s, (R4)", vectorList(0, vectors))
		s.op("ADD  R1, R4")
	}
	s.op("RET")
}

// rakeNEON has sixteen lanes in four registers: V0 to V3 and V4 to V7 hold the rows of the first
// operand, V24 to V27 one of the second, V8 to V23 sums. Pieces are of whole sixteens.
func rakeNEON(s *source, rows, taps int) {
	s.op("MOVD rakeTile_scale(R0), R1")
	s.op("MOVD rakeTile_at(R0), R2")
	for i := range taps {
		s.op("MOVW %d(R2), R%d", 4*i, 4+i)
		s.op("MOVD rakeTile_b(R0), R3")
		s.op("MADD R1, R3, R%[1]d, R%[1]d", 4+i)
	}
	s.op("MOVD rakeTile_a(R0), R6")
	s.op("MOVD rakeTile_aStep(R0), R1")
	s.op("ADD  R1, R6, R7")
	s.op("MOVD rakeTile_aSkip(R0), R8")
	s.op("MOVD rakeTile_bSkip(R0), R9")
	s.op("MOVD rakeTile_rows(R0), R11")
	for i := range 4 * rows * taps {
		s.op("VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", 8+i)
	}
	s.line("row:")
	s.op("MOVD rakeTile_chunks(R0), R10")
	s.line("loop:")
	for row := range rows {
		s.op("VLD1.P 64(R%d), %s", 6+row, vectorList(4*row, 4))
	}
	for i := range taps {
		s.op("VLD1.P 64(R%d), %s", 4+i, vectorList(24, 4))
		for row := range rows {
			for v := range 4 {
				s.op("VFMLA V%d.S4, V%d.S4, V%d.S4", 24+v, 4*row+v, 8+4*(row*taps+i)+v)
			}
		}
	}
	s.op("SUBS $1, R10")
	s.op("BNE  loop")
	for row := range rows {
		s.op("ADD  R8, R%d", 6+row)
	}
	for i := range taps {
		s.op("ADD  R9, R%d", 4+i)
	}
	s.op("SUBS $1, R11")
	s.op("BNE  row")
	rakeSumsNEON(s, rows, taps)
}

// rakeSumsNEON is rakeSums.
func rakeSumsNEON(s *source, rows, taps int) {
	add := func(a, b, to int) {
		// FADD, which the assembler does not know.
		s.op("WORD $%#08x // FADD V%d.4S, V%d.4S, V%d.4S", 0x4e20d400|b<<16|a<<5|to, b, a, to)
	}
	s.op("MOVD rakeTile_c(R0), R4")
	s.op("MOVD rakeTile_cStep(R0), R1")
	for row := range rows {
		for i := range taps {
			first := 8 + 4*(row*taps+i)
			add(first, first+2, 0)
			add(first+1, first+3, 1)
			add(0, 1, 0)
			s.op("VEXT $8, V0.B16, V0.B16, V1.B16")
			add(0, 1, 0)
			s.op("VEXT $4, V0.B16, V0.B16, V1.B16")
			add(0, 1, 0)
			s.op("FMOVS %d(R4), F1", 4*i)
			s.op("FADDS F1, F0, F0")
			s.op("FMOVS F0, %d(R4)", 4*i)
		}
		s.op("ADD  R1, R4")
	}
	s.op("RET")
}

// jumpARM64 goes to the routine that a tile names.
const jumpARM64 = `	MOVD t+0(FP), R0
	MOVD %s_routine(R0), R1
	MOVD $%sTable<>(SB), R2
	MOVD (R2)(R1<<3), R1
	JMP  (R1)`

func arm64() string {
	s := &source{}
	s.head("arm64")
	var entries []string
	for vectors := 1; vectors <= neonVectors; vectors++ {
		for rows := 1; rows <= neonRows; rows++ {
			name := fmt.Sprintf("tileNEONRows%dVectors%d", rows, vectors)
			entries = append(entries, name)
			s.line("")
			s.line("TEXT %s<>(SB), NOSPLIT|NOFRAME, $0-8", name)
			neonRoutine(s, rows, vectors)
		}
	}
	s.dispatch("run", "tile", entries, jumpARM64)
	s.dispatch("runRake", "rakeTile", rakes(s, "rakeNEON", 2, 2, rakeNEON), jumpARM64)
	return s.String()
}
