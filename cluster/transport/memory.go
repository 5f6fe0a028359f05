package transport

import (
	"fmt"
	"sync"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Handler takes a frame that has arrived, and with it one reference to each of
// its tensors.
type Handler func(f *wire.Frame)

// Memory connects the nodes of one process. The zero value is ready for use, by
// many goroutines.
type Memory struct {
	mu       sync.RWMutex
	handlers map[string]Handler
}

// Listen has the frames for an address handled. An address can be taken once.
func (m *Memory) Listen(address string, handle Handler) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handlers == nil {
		m.handlers = map[string]Handler{}
	}
	if m.handlers[address] != nil {
		return fmt.Errorf("transport: address %s is taken", address)
	}
	m.handlers[address] = handle
	return nil
}

// Send hands a frame to the handler of an address, before it returns. It takes over
// one reference to each of the frame's tensors, also where it returns an error.
func (m *Memory) Send(address string, f *wire.Frame) error {
	m.mu.RLock()
	handle := m.handlers[address]
	m.mu.RUnlock()
	if handle == nil {
		release(f.Tensors)
		return fmt.Errorf("transport: nobody listens at %s", address)
	}
	arrived, err := pass(f)
	if err != nil {
		release(f.Tensors)
		return fmt.Errorf("transport: to %s: %w", address, err)
	}
	handle(&arrived)
	return nil
}

func release(tensors []*protos.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
}

// crossing is what it takes to encode and decode a head.
type crossing struct {
	head    []byte
	decoder wire.Decoder
}

var crossings = sync.Pool{New: func() any { return &crossing{} }}

// pass encodes and decodes the head of a frame and lets the tensors follow it.
func pass(f *wire.Frame) (arrived wire.Frame, err error) {
	c := crossings.Get().(*crossing)
	defer crossings.Put(c)
	if c.head, err = wire.AppendHead(c.head[:0], f); err != nil {
		return wire.Frame{}, err
	}
	p, err := wire.DecodePrefix(c.head)
	if err != nil {
		return wire.Frame{}, err
	}
	arrived, _, err = c.decoder.Head(p, c.head[wire.PrefixSize:])
	arrived.Tensors = append([]*protos.Tensor(nil), f.Tensors...)
	return arrived, err
}
