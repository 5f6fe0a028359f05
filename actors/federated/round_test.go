package federated_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
)

const ms = time.Millisecond

// slow is a stage of four clients of three steps a round, the last of which is 20 times as slow.
func slow(rounds int) *stage {
	s := &stage{task: newTask(24, 24, 24, 24), arch: federated.Default(), rounds: rounds,
		steps: []time.Duration{10 * ms, 10 * ms, 10 * ms, 200 * ms}}
	s.link.Delay = link.Constant{Delay: ms}
	return s
}

func TestDeadlineEndsARoundWithWhatIsThere(t *testing.T) {
	s := slow(4)
	s.arch.Deadline = 100 * ms
	models := s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{1, 2, 3}) {
			t.Errorf("round %d has the updates of %v", r+1, nodes)
		}
		if want := time.Duration(r+1) * 100 * ms; s.ended[r] < want || s.ended[r] > want+ms {
			t.Errorf("round %d has ended at %v, want %v", r+1, s.ended[r], want)
		}
	}
	// The weights are of those received: the model is that of a run without the slow one.
	o := newOracle(t, s.task)
	for r := range models {
		o.round("fedavg", []int{0, 1, 2}, 1, 0.1, 0)
		if d := distance(models[r], o.phi); !(d < 1e-6) {
			t.Fatalf("round %d: the model is %v away from that of the three that are in time", r+1, d)
		}
	}
	if s.stepped[4] == 0 || s.missed != 4 || s.unanswered != 0 {
		t.Errorf("the slow client has made %d steps for nothing, of which the record has %v updates missed, want 4, "+
			"and %v rounds without any", s.stepped[4], s.missed, s.unanswered)
	}
	s.arch.Deadline = ms
	if s.run(t); s.missed != 16 || s.unanswered != 4 {
		t.Errorf("of 4 rounds of 4 clients without an update %v are told, and %v updates", s.unanswered, s.missed)
	}
}

func TestWorkThatIsCutShortIsTakenIn(t *testing.T) {
	s := slow(2)
	s.arch.Local.Time = 250 * ms
	s.run(t)
	if !slices.Equal(s.updates[0], []int{1, 2, 3, 4}) || s.stepped[4] != 4 {
		t.Errorf("round 1 has the updates of %v, and the slow client has made %d steps in two rounds; want all, and "+
			"2 of 3 steps in each", s.updates[0], s.stepped[4])
	}
	if want := 402 * ms; s.ended[0] < want || s.ended[0] > want+ms {
		t.Errorf("round 1 has ended at %v, want %v", s.ended[0], want)
	}
	s.arch.Local.Time = ms
	if s.run(t); s.stepped[4] != 2 || s.stepped[1] != 2 {
		t.Errorf("in two rounds of 1ms clients have made %v steps, want one in each", s.stepped)
	}
}

func TestSpareClientsReplaceTheSlowest(t *testing.T) {
	s := slow(12)
	s.arch.Share, s.arch.Count, s.arch.Spare = 0, 3, 0.3
	s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{1, 2, 3}) {
			t.Errorf("round %d has the updates of %v, of 4 drawn the first 3 were to end it", r+1, nodes)
		}
	}
	if s.missed != 12 {
		t.Errorf("in 12 rounds of 3 of 4 clients %v updates were missed", s.missed)
	}
}

// Of 6 clients 3 are drawn in each round, each as often as the others, and never twice.
func TestClientsAreDrawnEvenly(t *testing.T) {
	s := &stage{task: newTask(8, 8, 8, 8, 8, 8), arch: federated.Default(), rounds: 400}
	s.arch.Share = 0.5
	s.run(t)
	pairs := map[[2]int]int{}
	for r, nodes := range s.updates {
		if len(nodes) != 3 || len(slices.Compact(slices.Clone(nodes))) != 3 {
			t.Fatalf("round %d has the updates of %v", r+1, nodes)
		}
		for i, a := range nodes {
			for _, b := range nodes[:i] {
				pairs[[2]int{b, a}]++
			}
		}
	}
	// Each of the 15 pairs is expected in 80 rounds, with a deviation of 8.
	if len(pairs) != 15 {
		t.Errorf("%d pairs of 15", len(pairs))
	}
	for pair, n := range pairs {
		if n < 80-40 || n > 80+40 {
			t.Errorf("clients %v were drawn together in %d of 400 rounds, 80 are expected", pair, n)
		}
	}
}

func TestWhoGoesIsNotWaitedForAndWhoComesIsDrawnNext(t *testing.T) {
	for _, how := range []world.NodeEvent{world.Crash, world.Leave} {
		s := slow(6)
		s.absent = []int{2}
		s.schedule = []world.NodeChange{{At: 300 * ms, Node: 4, Do: how}, {At: 310 * ms, Node: 2, Do: world.Join}}
		s.run(t)
		if !slices.Equal(s.updates[0], []int{1, 3}) || s.ended[0] < 300*ms || s.ended[0] > 310*ms {
			t.Errorf("%v: the first round has the updates of %v at %v", how, s.updates[0], s.ended[0])
		}
		if !slices.Equal(s.updates[2], []int{1, 2, 3}) {
			t.Errorf("%v: the third round has the updates of %v", how, s.updates[2])
		}
	}
}

// A client that crashes at work and is back at once is another one: its former life is not waited
// for, and it is drawn again.
func TestWhoReturnsIsDrawnAgain(t *testing.T) {
	s := slow(5)
	s.steps[3] = 10 * ms
	s.schedule = []world.NodeChange{{At: 15 * ms, Node: 4, Do: world.Crash}, {At: 17 * ms, Node: 4, Do: world.Join}}
	s.run(t)
	if slices.Contains(s.updates[0], 4) || !slices.Contains(s.updates[2], 4) {
		t.Errorf("rounds have the updates of %v", s.updates)
	}
}

func TestAnEmptyRunWaitsForAClient(t *testing.T) {
	s := &stage{task: newTask(24, 24), arch: federated.Default(), rounds: 3, absent: []int{1, 2}}
	s.schedule = []world.NodeChange{{At: 100 * ms, Node: 2, Do: world.Join}}
	s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{2}) {
			t.Errorf("round %d has the updates of %v", r+1, nodes)
		}
	}
}

func TestRunEndsWithItsServer(t *testing.T) {
	s := &stage{task: newTask(24, 24), arch: federated.Default(), time: time.Second}
	s.schedule = []world.NodeChange{{At: 100 * ms, Node: 0, Do: world.Crash}}
	err := s.try(t)
	if want := "node n0: hub has gone, and with it the model"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What arrives twice is one work, and one update.
func TestRepeatsAreIgnored(t *testing.T) {
	s := &stage{task: newTask(24, 24, 24), arch: federated.Default(), rounds: 20}
	s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 40 * ms}, Reorder: true, Repeat: 0.7}
	s.run(t)
	for r, nodes := range s.updates {
		if !slices.Equal(nodes, []int{1, 2, 3}) {
			t.Errorf("round %d has the updates of %v", r+1, nodes)
		}
	}
	if !slices.Equal(s.stepped[1:], []int{60, 60, 60}) || s.missed != 0 {
		t.Errorf("clients have made %v steps in 20 rounds of 3, and %v updates were missed", s.stepped[1:], s.missed)
	}
}

// Work that was on its way to a node when it crashed is nothing to the node that is there now.
func TestWorkOfAFormerLifeIsForgotten(t *testing.T) {
	s := slow(2)
	s.steps[3], s.link.Delay = 10*ms, link.Constant{Delay: 30 * ms}
	s.schedule = []world.NodeChange{{At: 5 * ms, Node: 4, Do: world.Crash}, {At: 10 * ms, Node: 4, Do: world.Join}}
	s.run(t)
	if !slices.Equal(s.updates[0], []int{1, 2, 3}) || s.stepped[4] != 3 {
		t.Errorf("the first round has the updates of %v, and in two rounds the client that has returned has made %d "+
			"steps; want 1 to 3, and 3", s.updates[0], s.stepped[4])
	}
}

// A client that has gone, for good or to return without its control, leaves nothing in the server's
// that pulls the others.
func TestServersControlIsTheMeanOfItsClientsWhoeverComesAndGoes(t *testing.T) {
	const node = 4
	for name, c := range map[string]struct {
		schedule []world.NodeChange
		absent   []int
		slowest  time.Duration // of the steps; 0 for 11 ms
	}{
		"returns in its first round": {schedule: []world.NodeChange{{At: 60 * ms, Node: 1, Do: world.Leave},
			{At: 70 * ms, Node: 1, Do: world.Join}}, slowest: 80 * ms},
		"returns": {schedule: []world.NodeChange{{At: 103 * ms, Node: node, Do: world.Crash},
			{At: 140 * ms, Node: node, Do: world.Join}}},
		"returns before it is missed": {schedule: []world.NodeChange{{At: 103 * ms, Node: node, Do: world.Crash},
			{At: 103*ms + ms/2, Node: node, Do: world.Join}}},
		"leaves": {schedule: []world.NodeChange{{At: 111 * ms, Node: node, Do: world.Leave}}},
		"joins":  {schedule: []world.NodeChange{{At: 111 * ms, Node: node, Do: world.Join}}, absent: []int{node}},
	} {
		t.Run(name, func(t *testing.T) {
			s := slow(0)
			s.steps[3], s.arch.Controls, s.time = cmp.Or(c.slowest, 11*ms), true, 400*ms
			s.schedule, s.absent = c.schedule, c.absent
			made := map[string]actor.Actor{}
			s.watch = func(name string, a actor.Actor) { made[name] = a }
			s.run(t)
			checkControls(t, s.task, made)
		})
	}
}

// Links that lose, repeat and reorder stop nothing where rounds have a deadline, no update is taken
// in twice, and the server's control stays the mean of what clients have.
func TestLossIsSurvivedWithADeadline(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		s := &stage{task: newTask(24, 9, 40, 17, 24), arch: federated.Default(), rounds: 30, reliable: reliable}
		s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 30 * ms}, Reorder: true, Repeat: 0.3,
			Loss: link.Loss{Probability: 0.2, Drop: true}}
		s.arch.Deadline, s.arch.Controls = 120*ms, true
		made := map[string]actor.Actor{}
		s.watch = func(name string, a actor.Actor) { made[name] = a }
		s.run(t)
		partly := 0
		for r, nodes := range s.updates {
			if !slices.IsSorted(nodes) || len(slices.Compact(slices.Clone(nodes))) != len(nodes) {
				t.Errorf("version %d has the updates of %v", r+1, nodes)
			}
			if len(nodes) < 5 {
				partly++
			}
		}
		if !reliable && partly == 0 || len(s.models) != 30 {
			t.Errorf("%d rounds, %d of them with some updates alone", len(s.models), partly)
		}
		checkControls(t, s.task, made)
	}
}

// checkControls compares the server's control with the mean of those of all clients.
func checkControls(t *testing.T, task *train.Task, made map[string]actor.Actor) {
	t.Helper()
	control, taken := federated.ServerControl(made["hub"])
	mean := make([]float64, len(control))
	for i, name := range task.Workers {
		for k, v := range federated.ClientControl(made[name], taken[i+1]) {
			mean[k] += float64(v) / float64(len(task.Workers))
		}
	}
	most := 0.0
	for k, v := range mean {
		if math.Abs(v-float64(control[k])) > 1e-6 {
			t.Fatalf("the server's control of parameter %d is %v, the mean of the clients' %v", k, control[k], v)
		}
		most = max(most, math.Abs(v))
	}
	if most < 1e-3 {
		t.Errorf("controls have stayed at %v", most)
	}
}

func TestMessagesAreAModelThereAndBackForARound(t *testing.T) {
	a := federated.Default()
	a.Local = periodic.Work{Steps: 4}
	if messages, models := a.Messages(1, 9); messages != 0.5 || models != 0.5 {
		t.Errorf("%v messages and %v models a step, want a model there and back for 4", messages, models)
	}
	a.Controls = true
	if messages, models := a.Messages(1, 9); messages != 0.5 || models != 1 {
		t.Errorf("with controls %v messages and %v models a step, want two models each way", messages, models)
	}
}

func TestARoundOfNoClientsIsRefused(t *testing.T) {
	a := federated.Default()
	if err := a.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	a.Share, a.Count = 0, 0
	if a.Validate() == nil {
		t.Error("a round of no clients is accepted")
	}
}
