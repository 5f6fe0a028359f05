// Package kernel computes float32 matrix products and vector operations at the speed of the
// machine. It uses assembly for AVX-512, for AVX2 with FMA, and for NEON; elsewhere, and under
// the build tag noasm, it uses plain Go. It chooses the instructions once, from what the
// processor and the operating system offer; [Name] tells which.
//
// # Bits
//
// An element of a product is computed from its row of op(A), its column of op(B) and its old
// value in C alone, in an order fixed by k: a chain of fused multiply-adds from zero for each
// block of 384 terms, then one for alpha times the chain plus the old value. Its bits therefore
// depend neither on other rows and columns nor on where slices lie in memory, and AVX-512, AVX2
// and NEON give the same ones. Plain Go makes one chain of all terms and rounds each product
// before adding it, so it gives other bits, but the same ones on every platform. The same holds
// for [Axpy]. The other vector operations, and the steps of [Momentum] and [Adam], round each
// operation by itself and have the same bits everywhere.
//
// NaN and Inf spread as in a naive loop, with every set of instructions: no zero is skipped, so
// 0·NaN and 0·Inf are NaN. Only coefficients are special, as in BLAS: with alpha = 0 nothing of
// A and B is read, with beta = 0 nothing of C.
//
// The functions keep their packing buffers and allocate nothing once these have grown. Several
// goroutines may call them at the same time, provided that no output is another call's operand.
//
// # Tests
//
// The tests run with every set of instructions that the machine offers. On amd64 with Debian's
// qemu-user, this runs the tests for arm64:
//
//	GOARCH=arm64 go test -exec qemu-aarch64 ./nn/kernel
package kernel

//go:generate go run generate.go generate_x86.go generate_neon.go

// Messages of panics, which are all mistakes of the program.
const (
	badSize    = "kernel: a dimension is negative"
	badStrideA = "kernel: the row stride of A is less than its width"
	badStrideB = "kernel: the row stride of B is less than its width"
	badStrideC = "kernel: the row stride of C is less than its width"
	shortA     = "kernel: the slice of A is too short"
	shortB     = "kernel: the slice of B is too short"
	shortC     = "kernel: the slice of C is too short"
	badLength  = "kernel: vectors of different length"
)

// Name returns the name of the instructions in use, for records: "avx512", "avx2", "neon" or
// "portable".
func Name() string { return active.name }

// instructions is a set of vector instructions and the shape of its largest register tile.
type instructions struct {
	name    string
	rows    int
	columns int
	lanes   int  // columns of a vector
	masked  bool // a tile touches no more of B and C than its columns, even if they do not fill its vectors

	// Places of the first routines in the tables of tiles and of rakes. Routines for tiles whose
	// last vector is not full stand where the ones for partial more vectors would.
	tiles, rakes, partial int

	rakeRows, rakeTaps int // size of the largest tile of a [Rake]
}

var portable = instructions{name: "portable", rows: 4, columns: 8, lanes: 8, masked: true}
