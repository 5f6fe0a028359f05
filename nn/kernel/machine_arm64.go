//go:build !noasm

package kernel

// Every arm64 processor has NEON.
var instructionsNEON = instructions{name: "neon", rows: 6, columns: 16, lanes: 4, rakeRows: 2, rakeTaps: 2}

var active = offered()[0]

// offered returns the sets of instructions that can be used, the best first.
func offered() []instructions { return []instructions{instructionsNEON, portable} }

//go:noescape
func tileNEON(t *tile)

func run(t *tile) { tileNEON(t) }

//go:noescape
func rakeNEON(t *rakeTile)

func runRake(t *rakeTile) { rakeNEON(t) }

// routines returns where the routines for a number of vectors begin in the table.
func routines(vectors, _ int) int { return (vectors - 1) * active.rows }

// transpose copies an m×n matrix, whose rows are step apart, so that its columns become rows pitch
// apart.
func transpose(to []float32, pitch int, from []float32, step, m, n int) {
	for i := range m {
		for j, v := range from[i*step:][:n] {
			to[j*pitch+i] = v
		}
	}
}

//go:noescape
func axpyNEON(alpha float32, x, y *float32, n int)

//go:noescape
func scalNEON(alpha float32, x *float32, n int)

//go:noescape
func sumNEON(alpha float32, x, y, z *float32, n int)

func axpy(alpha float32, x, y []float32) {
	if active == portable {
		axpyPortable(alpha, x, y)
		return
	}
	axpyNEON(alpha, &x[0], &y[0], len(x))
}

func scal(alpha float32, x []float32) {
	if active == portable {
		scalPortable(alpha, x)
		return
	}
	scalNEON(alpha, &x[0], len(x))
}

func sum(alpha float32, x, y, z []float32) {
	if active == portable {
		sumPortable(alpha, x, y, z)
		return
	}
	sumNEON(alpha, &x[0], &y[0], &z[0], len(x))
}

// rectify is Rectify for a multiple of 8 elements.
func rectify(y, x *float32, n int) { rectifyNEON(y, x, n) }

//go:noescape
func rectifyNEON(y, x *float32, n int)
