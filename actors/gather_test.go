package actors_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors"
)

// letter is what a node has sent for a round.
type letter struct {
	node  int
	round uint64
}

// heap is a gather as one would say it: all letters in a map, looked through for every question.
type heap struct {
	group   []int
	round   uint64
	letters map[letter]int
}

func (h *heap) put(node int, round uint64, value int) error {
	_, twice := h.letters[letter{node, round}]
	switch {
	case round < h.round:
		return actors.ErrLate
	case round > h.round+1:
		return actors.ErrAhead
	case !slices.Contains(h.group, node):
		return actors.ErrStranger
	case twice:
		return actors.ErrTwice
	}
	h.letters[letter{node, round}] = value
	return nil
}

func (h *heap) missing() (nodes []int) {
	for _, node := range h.group {
		if _, here := h.letters[letter{node, h.round}]; !here {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (h *heap) values() (values []int) {
	for _, node := range h.group {
		values = append(values, h.letters[letter{node, h.round}])
	}
	return values
}

func (h *heap) next() {
	maps.DeleteFunc(h.letters, func(l letter, _ int) bool { return l.round == h.round })
	h.round++
}

func (h *heap) follow(group []int) (dropped []int) {
	h.group = group
	maps.DeleteFunc(h.letters, func(l letter, value int) bool {
		gone := !slices.Contains(group, l.node)
		if gone {
			dropped = append(dropped, value)
		}
		return gone
	})
	slices.Sort(dropped)
	return dropped
}

// group draws some of a number of nodes, perhaps none.
func group(random *rand.Rand, nodes int) (present []int) {
	for node := range nodes {
		if random.IntN(4) > 0 {
			present = append(present, node)
		}
	}
	return present
}

// Nodes leave, come back and join, send twice, for rounds that are over and far ahead.
func TestGatherAgreesWithAHeapOfLetters(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		nodes, first := 1+random.IntN(7), random.Uint64N(5)
		present := group(random, nodes)
		g := actors.NewGather[int](first, present)
		h := &heap{group: present, round: first, letters: map[letter]int{}}
		for value := range 400 {
			if random.IntN(25) == 0 {
				present = group(random, nodes)
				var dropped []int
				g.Follow(present, func(v int) { dropped = append(dropped, v) })
				if slices.Sort(dropped); !slices.Equal(dropped, h.follow(present)) {
					t.Fatalf("seed %d: %v were dropped when the group became %v", seed, dropped, present)
				}
			}
			node, round := random.IntN(nodes+1), max(h.round+random.Uint64N(4), 1)-1
			if got, want := g.Put(node, round, value), h.put(node, round, value); !errors.Is(got, want) {
				t.Fatalf("seed %d: node %d, round %d: %v, want %v", seed, node, round, got, want)
			}
			agree(t, g, h)
		}
	}
}

// agree compares what both say of the round, and ends it if it is complete.
func agree(t *testing.T, g *actors.Gather[int], h *heap) {
	t.Helper()
	missing := h.missing()
	node, some := g.Missing()
	if some != (len(missing) > 0) || some && node != missing[0] || g.Round() != h.round {
		t.Fatalf("round %d waits for %d (%v), want round %d and %v", g.Round(), node, some, h.round, missing)
	}
	complete := len(missing) == 0 && len(h.group) > 0
	if g.Complete() != complete {
		t.Fatalf("round %d of %v with %v missing: complete %v", h.round, h.group, missing, g.Complete())
	}
	if !complete {
		return
	}
	if !slices.Equal(g.Values(), h.values()) {
		t.Fatalf("the values of round %d are %v, want %v", h.round, g.Values(), h.values())
	}
	g.Next()
	h.next()
}

func TestRoundsOfAGatherTakeNoMemory(t *testing.T) {
	nodes := []int{1, 4, 5}
	g := actors.NewGather[int](0, nodes)
	round := func() {
		for ahead := range uint64(2) {
			for _, node := range nodes {
				if err := g.Put(node, g.Round()+ahead, node); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2 {
			if !g.Complete() || !slices.Equal(g.Values(), nodes) {
				t.Fatalf("round %d: %v", g.Round(), g.Values())
			}
			g.Next()
		}
	}
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("two rounds allocate %v times", n)
	}
}
