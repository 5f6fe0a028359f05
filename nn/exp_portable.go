//go:build noasm || !amd64

package nn

// expVectors computes nothing where there is no assembly.
func expVectors(x []float32) int { return 0 }
