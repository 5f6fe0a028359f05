//go:build (amd64 || arm64) && !noasm

package kernel

import "slices"

// rakeTile is the work of one routine of tile_*.s: a tile of C of a [Rake]. Steps are in bytes.
type rakeTile struct {
	a       *float32
	aStep   uintptr // between rows
	aSkip   uintptr // from behind the whole sixteens of a piece to the next piece
	b       *float32
	bSkip   uintptr
	at      *int32 // places of taps
	scale   uintptr
	rows    int // pieces; the routine counts them down
	chunks  int // whole sixteens of a piece
	lanes   int // elements of a piece behind them, at most a vector
	upper   int // elements beyond that vector
	c       *float32
	cStep   uintptr
	routine int // place in the table of routines
}

func (r *Rake) compute() {
	chunks, rest := r.Width/chains, r.Width%chains
	switch {
	case active == portable:
		r.computePortable()
		return
	case rest > 0 && !active.masked:
		r.pad()
		return
	}
	const size = 4
	rakeRows, rakeTaps := active.rakeRows, active.rakeTaps
	work := rakeTile{
		aStep: uintptr(size * r.StepA), aSkip: uintptr(size * (r.RowA - chunks*chains)), b: &r.B[0],
		bSkip: uintptr(size * (r.RowB - chunks*chains)),
		scale: uintptr(size * r.Scale), chunks: chunks, lanes: min(rest, active.lanes),
		upper: rest - min(rest, active.lanes), cStep: uintptr(size * r.StepC),
	}
	taps := r.Taps.Len()
	for i := 0; i < r.M; i += rakeRows {
		high := min(rakeRows, r.M-i)
		for t := 0; t < taps; t += rakeTaps {
			wide := min(rakeTaps, taps-t)
			work.a, work.at, work.c, work.rows = &r.A[i*r.StepA], &r.Taps.at[t], &r.C[i*r.StepC+t], r.Rows
			work.routine = active.rakes + (high-1)*rakeTaps + wide - 1
			runRake(&work)
		}
	}
}

// pad computes the product from copies of the operands whose pieces zeros lengthen to whole
// sixteens.
func (r *Rake) pad() {
	taps, width := r.Taps.Len(), roundUp(r.Width, chains)
	buffers := takeBuffers()
	buffers.a, buffers.b = grow(buffers.a, r.M*r.Rows*width), grow(buffers.b, taps*r.Rows*width)
	at := slices.Grow(buffers.taps.at[:0], taps)[:taps]
	for i := range r.M {
		copyPieces(buffers.a[i*r.Rows*width:], width, r.A[i*r.StepA:], r.RowA, r.Rows, r.Width)
	}
	for t, place := range r.Taps.at {
		at[t] = int32(t * r.Rows)
		copyPieces(buffers.b[t*r.Rows*width:], width, r.B[r.Scale*int(place):], r.RowB, r.Rows, r.Width)
	}
	buffers.taps = NewPlaces(at)
	padded := *r
	padded.Width, padded.Scale, padded.Taps = width, width, &buffers.taps
	padded.A, padded.StepA, padded.RowA = buffers.a, r.Rows*width, width
	padded.B, padded.RowB = buffers.b, width
	padded.Compute()
	buffers.giveBack()
}

// copyPieces copies pieces of a width, with zeros behind each up to the next.
func copyPieces(to []float32, pitch int, from []float32, step, pieces, width int) {
	for i := range pieces {
		piece := to[i*pitch:][:pitch]
		clear(piece[copy(piece, from[i*step:][:width]):])
	}
}
