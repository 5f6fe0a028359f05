package collective

import (
	"testing"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// What the rounds of these tests are in, and how many steps come before theirs.
const (
	postedView   = 4
	postedRound  = 2
	postedBefore = 6
)

// posting is a rank that has begun a round of 9 values, and its output.
func posting(a Algorithm, n, rank int) (*reduction, *world.Posts, *protos.Tensor) {
	var pool protos.TensorPool
	r := newReduction(&Architecture{Algorithm: a}, part{n, rank, 9}, grouping(n))
	r.round = postedRound
	output := pool.Get(9)
	r.begin(pool.Get(9), output, 1)
	p := &world.Posts{}
	p.Put(output, r.posts(postedView, postedBefore))
	return r, p, output
}

// postedHead returns the head of a chunk of the round.
func postedHead(rank, step, index int) *protos.Chunk {
	return &protos.Chunk{View: postedView, Round: postedRound, Rank: int32(rank), Step: uint32(postedBefore + step),
		Index: uint32(index)}
}

func TestChunkHasAPlaceInItsRoundAlone(t *testing.T) {
	for name, change := range map[string]func(h *protos.Chunk, values *int){
		"an older view":     func(h *protos.Chunk, _ *int) { h.View-- },
		"the next round":    func(h *protos.Chunk, _ *int) { h.Round++ },
		"a vote":            func(h *protos.Chunk, _ *int) { h.Step -= postedBefore },
		"another piece":     func(h *protos.Chunk, _ *int) { h.Index = 0 },
		"another rank":      func(h *protos.Chunk, _ *int) { h.Rank = 1 },
		"another length":    func(_ *protos.Chunk, values *int) { *values = 4 },
		"the rank's own":    func(h *protos.Chunk, _ *int) { h.Rank = 0 },
		"a step after all":  func(h *protos.Chunk, _ *int) { h.Step += 4 },
		"a rank outside":    func(h *protos.Chunk, _ *int) { h.Rank = -1 },
		"a step before all": func(h *protos.Chunk, _ *int) { h.Step = 0 },
	} {
		_, p, _ := posting(Ring, 3, 0)
		head, values := postedHead(2, 0, 2), 3
		if change(head, &values); p.Take(head.Place(), values) != nil {
			t.Errorf("%s has a place", name)
		}
	}
	// All-to-all takes rank 0's vector for the output, which the others are added to.
	_, p, _ := posting(AllToAll, 3, 1)
	if p.Take(postedHead(0, 0, 0).Place(), 9) == nil || p.Take(postedHead(1, 0, 0).Place(), 9) != nil ||
		p.Take(postedHead(2, 0, 0).Place(), 9) != nil {
		t.Error("in all-to-all, the vector of rank 0 and no other has a place")
	}
}

func TestChunkHasOnePlace(t *testing.T) {
	// Of three ranks in a ring, rank 0 first hears from rank 2, of piece 2: values 6 to 8.
	r, p, output := posting(Ring, 3, 0)
	first := postedHead(2, 0, 2)
	place := p.Take(first.Place(), 3)
	if place == nil || &place.Data[0] != &output.Data[6] || len(place.Data) != 3 {
		t.Fatalf("the first chunk's place is %v", place)
	}
	if p.Take(first.Place(), 3) != nil {
		t.Error("a chunk has two places")
	}
	place.Release()
	if second := p.Take(postedHead(2, 1, 1).Place(), 3); second == nil {
		t.Error("the second chunk has no place")
	} else {
		second.Release()
	}
	third := tag{2, 2, 0}
	if err := r.take(postedRound, third, protos.NewTensor(make([]float32, 3))); err != nil {
		t.Fatal(err)
	}
	if p.Remove(postedHead(2, 2, 0).Place()); p.Take(postedHead(2, 2, 0).Place(), 3) != nil {
		t.Error("a chunk that has arrived elsewhere has a place")
	}
	if p.Put(output, r.posts(postedView, postedBefore)); p.Take(postedHead(2, 2, 0).Place(), 3) != nil {
		t.Error("a chunk that came before the round has a place")
	}
	if p.Put(nil, nil); p.Take(first.Place(), 3) != nil {
		t.Error("a chunk has a place after the round")
	}
	if !output.Sole() {
		t.Error("the output is held")
	}
}
