package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

// partSize is how many bytes of a state one message has.
const partSize = 256 << 10

// Split yields the messages by which a state travels between processes.
func Split(s *live.State) iter.Seq2[*protos.StatePart, error] {
	return func(yield func(*protos.StatePart, error) bool) {
		b, err := pack(s)
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
	return unpack(p.bytes)
}

// pack encodes a state: the length of state.pb, state.pb, and tensors.safetensors.
func pack(s *live.State) ([]byte, error) {
	saved, err := declared(s)
	if err != nil {
		return nil, err
	}
	text, err := encode(saved)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(append(binary.AppendUvarint(nil, uint64(len(text))), text...))
	err = writeTensors(b, saved.Declared.Vectors)
	return b.Bytes(), err
}

// unpack decodes a state that pack has encoded.
func unpack(b []byte) (*live.State, error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, fmt.Errorf("a state of %d bytes cannot be read", len(b))
	}
	b = b[n:]
	saved, err := decode(b[:length], bytes.NewReader(b[length:]))
	if err != nil {
		return nil, err
	}
	return saved.live()
}

// declared converts the state of a run in real time to the state in a checkpoint.
func declared(s *live.State) (*State, error) {
	saved, err := state.Save(s)
	return &State{Origin: s.Origin, At: s.At, Events: s.Events, Declared: saved}, err
}

// live converts the state in a checkpoint to the state of a run in real time.
func (s *State) live() (*live.State, error) {
	of := &live.State{}
	if err := s.Declared.Restore(of, state.Into{}); err != nil {
		return nil, err
	}
	of.Origin, of.At, of.Events = s.Origin, s.At, s.Events
	return of, nil
}

// Gatherer puts the states of the worlds of a run together. It may be used by many goroutines.
type Gatherer struct {
	lead string
	save func(*live.State) error

	mu      sync.Mutex
	whole   *live.State     // of the latest cut, as far as it is there
	missing map[string]bool // the processes whose state is not
	parts   map[string]*Parts
}

// NewGatherer returns a gatherer of the worlds of some processes, of which lead has the one of the
// coordinator. It calls save with the state of all.
func NewGatherer(lead string, save func(*live.State) error) *Gatherer {
	return &Gatherer{lead: lead, save: save, whole: &live.State{}, parts: map[string]*Parts{}}
}

// Expect begins a cut of some processes, unless it has begun.
func (g *Gatherer) Expect(number uint64, processes []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if number <= g.whole.Number {
		return
	}
	g.whole, g.missing = &live.State{Number: number, Nodes: map[int]live.NodeState{}}, map[string]bool{}
	for _, name := range processes {
		g.missing[name] = true
	}
}

// Waits reports whether the state of a process is missing that is still there.
func (g *Gatherer) Waits(there func(process string) bool) bool {
	g.mu.Lock()
	missing := slices.Collect(maps.Keys(g.missing))
	g.mu.Unlock()
	return slices.ContainsFunc(missing, there)
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

// Add takes the state of a process, and has that of all saved if it was the last one that was
// missing.
func (g *Gatherer) Add(process string, s *live.State) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Number != g.whole.Number || !g.missing[process] {
		return nil
	}
	delete(g.missing, process)
	g.whole.At = max(g.whole.At, s.At)
	if process == g.lead {
		g.whole.Origin = s.Origin // other processes may not have all samples
		g.whole.Record, g.whole.Events, g.whole.Tail = s.Record, s.Events, s.Tail
	}
	maps.Copy(g.whole.Nodes, s.Nodes)
	if g.whole.Void = g.whole.Void || s.Void; g.whole.Void {
		clear(g.whole.Nodes)
	}
	if len(g.missing) > 0 || g.whole.Void {
		return nil
	}
	whole := g.whole
	g.whole = &live.State{Number: whole.Number}
	return g.save(whole)
}
