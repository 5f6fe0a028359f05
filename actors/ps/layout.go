package ps

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/nn"
)

// Servers says how the parameters are spread over several servers; see [shards.Servers].
type Servers = shards.Servers

// layout cuts a model into shards, and says which server owns each.
type layout struct {
	servers Servers
	params  int
	size    int // values of a shard; the last one may have fewer
	shards  int
	tensors []nn.Tensor
}

// newLayout is that of a model on the servers of a plan, present or not. A plan with one server
// that says nothing about shards has one.
func newLayout(s *Servers, model nn.Model, members []actors.Member) *layout {
	servers := shards.Count(members)
	l := &layout{params: model.Params(), tensors: model.Tensors()}
	l.servers.SetDefaults()
	l.size = l.params
	if s != nil {
		l.servers = *s
	}
	switch {
	case l.servers.Shard > 0:
		l.size = int(l.servers.Shard / shards.ValueBytes)
	case s != nil || servers > 1:
		wanted := shards.PerServer * servers
		l.size = min(shards.MostBytes/shards.ValueBytes, (l.params+wanted-1)/wanted)
	}
	l.size = min(max(l.size, 1), max(l.params, 1))
	l.shards = max((l.params+l.size-1)/l.size, 1)
	return l
}

// bounds are the values low to high−1 of a shard.
func (l *layout) bounds(shard int) (low, high int) {
	return shard * l.size, min((shard+1)*l.size, l.params)
}

// tensorsOf are the pieces of a shard. Of a tensor that is cut, whole rows stay an array, and what
// is left of the first and the last row are vectors.
func (l *layout) tensorsOf(shard int) (pieces []nn.Tensor) {
	low, high := l.bounds(shard)
	if l.shards == 1 {
		return l.tensors
	}
	add := func(from, to int, shape ...int) {
		if from < to {
			pieces = append(pieces, nn.Tensor{Shape: shape, Offset: from - low})
		}
	}
	for i := range l.tensors {
		t, end := &l.tensors[i], l.params
		if i+1 < len(l.tensors) {
			end = l.tensors[i+1].Offset
		}
		from, to := max(t.Offset, low), min(end, high)
		if from >= to {
			continue
		}
		row := 1
		if len(t.Shape) > 1 && t.Shape[0] > 0 {
			row = (end - t.Offset) / t.Shape[0]
		}
		first := t.Offset + (from-t.Offset+row-1)/row*row
		last := t.Offset + (to-t.Offset)/row*row
		if row == 1 || first >= last {
			add(from, to, to-from)
			continue
		}
		add(from, first, first-from)
		add(first, last, (last-first)/row, row)
		add(last, to, to-last)
	}
	return pieces
}

// owners are the positions of the servers that own the shards in a view; nil if none is there.
func (l *layout) owners(v *actors.View) []int { return l.servers.Owners(v, l.shards) }

// inTurns are the shards in the order in which a worker sends them: the first one of each owner,
// then the second ones, so that no server is idle while another one has more than its links carry.
func inTurns(owners []int) []int {
	turn, of := make([]int, len(owners)), map[int]int{}
	order := make([]int, len(owners))
	for k, owner := range owners {
		order[k], turn[k] = k, of[owner]
		of[owner]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	return order
}
