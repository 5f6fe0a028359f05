package kernel

import "math"

// MaxPairs is max-pooling by squares of 2×2 of planes with lanes values side by side at each place,
// at most 16 of them: y, which holds whole lanes, becomes lane by lane the largest of two
// neighbours in above and two in below, and places tell which, counting from 0, the first of
// equals. NaN is larger than all. With rectify a y that is neither positive nor NaN becomes 0, and
// its place 4. It panics if a slice is too short or lanes out of range.
func MaxPairs(y []float32, places []uint16, above, below []float32, lanes int, rectify bool) {
	count := checkPairs(len(y), len(places), len(above), len(below), lanes)
	if count > 0 && !maxPairs(y, places, above, below, lanes, count, rectify) {
		maxPairsPortable(y, places, above, below, lanes, rectify)
	}
}

// RoutePairs takes the gradient d back through MaxPairs: all values of above and below become 0,
// but those from which d's places tell that they were the largest, which become d's.
func RoutePairs(d []float32, places []uint16, above, below []float32, lanes int) {
	count := checkPairs(len(d), len(places), len(above), len(below), lanes)
	if count > 0 && !routePairs(d, places, above, below, lanes, count) {
		routePairsPortable(d, places, above, below, lanes)
	}
}

// checkPairs panics if the arguments do not fit together, and returns the number of squares.
func checkPairs(y, places, above, below, lanes int) int {
	const most = 16
	if lanes < 1 || lanes > most || y%lanes != 0 {
		panic(badSize)
	}
	if places < y || above < 2*y || below < 2*y {
		panic(badLength)
	}
	return y / lanes
}

// maxPairsPortable has no branches on values, which would be mispredicted: floats that are not
// negative have the order of their bits as integers. The sums show whether there may be a NaN, for
// which that does not hold.
func maxPairsPortable(y []float32, places []uint16, above, below []float32, lanes int, rectify bool) {
	for i := 0; i < len(y); i += lanes {
		a, b, c, d := above[2*i:][:lanes], above[2*i+lanes:][:lanes], below[2*i:][:lanes], below[2*i+lanes:][:lanes]
		y, places := y[i:][:lanes], places[i:][:lanes]
		var sum float32
		if rectify {
			sum = largestPositive(y, places, a, b, c, d)
		}
		if !rectify || sum != sum {
			largest(y, places, a, b, c, d)
		}
		if sum != sum {
			for l, v := range y {
				if v <= 0 {
					y[l], places[l] = 0, 4
				}
			}
		}
	}
}

// largest computes y = max(a, b, c, d) element by element.
func largest(y []float32, places []uint16, a, b, c, d []float32) {
	copy(y, a)
	clear(places)
	for k, x := range [...][]float32{b, c, d} {
		for l, v := range x {
			if m := y[l]; v > m || (v != v && m == m) {
				y[l], places[l] = v, uint16(k+1)
			}
		}
	}
}

// largestPositive computes y = max(0, a, b, c, d) element by element and returns a number that is
// NaN if one of them is.
func largestPositive(y []float32, places []uint16, a, b, c, d []float32) (sum float32) {
	places, a, b, c, d = places[:len(y)], a[:len(y)], b[:len(y)], c[:len(y)], d[:len(y)]
	for l := range y {
		va, vb, vc, vd := a[l], b[l], c[l], d[l]
		sum += (va + vb) + (vc + vd)
		// The place is kept in the lowest bits, counted down so that the first of equal values is
		// the largest.
		m := max(key(va)+3, key(vb)+2, key(vc)+1, key(vd), 7)
		y[l] = math.Float32frombits(uint32(m >> 3))
		places[l] = uint16(3-m) & 7
	}
	return sum
}

// key is the bits of v as an integer, three places up.
func key(v float32) int64 { return int64(int32(math.Float32bits(v))) << 3 }

func routePairsPortable(d []float32, places []uint16, above, below []float32, lanes int) {
	for i := 0; i < len(d); i += lanes {
		a, b := above[2*i:][:2*lanes], below[2*i:][:2*lanes]
		clear(a)
		clear(b)
		for l, v := range d[i:][:lanes] {
			k := int(places[i+l])
			rows := a
			if k >= 2 {
				rows = b
			}
			rows[l+k&1*lanes] = math.Float32frombits(math.Float32bits(v) & uint32((k-4)>>31))
		}
	}
}
