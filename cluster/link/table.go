package link

import "math/bits"

// table finds an edge by its destination: open addressing with linear probing, at most half full.
// It is as small as a ring needs and as fast as a complete graph needs.
type table struct {
	slots []*Edge // a power of two of them, or none
	shift uint8   // 64 − log2(len(slots))
	count int
}

func (t *table) home(dst int32) int {
	return int(uint64(uint32(dst)) * golden >> (t.shift & 63))
}

func (t *table) find(dst int32) *Edge {
	if len(t.slots) == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := t.home(dst); ; i++ {
		e := t.slots[i&mask]
		if e == nil || e.destination == dst {
			return e
		}
	}
}

// full reports whether the next edge makes the table grow.
func (t *table) full() bool { return 2*(t.count+1) > len(t.slots) }

func (t *table) add(e *Edge) {
	if t.full() {
		t.grow()
	}
	t.insert(e)
	t.count++
}

// hold makes these the table's edges. It leaves room for as many more as a look at all slots is
// worth.
func (t *table) hold(edges []*Edge) {
	t.count = len(edges)
	if 4*t.count > len(t.slots) {
		t.grow()
	}
	clear(t.slots)
	for _, e := range edges {
		t.insert(e)
	}
}

func (t *table) insert(e *Edge) {
	mask := len(t.slots) - 1
	i := t.home(e.destination)
	for t.slots[i&mask] != nil {
		i++
	}
	t.slots[i&mask] = e
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]*Edge, max(4, 2*len(old)))
	t.shift = uint8(64 - bits.TrailingZeros(uint(len(t.slots))))
	for _, e := range old {
		if e != nil {
			t.insert(e)
		}
	}
}
