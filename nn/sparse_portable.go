//go:build noasm || !amd64

package nn

// sparseProducts tells whether there are products of sparse rows here.
const sparseProducts = false

// Nobody calls these: there is no assembly.
func sparseProduct(*float32, int, *int32, int, *uint32, *sparseEntry, *float32, *float32, int) {}
func sparseGradient(_, _ *float32, _ int, _ *int32, _ int, _ *uint32, _ *sparseEntry, _ int)   {}
func fetchRows(*int32, int, *uint32, *sparseEntry)                                             {}
func zeroTimes(*[8]float32, *float32, int)                                                     {}
