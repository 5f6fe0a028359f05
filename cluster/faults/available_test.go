package faults_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// going is a plan of nodes, whose trace is text.
func going(t testing.TB, nodes, trace, more string) (p *plan.Plan, roles []string) {
	t.Helper()
	root, err := syntax.Parse("p.yaml", []byte("data: toy\nmodel: {kind: mlp}\narchitecture: {kind: ps}\n"+
		"nodes: ["+nodes+"]\nstop: {time: 1000s}\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = plan.ReadPlan(root); err != nil {
		t.Fatal(err)
	}
	if err := p.Traced(func(a *plan.Available) (err error) {
		a.Devices, _, err = plan.ReadDevices(strings.NewReader("device,on_s,off_s\n"+trace), "trace.csv")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return p, make([]string, len(p.Nodes))
}

// attendances are what a plan comes to with a seed: absent nodes, and who joins and leaves when.
func attendances(p *plan.Plan, roles []string, seed uint64) (lines []string) {
	scheduled := faults.Schedule(p, roles, seed)
	for i, absent := range scheduled.Absent() {
		if absent {
			lines = append(lines, p.Nodes[i].Name+" is absent")
		}
	}
	for _, c := range scheduled.Schedule[len(p.Schedule):] {
		lines = append(lines, fmt.Sprint(c.At, " ", c.Node, " ", c.Do))
	}
	return lines
}

// By hand: turns from a first one on, and a trace of two devices for three nodes, in which one time
// follows another without a gap, also where the trace begins again.
func TestNodesComeAndGoByHand(t *testing.T) {
	p, roles := going(t, "{name: a, available: {on: 300s, off: 100s, first: 50s}}, {name: b}", "", "")
	want := []string{"a is absent", "50s a join", "5m50s a leave", "7m30s a join", "12m30s a leave", "14m10s a join"}
	if diff := cmp.Diff(want, attendances(p, roles, 1)); diff != "" {
		t.Error(diff)
	}
	p, roles = going(t, "{name: x, count: 3, available: {file: t.csv, repeat: 500s}}",
		"n,0,100\nm,200,300\nn,100,150\nn,400,500\n", "")
	want = []string{"x2 is absent", "2m30s x1 leave", "2m30s x3 leave", "3m20s x2 join", "5m x2 leave",
		"6m40s x1 join", "6m40s x3 join", "10m50s x1 leave", "10m50s x3 leave", "11m40s x2 join", "13m20s x2 leave",
		"15m x1 join", "15m x3 join"}
	if diff := cmp.Diff(want, attendances(p, roles, 1)); diff != "" {
		t.Error(diff)
	}
	// Who does not come before the end is absent all the time.
	p, roles = going(t, "{name: a, available: {file: t.csv}}", "d,2000,3000\n", "")
	if diff := cmp.Diff([]string{"a is absent", "33m20s a join"}, attendances(p, roles, 1)); diff != "" {
		t.Error(diff)
	}
}

// Each node comes every 100 s and goes 30 s later, from anywhere in its turns: at any instant 30 %
// of them are there, and phases are spread evenly.
func TestTurnsBeginAnywhere(t *testing.T) {
	const n = 2000
	p, roles := going(t, "{name: w, count: 2000, available: {on: 30s, off: 70s}}", "", "")
	scheduled := faults.Schedule(p, roles, 7)
	there, first := 0, map[string]unit.Duration{}
	for _, absent := range scheduled.Absent() {
		if !absent {
			there++
		}
	}
	decile := [10]int{}
	for _, c := range scheduled.Schedule {
		turn := c.At
		if c.Do == plan.Leave {
			turn += unit.Duration(70 * time.Second)
		}
		turn %= unit.Duration(100 * time.Second)
		if before, known := first[c.Node]; known && before != turn {
			t.Fatalf("%s does %s at %s, which is out of turn", c.Node, c.Do, c.At)
		} else if !known {
			decile[turn/unit.Duration(10*time.Second)]++
		}
		first[c.Node] = turn
	}
	// The deviations are 20.5 and 13.4.
	if math.Abs(float64(there)-0.3*n) > 80 {
		t.Errorf("%d of %d nodes are there at first, 600 are expected", there, n)
	}
	for i, k := range decile {
		if k < 200-54 || k > 200+54 {
			t.Errorf("%d of %d nodes begin in tenth %d of their turn, 200 are expected", k, n, i)
		}
	}
	if len(scheduled.Schedule) < 2*n*9 || len(scheduled.Schedule) > 2*n*11 {
		t.Errorf("%d events in 10 turns of %d nodes", len(scheduled.Schedule), n)
	}
}

func TestTurnsAreThoseOfTheSeedAndTheName(t *testing.T) {
	p, roles := going(t, "{name: a, available: {on: 30s, off: 70s}}, {name: b, available: {on: 30s, off: 70s}}", "", "")
	once := attendances(p, roles, 3)
	if diff := cmp.Diff(once, attendances(p, roles, 3)); diff != "" {
		t.Error(diff)
	}
	if slices.Equal(once, attendances(p, roles, 4)) {
		t.Error("two seeds have the same events")
	}
	alone, roles := going(t, "{name: b, available: {on: 30s, off: 70s}}", "", "")
	of := func(lines []string) []string {
		return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "b ") })
	}
	if diff := cmp.Diff(of(once), of(attendances(alone, roles, 3))); diff != "" {
		t.Errorf("another node has moved the events of b: %s", diff)
	}
}

// Nodes that are away are no faults, hurt nothing, and are there in the undisturbed plan at the
// same times; faults strike the others alone.
func TestWhoComesAndGoesIsNoFault(t *testing.T) {
	const nodes = "{name: a, available: {on: 30s, off: 70s}}, {name: b}"
	p, _ := going(t, nodes, "", "")
	if faults.Hurts(p) || faults.Undisturbed(p).Nodes[0].Available == nil {
		t.Error("nodes that come and go hurt a plan")
	}
	p, roles := going(t, nodes, "", "faults: {crash: {mtbf: 50s, back: 1s}, pause: {mtbf: 50s, for: 1s}}\n")
	all := faults.List(faults.Schedule(p, roles, 5), 0)
	if len(all) < 20 {
		t.Errorf("%d faults", len(all))
	}
	for _, f := range all {
		if !slices.Equal(f.Nodes, []string{"b"}) {
			t.Errorf("%+v is listed", f)
		}
	}
}
