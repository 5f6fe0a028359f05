package noloco

import (
	"math"
	"slices"
	"testing"
)

// All nodes draw the same groups, each node is in one, and at most one group is smaller.
func TestGroupsAreAPartition(t *testing.T) {
	for _, c := range []struct{ nodes, size int }{{1, 2}, {2, 2}, {5, 2}, {9, 4}, {6, 6}, {3, 8}, {100, 7}} {
		draws := make([]draw, c.nodes)
		for node := range draws {
			draws[node] = newDraw(9, c.nodes)
		}
		for round := range uint64(30) {
			smaller := 0
			for node := range draws {
				group := slices.Clone(draws[node].group(round, node, c.size))
				if !slices.Contains(group, int32(node)) || !slices.IsSorted(group) || len(group) > c.size {
					t.Fatalf("%+v: node %d is in the group %v", c, node, group)
				}
				if len(group) < c.size && node == int(group[0]) {
					smaller++
				}
				for _, other := range group {
					if !slices.Equal(draws[other].group(round, int(other), c.size), group) {
						t.Fatalf("%+v, round %d: node %d says %v, node %d does not", c, round, node, group, other)
					}
				}
			}
			if want := min(c.nodes%c.size, 1); smaller != want {
				t.Fatalf("%+v, round %d: %d smaller groups, want %d", c, round, smaller, want)
			}
		}
	}
}

// Each pair of nodes is as likely as any other, and so is each node to be alone; successive rounds
// are independent of each other.
func TestPairsAreEquallyLikely(t *testing.T) {
	const nodes, rounds = 7, 42000
	d := newDraw(3, nodes)
	var met [nodes][nodes]float64
	again, before := 0.0, int32(0)
	for round := range uint64(rounds) {
		for node := range nodes {
			for _, other := range d.group(round, node, 2) {
				if int(other) != node || len(d.group(round, node, 2)) == 1 {
					met[node][other]++
				}
			}
		}
		with := d.group(round, 0, 2)[len(d.group(round, 0, 2))-1]
		if with == before {
			again++
		}
		before = with
	}
	const p = 1.0 / nodes // of each other one, and of being alone
	sigma := math.Sqrt(rounds * p * (1 - p))
	for i := range nodes {
		for j := range nodes {
			if off := (met[i][j] - rounds*p) / sigma; math.Abs(off) > 5 {
				t.Errorf("nodes %d and %d meet %v times, %.1f σ off", i, j, met[i][j], off)
			}
		}
	}
	if off := (again - rounds*p) / sigma; math.Abs(off) > 5 {
		t.Errorf("node 0 has the same group twice running %v times, %.1f σ off", again, off)
	}
}
