package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw returns n random elements.
func draw(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32() - 0.5
	}
	return x
}

// places draws n places below limit.
func places(r *rand.Rand, n, limit int) *Places {
	at := make([]int32, n)
	for i := range at {
		at[i] = int32(r.IntN(limit))
	}
	p := NewPlaces(at)
	return &p
}

// spread draws a product whose rows are scattered over B.
func spread(r *rand.Rand) Spread {
	s := Spread{M: 1 + r.IntN(40), N: 1 + r.IntN(80), Outer: 1 + r.IntN(5), Scale: 1 + r.IntN(16)}
	s.Terms = places(r, 1+r.IntN([]int{20, 500}[r.IntN(2)]), 50)
	s.StepA, s.StepC = s.M+r.IntN(3), s.N+r.IntN(3)
	s.OuterA = s.Terms.Len()*s.StepA + r.IntN(3)
	s.OuterB = r.IntN(200) - 100
	s.FirstB = max(0, -s.OuterB*(s.Outer-1))
	if r.IntN(2) == 1 {
		s.Bias = draw(r, s.M)
	}
	s.A = draw(r, (s.Outer-1)*s.OuterA+(s.Terms.Len()-1)*s.StepA+s.M)
	s.B = draw(r, s.FirstB+max(0, s.OuterB*(s.Outer-1))+s.Scale*int(s.Terms.most)+s.N)
	s.C = slices.Repeat([]float32{guard}, (s.M-1)*s.StepC+s.N)
	return s
}

func TestSpreadIsThatOfALoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 16))
		for range 200 {
			s := spread(r)
			s.Compute()
			for i := range s.C {
				row, column := i/s.StepC, i%s.StepC
				if column >= s.N {
					if s.C[i] != guard {
						t.Fatalf("%d×%d: element %d behind row %d is written", s.M, s.N, column, row)
					}
					continue
				}
				var want float64
				if s.Bias != nil {
					want = float64(s.Bias[row])
				}
				for o := range s.Outer {
					for k, place := range s.Terms.at {
						weight := s.A[o*s.OuterA+k*s.StepA+row]
						want += float64(weight) * float64(s.B[s.FirstB+o*s.OuterB+s.Scale*int(place)+column])
					}
				}
				if math.Abs(float64(s.C[i])-want) > 1e-4 {
					t.Fatalf("%d×%d, %d×%d terms: element %d, %d is %v, want %v", s.M, s.N, s.Outer, s.Terms.Len(), row,
						column, s.C[i], want)
				}
			}
		}
	})
}

// rake draws a product whose rows of B overlap.
func rake(r *rand.Rand) Rake {
	k := Rake{M: 1 + r.IntN(12), Width: 1 + r.IntN(100), Scale: 1 + r.IntN(16)}
	k.Rows = 1 + r.IntN(min(30, Chained(k.Width)))
	k.Taps = places(r, 1+r.IntN(40), 50)
	k.RowA, k.RowB, k.StepC = k.Width+r.IntN(3), r.IntN(200), k.Taps.Len()+r.IntN(3)
	k.StepA = k.Rows*k.RowA + r.IntN(3)
	k.A = draw(r, (k.M-1)*k.StepA+(k.Rows-1)*k.RowA+k.Width)
	k.B = draw(r, (k.Rows-1)*k.RowB+k.Scale*int(k.Taps.most)+k.Width)
	k.C = slices.Repeat([]float32{1}, (k.M-1)*k.StepC+k.Taps.Len())
	return k
}

func TestRakeIsThatOfALoop(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(17, 18))
		for range 200 {
			k := rake(r)
			k.Compute()
			for i := range k.C {
				row, tap := i/k.StepC, i%k.StepC
				want := 1.
				for e := range k.Rows * k.Width {
					if piece, e := e/k.Width, e%k.Width; tap < k.Taps.Len() {
						value := k.B[piece*k.RowB+k.Scale*int(k.Taps.at[tap])+e]
						want += float64(k.A[row*k.StepA+piece*k.RowA+e]) * float64(value)
					}
				}
				if math.Abs(float64(k.C[i])-want) > 1e-4 {
					t.Fatalf("%d rows, %d pieces of %d: element %d, %d is %v, want %v", k.M, k.Rows, k.Width, row, tap,
						k.C[i], want)
				}
			}
		}
	})
}

func TestWindowsAgreeInEveryBit(t *testing.T) {
	best := active
	defer func() { active = best }()
	r := rand.New(rand.NewPCG(19, 20))
	for range 100 {
		s, k := spread(r), rake(r)
		var first [2][]float32
		for _, active = range offered() {
			if active == portable {
				continue
			}
			s, k := s, k
			s.C, k.C = slices.Clone(s.C), slices.Clone(k.C)
			s.Compute()
			k.Compute()
			if first[0] == nil {
				first = [2][]float32{s.C, k.C}
			} else if !slices.Equal(s.C, first[0]) || !slices.Equal(k.C, first[1]) {
				t.Fatalf("%s computes other bits than %s", active.name, best.name)
			}
		}
	}
}

func TestMistakesInWindowsPanic(t *testing.T) {
	for want, change := range map[string]func(*Spread, *Rake){
		badSize:    func(s *Spread, r *Rake) { s.N, r.Rows = 0, Chained(r.Width)+1 },
		badStrideC: func(s *Spread, r *Rake) { s.StepC, r.StepC = s.N-1, r.Taps.Len()-1 },
		shortA:     func(s *Spread, r *Rake) { s.A, r.A = s.A[1:], r.A[1:] },
		shortB:     func(s *Spread, r *Rake) { s.B, r.B = s.B[1:], r.B[1:] },
		shortC:     func(s *Spread, r *Rake) { s.C, r.C = s.C[1:], r.C[1:] },
	} {
		random := rand.New(rand.NewPCG(21, 22))
		s, r := spread(random), rake(random)
		change(&s, &r)
		for _, compute := range []func(){s.Compute, r.Compute} {
			func() {
				defer func() {
					if got := recover(); got != want {
						t.Errorf("panic %v, want %q", got, want)
					}
				}()
				compute()
			}()
		}
	}
}
