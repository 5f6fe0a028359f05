package ps

import (
	"fmt"
	"math"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/nn"
)

// spread is the layout of a model of so many shards of one value.
func spread(shards int) *layout {
	l := &layout{params: shards, size: 1, shards: shards}
	l.servers.SetDefaults()
	return l
}

// among are the owners in a view of servers of which some are there.
func among(l *layout, names []string, there func(i int) bool) []int {
	members := make([]actors.Member, len(names))
	for i, name := range names {
		members[i] = actors.Member{Name: name, Role: RoleServer, Present: there(i)}
	}
	return l.owners(actors.NewView(1, members, nil, nil))
}

// No server has more than its part, and when one joins, of all shards hardly more move than it
// gets. Both are counted here, on server names that the hashes have not been chosen for.
func TestShardsAreBalancedAndHardlyMoreMoveThanMust(t *testing.T) {
	for servers := 2; servers <= 6; servers++ {
		moved, must := 0, 0
		for family := range 200 {
			var names []string
			for i := range servers {
				names = append(names, fmt.Sprintf("%c%d", 'a'+family%26, family*servers+i))
			}
			l := spread(96)
			before := among(l, names, func(i int) bool { return i < servers-1 })
			after := among(l, names, func(int) bool { return true })
			held := map[int]int{}
			for k := range after {
				held[after[k]]++
				if after[k] != before[k] {
					moved++
				}
			}
			must += held[servers-1]
			for node, n := range held {
				if most := int(math.Ceil(1.05 * 96 / float64(servers))); n > most {
					t.Fatalf("server %d of %d has %d shards, at most %d are its part", node, servers, n, most)
				}
			}
		}
		ratio := float64(moved) / float64(must)
		t.Logf("%d servers and one more: %.3f × as many move as must", servers-1, ratio)
		if ratio < 1 || ratio > 1.3 || servers <= 4 && ratio > 1.2 {
			t.Errorf("%d servers and one more: %.3f × as many shards move as must", servers-1, ratio)
		}
	}
}

// What is left of a tensor at the edges of a shard are vectors, whole rows are matrices; together
// they cover each shard without gaps.
func TestShardsKeepTheRowsOfMatricesTogether(t *testing.T) {
	model, err := nn.NewMLP([]int{5, 7, 3}, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	row := map[int]int{} // of each value: the first value of its row, by the tensors' shapes alone
	tensors := model.Tensors()
	for i, tensor := range tensors {
		end := model.Params()
		if i+1 < len(tensors) {
			end = tensors[i+1].Offset
		}
		for v := tensor.Offset; v < end; v++ {
			width := 1
			if len(tensor.Shape) > 1 {
				width = (end - tensor.Offset) / tensor.Shape[0]
			}
			row[v] = v - (v-tensor.Offset)%width
		}
	}
	for size := 1; size <= model.Params()+1; size++ {
		s := &Servers{}
		s.SetDefaults()
		s.Shard = int64(shards.ValueBytes * size)
		l := newLayout(s, model, nil)
		next := 0
		for k := range l.shards {
			low, high := l.bounds(k)
			if low != next {
				t.Fatalf("size %d: shard %d begins at %d, want %d", size, k, low, next)
			}
			at := low
			for _, piece := range l.tensorsOf(k) {
				n := 1
				for _, d := range piece.Shape {
					n *= d
				}
				first := low + piece.Offset
				if first != at || len(piece.Shape) > 1 && row[first] != first {
					t.Fatalf("size %d: shard %d has a piece %v at %d after %d", size, k, piece.Shape, first, at)
				}
				at += n
			}
			if next = high; at != high {
				t.Fatalf("size %d: the pieces of shard %d end at %d, want %d", size, k, at, high)
			}
		}
		if next != model.Params() {
			t.Fatalf("size %d: the shards end at %d of %d", size, next, model.Params())
		}
	}
}
