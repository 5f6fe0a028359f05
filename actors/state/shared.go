package state

import (
	"fmt"
)

// Shared declares a pointer that several values may hold, or nil. The first holder saves the target,
// which may refer back to itself. Restored holders share one target again.
func Shared[T any](s *State, name string, v **T, declare func(s *State, v *T)) {
	r := s.run
	if s.out != nil {
		if *v == nil {
			return
		}
		s.Group(name, func(s *State) {
			number, known := r.shared[*v]
			if !known {
				number = len(r.shared)
				r.shared[*v] = number
			}
			if Int(s, "number", &number); !known {
				s.Group("value", func(s *State) { declare(s, *v) })
			}
		})
		return
	}
	*v = nil
	if s.in[name] == nil {
		return
	}
	s.Group(name, func(s *State) {
		number := -1
		switch Int(s, "number", &number); {
		case number == len(r.targets) && s.in["value"] != nil:
			*v = new(T)
			r.targets = append(r.targets, *v)
			s.Group("value", func(s *State) { declare(s, *v) })
		case number >= 0 && number < len(r.targets):
			known, ok := r.targets[number].(*T)
			if *v = known; !ok {
				s.kind("number", fmt.Sprintf("number of a %T", known))
			}
		default:
			s.kind("number", "number of a shared value")
		}
	})
}

// Column declares one whole number of each part of a list, whose length and order follow from values
// declared before. A list of many parts takes less room by columns than by List.
func Column[E any, T integer](s *State, name string, of []*E, number func(of *E) *T) {
	list := make([]T, len(of))
	for i, e := range of {
		list[i] = *number(e)
	}
	if Ints(s, name, &list); s.out == nil && s.fits(name, len(of), len(list)) {
		for i, e := range of {
			*number(e) = list[i]
		}
	}
}

// FloatColumn declares one number of each part of a list, as Column does.
func FloatColumn[E any](s *State, name string, of []*E, number func(of *E) *float64) {
	list := make([]float64, len(of))
	for i, e := range of {
		list[i] = *number(e)
	}
	if Floats(s, name, &list); s.out == nil && s.fits(name, len(of), len(list)) {
		for i, e := range of {
			*number(e) = list[i]
		}
	}
}

// BoolColumn declares one truth value of each part of a list, as Column does.
func BoolColumn[E any](s *State, name string, of []*E, flag func(of *E) *bool) {
	list := make([]bool, len(of))
	for i, e := range of {
		list[i] = *flag(e)
	}
	if Bools(s, name, &list); s.out == nil && s.fits(name, len(of), len(list)) {
		for i, e := range of {
			*flag(e) = list[i]
		}
	}
}

// fits fails if a restored list does not have the length that follows from other values.
func (s *State) fits(name string, want, got int) bool {
	if want != got {
		s.kind(name, fmt.Sprintf("list of %d", want))
	}
	return want == got
}
