package checkpoint

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

// partSize is how many bytes of a state one message has.
const partSize = 256 << 10

// Split yields the messages by which a state travels between processes.
func Split(s *live.State) iter.Seq2[*protos.StatePart, error] {
	return func(yield func(*protos.StatePart, error) bool) {
		b, err := encode(s)
		if err != nil {
			yield(nil, err)
			return
		}
		for number := uint32(0); ; number++ {
			n := min(len(b), partSize)
			if !yield(&protos.StatePart{Cut: s.Number, Number: number, Part: b[:n]}, nil) || n == 0 {
				return
			}
			b = b[n:]
		}
	}
}

// Parts put a state together again. The zero value waits for the first part.
type Parts struct {
	bytes []byte
	cut   uint64
	next  uint32
}

// Add takes the next part, and returns the state behind the last one. The first part of a state
// replaces what came before.
func (p *Parts) Add(m *protos.StatePart) (*live.State, error) {
	if m.Number == 0 {
		*p = Parts{cut: m.Cut}
	}
	if m.Number != p.next || m.Cut != p.cut {
		return nil, fmt.Errorf("part %d of the state of cut %d came instead of part %d of cut %d", m.Number, m.Cut,
			p.next, p.cut)
	}
	p.next++
	p.bytes = append(p.bytes, m.Part...)
	if len(m.Part) > 0 {
		return nil, nil
	}
	defer func() { *p = Parts{} }()
	return decode(p.bytes)
}

func encode(s *live.State) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

func decode(b []byte) (*live.State, error) {
	s := &live.State{}
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(s); err != nil {
		return nil, fmt.Errorf("a state cannot be read: %w", err)
	}
	return s, nil
}

// Gatherer puts the states of the worlds of a run together. It may be used by many goroutines.
type Gatherer struct {
	lead   string
	worlds int
	save   func(*live.State) error

	mu     sync.Mutex
	states map[string]*live.State // by process, all of the latest cut
	parts  map[string]*Parts
}

// NewGatherer returns a gatherer of so many worlds, of which the one of process lead has the
// coordinator. It calls save with the state of all.
func NewGatherer(lead string, worlds int, save func(*live.State) error) *Gatherer {
	return &Gatherer{lead: lead, worlds: worlds, save: save, states: map[string]*live.State{},
		parts: map[string]*Parts{}}
}

// Part takes a part of the state of a process.
func (g *Gatherer) Part(process string, m *protos.StatePart) error {
	g.mu.Lock()
	p := g.parts[process]
	if p == nil {
		p = &Parts{}
		g.parts[process] = p
	}
	s, err := p.Add(m)
	g.mu.Unlock()
	if s == nil {
		return err
	}
	return g.Add(process, s)
}

// Add takes the state of a process. It returns the error with which the state of all is saved, if
// this was the last one that was missing.
func (g *Gatherer) Add(process string, s *live.State) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.states {
		switch {
		case other.Number > s.Number:
			return nil
		case other.Number < s.Number:
			clear(g.states)
		}
	}
	if g.states[process] = s; len(g.states) < g.worlds {
		return nil
	}
	lead := g.states[g.lead]
	if lead == nil {
		return errors.New("nobody has sent the state of the coordinator")
	}
	whole := &live.State{Number: s.Number, At: lead.At, Events: lead.Events, Nodes: map[int]live.NodeState{}}
	for _, s := range g.states {
		for i, n := range s.Nodes {
			whole.Nodes[i] = n
		}
	}
	clear(g.states)
	return g.save(whole)
}
