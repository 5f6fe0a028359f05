package kernel

import "sync"

// spare keeps things for use again: at most as many as were in use at one time. A
// sync.Pool would drop them with every garbage collection, and each drop would cost a step
// an allocation.
type spare[T any] struct {
	mu   sync.Mutex
	free []*T
}

// get returns one that is free, or nil.
func (s *spare[T]) get() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return nil
	}
	x := s.free[n-1]
	s.free = s.free[:n-1]
	return x
}

func (s *spare[T]) put(x *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, x)
}
