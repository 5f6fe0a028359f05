package world_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

func TestCostIsWorkByTheSpeedOfTheCoresTaken(t *testing.T) {
	const ms = time.Millisecond
	slow := world.Profile{Cores: 4, Speed: 1e9}
	fixed := world.Profile{Cores: 2, Speed: 1e9, Step: 7 * ms}
	for _, c := range []struct {
		name    string
		profile world.Profile
		job     actors.Job
		want    time.Duration
	}{
		{"one core by default", slow, actors.Job{Work: 8e6}, 8 * ms},
		{"two cores", slow, actors.Job{Work: 8e6, Cores: 2}, 4 * ms},
		{"no more cores than there are", slow, actors.Job{Work: 8e6, Cores: 100}, 2 * ms},
		{"no work", slow, actors.Job{}, 0},
		{"a step of fixed time", fixed, actors.Job{Work: 8e6, Step: true}, 7 * ms},
		{"a step of fixed time on two cores", fixed, actors.Job{Work: 8e6, Step: true, Cores: 2}, 7 * ms},
		{"what is no step has its own time", fixed, actors.Job{Work: 8e6}, 8 * ms},
		{"a step where none is fixed", slow, actors.Job{Work: 8e6, Step: true}, 8 * ms},
		{"unlimited", world.Unlimited, actors.Job{Work: 1e30}, 0},
		{"cores left out", world.Profile{Speed: 1e9}, actors.Job{Work: 8e6}, 8 * ms},
		{"longer than a time.Duration", world.Profile{Cores: 1, Speed: 1}, actors.Job{Work: 1e30},
			100 * 365 * 24 * time.Hour},
		{"an infinite time", world.Profile{Cores: 1}, actors.Job{Work: math.MaxFloat64}, 100 * 365 * 24 * time.Hour},
	} {
		if got := c.profile.Cost(c.job); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRanksCountWithinARoleInTheOrderOfThePlan(t *testing.T) {
	d := world.Deployment{Nodes: []world.Node{
		{Name: "w1", Role: "worker"}, {Name: "s", Role: "server"}, {Name: "w2", Role: "worker"},
		{Name: "w3", Role: "worker"},
	}}
	v := d.Views().First()
	var got []string
	for _, m := range v.Members {
		got = append(got, fmt.Sprintf("%s %s %d %s", m.Name, m.Role, m.Rank, m.PID.Address))
	}
	want := []string{"w1 worker 0 w1", "s server 0 s", "w2 worker 1 w2", "w3 worker 2 w3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 2, 3}, v.Role("worker")); diff != "" {
		t.Error(diff)
	}
	if v.Role("peer") != nil {
		t.Errorf("members of a role that nobody has: %v", v.Role("peer"))
	}
	if d.Views().First().Members[0].PID == v.Members[0].PID {
		t.Error("two views share a PID, which remembers the process of the first")
	}
}

func TestPanicOfTheActorsOwnMakingIsItsError(t *testing.T) {
	own := errors.New("the model diverged")
	if err := world.PanicError(own); err != own { //nolint:errorlint // the very same
		t.Errorf("got %v", err)
	}
}

func TestOtherPanicsShowWhereTheyHappened(t *testing.T) {
	caught := func(f func()) (err error) {
		defer func() { err = world.PanicError(recover()) }()
		f()
		return nil
	}
	var none []int
	for want, f := range map[string]func(){
		"panic: out of luck":                        func() { panic("out of luck") },
		"panic: runtime error: index out of range ": func() { _ = none[len(none)+3] },
		"panic: 7": func() { panic(7) },
	} {
		err := caught(f)
		if !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "deployment_test.go") {
			t.Errorf("want %q and where: %v", want, err)
		}
		var p *world.Panic
		if !errors.As(err, &p) || !strings.HasPrefix(p.Where, "world_test.TestOtherPanics") ||
			!strings.Contains(p.Where, ", deployment_test.go:") {
			t.Errorf("%q is said to have happened in %+v", want, p)
		}
	}
}

// idler waits for what it says.
type idler struct {
	actor.Actor
	cause string
}

func (i idler) Waiting() string { return i.cause }

func TestStandstillTellsWhatSomeOfTheNodesWaitFor(t *testing.T) {
	d := &world.Deployment{Nodes: make([]world.Node, 12)}
	idle := make([]actor.Actor, 12)
	if err := d.Standstill(0, world.Waits(idle), ""); !errors.Is(err, world.ErrStandstill) {
		t.Errorf("nobody says anything, and the error is %v", err)
	}
	for i := range idle {
		d.Nodes[i].Name = fmt.Sprintf("n%d", i)
		idle[i] = idler{cause: "Godot"}
	}
	idle[1], idle[2] = nil, idler{}
	err := d.Standstill(time.Second, world.Waits(idle), "; all is lost")
	if !errors.Is(err, world.ErrStandstill) || !strings.HasPrefix(err.Error(), "at 1s: ") ||
		!strings.HasSuffix(err.Error(),
			"; n0 waits for Godot, n3 waits for Godot, n4 waits for Godot, n5 waits for Godot, n6 waits for Godot, "+
				"n7 waits for Godot, n8 waits for Godot, n9 waits for Godot, and 2 more wait; all is lost") {
		t.Error(err)
	}
}
