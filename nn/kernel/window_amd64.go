//go:build !noasm

package kernel

// spreadTile is the work of one routine of tile_*.s: a tile of C of a [Spread]. Steps are in bytes.
type spreadTile struct {
	a       *float32
	aStep   uintptr // between terms
	aSkip   uintptr // from behind the last term to the next outer step
	b       *float32
	bFirst  uintptr // from b to the place from which others are counted
	bOuter  uintptr // between outer steps
	at      *int32  // places of terms
	scale   uintptr
	terms   int
	outer   int
	bias    *float32
	c       *float32
	cStep   uintptr
	add     uint32 // not 0: C is added to
	routine int    // place in the table of routines
	lanes   int    // columns in the last vector
}

// piece computes the terms [t0, t1) of the outer steps [o0, o1).
func (s *Spread) piece(o0, o1, t0, t1 int) {
	if active == portable {
		s.gather(o0, o1, t0, t1)
		return
	}
	const size = 4
	work := spreadTile{
		aStep: uintptr(size * s.StepA), aSkip: uintptr(size * (s.OuterA - (t1-t0)*s.StepA)),
		bOuter: uintptr(size * s.OuterB), b: &s.B[0], at: &s.Terms.at[t0],
		scale: uintptr(size * s.Scale), terms: t1 - t0, outer: o1 - o0, cStep: uintptr(size * s.StepC), add: 1,
	}
	a, bias := s.A[o0*s.OuterA+t0*s.StepA:], s.Bias
	if o0 == 0 && t0 == 0 {
		work.add = 0
	} else {
		bias = nil
	}
	count := (s.M + active.rows - 1) / active.rows
	for j := 0; j < s.N; j += active.columns {
		width := min(active.columns, s.N-j)
		vectors := (width + active.lanes - 1) / active.lanes
		work.lanes = width - (vectors-1)*active.lanes
		work.bFirst = uintptr(size * (s.FirstB + o0*s.OuterB + j))
		routine := routines(vectors, work.lanes)
		i := 0
		for r := range count {
			rows := (s.M - i + count - r - 1) / (count - r)
			work.a, work.c, work.routine = &a[i], &s.C[i*s.StepC+j], routine+rows-1
			if bias != nil {
				work.bias = &bias[i]
			}
			runSpread(&work)
			i += rows
		}
	}
}
