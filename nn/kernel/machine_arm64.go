//go:build !noasm

package kernel

// Every arm64 processor has NEON.
var instructionsNEON = instructions{name: "neon", rows: 6, columns: 16, lanes: 4, rakeRows: 2, rakeTaps: 2}

var active = offered()[0]

// offered returns the sets of instructions that can be used, the best first.
func offered() []instructions { return []instructions{instructionsNEON, portable} }

// secondLevel returns the bytes of the second-level cache: 0, since only the operating system may
// ask the processor for them.
func secondLevel() int { return 0 }

//go:noescape
func run(t *tile)

//go:noescape
func runRake(t *rakeTile)

func transpose(to []float32, pitch int, from []float32, step, m, n int) {
	transposePortable(to, pitch, from, step, m, n)
}

//go:noescape
func axpy(alpha float32, x, y, z *float32, n int)

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
