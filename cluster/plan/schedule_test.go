package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeEventsAreInTheOrderOfTimeAndOfTheSchedule(t *testing.T) {
	p, err := ReadPlan(readGood(t, "comings-and-goings.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range p.NodeEvents() {
		got = append(got, fmt.Sprintf("%s %s %s, line %d", e.At, p.Nodes[e.Node].Name, e.Do, e.Source.Pos.Line))
	}
	want := []string{
		"30s peer1 crash, line 15", "1m late1 join, line 17", "1m late2 join, line 17", "1m spare leave, line 18",
		"2m peer1 join, line 14", "3m late1 leave, line 19", "3m late2 leave, line 19",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bool{false, false, false, true, true, false}, p.Absent()); diff != "" {
		t.Errorf("absent: %s", diff)
	}
	if p.Detect != 5e9 || *p.Evaluate.Sample != 2 || p.Network.Topology.Flow() != "{kind: random-regular, degree: 2}" {
		t.Errorf("detect %s, sample %d, topology %s", p.Detect, *p.Evaluate.Sample, p.Network.Topology)
	}
}

func TestDefaultsOfNodesThatComeAndGo(t *testing.T) {
	p, err := ReadPlan(readGoodText(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Detect != 1.5e9 || p.Evaluate.Sample != nil || p.Network.Topology.Flow() != "{kind: complete}" ||
		len(p.NodeEvents()) != 0 {
		t.Errorf("detect %s, sample %v, topology %s, events %v", p.Detect, p.Evaluate.Sample, p.Network.Topology,
			p.NodeEvents())
	}
}

// TestWhatHappensToAGroupIsBounded puts more on a few lines than anybody wants to wait for.
func TestWhatHappensToAGroupIsBounded(t *testing.T) {
	const members = 1 << 16
	text := strings.Replace(smallPlan, "count: 2", fmt.Sprintf("count: %d", members), 1) + "schedule:\n"
	for i := range MaxNodeEvents/members + 1 {
		text += fmt.Sprintf("  - {at: %ds, node: fast, do: %s}\n", i+1, []string{Crash, Join}[i%2])
	}
	_, err := ReadPlan(mustParse(t, text))
	if err == nil || !strings.Contains(err.Error(),
		"schedule[16]: up to here the schedule changes nodes more than 1048576 times") {
		t.Errorf("%v", err)
	}
	if _, err := ReadPlan(mustParse(t, text[:strings.LastIndex(text, "  -")])); err != nil {
		t.Errorf("16 times %d: %v", members, err)
	}
}
