// Package state saves the state of actors as named values, and restores it.
//
// An actor declares its state in one method, State, which serves both directions: each call in it
// names a value and points to it. Saving reads the value, restoring sets it. So a checkpoint depends
// on names alone: neither on the order nor on the types of fields, nor on the program file.
//
// An actor is restored after its [actors.Kind] has made it. A value that the checkpoint lacks keeps
// the value it was made with, so a newer program may declare more values. A saved value that the
// program does not declare is an error, because the actor would lose it.
package state

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/gradwire/gradwire/protos"
)

// Declared is a value that declares its state.
type Declared interface {
	// State declares every value that changes during the run and does not follow from other values.
	// It must declare the same values when the state is saved and when it is restored.
	State(s *State)
}

// ErrForeign reports a state whose values differ from those that this program declares.
var ErrForeign = errors.New("the state was saved by a program that declares other values")

// State saves the values that are declared to it, or restores them.
type State struct {
	run *run
	out *protos.Declared                 // the saved values; nil while restoring
	in  map[string]*protos.DeclaredValue // values left to restore, by name; nil while saving
	at  string                           // path of this part, for errors and names of vectors
}

// run holds the data that all parts of one state share.
type run struct {
	saved *Saved
	err   error
	// indices holds the index of each saved tensor's vector.
	indices map[*protos.Tensor]uint32
	// tensors holds the restored tensors by the index of their vector; nil for vectors not restored yet.
	tensors []*protos.Tensor
	// shared holds the numbers of the saved targets of shared pointers. targets holds the restored ones.
	shared  map[any]int
	targets []any
	into    Into
}

// Into names the parts of a world that restored values depend on.
type Into struct {
	// Pool supplies the memory of restored tensors.
	Pool *protos.TensorPool
	// Clock cancels the actor's timers.
	Clock interface{ CancelTimer(id uint64) }
}

// Saved is a saved state.
type Saved struct {
	// Root is the state without its vectors.
	Root *protos.Declared
	// Vectors are the vectors of the state. Root refers to them by index.
	Vectors []Vector
}

// Vector is a vector of a state.
type Vector struct {
	// Name is the path of the value that declared the vector first, such as "replica.params".
	Name string
	// Data are the values. The actor owns them: copy or write them before it goes on.
	Data []float32
}

// Save returns the state of a value. The value must not change meanwhile, and its vectors must not
// change until they are written.
func Save(of Declared) (*Saved, error) {
	r := &run{saved: &Saved{Root: &protos.Declared{}}, indices: map[*protos.Tensor]uint32{}, shared: map[any]int{}}
	of.State(&State{run: r, out: r.saved.Root})
	return r.saved, r.err
}

// Restore sets a newly made value to a saved state. If it returns an error, discard the value.
func (saved *Saved) Restore(to Declared, into Into) error {
	r := &run{saved: saved, tensors: make([]*protos.Tensor, len(saved.Vectors)), into: into}
	s := r.reader(saved.Root, "")
	to.State(s)
	s.finish()
	for _, t := range r.tensors {
		if t != nil {
			t.Release() // every holder has a reference of its own
		}
	}
	return r.err
}

// Restoring reports whether the state is being restored. A method State then also rebuilds the values
// that follow from declared values.
func (s *State) Restoring() bool { return s.out == nil }

// Clock returns the clock of the world that the state is restored into. It cancels timers.
func (s *State) Clock() interface{ CancelTimer(id uint64) } { return s.run.into.Clock }

// Fail ends saving or restoring with an error.
func (s *State) Fail(err error) {
	if s.run.err == nil && err != nil {
		s.run.err = err
		if s.at != "" {
			s.run.err = fmt.Errorf("%s: %w", s.at, err)
		}
	}
}

// reader returns a State that restores a part.
func (r *run) reader(from *protos.Declared, at string) *State {
	s := &State{run: r, in: make(map[string]*protos.DeclaredValue, len(from.GetFields())), at: at}
	for _, f := range from.GetFields() {
		if _, twice := s.in[f.GetName()]; twice || f.GetName() == "" || f.GetValue() == nil {
			s.Fail(fmt.Errorf("the value %q occurs twice or is empty", f.GetName()))
		}
		s.in[f.GetName()] = f.GetValue()
	}
	return s
}

// finish fails if a saved value was not declared.
func (s *State) finish() {
	if len(s.in) > 0 {
		s.Fail(fmt.Errorf("%w: this program does not declare %q", ErrForeign, slices.Sorted(maps.Keys(s.in))[0]))
	}
}

// put saves a value under a name.
func (s *State) put(name string, v *protos.DeclaredValue) {
	s.out.Fields = append(s.out.Fields, &protos.DeclaredField{Name: name, Value: v})
}

// pop removes the saved value with a name and returns it, or nil if there is none.
func (s *State) pop(name string) *protos.DeclaredValue {
	v := s.in[name]
	delete(s.in, name)
	return v
}

// path returns the path of a value of this part.
func (s *State) path(name string) string {
	if s.at == "" {
		return name
	}
	return s.at + "." + name
}

// mismatch fails because a saved value does not have the declared type.
func (s *State) mismatch(name, want string) {
	s.Fail(fmt.Errorf("%w: %s is no %s", ErrForeign, name, want))
}

// lacks reports whether the state is being restored and has no value with a name.
func (s *State) lacks(name string) bool { return s.out == nil && s.in[name] == nil }

// wire declares a value with the wire type W, one of the wrappers of DeclaredValue. save returns the
// value's wire form. restore sets the value, or reports false if the wire form does not fit. kind
// describes the value in errors.
func wire[W any](s *State, name, kind string, save func() *protos.DeclaredValue, restore func(W) bool) {
	if s.out != nil {
		s.put(name, save())
		return
	}
	if saved := s.pop(name); saved != nil {
		if x, ok := any(saved.GetIs()).(W); !ok || !restore(x) {
			s.mismatch(name, kind)
		}
	}
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

type float interface{ ~float32 | ~float64 }

// Int declares a whole number, such as a count or a time.Duration.
func Int[T integer](s *State, name string, v *T) {
	wire(s, name, reflect.TypeFor[T]().String(), func() *protos.DeclaredValue {
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Integer{Integer: int64(*v)}}
	}, func(x *protos.DeclaredValue_Integer) bool {
		if int64(T(x.Integer)) != x.Integer {
			return false
		}
		*v = T(x.Integer)
		return true
	})
}

// Float declares a number.
func Float[T float](s *State, name string, v *T) {
	wire(s, name, "number", func() *protos.DeclaredValue {
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Number{Number: float64(*v)}}
	}, func(x *protos.DeclaredValue_Number) bool {
		*v = T(x.Number)
		return true
	})
}

// Bool declares a truth value.
func (s *State) Bool(name string, v *bool) {
	wire(s, name, "truth value", func() *protos.DeclaredValue {
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Flag{Flag: *v}}
	}, func(x *protos.DeclaredValue_Flag) bool {
		*v = x.Flag
		return true
	})
}

// Text declares a text.
func Text[T ~string](s *State, name string, v *T) {
	wire(s, name, "text", func() *protos.DeclaredValue {
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Text{Text: string(*v)}}
	}, func(x *protos.DeclaredValue_Text) bool {
		*v = T(x.Text)
		return true
	})
}

// Bytes declares bytes. Restoring makes a new slice, or nil if there are no bytes.
func (s *State) Bytes(name string, v *[]byte) {
	wire(s, name, "sequence of bytes", func() *protos.DeclaredValue {
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Bytes{Bytes: slices.Clone(*v)}}
	}, func(x *protos.DeclaredValue_Bytes) bool {
		*v = append([]byte(nil), x.Bytes...)
		return true
	})
}

// Ints declares a list of whole numbers. Restoring makes a new list, or nil if the list is empty.
func Ints[T integer](s *State, name string, v *[]T) {
	wire(s, name, "list of "+reflect.TypeFor[T]().String(), func() *protos.DeclaredValue {
		n := &protos.DeclaredNumbers{Integers: converted[int64](*v)}
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Numbers{Numbers: n}}
	}, func(x *protos.DeclaredValue_Numbers) bool {
		saved := x.Numbers.GetIntegers()
		*v = converted[T](saved)
		return len(x.Numbers.GetNumbers()) == 0 && slices.Equal(converted[int64](*v), saved)
	})
}

// Floats declares a list of numbers. Restoring makes a new list, or nil if the list is empty.
func Floats[T float](s *State, name string, v *[]T) {
	wire(s, name, "list of numbers", func() *protos.DeclaredValue {
		n := &protos.DeclaredNumbers{Numbers: converted[float64](*v)}
		return &protos.DeclaredValue{Is: &protos.DeclaredValue_Numbers{Numbers: n}}
	}, func(x *protos.DeclaredValue_Numbers) bool {
		*v = converted[T](x.Numbers.GetNumbers())
		return len(x.Numbers.GetIntegers()) == 0
	})
}

// converted returns numbers in another type, or nil if there are none.
func converted[To, From integer | float](numbers []From) (list []To) {
	if len(numbers) > 0 {
		list = make([]To, len(numbers))
	}
	for i, x := range numbers {
		list[i] = To(x)
	}
	return list
}

// Bools declares a list of truth values. Restoring makes a new list, or nil if the list is empty.
func Bools[T ~bool](s *State, name string, v *[]T) {
	if s.lacks(name) {
		return
	}
	bits := make([]uint8, len(*v))
	for i, x := range *v {
		if x {
			bits[i] = 1
		}
	}
	if Ints(s, name, &bits); s.out != nil {
		return
	}
	*v = nil
	for _, bit := range bits {
		*v = append(*v, bit != 0)
	}
}

// Part declares a value that is never nil. Restoring keeps the value and sets its parts.
func (s *State) Part(name string, of Declared) { s.Group(name, of.State) }

// Group declares several values under one name.
func (s *State) Group(name string, declare func(s *State)) {
	if s.out != nil {
		part := &protos.Declared{}
		s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_Part{Part: part}})
		declare(&State{run: s.run, out: part, at: s.path(name)})
		return
	}
	if saved := s.pop(name); saved != nil {
		s.restorePart(name, saved, declare)
	}
}

func (s *State) restorePart(name string, saved *protos.DeclaredValue, declare func(s *State)) {
	x, ok := saved.GetIs().(*protos.DeclaredValue_Part)
	if !ok {
		s.mismatch(name, "part")
		return
	}
	part := s.run.reader(x.Part, s.path(name))
	if s.run.err == nil {
		declare(part)
		part.finish()
	}
}

// Optional declares a pointer that may be nil. Restoring a value through a nil pointer starts from a
// zero T.
func Optional[T any](s *State, name string, v **T, declare func(s *State, v *T)) {
	if s.out != nil {
		if *v != nil {
			s.Group(name, func(s *State) { declare(s, *v) })
		}
		return
	}
	saved := s.pop(name)
	if saved == nil {
		*v = nil
		return
	}
	if *v == nil {
		*v = new(T)
	}
	s.restorePart(name, saved, func(s *State) { declare(s, *v) })
}

// List declares a list of parts. Restoring sets the length of the list. It keeps existing items, and
// starts from zero values for new ones.
func List[T any](s *State, name string, v *[]T, declare func(s *State, v *T)) {
	if s.out != nil {
		list := &protos.DeclaredList{}
		s.put(name, &protos.DeclaredValue{Is: &protos.DeclaredValue_List{List: list}})
		for i := range *v {
			part := &protos.Declared{}
			list.Items = append(list.Items, &protos.DeclaredValue{Is: &protos.DeclaredValue_Part{Part: part}})
			declare(&State{run: s.run, out: part, at: s.item(name, i)}, &(*v)[i])
		}
		return
	}
	saved := s.pop(name)
	if saved == nil {
		return
	}
	x, ok := saved.GetIs().(*protos.DeclaredValue_List)
	if !ok {
		s.mismatch(name, "list")
		return
	}
	items := x.List.GetItems()
	if n := len(*v); n < len(items) {
		*v = append(*v, make([]T, len(items)-n)...)
	}
	*v = (*v)[:len(items)]
	for i, item := range items {
		s.restorePart(fmt.Sprintf("%s[%d]", name, i), item, func(s *State) { declare(s, &(*v)[i]) })
	}
}

// Each declares a list whose length follows from the plan, such as a list by node. declare receives
// the index of each item.
func Each[T any](s *State, name string, v []T, declare func(s *State, i int, v *T)) {
	if s.in[name] != nil && len(s.in[name].GetList().GetItems()) != len(v) {
		s.mismatch(name, fmt.Sprintf("list of %d", len(v)))
		return
	}
	i := -1
	List(s, name, &v, func(s *State, v *T) {
		i++
		declare(s, i, v)
	})
}

func (s *State) item(name string, i int) string { return fmt.Sprintf("%s[%d]", s.path(name), i) }

// Table declares a map, sorted by key. Restoring makes a new map.
func Table[K cmp.Ordered, V any](s *State, name string, m *map[K]V, key func(s *State, k *K),
	declare func(s *State, v *V)) {
	type entry struct {
		key   K
		value V
	}
	var entries []entry
	if s.out != nil {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			entries = append(entries, entry{k, (*m)[k]})
		}
	}
	if s.lacks(name) {
		return
	}
	List(s, name, &entries, func(s *State, e *entry) {
		key(s, &e.key)
		s.Group("value", func(s *State) { declare(s, &e.value) })
	})
	if s.out == nil {
		*m = make(map[K]V, len(entries))
		for _, e := range entries {
			(*m)[e.key] = e.value
		}
	}
}

// IntKey declares the key of a Table's entry as a whole number.
func IntKey[K integer](s *State, k *K) { Int(s, "key", k) }

// TextKey declares the key of a Table's entry as a text.
func TextKey[K ~string](s *State, k *K) { Text(s, "key", k) }

// Random declares the position of a random stream.
func (s *State) Random(name string, source *rand.PCG) {
	var b []byte
	if s.out != nil {
		b, _ = source.MarshalBinary() // never fails
	}
	s.Bytes(name, &b)
	if s.out == nil && len(b) > 0 {
		s.Fail(source.UnmarshalBinary(b))
	}
}
