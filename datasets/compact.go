package datasets

import "math"

// Compact holds the inputs of a set that are not 0, so that to copy a row touches one or two lines
// of memory where the row itself has many. It is immutable.
type Compact struct {
	start   []uint32 // of each row in entries, and where the last one ends
	entries []entry
}

// entry is an input of a row that is not 0.
type entry struct {
	value  float32
	column uint32
}

// rarely is the inverse of the share of inputs other than 0 up to which it pays to hold them alone.
const rarely = 6

// NewCompact returns the inputs of a set that are not 0, nil where so many are not that it does not
// pay. Later changes of the set are not seen.
func NewCompact(set *Set) *Compact {
	n := 0
	for _, v := range set.X {
		if math.Float32bits(v) != 0 {
			n++
		}
	}
	if n > len(set.X)/rarely || uint64(n) > math.MaxUint32 {
		return nil
	}
	c := &Compact{start: make([]uint32, 1, len(set.Y)+1), entries: make([]entry, 0, n)}
	for i := range set.Y {
		for column, v := range set.Row(i) {
			if math.Float32bits(v) != 0 {
				c.entries = append(c.entries, entry{v, uint32(column)})
			}
		}
		c.start = append(c.start, uint32(len(c.entries)))
	}
	return c
}

// copy copies the inputs of rows to x, first what each begins and ends with; see together.
func (c *Compact) copy(x []float32, inputs int, rows []int) {
	var room [together][]entry
	of := room[:len(rows)]
	for i, row := range rows {
		of[i] = c.entries[c.start[row]:c.start[row+1]]
	}
	clear(x)
	for i, entries := range of {
		if n := len(entries); n > 0 {
			x[i*inputs+int(entries[0].column)] = entries[0].value
			x[i*inputs+int(entries[n-1].column)] = entries[n-1].value
		}
	}
	for i, entries := range of {
		row := x[i*inputs : (i+1)*inputs]
		for _, e := range entries {
			row[e.column] = e.value
		}
	}
}
