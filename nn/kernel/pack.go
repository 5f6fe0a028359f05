//go:build (amd64 || arm64) && !noasm

package kernel

// When operands are packed was found by measuring with AVX-512 and AVX2: reading in place is the
// faster for a surprising while, because tiles need no more than one or two cache lines of a term.
const (
	nearby   = 6 << 10 // elements: what spans less is always read in place
	farApart = 512     // elements between the terms of a transposed A from which on reading in place is slow
	rereads  = 2       // panels of op(B) from which on packing such an A pays
	rereadsA = 24      // panels of op(B) from which on packing any A pays
	rereadsB = 20      // panels of op(A) from which on packing B pays
)

// packsA tells whether op(A) is packed.
func (p *product) packsA() bool {
	uses := p.n / active.columns
	return p.m*min(p.k, block) > nearby && (uses > rereadsA || p.transA && p.lda > farApart && uses > rereads)
}

// packsB tells whether op(B) is packed: if it must, or if that pays.
func (p *product) packsB() bool {
	return p.transB || !active.masked && p.n%active.lanes != 0 || p.m/active.rows > rereadsB &&
		min(p.k, block)*p.ldb > nearby
}

// takeRoom takes room for what is packed at a time: a block of op(A), and of op(B) a panel, or a
// block if several blocks of op(A) use it.
func (t *tiling) takeRoom(buffers *buffers) {
	depth := min(block, t.k)
	if t.packA {
		buffers.a = grow(buffers.a, roundUp(t.rows, active.rows)*depth+TransposeMargin)
	}
	if t.packB {
		columns := active.columns
		if t.rows < t.m {
			columns = roundUp(min(t.columns, t.n), columns)
		}
		buffers.b = grow(buffers.b, columns*depth+TransposeMargin)
	}
	t.roomA, t.roomB = buffers.a, buffers.b
}

// operand is a block of op(A), where it is or packed.
type operand struct {
	x    []float32
	row  int // elements between rows
	term int // elements between the terms of a row
	next int // elements between panels; 0 if these are as far apart as their first rows
}

// panel returns the first element of panel r, which begins in row i of the block.
func (a *operand) panel(i, r int) *float32 {
	if a.next == 0 {
		return &a.x[i*a.row]
	}
	return &a.x[r*a.next]
}

// packBlockA packs the present terms of m rows of op(A) from row i0. Rows are only copied, to where
// nothing is between them. Of a transposed A the elements of a term lie side by side in each panel,
// and panels are as even as add takes them.
func (t *tiling) packBlockA(i0, m int) operand {
	if !t.transA {
		CopyRows(t.roomA, t.depth, t.a[i0*t.lda+t.l:], t.lda, m, t.depth)
		return operand{x: t.roomA, row: t.depth, term: 1}
	}
	packed := operand{x: t.roomA, row: 1, term: active.rows, next: active.rows * t.depth}
	count := (m + active.rows - 1) / active.rows
	i := 0
	for r := range count {
		rows := (m - i + count - r - 1) / (count - r)
		copyPanel(packed.x[r*packed.next:], packed.term, t.a[t.l*t.lda+i0+i:], t.lda, t.depth, rows)
		i += rows
	}
	return packed
}

// packPanelB returns the first element of the packed panel of op(B) that begins in column j of the
// block from column j0. It packs it for the first rows, and keeps it if there are others.
func (t *tiling) packPanelB(i0, j0, j, width int) *float32 {
	place := 0
	if t.rows < t.m {
		place = (j - j0) * t.depth
	}
	to := t.roomB[place:]
	switch {
	case i0 > 0:
	case t.transB:
		transpose(to, active.columns, t.b[j*t.ldb+t.l:], t.ldb, width, t.depth)
	default:
		copyPanel(to, active.columns, t.b[t.l*t.ldb+j:], t.ldb, t.depth, width)
	}
	return &to[0]
}

// copyPanel copies the rows of a panel, at most 32 wide, from rows that are step apart to rows that
// are pitch apart. It copies all rows but the last by sixteens, for which rows that come later and
// TransposeMargin leave room.
func copyPanel(to []float32, pitch int, from []float32, step, rows, width int) {
	done := 0
	if whole := roundUp(width, 16); rows > 1 && step >= whole {
		done = rows - 1
		copySixteens(to, pitch, from, step, done, whole)
	}
	for i := done; i < rows; i++ {
		copy(to[i*pitch:][:width], from[i*step:])
	}
}
