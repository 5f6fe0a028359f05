package shards

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// ConsistentHash places shards on servers by consistent hashing with bounded loads; see [Servers].
const ConsistentHash = "consistent-hash"

// Servers says how the parameters are spread over several servers. They are cut into shards of
// consecutive values. A shard belongs to the first server at or after its hash, on a ring of the
// hashes of virtual nodes, that does not hold its part yet: no server holds more than 1 + Slack
// times the mean (M. Li et al., "Scaling Distributed Machine Learning with the Parameter Server",
// OSDI 2014, section 4.3; V. Mirrokni, M. Thorup and M. Zadimoghaddam, "Consistent Hashing with
// Bounded Loads", SODA 2018). When a server comes or goes hardly more shards move than must. The
// next servers on the ring hold its replicas.
type Servers struct {
	Placement string `plan:"placement" words:"consistent-hash" doc:"how shards are given to servers"`
	// VirtualNodes is how many points of the ring belong to each server.
	VirtualNodes int `plan:"virtual-nodes" range:"1..4096" doc:"points of each server on the ring"`
	// Shard is how many bytes of parameters a shard has at most; 0 stands for 1 MiB, or less for
	// small models, so that there are about 16 shards for each server.
	Shard int64 `plan:"shard,omitzero" unit:"size" range:"4 B.." doc:"bytes of parameters of a shard, the last one of fewer; left out: 1 MiB, or less where a server would have fewer than about 16 shards"`
	// Slack is by which share a server may hold more shards than the mean.
	Slack float64 `plan:"slack" unit:"fraction" range:"0%..100%" doc:"by how much a server may hold more shards than the mean; more keeps shards in place when servers come and go, less balances them"`
	// Replicas is how many other servers have a copy of each shard (R. van Renesse and F. B.
	// Schneider, "Chain Replication for Supporting High Throughput and Availability", OSDI 2004; Li
	// et al., section 4.4). A push is answered when all of them have it; pulls and evaluations have
	// what all of them have.
	Replicas int `plan:"replicas,omitzero" range:"1..16" doc:"other servers that hold a copy of each shard: so many may crash at a time and no answered push is lost; left out: a server that crashes ends the run"`
}

// SetDefaults sets 64 virtual nodes and a slack of 5 %.
func (s *Servers) SetDefaults() {
	*s = Servers{Placement: ConsistentHash, VirtualNodes: 64, Slack: 0.05}
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (s *Servers) Validate() error { return field.Check(*s) }

// Fit returns an error if a run has too few servers for the replicas. Settings that are nil want
// none.
func (s *Servers) Fit(servers int) error {
	if s == nil || s.Replicas == 0 || s.Replicas < servers {
		return nil
	}
	return fmt.Errorf("servers: {replicas: %d} takes %d nodes of role %s, and the plan has %d", s.Replicas,
		s.Replicas+1, RoleServer, servers)
}

// Count is the number of nodes of the role server, present or not.
func Count(members []actors.Member) (n int) {
	for i := range members {
		if members[i].Role == RoleServer {
			n++
		}
	}
	return n
}

// Owners are the positions of the servers that own a number of shards in a view; nil if no server
// is there.
func (s *Servers) Owners(v *actors.View, number int) []int {
	if len(v.Role(RoleServer)) == 0 {
		return nil
	}
	owners := make([]int, number)
	s.place(v, owners, func(int, []point, int) {})
	return owners
}

// Chains are the positions of the servers that hold each of a number of shards in a view: its
// owner, then those of its replicas, the next servers on the ring, as far as there are any. It is
// nil if no server is there.
func (s *Servers) Chains(v *actors.View, number int) [][]int {
	servers := len(v.Role(RoleServer))
	if servers == 0 {
		return nil
	}
	owners, chains := make([]int, number), make([][]int, number)
	s.place(v, owners, func(k int, ring []point, at int) {
		chain := []int{owners[k]}
		for i := at; len(chain) < min(1+s.Replicas, servers); i++ {
			if next := ring[i%len(ring)].server; !slices.Contains(chain, next) {
				chain = append(chain, next)
			}
		}
		chains[k] = chain
	})
	return chains
}

// place finds the owners of shards, and tells for each where on the ring that is.
func (s *Servers) place(v *actors.View, owners []int, placed func(shard int, ring []point, at int)) {
	servers := v.Role(RoleServer)
	if len(servers) == 1 {
		for k := range owners {
			owners[k] = servers[0]
			placed(k, nil, 0)
		}
		return
	}
	ring := s.ring(v, servers)
	most := int(math.Ceil((1+s.Slack)*float64(len(owners))/float64(len(servers)) - 1e-9))
	held := map[int]int{}
	for k := range owners {
		at := hashed("shard", k)
		i, _ := slices.BinarySearchFunc(ring, at, func(p point, at uint64) int { return cmp.Compare(p.at, at) })
		for held[ring[i%len(ring)].server] == most {
			i++
		}
		owners[k] = ring[i%len(ring)].server
		held[owners[k]]++
		placed(k, ring, i%len(ring))
	}
}

// point is a virtual node.
type point struct {
	at     uint64
	server int
}

func (s *Servers) ring(v *actors.View, servers []int) []point {
	ring := make([]point, 0, len(servers)*s.VirtualNodes)
	for _, node := range servers {
		for n := range s.VirtualNodes {
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
