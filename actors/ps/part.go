package ps

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/protos"
)

// part is a worker's end of one shard.
type part struct {
	index, low, high int
	latest           latest
	version          uint64 // of the parameters in use
	life             uint64 // see Push; 0 before the shard has greeted
	view             uint64 // in which its server has taken the shard over; 0 without replicas
	fresh            bool   // its server may not have what codes of EF21 build on
	clock            uint64 // pushes, counted from the clock of the greeting
	heard            uint64 // the highest clock that an answer had
	pushes           uint64 // of this life of the worker
	sent             []push // not answered, where shards have replicas
	awaits, epoch    uint64 // that an answer is to have after a rest, and the latest that one had

	compressor compressor
	up         *compress.Encoder // nil where gradients travel as they are
	down       *compress.Decoder // nil where models do
	answers    int               // values of an answer
}

// push is one of a worker to a shard.
type push struct {
	step, version, epoch uint64
	samples              uint32
	rests, whole         bool
	number               uint64 // of pushes of this life
	values               *protos.Tensor
}

// latest are parameters that a round can begin on.
type latest struct {
	params         *protos.Tensor // nil for none
	version, epoch uint64
}

func newPart(env actors.Env, l *layout, index int, both compress.Both) *part {
	low, high := l.bounds(index)
	p := &part{index: index, low: low, high: high,
		compressor: newCompressor(env, high-low, l.tensorsOf(index), both)}
	p.answers = both.Down.Size(high-low, p.compressor.tensors)
	return p
}

// late reports whether the next round waits for this part.
func (p *part) late(ahead uint64) bool {
	return p.life == 0 || p.clock-p.heard > ahead || p.epoch < p.awaits
}

// take takes in what the shard's server has sent. It reports false where that was nothing to go on
// with: an answer to this node's former life, or one that ends the run.
func (p *part) take(head *protos.Parameters, m *protos.Message) bool {
	env, greets := p.compressor.env, head.Life > p.life
	size, whole := p.answers, greets || head.View > p.view
	if whole {
		size = p.high - p.low
	}
	switch {
	case head.Life < p.life || head.View < p.view:
		return false
	case !actors.IsVector(m.Tensors, size):
		actors.Fail(env, "parameters of shard %d that are not one vector of %d", p.index, size)
		return false
	case greets:
		p.life, p.clock, p.heard, p.pushes = head.Life, head.Clock, head.Clock, 0
		p.meet()
	default:
		p.heard = max(p.heard, head.Clock)
		p.clock = max(p.clock, head.Clock)
	}
	p.view = head.View
	p.answered(head.Pushes, greets)
	p.epoch = max(p.epoch, head.Epoch)
	if p.latest.params != nil && !whole && head.Version < p.latest.version {
		return true
	}
	params := m.Tensors[0].Retain()
	if p.down != nil && whole {
		copy(p.down.Memory(), params.Data)
	} else if p.down != nil {
		var ok bool
		if params, ok = p.compressor.decode(p.down, params); !ok {
			return false
		}
	}
	p.latest.release()
	p.latest = latest{params, head.Version, head.Epoch}
	return true
}

// answered gives up the pushes that need not be sent again: so many of this life, or all of
// another.
func (p *part) answered(pushes uint64, other bool) {
	n := 0
	for n < len(p.sent) && (other || p.sent[n].number <= pushes) {
		p.sent[n].values.Release()
		n++
	}
	rest := copy(p.sent, p.sent[n:])
	clear(p.sent[rest:])
	p.sent = p.sent[:rest]
}

// meet begins anew what is compressed between this worker and a shard that greets it.
func (p *part) meet() {
	c := &p.compressor
	if c.both.Up != nil {
		p.up = c.both.Up.NewEncoder(c.params, c.tensors, c.both.Feedback, c.env.Rand("compress"))
	}
	if c.both.Down != nil {
		p.down = c.both.Down.NewDecoder(c.params, c.tensors, compress.EF21)
	}
}

// give returns the latest parameters with a reference for the caller, and keeps them for the next
// round if that may begin without others.
func (p *part) give(keep bool) *protos.Tensor {
	params := p.latest.params
	if keep {
		return params.Retain()
	}
	p.latest.params = nil
	return params
}

// code gives up values for what is sent of them.
func (p *part) code(values *protos.Tensor) *protos.Tensor {
	if p.up == nil {
		return values
	}
	code := p.compressor.encode(p.up, values)
	if !p.fresh {
		return code
	}
	code.Release()
	return p.compressor.env.Tensors().Copy(p.up.Memory())
}

// keep keeps a push of values to be sent again; of EF21 what its code leads to, as another server
// has nothing that a code can build on.
func (p *part) keep(sent push, values *protos.Tensor) {
	if sent.whole = p.builds(); sent.whole && !p.fresh {
		sent.values = p.compressor.env.Tensors().Copy(p.up.Memory())
	} else {
		sent.values = values.Retain()
	}
	p.sent, p.fresh = append(p.sent, sent), false
}

// builds reports whether codes of gradients build on what the server has.
func (p *part) builds() bool { return p.up != nil && p.compressor.both.Feedback == compress.EF21 }

// release gives the parameters back.
func (l *latest) release() {
	if l.params != nil {
		l.params.Release()
		l.params = nil
	}
}
