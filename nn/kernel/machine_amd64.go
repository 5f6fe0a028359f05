//go:build !noasm

package kernel

// The bits of CPUID and XGETBV that tell of the instructions and of the registers that the
// operating system keeps.
const (
	leaf1FMA, leaf1OSXSAVE, leaf1AVX = 1 << 12, 1 << 27, 1 << 28
	leaf7AVX2, leaf7BMI2             = 1 << 5, 1 << 8
	leaf7AVX512                      = 1<<16 | 1<<17 | 1<<30 | 1<<31 // F, DQ, BW, VL
	stateYMM                         = 1<<1 | 1<<2
	stateZMM                         = stateYMM | 1<<5 | 1<<6 | 1<<7
)

var (
	instructionsAVX2 = instructions{name: "avx2", rows: 6, columns: 16, lanes: 8, masked: true, partial: 2,
		rakeRows: 2, rakeTaps: 3}
	instructionsAVX512 = instructions{name: "avx512", rows: 12, columns: 32, lanes: 16, masked: true, tiles: 24,
		rakeRows: 4, rakeTaps: 6, rakes: 6}
)

var active = offered()[0]

// offered returns the sets of instructions that this processor and operating system offer, the best
// first.
func offered() []instructions {
	all := []instructions{portable}
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return all
	}
	_, _, c1, _ := cpuid(1, 0)
	const need = leaf1FMA | leaf1OSXSAVE | leaf1AVX
	if c1&need != need {
		return all
	}
	_, b7, _, _ := cpuid(7, 0)
	state := xgetbv()
	if b7&leaf7AVX2 == 0 || state&stateYMM != stateYMM {
		return all
	}
	all = append([]instructions{instructionsAVX2}, all...)
	if b7&(leaf7AVX512|leaf7BMI2) == leaf7AVX512|leaf7BMI2 && state&stateZMM == stateZMM {
		all = append([]instructions{instructionsAVX512}, all...)
	}
	return all
}

// secondLevel returns the bytes of the second-level cache, 0 if the processor does not tell.
//
// Intel lists its caches in leaf 4 of CPUID, AMD in an extended leaf with the same fields. The
// older leaf 0x80000006 is not asked: hypervisors put a fixed size there.
func secondLevel() int {
	const intel, extended, amd = 4, 0x80000000, 0x8000001d
	if leaves, _, _, _ := cpuid(0, 0); leaves >= intel {
		if size := secondIn(intel); size > 0 {
			return size
		}
	}
	if leaves, _, _, _ := cpuid(extended, 0); leaves >= amd {
		return secondIn(amd)
	}
	return 0
}

// secondIn returns the bytes of the second-level cache for data that a leaf lists, 0 if it lists
// none.
func secondIn(leaf uint32) int {
	const most, data, unified = 16, 1, 3
	for sub := range uint32(most) {
		a, b, c, _ := cpuid(leaf, sub)
		kind, level := a&0x1f, a>>5&7
		if kind == 0 {
			break
		}
		if level == 2 && (kind == data || kind == unified) {
			ways, partitions, line, sets := b>>22+1, b>>12&0x3ff+1, b&0xfff+1, c+1
			return int(ways * partitions * line * sets)
		}
	}
	return 0
}

//go:noescape
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32

//go:noescape
func run(t *tile)

//go:noescape
func runSpread(t *spreadTile)

//go:noescape
func runRake(t *rakeTile)

// strip is the work of transposeAVX2: up to 8 rows, whose elements become the first in as many
// rows. It writes 8 elements to each of them, the last repeated if there are fewer rows. Steps are
// in bytes.
type strip struct {
	to    *float32
	pitch uintptr // between rows written
	from  *float32
	step  uintptr // between rows read
	rows  int     // 1 to 8
	n     int     // length of a row read
}

//go:noescape
func transposeAVX2(s *strip)

// transpose is Transpose where there is AVX2.
func transpose(to []float32, pitch int, from []float32, step, m, n int) {
	_, _ = to[(n-1)*pitch+m-1+TransposeMargin], from[(m-1)*step+n-1]
	// What a strip writes beyond the rows is mended by the strips above it, which therefore come
	// later.
	for i := (m - 1) &^ 7; i >= 0; i -= 8 {
		s := strip{to: &to[i], pitch: 4 * uintptr(pitch), from: &from[i*step], step: 4 * uintptr(step),
			rows: min(8, m-i), n: n}
		transposeAVX2(&s)
	}
}

func axpy(alpha float32, x, y, z *float32, n int) {
	if active.lanes == instructionsAVX512.lanes {
		axpyAVX512(alpha, x, y, z, n)
	} else {
		axpyAVX2(alpha, x, y, z, n)
	}
}

//go:noescape
func axpyAVX2(alpha float32, x, y, z *float32, n int)

//go:noescape
func axpyAVX512(alpha float32, x, y, z *float32, n int)

//go:noescape
func scal(alpha float32, x *float32, n int)

//go:noescape
func sum(alpha float32, x, y, z *float32, n int)

//go:noescape
func axpby(alpha, beta float32, x, y, z *float32, n int)

// rectify is Rectify for a multiple of 8 elements.
//
//go:noescape
func rectify(y, x *float32, n int)

//go:noescape
func stepMomentum(s *momentumStep)

//go:noescape
func stepAdam(s *adamStep)
