//go:build !noasm

package nn

// expVectors replaces the first elements of x by their exp and returns how many they are.
func expVectors(x []float32) int {
	n := len(x) &^ 3
	if portable || n == 0 {
		return 0
	}
	expAVX2(&x[0], n)
	return n
}

// expAVX2 is exp for a multiple of 4 elements.
//
//go:noescape
func expAVX2(x *float32, n int)
