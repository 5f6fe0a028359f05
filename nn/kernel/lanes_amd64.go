//go:build !noasm

package kernel

// maxPairs is MaxPairs for count squares; it reports whether there is assembly for it.
func maxPairs(y []float32, places []uint16, above, below []float32, lanes, count int, rectify bool) bool {
	if active.lanes != instructionsAVX512.lanes {
		return false
	}
	maxPairsAVX512(&y[0], &places[0], &above[0], &below[0], lanes, count, rectify)
	return true
}

// routePairs is RoutePairs for count squares; it reports whether there is assembly for it.
func routePairs(d []float32, places []uint16, above, below []float32, lanes, count int) bool {
	if active.lanes != instructionsAVX512.lanes {
		return false
	}
	routePairsAVX512(&d[0], &places[0], &above[0], &below[0], lanes, count)
	return true
}

//go:noescape
func maxPairsAVX512(y *float32, places *uint16, above, below *float32, lanes, count int, rectify bool)

//go:noescape
func routePairsAVX512(d *float32, places *uint16, above, below *float32, lanes, count int)

//go:noescape
func copySixteensAVX2(to *float32, pitch int, from *float32, step, rows, sixteens int)

// copySixteens copies rows of 16 or 32 elements. It does not check the slices' lengths.
func copySixteens(to []float32, pitch int, from []float32, step, rows, width int) {
	if active == portable {
		copySixteensPortable(to, pitch, from, step, rows, width)
		return
	}
	copySixteensAVX2(&to[0], pitch, &from[0], step, rows, width/16)
}
