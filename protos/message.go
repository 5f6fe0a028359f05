package protos

import (
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
)

// Message is the one thing that may cross from node to node: a small protobuf
// head, and tensors that ride beside it.
//
// A message is counted by reference like a tensor. Sending it hands one
// reference over to the receiver; a sender who wants to send one message to n
// receivers retains it n−1 times first. A message holds one reference to each of its
// tensors until its own last Release. A receiver that keeps a tensor retains it.
type Message struct {
	// Head says what the message is.
	Head proto.Message
	// Tensors ride beside the head.
	Tensors []*Tensor

	references atomic.Int32
	home       interface{ put(*Message) }
}

// NewMessage returns a message of no pool with one reference. It takes over the
// caller's references to the tensors.
func NewMessage(head proto.Message, tensors ...*Tensor) *Message {
	m := &Message{Head: head, Tensors: tensors}
	m.references.Store(1)
	return m
}

// Retain adds n references and returns the message. It panics if n is negative or
// if no reference was left.
func (m *Message) Retain(n int) *Message {
	if n < 0 || m.references.Add(int32(n)) <= int32(n) {
		panic("protos: message retained after its last release, or a negative number of times")
	}
	return m
}

// Take returns the i-th tensor of the message with one reference. If the caller holds the only
// reference to the message, Take moves the message's own reference, so the tensor can be Sole; the
// message then lacks it, and later tensors move up. To take several, take the last one first.
func (m *Message) Take(i int) *Tensor {
	t := m.Tensors[i]
	if m.references.Load() > 1 {
		return t.Retain()
	}
	m.Tensors = slices.Delete(m.Tensors, i, i+1)
	return t
}

// Release gives one reference back; the last one releases the tensors and
// returns the message to its pool. It panics if there is none left.
func (m *Message) Release() {
	left := m.references.Add(-1)
	if left < 0 {
		panic("protos: message released more often than retained")
	}
	if left > 0 {
		return
	}
	for i, t := range m.Tensors {
		m.Tensors[i] = nil
		t.Release()
	}
	m.Tensors = m.Tensors[:0]
	if m.home != nil {
		m.home.put(m)
	}
}

// Messages is a pool of messages whose head is an H, so that a cycle of
// messages allocates nothing. It may be used by many goroutines.
type Messages[H proto.Message] struct {
	new  func() H
	mu   sync.Mutex
	free []*Message
}

// NewMessages returns an empty pool; create makes a new head.
func NewMessages[H proto.Message](create func() H) *Messages[H] {
	return &Messages[H]{new: create}
}

// Get returns a message with one reference and its head, whose fields the
// caller sets, all of them. It takes over the caller's references to the tensors.
func (p *Messages[H]) Get(tensors ...*Tensor) (*Message, H) {
	p.mu.Lock()
	var m *Message
	if n := len(p.free); n > 0 {
		m = p.free[n-1]
		p.free = p.free[:n-1]
	}
	p.mu.Unlock()
	if m == nil {
		m = &Message{Head: p.new(), home: p}
	}
	m.references.Store(1)
	m.Tensors = append(m.Tensors[:0], tensors...)
	return m, m.Head.(H)
}

func (p *Messages[H]) put(m *Message) {
	p.mu.Lock()
	p.free = append(p.free, m)
	p.mu.Unlock()
}

// PlaceName names one piece of a vector in a round of a reduction: what a receiver can post memory
// for before it arrives.
type PlaceName struct {
	View, Round uint64
	Rank        int32
	Step, Index uint32
}

// Posted is the head of a message for whose first tensor a receiver may have posted memory.
type Posted interface {
	proto.Message
	// Place is under which name.
	Place() PlaceName
}

var _ Posted = (*Chunk)(nil)

// Place implements [Posted].
func (c *Chunk) Place() PlaceName {
	return PlaceName{View: c.View, Round: c.Round, Rank: c.Rank, Step: c.Step, Index: c.Index}
}

// IsControl reports whether head belongs to the control protocol between the
// coordinator and the members of a run, or is an Arrived. Control messages pass the door
// and are counted, but skip links and outages. What processes say to each other of a run and
// must keep its order with these counts as control too, but passes no door.
func IsControl(head proto.Message) bool {
	switch head.(type) {
	case *Start, *View, *Progress, *RoundDone, *TakeSnapshot, *Snapshot, *PullShards, *ShardCopy, *Arrived,
		*BeginRun, *HaltRun, *NodeChanged, *CutRun:
		return true
	}
	return false
}

// Announced returns the view that a message announces; ok is false if it is no such message.
func Announced(message any) (view *View, ok bool) {
	m, ok := message.(*Message)
	if !ok {
		return nil, false
	}
	view, ok = m.Head.(*View)
	return view, ok
}
