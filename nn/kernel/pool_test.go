package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// values draws n small integers, NaN and zeros of both signs, so that there are equal ones.
func values(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch k := r.IntN(40); k {
		case 0:
			x[i] = float32(math.Copysign(math.NaN(), r.Float64()-0.5))
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		case 2:
			x[i] = float32(math.Inf(r.IntN(2)*2 - 1))
		default:
			x[i] = float32(k%7 - 4)
		}
	}
	return x
}

func TestPairsAreThoseOfALoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(23, 24))
		for range 300 {
			lanes, count, rectify := 1+r.IntN(16), 1+r.IntN(9), r.IntN(2) == 1
			above, below := values(r, 2*count*lanes), values(r, 2*count*lanes)
			y, places := slices.Repeat([]float32{guard}, count*lanes+5), make([]uint16, count*lanes)
			MaxPairs(y[:count*lanes], places, above, below, lanes, rectify)
			for i := range count * lanes {
				from := i/lanes*2*lanes + i%lanes
				want, place := above[from], uint16(0)
				for k, v := range []float32{above[from+lanes], below[from], below[from+lanes]} {
					if v > want || v != v && want == want {
						want, place = v, uint16(k+1)
					}
				}
				if rectify && want <= 0 {
					want, place = 0, 4
				}
				if y[i] != want && (y[i] == y[i] || want == want) || places[i] != place {
					t.Fatalf("element %d of %d×%d, rectify %v: %v at %d, want %v at %d", i, count, lanes, rectify, y[i],
						places[i], want, place)
				}
			}
			if guards(y[count*lanes:]) != 5 {
				t.Fatalf("%d×%d: elements behind the last one are written", count, lanes)
			}
			routes(t, draw(r, count*lanes), places, lanes)
		}
	})
}

// routes checks that gradients reach the places and nothing else.
func routes(t *testing.T, d []float32, places []uint16, lanes int) {
	t.Helper()
	above, below := slices.Repeat([]float32{guard}, 2*len(d)+5), slices.Repeat([]float32{guard}, 2*len(d)+5)
	RoutePairs(d, places, above[:2*len(d)], below[:2*len(d)], lanes)
	for i, v := range d {
		at := i/lanes*2*lanes + i%lanes
		for k, got := range []float32{above[at], above[at+lanes], below[at], below[at+lanes]} {
			if want := map[bool]float32{true: v}[k == int(places[i])]; got != want {
				t.Fatalf("element %d of %d lanes with place %d: %v reaches place %d, want %v", i, lanes, places[i], got,
					k, want)
			}
		}
	}
	if guards(above)+guards(below) != 10 {
		t.Fatalf("%d lanes: elements behind the last one are written", lanes)
	}
}
