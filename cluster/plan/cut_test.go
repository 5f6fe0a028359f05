package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readFaults(t *testing.T) *Plan {
	t.Helper()
	p, err := ReadPlan(readGood(t, "faults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestARestartAndAPreemptAreEventsOfNodes(t *testing.T) {
	p := readFaults(t)
	var got []string
	for _, e := range p.NodeEvents() {
		got = append(got, fmt.Sprint(e.At, " ", p.Nodes[e.Node].Name, " ", e.Do, " ", e.For, " ", e.Factor))
	}
	want := []string{
		"30s peer1 crash 0s 0", "40s late1 slow 30s 4", "40s late2 slow 30s 4", "50s peer1 join 0s 0",
		"1m spare leave 0s 0", "1m10s spare killed 0s 0", "1m40s spare join 0s 0", "2m late2 leave 0s 0",
		"2m10s late2 killed 0s 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if slices.Contains(p.Absent(), true) {
		t.Errorf("absent: %v", p.Absent())
	}
}

func TestTheSidesOfACutAreNamedByNodesGroupsAndSites(t *testing.T) {
	p := readFaults(t)
	want := [][]int8{ // peer1 to 3, late1 and 2, spare
		{1, 1, 1, 2, 2, 1},
		{1, 0, 0, 1, 0, 2},
		{2, 2, 2, 2, 2, 1},
	}
	var got [][]int8
	for _, c := range p.Schedule {
		if c.Cut != nil {
			got = append(got, p.Sides(c.Cut))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
