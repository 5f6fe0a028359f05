//go:build !linux

package rt

import "time"

// sleeper puts a goroutine to sleep until a time has passed or another one wakes it.
type sleeper struct{ woken chan struct{} }

func newSleeper(bool) (sleeper, error) { return sleeper{make(chan struct{}, 1)}, nil }

func (s sleeper) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.woken:
	}
}

func (s sleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (sleeper) close() {}

// lower does nothing: the priority of one thread cannot be changed here.
func lower(Class) {}
