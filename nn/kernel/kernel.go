// Package kernel computes float32 matrix products and vector operations at the speed of the machine: in assembly for
// AVX-512, for AVX2 with FMA, and for NEON, and in plain Go elsewhere or under the build tag noasm. The instructions are
// chosen once, from what the processor and the operating system offer; [Name] tells which.
//
// # Bits
//
// An element of a product is computed from its row of op(A), its column of op(B) and its old value in C alone, in an
// order fixed by k: a chain of fused multiply-adds from zero for each block of 384 terms, then one for alpha times the
// chain plus the old value. Hence its bits depend neither on the other rows and columns nor on where slices lie in memory, and are the same with AVX-512, AVX2 and NEON. The portable twin makes one
// chain of all terms and rounds products before it adds them, so its bits differ from theirs, but they are the same on
// every platform. The same holds of [Axpy].
//
// NaN and Inf spread as in a naive loop, in all sets of instructions alike: no zero is skipped, so 0·NaN and 0·Inf are
// NaN. Only coefficients are special, as in BLAS: with alpha = 0 nothing of A and B is read, with beta = 0 nothing of C.
//
// The functions allocate nothing once their packing buffers, which are kept for use again, have grown. They may be
// called at the same time as long as no one's output is another's operand.
//
// # Tests
//
// The tests run with all sets of instructions that the machine offers. On amd64, with Debian's qemu-user, those of
// arm64 run by
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

// Name returns the name of the instructions in use, for records: "avx512", "avx2", "neon" or "portable".
func Name() string { return active.name }

// instructions is a set of vector instructions and the shape of its largest register tile.
type instructions struct {
	name    string
	rows    int
	columns int
	lanes   int  // columns of a vector
	masked  bool // a tile touches no more of B and C than its columns, even if they do not fill its vectors

	rakeRows, rakeTaps int // size of the largest tile of a [Rake]
}

var portable = instructions{name: "portable", rows: 4, columns: 8, lanes: 8, masked: true}
