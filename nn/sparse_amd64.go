//go:build !noasm

package nn

// sparseProducts tells whether there is a sparseProduct here.
var sparseProducts = !portable

// sparseProduct computes rows of 32 outputs, pitch bytes apart, one after the other: the bias plus
// the sum of entries times the weights that they name.
//
//go:noescape
func sparseProduct(z *float32, pitch, rows int, start *uint32, entries *sparseEntry, weights, bias *float32)
