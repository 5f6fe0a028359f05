package live

import (
	"sync"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// posts are the places that a life's actor has posted.
type posts struct {
	mu    sync.Mutex
	table world.Posts
}

// with calls a function while nobody else uses the table.
func (p *posts) with(do func(*world.Posts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(&p.table)
}

// Posted returns where the values of a tensor belong whose frame Deliver will be called with once
// they have arrived, with a reference for the message; nil if that makes no difference. See
// actors.Env.Post. In strict mode it is nil as well: what this world has sent is looked at once
// more when it has been taken, and the answer must not be there yet. So it is in a session, which
// has not yet judged whether the message is a repeat.
func (w *World) Posted(node int, f *wire.Frame, tensor, values int) (memory *protos.Tensor) {
	head, ok := f.Head.(protos.Posted)
	if !ok || tensor > 0 || f.InSession || w.config.Deployment.Strict || node < 0 || node >= len(w.nodes) ||
		w.nodes[node].away {
		return nil
	}
	l := w.nodes[node].life.Load()
	if f.Target == l.pid.Id && !l.over() {
		l.posts.with(func(p *world.Posts) { memory = p.Take(head.Place(), values) })
	}
	return memory
}
