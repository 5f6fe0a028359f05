package shelf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"weak"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/datasets"
)

// Shared are the data sets that are in use in a process, for all plans that want the same. It
// keeps none in memory: what nobody uses is collected.
type Shared struct {
	// Stop, if not nil, cancels all waiting for data when it is done; the error is its cause. Reading a file
	// cannot be interrupted, and goes on without effect.
	Stop context.Context

	sources shared[datasets.Source]
	cuts    shared[Samples]
}

// stopped reports whether Stop has cancelled the waiting for data.
func (s *Shared) stopped() bool { return s.Stop != nil && s.Stop.Err() != nil }

// await returns the result of get, or the cause of stop if that is done earlier.
func await[T any](stop context.Context, get func() (*T, error)) (made *T, err error) {
	if stop == nil {
		return get()
	}
	done := make(chan struct{})
	var value *T
	var failure error
	go func() {
		defer close(done)
		value, failure = get()
	}()
	select {
	case <-done:
		return value, failure
	case <-stop.Done():
		return nil, context.Cause(stop)
	}
}

// shared are values by key, each for as long as somebody has it.
type shared[T any] struct {
	mu   sync.Mutex
	held map[string]*holding[T]
}

// holding is a value that may have been collected. Its lock is held while the value is made.
type holding[T any] struct {
	mu    sync.Mutex
	value weak.Pointer[T]
}

// get returns the value of a key, which is made if nobody has it.
func (s *shared[T]) get(key string, create func() (*T, error)) (*T, error) {
	h := s.holding(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if v := h.value.Value(); v != nil {
		return v, nil
	}
	v, err := create()
	if err != nil {
		return nil, err
	}
	h.value = weak.Make(v)
	return v, nil
}

// holding returns the one of a key, and forgets those whose values are gone.
func (s *shared[T]) holding(key string) *holding[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[key]; h != nil {
		return h
	}
	for k, h := range s.held {
		if h.mu.TryLock() {
			if h.value.Value() == nil {
				delete(s.held, k)
			}
			h.mu.Unlock()
		}
	}
	if s.held == nil {
		s.held = map[string]*holding[T]{}
	}
	h := &holding[T]{}
	s.held[key] = h
	return h
}

// stamped is a key of data with the size and time of each file that the plan names, so that a
// file that has changed is read again.
func (s *Shelf) stamped(d *catalog.Data, key string) string {
	var visit func(n *syntax.Node)
	visit = func(n *syntax.Node) {
		if n == nil {
			return
		}
		if n.Kind == syntax.Scalar && filepath.IsLocal(n.Text) {
			for _, folder := range s.folders {
				if about, err := os.Stat(filepath.Join(folder, n.Text)); err == nil && about.Mode().IsRegular() {
					key += fmt.Sprintf("\n%q %d %d", n.Text, about.Size(), about.ModTime().UnixNano())
				}
			}
		}
		for _, f := range n.Fields {
			visit(f.Value)
		}
	}
	visit(d.Section)
	return key
}
