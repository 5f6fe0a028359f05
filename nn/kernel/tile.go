//go:build (amd64 || arm64) && !noasm

package kernel

// tile is the work of one routine of tile_*.s: with a tile of C held in registers it computes
// C = alpha·op(A)·op(B), or adds that to C. Steps are in bytes.
type tile struct {
	a          *float32
	rowStep    uintptr // between rows of op(A)
	columnStep uintptr // between columns of op(A)
	b          *float32
	bStep      uintptr // between rows of op(B)
	c          *float32
	cStep      uintptr // between rows of C
	k          int     // columns of op(A), at least 1
	alpha      float32
	add        uint32 // not 0: C is added to
	routine    int    // place in the table of routines
	lanes      int    // columns in the last vector
}

// bandColumns is how many columns of op(B) are packed at a time, so that they stay in the
// second-level cache.
const bandColumns = 1024

// bandRows is the most rows of op(A) that are packed at a time, so that they stay in the
// second-level cache.
const bandRows = 144

// multiply computes a product with alpha ≠ 0 and k > 0.
func (p *product) multiply() {
	if active == portable {
		p.multiplyPortable()
		return
	}
	if p.beta != 0 {
		p.scale()
	}
	t := tiling{product: p, packA: p.packsA(), packB: p.packsB(), rowStep: p.lda, columnStep: 1}
	if p.transA {
		t.rowStep, t.columnStep = 1, p.lda
	}
	var buffers *buffers
	if t.packA || t.packB {
		buffers = takeBuffers()
	}
	for l := 0; l < p.k; l += block {
		for j := 0; j < p.n; j += bandColumns {
			t.band(buffers, l, min(block, p.k-l), j, min(bandColumns, p.n-j))
		}
	}
	if buffers != nil {
		buffers.giveBack()
	}
}

// tiling is how a product is cut into tiles.
type tiling struct {
	*product
	packA, packB        bool
	rowStep, columnStep int // of op(A), in elements
}

// band adds to the columns [j, j+columns) of C the products of the terms [l, l+depth).
func (t *tiling) band(buffers *buffers, l, depth, j, columns int) {
	var b panels
	if t.packB {
		buffers.b = grow(buffers.b, roundUp(columns, active.columns)*depth+packMargin)
		for done := 0; done < columns; done += active.columns {
			t.packBlock(buffers.b[done*depth:], l, depth, j+done)
		}
		b = panels{x: buffers.b, step: active.columns, next: active.columns * depth}
	} else {
		b = panels{x: t.b[l*t.ldb+j:], step: t.ldb, next: active.columns}
	}
	if !t.packA {
		a := panels{x: t.a[l*t.columnStep:], step: t.columnStep}
		t.tiles(&a, &b, 0, t.m, l, depth, j, columns)
		return
	}
	bands := (t.m + bandRows - 1) / bandRows
	for band := range bands {
		i0, i1 := band*t.m/bands, (band+1)*t.m/bands
		count := (i1 - i0 + active.rows - 1) / active.rows
		buffers.a = grow(buffers.a, count*active.rows*depth+packMargin)
		t.packBandA(buffers.a, i0, i1, l, depth)
		a := panels{x: buffers.a, step: active.rows, next: active.rows * depth}
		t.tiles(&a, &b, i0, i1, l, depth, j, columns)
	}
}

// panels is op(A) or op(B) between two terms, cut into panels of a tile's rows or columns.
type panels struct {
	x    []float32
	step int // elements from a term to the next
	next int // elements from a panel to the next; 0 for op(A) in place, where panels are not equally far apart
}

// routines returns where in the table the routines begin for tiles that many vectors wide, whose
// last vector has the given number of lanes.
func routines(vectors, lanes int) int {
	if lanes < active.lanes {
		vectors += active.partial
	}
	return active.tiles + (vectors-1)*active.rows
}

// tiles computes the rows [i0, i1) and the columns [j, j+columns) tile by tile.
func (t *tiling) tiles(a, b *panels, i0, i1, l, depth, j, columns int) {
	const size = 4
	work := tile{
		rowStep: size, columnStep: size * uintptr(a.step), bStep: size * uintptr(b.step), cStep: size * uintptr(t.ldc),
		k: depth, alpha: t.alpha,
	}
	if a.next == 0 {
		work.rowStep = size * uintptr(t.rowStep)
	}
	if l > 0 || t.beta != 0 {
		work.add = 1
	}
	count := (i1 - i0 + active.rows - 1) / active.rows
	for panel, done := 0, 0; done < columns; panel, done = panel+1, done+active.columns {
		width := min(active.columns, columns-done)
		vectors := (width + active.lanes - 1) / active.lanes
		work.b, work.lanes = &b.x[panel*b.next], width-(vectors-1)*active.lanes
		routine := routines(vectors, work.lanes)
		i := i0
		for r := range count {
			rows := (i1 - i + count - r - 1) / (count - r)
			work.a = &a.x[r*a.next]
			if a.next == 0 {
				work.a = &a.x[i*t.rowStep]
			}
			work.routine = routine + rows - 1
			c := t.c[i*t.ldc+j+done:]
			if work.lanes == active.lanes || active.masked {
				work.c = &c[0]
				run(&work)
			} else {
				runInCopy(&work, c, rows, width, t.ldc)
			}
			i += rows
		}
	}
}

// runInCopy runs a tile whose columns do not fill its vectors on a copy of C, for instructions that
// have no masks.
func runInCopy(work *tile, c []float32, rows, width, ldc int) {
	const widest = 16
	var copied [8 * widest]float32
	for i := range rows {
		copy(copied[i*widest:][:width], c[i*ldc:])
	}
	inCopy := *work
	inCopy.c, inCopy.cStep = &copied[0], 4*widest
	run(&inCopy)
	for i := range rows {
		copy(c[i*ldc:][:width], copied[i*widest:])
	}
}
