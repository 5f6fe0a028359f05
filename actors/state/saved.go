package state

import (
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// Own returns a copy of the state that shares no vector with the actor, so that the actor can go on.
// prefix is put before the vectors' names.
func (saved *Saved) Own(prefix string) *Saved {
	own := &Saved{Root: saved.Root, Vectors: make([]Vector, len(saved.Vectors))}
	for i, v := range saved.Vectors {
		own.Vectors[i] = Vector{prefix + v.Name, slices.Clone(v.Data)}
	}
	return own
}

// Equal reports whether two states have the same values, bit by bit.
func (saved *Saved) Equal(other *Saved) bool {
	same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return proto.Equal(saved.Root, other.Root) && slices.EqualFunc(saved.Vectors, other.Vectors,
		func(a, b Vector) bool { return a.Name == b.Name && slices.EqualFunc(a.Data, b.Data, same) })
}

// Saved declares a state within a state, such as a node's within a run's, or nil. Its vectors keep
// their names.
func (s *State) Saved(name string, v **Saved) {
	if s.out != nil {
		if of := *v; of != nil {
			all := &s.run.saved.Vectors
			s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_Saved{Saved: &protos.DeclaredSaved{
				Root: of.Root, First: uint32(len(*all)), Vectors: uint32(len(of.Vectors))}}})
			*all = append(*all, of.Vectors...)
		}
		return
	}
	*v = nil
	saved := s.pop(name)
	if saved == nil {
		return
	}
	x, all := saved.GetSaved(), s.run.saved.Vectors
	first := uint64(x.GetFirst())
	end := first + uint64(x.GetVectors())
	if x == nil || end > uint64(len(all)) {
		s.mismatch(name, "state of its own")
		return
	}
	*v = &Saved{Root: x.GetRoot(), Vectors: all[first:end:end]}
}

// All declares several values. Their positions in the list name them.
type All []Declared

// State implements [Declared].
func (all All) State(s *State) {
	for i, of := range all {
		s.Part(strconv.Itoa(i), of)
	}
}
