package ps

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
)

// ConsistentHash places shards on servers by consistent hashing with bounded loads; see [Servers].
const ConsistentHash = "consistent-hash"

// Servers says how the parameters are spread over several servers. They are cut into shards of
// consecutive values. A shard belongs to the first server at or after its hash, on a ring of the
// hashes of virtual nodes, that does not hold its part yet: no server holds more than 1 + Slack
// times the mean (M. Li et al., "Scaling Distributed Machine Learning with the Parameter Server",
// OSDI 2014, section 4.3; V. Mirrokni, M. Thorup and M. Zadimoghaddam, "Consistent Hashing with
// Bounded Loads", SODA 2018). When a server comes or goes hardly more shards move than must.
type Servers struct {
	Placement string `plan:"placement" words:"consistent-hash" doc:"how shards are given to servers"`
	// VirtualNodes is how many points of the ring belong to each server.
	VirtualNodes int `plan:"virtual-nodes" range:"1..4096" doc:"points of each server on the ring"`
	// Shard is how many bytes of parameters a shard has at most; 0 stands for 1 MB, or less for
	// small models, so that there are about 16 shards for each server.
	Shard int64 `plan:"shard,omitzero" unit:"size" range:"4.." doc:"bytes of parameters of a shard; left out: 1 MB, or less, so that each server has about 16 shards"`
	// Slack is by which share a server may hold more shards than the mean.
	Slack float64 `plan:"slack" unit:"fraction" range:"0%..100%" doc:"by how much a server may hold more shards than the mean; more keeps shards in place when servers come and go, less balances them"`
}

// SetDefaults sets 64 virtual nodes and a slack of 5 %.
func (s *Servers) SetDefaults() {
	*s = Servers{Placement: ConsistentHash, VirtualNodes: 64, Slack: 0.05}
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (s *Servers) Validate() error { return field.Check(*s) }

const (
	mostShard   = 1 << 20 // bytes
	wantedShard = 16      // shards of a server
	valueBytes  = 4
)

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
	servers := 0
	for i := range members {
		if members[i].Role == RoleServer {
			servers++
		}
	}
	l := &layout{params: model.Params(), tensors: model.Tensors()}
	l.servers.SetDefaults()
	l.size = l.params
	if s != nil {
		l.servers = *s
	}
	switch {
	case l.servers.Shard > 0:
		l.size = int(l.servers.Shard / valueBytes)
	case s != nil || servers > 1:
		l.size = min(mostShard/valueBytes, (l.params+wantedShard*servers-1)/(wantedShard*servers))
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
func (l *layout) owners(v *actors.View) []int {
	servers := v.Role(RoleServer)
	if len(servers) == 0 {
		return nil
	}
	owners := make([]int, l.shards)
	if len(servers) == 1 {
		for k := range owners {
			owners[k] = servers[0]
		}
		return owners
	}
	ring := l.ring(v, servers)
	most := int(math.Ceil((1+l.servers.Slack)*float64(l.shards)/float64(len(servers)) - 1e-9))
	held := map[int]int{}
	for k := range owners {
		at := hashed("shard", k)
		i, _ := slices.BinarySearchFunc(ring, at, func(p point, at uint64) int { return cmp.Compare(p.at, at) })
		for held[ring[i%len(ring)].server] == most {
			i++
		}
		owners[k] = ring[i%len(ring)].server
		held[owners[k]]++
	}
	return owners
}

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

// point is a virtual node.
type point struct {
	at     uint64
	server int
}

func (l *layout) ring(v *actors.View, servers []int) []point {
	ring := make([]point, 0, len(servers)*l.servers.VirtualNodes)
	for _, node := range servers {
		for n := range l.servers.VirtualNodes {
			ring = append(ring, point{hashed(v.Members[node].Name, n), node})
		}
	}
	slices.SortFunc(ring, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.server, b.server))
	})
	return ring
}

// hashed is where a numbered thing is on the ring.
func hashed(name string, number int) uint64 {
	return xxhash.Sum64(binary.LittleEndian.AppendUint64([]byte(name), uint64(number)))
}
