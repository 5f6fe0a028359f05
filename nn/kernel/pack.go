//go:build (amd64 || arm64) && !noasm

package kernel

// packMargin is how many elements packing may write behind the last panel.
const packMargin = 8

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

// packBandA packs the rows [i0, i1) and the terms [l, l+depth) of op(A), panel after panel, in each
// the elements of a term side by side. Panels are as even as tiles takes them.
func (t *tiling) packBandA(to []float32, i0, i1, l, depth int) {
	count := (i1 - i0 + active.rows - 1) / active.rows
	i := i0
	for r := range count {
		rows := (i1 - i + count - r - 1) / (count - r)
		panel := to[r*active.rows*depth:]
		if t.transA {
			copyRows(panel, active.rows, t.a[l*t.lda+i:], t.lda, depth, rows)
		} else {
			transpose(panel, active.rows, t.a[i*t.lda+l:], t.lda, rows, depth)
		}
		i += rows
	}
}

// packBlock packs the terms [l, l+depth) of the panel of op(B) that begins in column j.
func (p *product) packBlock(to []float32, l, depth, j int) {
	width := min(active.columns, p.n-j)
	if p.transB {
		transpose(to, active.columns, p.b[j*p.ldb+l:], p.ldb, width, depth)
	} else {
		copyRows(to, active.columns, p.b[l*p.ldb+j:], p.ldb, depth, width)
	}
}

// copyRows copies rows of a width, from rows that are step apart to rows that are pitch apart.
func copyRows(to []float32, pitch int, from []float32, step, rows, width int) {
	if width == pitch {
		switch width {
		case 32:
			CopyRows(to, pitch, from, step, rows, width)
			return
		case 16:
			for i := range rows {
				*(*[16]float32)(to[i*16:]) = *(*[16]float32)(from[i*step:])
			}
			return
		case 12:
			for i := range rows {
				*(*[12]float32)(to[i*12:]) = *(*[12]float32)(from[i*step:])
			}
			return
		}
	}
	for i := range rows {
		copy(to[i*pitch:][:width], from[i*step:][:width])
	}
}
