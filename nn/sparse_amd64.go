//go:build !noasm

package nn

// sparseProducts tells whether there are products of sparse rows here.
var sparseProducts = !portable

// sparseProduct computes n rows of outputs, pitch bytes apart, one after the other: the bias plus
// the sum of a row's entries times the weights of their columns. Outputs, biases and the weights of
// a column are 1, 2 or 4 vectors of 8.
//
//go:noescape
func sparseProduct(z *float32, pitch int, rows *int32, n int, start *uint32, entries *sparseEntry,
	weights, bias *float32, vectors int)

// sparseGradient adds n rows of d, pitch bytes apart and one after the other, times their entries
// to the sums of the entries' columns, which are 1, 2 or 4 vectors of 8 each.
//
//go:noescape
func sparseGradient(sums, d *float32, pitch int, rows *int32, n int, start *uint32, entries *sparseEntry,
	vectors int)

// fetchRows brings where n rows begin and end into the cache, all side by side.
//
//go:noescape
func fetchRows(rows *int32, n int, start *uint32, entries *sparseEntry)

// zeroTimes sums 0 times the elements of x, a multiple of 32, in 8 parts.
//
//go:noescape
func zeroTimes(sums *[8]float32, x *float32, n int)
