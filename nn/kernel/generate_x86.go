//go:build ignore

package main

import "fmt"

// x86 describes one of the vector widths of amd64.
type x86 struct {
	register   string
	rows       int // of the largest tile
	lanes      int
	group      int // rows that share a base register
	first      int // accumulator
	broadcasts int
}

var (
	avx2   = x86{register: "Y", rows: 6, lanes: 8, group: 3, first: 4, broadcasts: 2}
	avx512 = x86{register: "Z", rows: 12, lanes: 16, group: 4, first: 8, broadcasts: 6}
)

// bases hold the addresses of rows 0, group, 2·group of op(A).
var bases = []string{"SI", "R10", "R11"}

func (x x86) reg(i int) string { return fmt.Sprint(x.register, i) }

func (x x86) acc(row, vector, vectors int) string { return x.reg(x.first + row*vectors + vector) }

// element is the operand of op(A)'s element in a row and the present column.
func (x x86) element(row int) string {
	return "(" + bases[row/x.group] + ")" + []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[row%x.group]
}

// begin loads the tile's fields and clears the accumulators.
func (x x86) begin(s *source, rows, vectors int, masked bool) {
	s.load("MOVQ tile_%s(DI), %s", "a", "SI", "rowStep", "R8", "columnStep", "R12", "b", "BX", "bStep", "R13",
		"k", "CX")
	if rows > 2 {
		s.op("LEAQ (R8)(R8*2), R9")
	}
	for g := 1; g*x.group < rows; g++ {
		scale := "(R9*1)"
		if x.group == 4 {
			scale = "(R8*4)"
		}
		s.op("LEAQ (%s)%s, %s", bases[g-1], scale, bases[g])
	}
	x.mask(s, "tile", masked)
	x.clear(s, rows*vectors)
}

// mask makes the mask of a tile's last vector, K1 or Y3.
func (x x86) mask(s *source, tile string, masked bool) {
	switch {
	case x.lanes == 16:
		s.op("MOVQ %s_lanes(DI), DX", tile)
		s.op("MOVL $0xffff, AX")
		s.op("BZHIL DX, AX, AX")
		s.op("KMOVW AX, K1")
	case masked:
		s.op("MOVQ %s_lanes(DI), DX", tile)
		s.op("NEGQ DX")
		s.op("LEAQ lanesAVX2<>+32(SB), AX")
		s.op("VMOVUPS (AX)(DX*4), Y3")
	}
}

// clear sets the first accumulators to zero.
func (x x86) clear(s *source, count int) {
	for i := range count {
		acc := x.reg(x.first + i)
		if x.lanes == 16 {
			s.op("VPXORD %[1]s, %[1]s, %[1]s", acc)
		} else {
			s.op("VXORPS %[1]s, %[1]s, %[1]s", acc)
		}
	}
}

// load reads vector v of the vectors at an address into a register, the last one as far as its
// lanes go.
func (x x86) load(s *source, v, vectors int, masked bool, base, to string) {
	address := fmt.Sprintf("%d(%s)", v*x.lanes*4, base)
	switch {
	case v < vectors-1 || !masked:
		s.op("VMOVUPS %s, %s", address, to)
	case x.lanes == 16:
		s.op("VMOVUPS.Z %s, K1, %s", address, to)
	default:
		s.op("VMASKMOVPS %s, Y3, %s", address, to)
	}
}

func (x x86) store(s *source, v, vectors int, masked bool, from string) {
	address := fmt.Sprintf("%d(DX)", v*x.lanes*4)
	switch {
	case v < vectors-1 || !masked:
		s.op("VMOVUPS %s, %s", from, address)
	case x.lanes == 16:
		s.op("VMOVUPS %s, K1, %s", from, address)
	default:
		s.op("VMASKMOVPS %s, Y3, %s", from, address)
	}
}

// step is one column of op(A) times one row of op(B).
func (x x86) step(s *source, rows, vectors int, masked bool) {
	x.multiply(s, rows, vectors, masked, "BX", x.element)
	s.op("ADDQ R13, BX")
	for g := 0; g*x.group < rows; g++ {
		s.op("ADDQ R12, %s", bases[g])
	}
}

// multiply adds to the accumulators the products of the elements with the row at an address.
func (x x86) multiply(s *source, rows, vectors int, masked bool, base string, element func(row int) string) {
	for v := range vectors {
		x.load(s, v, vectors, masked, base, x.reg(v))
	}
	broadcasts := x.broadcasts
	if masked && x.lanes == 8 {
		broadcasts = 1
	}
	for row := range rows {
		value := x.reg(2 + row%broadcasts)
		s.op("VBROADCASTSS %s, %s", element(row), value)
		for v := range vectors {
			s.op("VFMADD231PS %s, %s, %s", x.reg(v), value, x.acc(row, v, vectors))
		}
	}
}

// end writes alpha times the accumulators to C, or adds it.
func (x x86) end(s *source, rows, vectors int, masked bool) {
	s.op("MOVQ tile_c(DI), DX")
	s.op("MOVQ tile_cStep(DI), R8")
	s.op("VBROADCASTSS tile_alpha(DI), %s", x.reg(0))
	s.op("CMPL tile_add(DI), $0")
	s.op("JEQ  store")
	x.results(s, rows, vectors, masked, func(acc string, v int) {
		x.load(s, v, vectors, masked, "DX", x.reg(1))
		s.op("VFMADD213PS %s, %s, %s", x.reg(1), x.reg(0), acc)
	})
	s.line("store:")
	x.results(s, rows, vectors, masked, func(acc string, _ int) { s.op("VMULPS %s, %[2]s, %[2]s", x.reg(0), acc) })
}

// results writes the accumulators to C after what is to be done with each, and returns.
func (x x86) results(s *source, rows, vectors int, masked bool, finish func(acc string, v int)) {
	for row := range rows {
		for v := range vectors {
			acc := x.acc(row, v, vectors)
			if finish != nil {
				finish(acc, v)
			}
			x.store(s, v, vectors, masked, acc)
		}
		if row < rows-1 {
			s.op("ADDQ R8, DX")
		}
	}
	s.op("VZEROUPPER")
	s.op("RET")
}

// routines writes the tiles of one width; the table's order is masked, vectors, rows, the last
// running fastest.
func (x x86) routines(
	s *source, name string, routine func(s *source, rows, vectors int, masked bool),
) (entries []string) {
	variants := []bool{false, true}
	if x.lanes == 16 {
		variants = []bool{true}
	}
	for _, masked := range variants {
		for vectors := 1; vectors <= 2; vectors++ {
			for rows := 1; rows <= x.rows; rows++ {
				entry := fmt.Sprintf("%sRows%dVectors%d", name, rows, vectors)
				if masked && x.lanes == 8 {
					entry += "Masked"
				}
				entries = append(entries, entry)
				s.line("")
				s.line("TEXT %s<>(SB), NOSPLIT|NOFRAME, $0-8", entry)
				routine(s, rows, vectors, masked)
			}
		}
	}
	return entries
}

// tile writes the routine of an ordinary tile.
func (x x86) tile(s *source, rows, vectors int, masked bool) {
	x.begin(s, rows, vectors, masked)
	x.askForC(s, rows, vectors)
	x.steps(s, rows, vectors, masked)
	s.op("PCALIGN $32")
	s.line("loop:")
	x.step(s, rows, vectors, masked)
	s.op("DECQ CX")
	s.op("JNZ  loop")
	s.line("end:")
	x.end(s, rows, vectors, masked)
}

// steps takes four columns of op(A) at a time where they lie side by side, which needs fewer
// instructions for each; what is left is for the loop.
func (x x86) steps(s *source, rows, vectors int, masked bool) {
	const columns, size = 4, 4
	s.line("steps:")
	s.op("CMPQ R12, $%d", size)
	s.op("JNE  loop")
	s.op("SUBQ $%d, CX", columns)
	s.op("JLT  few")
	s.line("four:")
	for column := range columns {
		x.multiply(s, rows, vectors, masked, "BX", func(row int) string {
			return fmt.Sprint(column*size, x.element(row))
		})
		s.op("ADDQ R13, BX")
	}
	for g := 0; g*x.group < rows; g++ {
		s.op("ADDQ $%d, %s", columns*size, bases[g])
	}
	s.op("SUBQ $%d, CX", columns)
	s.op("JGE  four")
	s.line("few:")
	s.op("ADDQ $%d, CX", columns)
	s.op("JZ   end")
}

// worthAsking is the least number of terms that take longer than C takes to come.
const worthAsking = 128

// askForC has the tile's place in C fetched into the first-level cache while terms are multiplied.
func (x x86) askForC(s *source, rows, vectors int) {
	const line = 64 // bytes
	s.op("CMPQ CX, $%d", worthAsking)
	s.op("JLT  steps")
	s.op("MOVQ tile_c(DI), DX")
	s.op("MOVQ tile_cStep(DI), AX")
	for row := range rows {
		for at := 0; at < 4*vectors*x.lanes; at += line {
			s.op("PREFETCHT0 %d(DX)", at)
		}
		if row < rows-1 {
			s.op("ADDQ AX, DX")
		}
	}
}

// spread writes a routine that takes the rows of the right operand from where a list of places
// says.
func (x x86) spread(s *source, rows, vectors int, masked bool) {
	s.load("MOVQ spreadTile_%s(DI), %s", "a", "SI", "b", "BX", "scale", "R13", "aStep", "R12", "outer", "R8")
	s.op("ADDQ spreadTile_bFirst(DI), BX")
	x.mask(s, "spreadTile", masked)
	x.clear(s, rows*vectors)
	s.op("MOVQ  spreadTile_bias(DI), AX")
	s.op("TESTQ AX, AX")
	s.op("JZ    outer")
	for row := range rows {
		s.op("VBROADCASTSS %d(AX), %s", 4*row, x.reg(0))
		for v := range vectors {
			s.op("VADDPS %s, %[2]s, %[2]s", x.reg(0), x.acc(row, v, vectors))
		}
	}
	s.line("outer:")
	s.op("MOVQ spreadTile_at(DI), DX")
	s.op("MOVQ spreadTile_terms(DI), CX")
	s.op("PCALIGN $32")
	s.line("loop:")
	s.op("MOVLQSX (DX), R9")
	s.op("IMULQ R13, R9")
	s.op("ADDQ BX, R9")
	x.multiply(s, rows, vectors, masked, "R9", func(row int) string { return fmt.Sprintf("%d(SI)", 4*row) })
	s.op("ADDQ R12, SI")
	s.op("ADDQ $4, DX")
	s.op("DECQ CX")
	s.op("JNZ  loop")
	s.op("ADDQ spreadTile_aSkip(DI), SI")
	s.op("ADDQ spreadTile_bOuter(DI), BX")
	s.op("DECQ R8")
	s.op("JNZ  outer")
	s.op("MOVQ spreadTile_c(DI), DX")
	s.op("MOVQ spreadTile_cStep(DI), R8")
	s.op("CMPL spreadTile_add(DI), $0")
	s.op("JEQ  store")
	x.results(s, rows, vectors, masked, func(acc string, v int) {
		x.load(s, v, vectors, masked, "DX", x.reg(1))
		s.op("VADDPS %s, %[2]s, %[2]s", x.reg(1), acc)
	})
	s.line("store:")
	x.results(s, rows, vectors, masked, nil)
}

// rakeBegin loads what a rake's loop needs and returns the registers with the addresses of taps.
func rakeBegin(s *source, taps int) []string {
	pointers := []string{"AX", "BX", "DX", "R10", "R11", "R12"}[:taps]
	s.op("MOVQ rakeTile_scale(DI), R13")
	s.op("MOVQ rakeTile_at(DI), CX")
	for i, p := range pointers {
		s.op("MOVLQSX %d(CX), %s", 4*i, p)
		s.op("IMULQ R13, %s", p)
		s.op("ADDQ rakeTile_b(DI), %s", p)
	}
	s.op("MOVQ rakeTile_a(DI), SI")
	s.op("MOVQ rakeTile_aStep(DI), R8")
	s.op("LEAQ (R8)(R8*2), R9")
	s.op("XORL CX, CX")
	return pointers
}

// rakeLoop goes over the pieces of the rows, sixteen elements at a time.
func rakeLoop(s *source, multiply func(masked bool)) {
	s.line("row:")
	s.op("MOVQ rakeTile_chunks(DI), R13")
	s.op("TESTQ R13, R13")
	s.op("JZ   rest")
	s.op("PCALIGN $32")
	s.line("loop:")
	multiply(false)
	s.op("ADDQ $64, CX")
	s.op("ADDQ $64, SI")
	s.op("DECQ R13")
	s.op("JNZ  loop")
	s.line("rest:")
	s.op("CMPQ rakeTile_lanes(DI), $0")
	s.op("JEQ  next")
	multiply(true)
	s.line("next:")
	s.op("ADDQ rakeTile_aSkip(DI), SI")
	s.op("ADDQ rakeTile_bSkip(DI), CX")
	s.op("DECQ rakeTile_rows(DI)")
	s.op("JNZ  row")
}

// rakeAVX512 writes a routine that multiplies rows of one operand by taps of the other, lane by
// lane: Z0 to Z5 hold the second operand, Z6 and Z7 the first, the others sums.
func rakeAVX512(s *source, rows, taps int) {
	x := avx512
	x.mask(s, "rakeTile", true)
	pointers := rakeBegin(s, taps)
	x.clear(s, rows*taps)
	rakeLoop(s, func(masked bool) {
		load := "VMOVUPS %s, Z%d"
		if masked {
			load = "VMOVUPS.Z %s, K1, Z%d"
		}
		for i, p := range pointers {
			s.op(load, fmt.Sprintf("(%s)(CX*1)", p), i)
		}
		for row := range rows {
			s.op(load, "(SI)"+[]string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[row], 6+row%2)
			for i := range taps {
				s.op("VFMADD231PS Z%d, Z%d, %s", i, 6+row%2, x.acc(row, i, taps))
			}
		}
	})
	rakeSums(s, rows, taps, func(sum int) (string, string) {
		s.op("VEXTRACTF64X4 $1, Z%d, Y0", x.first+sum)
		return fmt.Sprintf("Y%d", x.first+sum), "Y0"
	})
}

// rakeSums adds the lanes of every sum, and that to C: the upper half of the lanes to the lower one
// until one is left.
func rakeSums(s *source, rows, taps int, halves func(sum int) (lower, upper string)) {
	s.op("MOVQ rakeTile_c(DI), DX")
	s.op("MOVQ rakeTile_cStep(DI), R8")
	for row := range rows {
		for i := range taps {
			lower, upper := halves(row*taps + i)
			s.op("VADDPS %s, %s, Y1", upper, lower)
			s.op("VEXTRACTF128 $1, Y1, X2")
			s.op("VADDPS X2, X1, X1")
			s.op("VPERMILPS $0x4e, X1, X2")
			s.op("VADDPS X2, X1, X1")
			s.op("VMOVSHDUP X1, X2")
			s.op("VADDSS X2, X1, X1")
			s.op("VADDSS %d(DX), X1, X1", 4*i)
			s.op("VMOVSS X1, %d(DX)", 4*i)
		}
		if row < rows-1 {
			s.op("ADDQ R8, DX")
		}
	}
	s.op("VZEROUPPER")
	s.op("RET")
}

// rakeAVX2 has sixteen lanes in two registers: Y0 and Y1 hold the first operand, Y2 the second, Y3
// a mask.
func rakeAVX2(s *source, rows, taps int) {
	x := avx2
	pointers := rakeBegin(s, taps)
	x.clear(s, 2*rows*taps)
	rakeLoop(s, func(masked bool) {
		for half := range 2 {
			load := func(address, to string) {
				if address = fmt.Sprintf("%d%s", 32*half, address); masked {
					s.op("VMASKMOVPS %s, Y3, %s", address, to)
				} else {
					s.op("VMOVUPS %s, %s", address, to)
				}
			}
			if masked {
				s.op("MOVQ rakeTile_%s(DI), R13", []string{"lanes", "upper"}[half])
				s.op("NEGQ R13")
				s.op("LEAQ lanesAVX2<>+32(SB), R12")
				s.op("VMOVUPS (R12)(R13*4), Y3")
			}
			for row := range rows {
				load("(SI)"+[]string{"", "(R8*1)"}[row], x.reg(row))
			}
			for i, p := range pointers {
				load(fmt.Sprintf("(%s)(CX*1)", p), "Y2")
				for row := range rows {
					s.op("VFMADD231PS Y2, %s, %s", x.reg(row), x.reg(x.first+2*(row*taps+i)+half))
				}
			}
		}
	})
	rakeSums(s, rows, taps, func(sum int) (string, string) {
		return x.reg(x.first + 2*sum),
			x.reg(x.first + 2*sum + 1)
	})
}

// jumpAMD64 goes to the routine that a tile names.
const jumpAMD64 = `	MOVQ t+0(FP), DI
	MOVQ %s_routine(DI), AX
	LEAQ %sTable<>(SB), CX
	MOVQ (CX)(AX*8), AX
	JMP  AX`

func amd64() string {
	s := &source{}
	s.head("amd64")
	s.line("")
	for i := range 16 {
		s.line("DATA lanesAVX2<>+%d(SB)/4, $%#x", 4*i, map[bool]uint32{true: 0xffffffff}[i < 8])
	}
	s.line("GLOBL lanesAVX2<>(SB), RODATA|NOPTR, $64")
	tiles := append(avx2.routines(s, "tileAVX2", avx2.tile), avx512.routines(s, "tileAVX512", avx512.tile)...)
	s.dispatch("run", "tile", tiles, jumpAMD64)
	spreads := append(avx2.routines(s, "spreadAVX2", avx2.spread),
		avx512.routines(s, "spreadAVX512", avx512.spread)...)
	s.dispatch("runSpread", "spreadTile", spreads, jumpAMD64)
	rakes := append(rakes(s, "rakeAVX2", 2, 3, rakeAVX2), rakes(s, "rakeAVX512", 4, 6, rakeAVX512)...)
	s.dispatch("runRake", "rakeTile", rakes, jumpAMD64)
	return s.String()
}
