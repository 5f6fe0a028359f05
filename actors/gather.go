package actors

import (
	"errors"
	"slices"

	"github.com/gradwire/gradwire/actors/state"
)

// Why a [Gather] does not take a value.
var (
	// ErrLate: the round is over.
	ErrLate = errors.New("its round is over")
	// ErrAhead: the round is later than the next one.
	ErrAhead = errors.New("its round is later than the next")
	// ErrTwice: the node has given its value of the round before.
	ErrTwice = errors.New("it has come before")
	// ErrStranger: the node is not in the group.
	ErrStranger = errors.New("nobody waits for it")
)

// Gather waits for one value of each node of a group in each round, as a barrier or an MPI gather
// does: for a gradient of every worker, or for a report of every rank.
//
// The group are the present members. A node that leaves takes its value with it and is not waited
// for; a node that joins is waited for from the round under way on. Where all nodes of a group wait
// for each other, one of them may be a round ahead of another: values of the next round are kept.
// Values are in the order of the group, never of arrival. A round allocates nothing.
type Gather[T any] struct {
	nodes  []int
	round  uint64
	rounds [2]gathered[T] // the round under way and the next: of even and of odd numbers
}

// gathered is what has come of one round.
type gathered[T any] struct {
	values []T    // in the order of the group; empty until the first has come
	here   []bool // likewise
	count  int
}

// NewGather returns a gather that begins with a round. The group is some nodes' positions in the
// view, ascending, such as View.Role returns; it is kept and must not change.
func NewGather[T any](round uint64, nodes []int) *Gather[T] {
	return &Gather[T]{nodes: nodes, round: round}
}

// Put takes a node's value of a round. Otherwise it returns one of the errors above, and the value
// stays the caller's. An architecture in which nodes come and go ignores what is late or a
// stranger's; the other two are no member's doing.
func (g *Gather[T]) Put(node int, round uint64, value T) error {
	place, found := slices.BinarySearch(g.nodes, node)
	r := &g.rounds[round&1]
	switch {
	case round < g.round:
		return ErrLate
	case round-g.round > 1:
		return ErrAhead
	case !found:
		return ErrStranger
	case len(r.here) == 0:
		r.resize(len(g.nodes))
	case r.here[place]:
		return ErrTwice
	}
	r.values[place], r.here[place] = value, true
	r.count++
	return nil
}

// Complete reports whether the round has a value of every node. Without any node it never has.
func (g *Gather[T]) Complete() bool {
	return len(g.nodes) > 0 && g.rounds[g.round&1].count == len(g.nodes)
}

// Missing returns the first node of the group that the round waits for; ok is false if there is
// none.
func (g *Gather[T]) Missing() (node int, ok bool) {
	here := g.rounds[g.round&1].here
	for place, node := range g.nodes {
		if len(here) == 0 || !here[place] {
			return node, true
		}
	}
	return 0, false
}

// Values are the values of a complete round, in the order of the group, until Next or Follow.
func (g *Gather[T]) Values() []T { return g.rounds[g.round&1].values }

// Round is the number of the round under way.
func (g *Gather[T]) Round() uint64 { return g.round }

// Next begins the next round, of which some values may be there. The values of the last one, which
// is complete, are the caller's.
func (g *Gather[T]) Next() {
	r := &g.rounds[g.round&1]
	clear(r.values)
	clear(r.here)
	r.count = 0
	g.round++
}

// Follow makes other nodes the group, as for NewGather, once the view has changed. The round may be
// complete with that. The values of nodes that are no longer in the group go to drop.
func (g *Gather[T]) Follow(nodes []int, drop func(T)) {
	before := g.nodes
	g.nodes = nodes
	for i := range g.rounds {
		r := &g.rounds[i]
		old := *r
		*r = gathered[T]{}
		for place, here := range old.here {
			if !here {
				continue
			}
			if g.Put(before[place], g.numbered(i), old.values[place]) != nil {
				drop(old.values[place])
			}
		}
	}
}

// numbered is the number of the round, of the two that there are, whose number is even or odd as i.
func (g *Gather[T]) numbered(i int) uint64 { return g.round + (g.round^uint64(i))&1 }

// resize makes places for a group.
func (r *gathered[T]) resize(nodes int) { r.values, r.here = make([]T, nodes), make([]bool, nodes) }

// GatherState declares a gather; the function declare declares each of its values.
func GatherState[T any](s *state.State, name string, g *Gather[T], declare func(s *state.State, value *T)) {
	s.Group(name, func(s *state.State) {
		state.Ints(s, "nodes", &g.nodes)
		state.Int(s, "round", &g.round)
		rounds := g.rounds[:]
		state.List(s, "rounds", &rounds, func(s *state.State, r *gathered[T]) {
			state.Int(s, "count", &r.count)
			state.Bools(s, "here", &r.here)
			state.List(s, "values", &r.values, declare)
		})
	})
}
