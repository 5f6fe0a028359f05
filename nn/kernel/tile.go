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

// blocks is how many rows of op(A) and columns of op(B) a product takes at a time, so that a block
// of op(A) stays in the second-level cache while it meets a block of op(B), which stays in the
// third. It decides nothing but the time: the order of additions is the same for all blocks.
type blocks struct{ rows, columns int }

// fitting are the blocks that fit this machine's caches.
var fitting = blocksIn(secondLevel())

// blocksIn returns the blocks for a second-level cache of a size in bytes, 0 if it is not known. A
// block of op(A) takes half of it: panels of op(B) and tiles of C pass through the other half.
func blocksIn(cache int) blocks {
	const small, usual, large = 256 << 10, 512 << 10, 4 << 20
	if cache == 0 {
		cache = usual
	}
	return blocks{rows: min(max(cache, small), large) / 2 / (4 * block), columns: 2048}
}

// multiply computes a product with alpha ≠ 0 and k > 0.
func (p *product) multiply() {
	if active == portable {
		p.multiplyPortable()
		return
	}
	if p.beta != 0 {
		p.scale()
	}
	t := tiling{product: p, packA: p.packsA(), packB: p.packsB(), rows: p.m, columns: p.n}
	if p.m > fitting.rows {
		bands := (p.m + fitting.rows - 1) / fitting.rows
		t.rows, t.columns = (p.m+bands-1)/bands, fitting.columns
	}
	var buffers *buffers
	if t.packA || t.packB {
		buffers = takeBuffers()
		t.takeRoom(buffers)
	}
	for ; t.l < p.k; t.l += block {
		t.depth = min(block, p.k-t.l)
		for j := 0; j < p.n; j += t.columns {
			for i := 0; i < p.m; i += t.rows {
				t.add(i, j)
			}
		}
	}
	if buffers != nil {
		buffers.giveBack()
	}
}

// tiling is how a product is cut into tiles.
type tiling struct {
	*product
	packA, packB  bool
	rows, columns int       // of a block
	roomA, roomB  []float32 // for what is packed
	l, depth      int       // the first of the terms that are being added, and their number
}

// routines returns where in the table the routines begin for tiles that many vectors wide, whose
// last vector has the given number of lanes.
func routines(vectors, lanes int) int {
	if lanes < active.lanes {
		vectors += active.partial
	}
	return active.tiles + (vectors-1)*active.rows
}

// add adds the products of the present terms to the block of C that begins in row i0 and column j0,
// tile by tile.
func (t *tiling) add(i0, j0 int) {
	const size = 4
	m, n := min(t.rows, t.m-i0), min(t.columns, t.n-j0)
	a := operand{row: t.lda, term: 1}
	if t.transA {
		a.row, a.term = 1, t.lda
	}
	if t.packA {
		a = t.packBlockA(i0, m)
	} else {
		a.x = t.a[i0*a.row+t.l*a.term:]
	}
	work := tile{
		rowStep: size * uintptr(a.row), columnStep: size * uintptr(a.term), bStep: size * uintptr(t.ldb),
		cStep: size * uintptr(t.ldc), k: t.depth, alpha: t.alpha,
	}
	if t.packB {
		work.bStep = size * uintptr(active.columns)
	}
	if t.l > 0 || t.beta != 0 {
		work.add = 1
	}
	count := (m + active.rows - 1) / active.rows
	for j := j0; j < j0+n; j += active.columns {
		width := min(active.columns, j0+n-j)
		vectors := (width + active.lanes - 1) / active.lanes
		work.lanes = width - (vectors-1)*active.lanes
		if t.packB {
			work.b = t.packPanelB(i0, j0, j, width)
		} else {
			work.b = &t.b[t.l*t.ldb+j]
		}
		routine := routines(vectors, work.lanes)
		i := 0
		for r := range count {
			rows := (m - i + count - r - 1) / (count - r)
			work.a = a.panel(i, r)
			work.routine = routine + rows - 1
			c := t.c[(i0+i)*t.ldc+j:]
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
