package state

import (
	"strconv"

	"github.com/gradwire/gradwire/protos"
)

// Tensor declares a tensor, a view of a tensor, or nil. Restored holders of the same tensor share it
// again, each with its own reference. Restoring releases the tensor that the holder was made with.
func (s *State) Tensor(name string, t **protos.Tensor) {
	if s.out != nil {
		if *t != nil {
			whole, low := (*t).Whole()
			v := s.vector(name, whole)
			if whole != *t {
				v.View, v.Low, v.High = true, uint64(low), uint64(low+len((*t).Data))
			}
			s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_Vector{Vector: v}})
		}
		return
	}
	before := *t
	*t = nil
	if saved := s.pop(name); saved != nil {
		*t = s.restoreTensor(name, saved)
	}
	if before != nil {
		before.Release()
	}
}

// Received declares a tensor that another actor made, as Tensor does. It saves only the values of a
// view, because the other actor may write the values around them meanwhile.
func (s *State) Received(name string, t **protos.Tensor) {
	if s.out == nil {
		s.Tensor(name, t)
		return
	}
	if *t != nil {
		s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_Vector{Vector: s.vector(name, *t)}})
	}
}

// Vector declares values with a single holder. Restoring reuses the holder's memory if the number of
// values is the same. An empty vector is restored as nil.
func (s *State) Vector(name string, values *[]float32) {
	if s.out != nil {
		if len(*values) > 0 {
			v := s.vector(name, protos.NewTensor(*values))
			s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_Vector{Vector: v}})
		}
		return
	}
	saved := s.pop(name)
	if saved == nil {
		*values = nil
		return
	}
	v, ok := saved.GetIs().(*protos.DeclaredValue_Vector)
	if !ok || int(v.Vector.GetIndex()) >= len(s.run.saved.Vectors) {
		s.mismatch(name, "vector")
		return
	}
	data := s.run.saved.Vectors[v.Vector.GetIndex()].Data
	if len(*values) != len(data) {
		*values = make([]float32, len(data))
	}
	copy(*values, data)
}

// Vectors declares a fixed number of vectors, as Vector does.
func (s *State) Vectors(name string, all ...*[]float32) {
	s.Group(name, func(s *State) {
		for i, v := range all {
			s.Vector(strconv.Itoa(i), v)
		}
	})
}

// Tensors declares a list of tensors that other actors made. None may be nil.
func (s *State) Tensors(name string, all *[]*protos.Tensor) {
	List(s, name, all, func(s *State, t **protos.Tensor) { s.Received("values", t) })
}

// vector returns the index of a tensor's vector, and saves the vector the first time.
func (s *State) vector(name string, t *protos.Tensor) *protos.DeclaredVector {
	i, known := s.run.indices[t]
	if !known {
		i = uint32(len(s.run.saved.Vectors))
		s.run.indices[t] = i
		s.run.saved.Vectors = append(s.run.saved.Vectors, Vector{s.path(name), t.Data})
	}
	return &protos.DeclaredVector{Index: i}
}

// restoreTensor returns a reference to a saved tensor.
func (s *State) restoreTensor(name string, saved *protos.DeclaredValue) *protos.Tensor {
	x, ok := saved.GetIs().(*protos.DeclaredValue_Vector)
	if !ok || int(x.Vector.GetIndex()) >= len(s.run.tensors) {
		s.mismatch(name, "vector")
		return nil
	}
	v := x.Vector
	whole := s.run.tensors[v.GetIndex()]
	if whole == nil {
		whole = s.run.into.Pool.Copy(s.run.saved.Vectors[v.GetIndex()].Data)
		s.run.tensors[v.GetIndex()] = whole
	}
	if !v.GetView() {
		return whole.Retain()
	}
	if v.GetLow() > v.GetHigh() || v.GetHigh() > uint64(len(whole.Data)) {
		s.mismatch(name, "range of its vector")
		return nil
	}
	return whole.View(int(v.GetLow()), int(v.GetHigh()))
}

// Pointers returns pointers to the elements of a list, for Vectors and columns.
func Pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}
