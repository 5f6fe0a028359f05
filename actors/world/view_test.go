package world_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// crowd is a deployment of n nodes of two roles.
func crowd(n int, graphs ...actors.Graph) *world.Deployment {
	d := &world.Deployment{Topologies: graphs}
	for i := range n {
		d.Nodes = append(d.Nodes, world.Node{Name: fmt.Sprintf("n%d", i), Role: []string{"a", "b"}[i%2]})
	}
	return d
}

func TestNeighboursOfTheCompleteTopologyAreAllOthersThatArePresent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 1 + r.IntN(12)
		complete := make(actors.Graph, n)
		for i := range n {
			for j := range n {
				if i != j {
					complete[i] = append(complete[i], int32(j))
				}
			}
		}
		if err := complete.Validate(n); err != nil {
			t.Fatal(err)
		}
		var absent []int32
		var present []int
		for i := range n {
			if r.IntN(3) == 0 {
				absent = append(absent, int32(i))
			} else {
				present = append(present, i)
			}
		}
		announced := &protos.View{Number: 2, Absent: absent}
		implicit, explicit := crowd(n).Views().Of(announced), crowd(n, complete).Views().Of(announced)
		for node := range n {
			want := slices.DeleteFunc(slices.Clone(present), func(i int) bool { return i == node })
			for _, v := range []*actors.View{implicit, explicit} {
				if got := v.Neighbours(node); !slices.Equal(got, want) || v.Degree(node) != len(want) {
					t.Fatalf("of %d nodes without %v: node %d has %d neighbours %v, want %v", n, absent, node,
						v.Degree(node), got, want)
				}
				for i := range want {
					if v.Neighbour(node, i) != want[i] {
						t.Fatalf("neighbour %d of node %d is %d, want %d", i, node, v.Neighbour(node, i), want[i])
					}
				}
				if got := v.Potential(node); len(got) != n-1 || slices.Contains(got, int32(node)) {
					t.Fatalf("node %d of %d could have the neighbours %v", node, n, got)
				}
			}
		}
	}
}

func TestRanksCountThePresentOfARole(t *testing.T) {
	v := crowd(7).Views().Of(&protos.View{Number: 3, Absent: []int32{0, 3}})
	ranks := make([]int, 7)
	for i, m := range v.Members {
		ranks[i] = m.Rank
	}
	if want := []int{-1, 0, 0, -1, 1, 1, 2}; !slices.Equal(ranks, want) {
		t.Errorf("ranks %v, want %v", ranks, want)
	}
	if got := v.Role("a"); !slices.Equal(got, []int{2, 4, 6}) {
		t.Errorf("role a is %v", got)
	}
}

func TestGraphThatIsNoneIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		graph actors.Graph
	}{
		{"too few nodes", actors.Graph{{1}, {0}}},
		{"out of range", actors.Graph{{1}, {0}, {3}}},
		{"itself", actors.Graph{{0}, {}, {}}},
		{"one end only", actors.Graph{{1}, {}, {}}},
		{"not ascending", actors.Graph{{2, 1}, {0}, {0}}},
		{"twice", actors.Graph{{1, 1}, {0}, {}}},
	} {
		if err := c.graph.Validate(3); err == nil {
			t.Errorf("%s: %v was taken for a graph", c.name, c.graph)
		}
	}
}

func TestNeighboursOfAllTopologiesAreTheirUnion(t *testing.T) {
	path, pairs := actors.Graph{{1}, {0, 2}, {1}, {}}, actors.Graph{{3}, {2}, {1}, {0}}
	v := crowd(4, path, pairs).Views().First()
	for node, want := range [][]int32{{1, 3}, {0, 2}, {1}, {0}} {
		if got := v.Ever().Potential(node); !slices.Equal(got, want) {
			t.Errorf("node %d: %v, want %v", node, got, want)
		}
	}
	if !v.Linked(0, 1) || v.Linked(0, 3) || v.Linked(0, 0) || !v.Ever().Linked(0, 3) || v.Ever().Complete() {
		t.Error("edges of the present topology and of all are mixed up")
	}
	if v = crowd(4, path, nil).Views().First(); !v.Ever().Complete() || v.Complete() ||
		!slices.Equal(v.Ever().Potential(1), []int32{0, 2, 3}) {
		t.Errorf("one of them is complete: %v", v.Ever().Potential(1))
	}
	if v = crowd(4, path).Views().First(); !slices.Equal(v.Ever().Potential(1), v.Potential(1)) {
		t.Error("one topology has other edges than its own")
	}
	if v = crowd(4).Views().First(); !v.Ever().Complete() || !v.Linked(0, 3) || v.Linked(3, 3) {
		t.Error("no topology is not the complete one")
	}
}
