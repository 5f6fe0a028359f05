package kernel

// Axpy computes y += alpha·x. It panics if the two differ in length.
func Axpy(alpha float32, x, y []float32) {
	if len(x) != len(y) {
		panic(badLength)
	}
	if len(x) > 0 {
		axpy(alpha, x, y)
	}
}

// Scal computes x *= alpha.
func Scal(alpha float32, x []float32) {
	if len(x) > 0 {
		scal(alpha, x)
	}
}

// Dot returns the sum of the products of the elements of x and y. It panics if the two differ in length.
func Dot(x, y []float32) float32 {
	if len(x) != len(y) {
		panic(badLength)
	}
	if len(x) == 0 {
		return 0
	}
	return dot(x, y)
}
