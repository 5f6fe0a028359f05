package collective

import (
	"testing"

	"github.com/gradwire/gradwire/protos"
)

func TestChunkHasAPlaceOnceAndInItsRoundAlone(t *testing.T) {
	const view, before = 4, 6
	var pool protos.TensorPool
	begin := func(a Algorithm, n, rank int) (*reduction, *posts, *protos.Tensor) {
		r := newReduction(&Architecture{Algorithm: a}, n, rank, 9)
		output := pool.Get(9)
		r.round = 2
		r.begin(pool.Get(9), output, 1)
		p := &posts{}
		p.open(r, view, before)
		return r, p, output
	}
	head := func(rank, step, index int) *protos.Chunk {
		return &protos.Chunk{View: view, Round: 2, Rank: int32(rank), Step: uint32(before + step), Index: uint32(index)}
	}
	// Of three ranks in a ring, rank 0 first hears from rank 2, of piece 2: values 6 to 8.
	r, p, output := begin(Ring, 3, 0)
	first := head(2, 0, 2)
	for name, change := range map[string]func(h *protos.Chunk, values *int){
		"an older view":     func(h *protos.Chunk, _ *int) { h.View-- },
		"the next round":    func(h *protos.Chunk, _ *int) { h.Round++ },
		"a vote":            func(h *protos.Chunk, _ *int) { h.Step -= before },
		"another piece":     func(h *protos.Chunk, _ *int) { h.Index = 0 },
		"another rank":      func(h *protos.Chunk, _ *int) { h.Rank = 1 },
		"another length":    func(_ *protos.Chunk, values *int) { *values = 4 },
		"the rank's own":    func(h *protos.Chunk, _ *int) { h.Rank = 0 },
		"a step after all":  func(h *protos.Chunk, _ *int) { h.Step += 4 },
		"a rank outside":    func(h *protos.Chunk, _ *int) { h.Rank = -1 },
		"a step before all": func(h *protos.Chunk, _ *int) { h.Step = 0 },
	} {
		h, values := &protos.Chunk{View: first.View, Round: first.Round, Rank: first.Rank, Step: first.Step, Index: first.Index}, 3
		if change(h, &values); p.posted(h, values) != nil {
			t.Errorf("%s has a place", name)
		}
	}
	place := p.posted(first, 3)
	if place == nil || &place.Data[0] != &output.Data[6] || len(place.Data) != 3 {
		t.Fatalf("the first chunk's place is %v", place)
	}
	if p.posted(first, 3) != nil {
		t.Error("a chunk has two places")
	}
	place.Release()
	if second := p.posted(head(2, 1, 1), 3); second == nil {
		t.Error("the second chunk has no place")
	} else {
		second.Release()
	}
	third := tag{2, 2, 0}
	if err := r.take(2, third, pool.Get(3)); err != nil {
		t.Fatal(err)
	}
	if p.arrived(r, 2, third); p.posted(head(2, 2, 0), 3) != nil {
		t.Error("a chunk that has arrived elsewhere has a place")
	}
	if p.open(r, view, before); p.posted(head(2, 2, 0), 3) != nil {
		t.Error("a chunk that came before the round has a place")
	}
	if p.close(); p.posted(first, 3) != nil {
		t.Error("a chunk has a place after the round")
	}
	if !output.Sole() {
		t.Error("the output is held")
	}

	// All-to-all takes rank 0's vector for the output, which the others are added to.
	_, p, _ = begin(AllToAll, 3, 1)
	if p.posted(head(0, 0, 0), 9) == nil || p.posted(head(1, 0, 0), 9) != nil || p.posted(head(2, 0, 0), 9) != nil {
		t.Error("in all-to-all, the vector of rank 0 and no other has a place")
	}
}
