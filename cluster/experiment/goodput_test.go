package experiment

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/record/goodput"
	"github.com/gradwire/gradwire/cluster/turns"
)

// alone is a plan whose nodes wait for nobody: what faults cost follows from their lengths.
var alone = strings.NewReplacer("{kind: parameter-server}", "{kind: local}",
	"  - {name: s, role: server}\n", "", ", role: worker", "").Replace(faultyPlan)

func TestGoodputIsTheShareOfTimeThatFaultsLeave(t *testing.T) {
	for _, x := range []struct {
		more  string
		share float64 // of the time of three nodes, 10 s each
		what  string
	}{
		{"schedule: [{at: 2s, node: w1, do: pause, for: 3s}]\n", 27. / 30, "pause"},
		{"schedule: [{at: 2s, node: w, do: pause, for: 3s}]\n", 21. / 30, "pause"},
		{"schedule: [{at: 2s, node: w1, do: slow, factor: 4, for: 4s}]\n", 27. / 30, "slow"},
		{"schedule: [{at: 2s, node: w1, do: restart, for: 6s}]\n", 24. / 30, "restart"},
		{"schedule: [{at: 4s, node: w1, do: preempt, notice: 1s, for: 2s}]\n", 27. / 30, "preempt"},
		{"schedule: [{at: 2s, node: w1, do: leave}]\n", 22. / 30, "leave"},
		{"schedule: [{at: 2s, cut: w1, for: 3s}]\n", 1, "cut"},
	} {
		run, _ := play(t, VirtualTime, alone+x.more)
		if run.Goodput == nil || math.Abs(run.Goodput.Share-x.share) > 0.007 || run.Goodput.Undisturbed < 2800 ||
			run.Goodput.Share != float64(run.Goodput.Counted)/float64(run.Goodput.Undisturbed) {
			t.Errorf("%sgoodput %+v, want about %.3f", x.more, run.Goodput, x.share)
		}
		if len(run.Faults) != 1 || run.Faults[0].What != x.what || run.Faults[0].Drawn {
			t.Errorf("%s: %+v", x.more, run.Faults)
		}
	}
}

func TestOnlyRunsThatSomethingHurtsHaveAGoodput(t *testing.T) {
	for _, more := range []string{"", "schedule: [{at: 5s, node: w1, do: join}]\n",
		"schedule: [{at: 5s, link: [w1, w2], delay: 1s}]\n"} {
		if run, _ := play(t, VirtualTime, alone+more); run.Goodput != nil || run.Faults != nil {
			t.Errorf("%s: %+v, %+v", more, run.Goodput, run.Faults)
		}
	}
}

func TestARecordListsItsFaults(t *testing.T) {
	run, _ := play(t, VirtualTime, faultyPlan+`schedule:
  - {at: 1s, link: [s, w], do: down}
  - {at: 2s, link: [s, w], do: up}
  - {at: 3s, node: w1, do: crash}
  - {at: 4s, node: w1, do: join}
faults: {slow: {mtbf: 4s, nodes: w2, factor: 3, for: 1s}}
`)
	var drawn int
	var said []goodput.Fault
	for _, f := range run.Faults {
		if f.Drawn {
			drawn++
			continue
		}
		said = append(said, f)
	}
	want := []goodput.Fault{{At: 1, Until: 2, What: "down", Nodes: []string{"s", "w"}},
		{At: 3, Until: 4, What: "crash", Nodes: []string{"w1"}}}
	if diff := cmp.Diff(want, said); diff != "" || drawn == 0 {
		t.Errorf("%d drawn, %s", drawn, diff)
	}
}

// Faults that are never drawn cost nothing, whatever ends the run: at the instant of a step, a
// round or none.
func TestGoodputWithoutAFaultIsTheWhole(t *testing.T) {
	t.Parallel()
	stops := []string{"{time: 1s}", "{steps: 50, time: 20s}", "{epochs: 2, time: 20s}", "{target: 60%, time: 20s}"}
	for _, architectures := range variants {
		for i, architecture := range architectures {
			for k, stop := range stops {
				set := []string{"architecture=" + architecture, "stop=" + stop,
					"faults={pause: {mtbf: 8760h, for: 1s}}"}
				t.Run(architecture+", "+stop, func(t *testing.T) {
					turns.Row(t, i+k, len(stops), 3)
					t.Parallel()
					run, _ := attempt(t, set...)
					if len(run.Faults) > 0 || run.Goodput == nil || run.Goodput.Share != 1 || run.Goodput.Lost > 0 {
						t.Errorf("goodput %+v after %d steps, want 1", run.Goodput, run.Steps)
					}
				})
			}
		}
	}
}
