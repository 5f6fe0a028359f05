package collective

import (
	"sync"

	"github.com/gradwire/gradwire/protos"
)

// posts hands out the memory of a round's output for chunks that are on their way, as posted receives do in MPI: what
// replaces values of the output, or is the first that is added there, needs no copy where it has arrived in their place.
// The other chunks, and those that come before this rank is in their round, arrive elsewhere.
//
// A chunk that lands before it has its turn overwrites nothing that is needed. The first of some values finds none
// of them in the output. Another one that replaces values is made of what the others have taken in of this rank's: they
// have all that it had to send of them, and it adds nothing to them any more. That holds as long as ranks send each
// chunk once; one that comes again has no place.
//
// Its methods may be called by any goroutine.
type posts struct {
	mu     sync.Mutex
	view   uint64
	round  uint64
	before int        // steps of a round, before those of the reduction
	of     *reduction // nil between rounds
	output *protos.Tensor
	given  []bool // of each move, whether its chunk has a place already, here or elsewhere
}

// open hands out the output of the round that a reduction has begun, until close is called.
func (p *posts) open(r *reduction, view uint64, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view, p.round, p.before, p.of, p.output = view, r.round, before, r, r.output
	if len(p.given) != len(r.moves) {
		p.given = make([]bool, len(r.moves))
	}
	for i, chunk := range r.chunks[r.round&1] {
		p.given[i] = chunk != nil
	}
}

// arrived notes that a chunk of a reduction has come.
func (p *posts) arrived(r *reduction, round uint64, t tag) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == r && p.round == round {
		p.given[r.places[t]] = true
	}
}

// close is called before the caller gives its reference to the output away.
func (p *posts) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of, p.output = nil, nil
}

// posted returns the memory for a chunk, with a reference; nil if there is none.
func (p *posts) posted(head *protos.Chunk, values int) *protos.Tensor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || head.View != p.view || head.Round != p.round {
		return nil
	}
	i, ok := p.of.places[tag{int(head.Rank), int(head.Step) - p.before, int(head.Index)}]
	if !ok || p.given[i] {
		return nil
	}
	m := &p.of.moves[i]
	if m.Peer == p.of.rank || m.Action != Replace && !p.of.first[i] || values != m.High-m.Low {
		return nil
	}
	p.given[i] = true
	return p.output.View(m.Low, m.High)
}
