package state

import "fmt"

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
				s.mismatch("number", fmt.Sprintf("number of a %T", known))
			}
		default:
			s.mismatch("number", "number of a shared value")
		}
	})
}

// Column declares one whole number of each item of a list. The list's length and order must follow from
// values declared before. Columns of a long list take less room than List.
func Column[E any, T integer](s *State, name string, of []*E, field func(of *E) *T) {
	column(s, name, of, field, Ints[T])
}

// FloatColumn declares one number of each item of a list, as Column does.
func FloatColumn[E any](s *State, name string, of []*E, field func(of *E) *float64) {
	column(s, name, of, field, Floats[float64])
}

// BoolColumn declares one truth value of each item of a list, as Column does.
func BoolColumn[E any](s *State, name string, of []*E, field func(of *E) *bool) {
	column(s, name, of, field, Bools[bool])
}

func column[E, T any](s *State, name string, of []*E, field func(of *E) *T, declare func(*State, string, *[]T)) {
	list := make([]T, len(of))
	for i, e := range of {
		list[i] = *field(e)
	}
	if declare(s, name, &list); s.out != nil {
		return
	}
	if len(list) != len(of) {
		s.mismatch(name, fmt.Sprintf("list of %d", len(of)))
		return
	}
	for i, e := range of {
		*field(e) = list[i]
	}
}
