package kernel

import "sync"

// buffers has room for packed or copied operands.
type buffers struct {
	a, b []float32
	taps Places
}

// idle are buffers for use again: at most as many as were in use at one time. A sync.Pool would
// drop them with every garbage collection, and each drop would cost a step an allocation.
var idle struct {
	sync.Mutex
	free []*buffers
}

func takeBuffers() *buffers {
	idle.Lock()
	defer idle.Unlock()
	n := len(idle.free)
	if n == 0 {
		return &buffers{}
	}
	b := idle.free[n-1]
	idle.free = idle.free[:n-1]
	return b
}

func (b *buffers) giveBack() {
	idle.Lock()
	defer idle.Unlock()
	idle.free = append(idle.free, b)
}
