package state

import (
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/protos"
)

// Own returns the state with vectors of its own, so that its actor can go on. Their names begin with that
// of their owner.
func (saved *Saved) Own(owner string) *Saved {
	own := &Saved{Root: saved.Root, Vectors: make([]Vector, len(saved.Vectors))}
	for i, v := range saved.Vectors {
		own.Vectors[i] = Vector{owner + "/" + v.Name, slices.Clone(v.Data)}
	}
	return own
}

// Saved declares a state that was saved by itself, as that of one of several nodes was; a nil pointer is
// none. Its vectors keep their names.
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
	saved := s.take(name)
	if saved == nil {
		return
	}
	x, all := saved.GetSaved(), s.run.saved.Vectors
	first := uint64(x.GetFirst())
	end := first + uint64(x.GetVectors())
	if x == nil || end > uint64(len(all)) {
		s.kind(name, "state of its own")
		return
	}
	*v = &Saved{Root: x.GetRoot(), Vectors: all[first:end:end]}
}

// All declares several values, by their place.
type All []Declared

// State implements [Declared].
func (all All) State(s *State) {
	for i, of := range all {
		s.Part(strconv.Itoa(i), of)
	}
}
