package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

// beacon sends its count to the next node every 10 ms, and notes what comes.
type beacon struct {
	env   actors.Env
	count uint32
	draw  uint64
	notes *[]note
}

// note is something that a beacon has seen.
type note struct {
	at    time.Duration
	node  int
	from  uint32 // draw that tells the sender's life
	count uint32
}

type tick struct{}

func (b *beacon) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		b.draw = uint64(b.env.Rand("life").Uint32())
		b.env.After(10*ms, tick{})
	case tick:
		b.count++
		b.env.After(10*ms, tick{})
		next := (b.env.Node() + 1) % len(b.env.View().Members)
		head := &protos.Chunk{Index: b.count, View: b.draw}
		ctx.Send(b.env.View().Members[next].PID, protos.NewMessage(head, b.env.Tensors().Get(3)))
	case *protos.Message:
		if head, ok := m.Head.(*protos.Chunk); ok {
			*b.notes = append(*b.notes, note{b.env.Now(), b.env.Node(), uint32(head.View), head.Index})
		}
		m.Release()
	}
}

// ringOfBeacons runs three beacons for 300 ms with links of 25 ms and a schedule.
func ringOfBeacons(
	t *testing.T, strict bool, schedule ...world.NodeChange,
) (notes []note, heard []string, stats []link.Stats, r sim.Result) {
	t.Helper()
	done, err := tryRing(t, strict, &notes, &heard, schedule...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(3) {
		stats = append(stats, done.network.Edge(i, (i+1)%3).Stats())
	}
	return notes, heard, stats, done.Result
}

// ringed is what a run of beacons led to.
type ringed struct {
	sim.Result
	network *link.Network
}

func tryRing(t *testing.T, strict bool, notes *[]note, heard *[]string, schedule ...world.NodeChange) (ringed, error) {
	t.Helper()
	d := &world.Deployment{Seed: 5, Bounded: true, Strict: strict, Schedule: schedule, Detect: 30 * ms}
	for i := range 3 {
		d.Nodes = append(d.Nodes, world.Node{
			Name: fmt.Sprintf("n%d", i), Role: "beacon", Profile: world.Profile{Cores: 1, Speed: 1e9},
			Kind: func(env actors.Env) (actor.Actor, error) { return &beacon{env: env, notes: notes}, nil },
		})
	}
	if len(schedule) > 0 && schedule[0].Do == world.Join {
		d.Nodes[schedule[0].Node].Absent = true
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				env.After(300*ms, tick{})
			case tick:
				control.Finish()
			case world.MemberChange:
				*heard = append(*heard, fmt.Sprintf("%v %d %v", env.Now(), m.Node, m.Present))
			}
		}), nil
	}
	network := link.New(5, []string{"n0", "n1", "n2", actors.Coordinator})
	network.SetDefault(link.Config{Delay: link.Constant{Delay: 25 * ms}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Run(context.Background())
	return ringed{r, network}, err
}

// arrivals are the instants at which a node has noted something.
func arrivals(notes []note, node int) (at []time.Duration) {
	for _, n := range notes {
		if n.node == node {
			at = append(at, n.at)
		}
	}
	return at
}

// every10 lists first, first + 10 ms, … up to last.
func every10(first, last time.Duration) (at []time.Duration) {
	for t := first; t <= last; t += 10 * ms {
		at = append(at, t)
	}
	return at
}

func TestWhatACrashedNodeHasSentArrivesAndWhatIsSentToItDoesNot(t *testing.T) {
	for _, strict := range []bool{false, true} {
		notes, heard, stats, r := ringOfBeacons(t, strict, world.NodeChange{At: 105 * ms, Node: 1, Do: world.Crash})
		if want := every10(35*ms, 95*ms); !slices.Equal(arrivals(notes, 1), want) {
			t.Errorf("node 1 noted at %v, want until its crash %v", arrivals(notes, 1), want)
		}
		if got, want := arrivals(notes, 2), every10(35*ms, 125*ms); !slices.Equal(got, want) {
			t.Errorf("node 2 noted at %v, want %v: what node 1 sent until its crash", got, want)
		}
		if want := []string{"135ms 1 false"}; !slices.Equal(heard, want) {
			t.Errorf("the coordinator heard %v, want %v", heard, want)
		}
		to := stats[0]
		if to.Sent != to.Delivered+to.Dropped+to.InFlight() || to.Delivered != int64(len(arrivals(notes, 1))) ||
			to.InFlight() > 3 {
			t.Errorf("to the crashed node: %+v", to)
		}
		if uint64(to.Dropped) != r.DeadLetters || to.Dropped == 0 {
			t.Errorf("%d messages were dropped, %d dead letters", to.Dropped, r.DeadLetters)
		}
	}
}

func TestNodeThatLeavesIsHeardOfAtOnce(t *testing.T) {
	_, heard, _, _ := ringOfBeacons(t, true, world.NodeChange{At: 105 * ms, Node: 1, Do: world.Leave})
	if want := []string{"105ms 1 false"}; !slices.Equal(heard, want) {
		t.Errorf("the coordinator heard %v, want %v", heard, want)
	}
}

func TestNodeThatComesBackHasANewActorAndNewDraws(t *testing.T) {
	notes, heard, _, _ := ringOfBeacons(t, true,
		world.NodeChange{At: 102 * ms, Node: 1, Do: world.Crash},
		world.NodeChange{At: 202 * ms, Node: 1, Do: world.Join})
	if want := []string{"132ms 1 false", "202ms 1 true"}; !slices.Equal(heard, want) {
		t.Errorf("the coordinator heard %v, want %v", heard, want)
	}
	var first, second []note
	for _, n := range notes {
		if n.node == 2 && n.at < 200*ms {
			first = append(first, n)
		} else if n.node == 2 {
			second = append(second, n)
		}
	}
	if len(first) != 10 || len(second) != 7 || second[0].at != 237*ms || second[0].count != 1 {
		t.Fatalf("node 2 heard %v in node 1's first life and %v in its second", first, second)
	}
	if first[0].from == second[0].from {
		t.Error("the second life repeats the draws of the first")
	}
}

func TestReturnBeforeACrashIsNoticedIsHeardOfAsBoth(t *testing.T) {
	_, heard, _, _ := ringOfBeacons(t, false,
		world.NodeChange{At: 100 * ms, Node: 1, Do: world.Crash},
		world.NodeChange{At: 110 * ms, Node: 1, Do: world.Join})
	if want := []string{"110ms 1 false", "110ms 1 true"}; !slices.Equal(heard, want) {
		t.Errorf("the coordinator heard %v, want %v", heard, want)
	}
}

func TestPausedNodeHandlesNothingAndLosesNothing(t *testing.T) {
	for _, strict := range []bool{false, true} {
		notes, heard, stats, _ := ringOfBeacons(t, strict,
			world.NodeChange{At: 107 * ms, Node: 1, Do: world.Pause, For: 50 * ms})
		var want []time.Duration
		for _, at := range every10(35*ms, 295*ms) {
			if at > 107*ms && at < 157*ms {
				at = 157 * ms
			}
			want = append(want, at)
		}
		if got := arrivals(notes, 1); !slices.Equal(got, want) {
			t.Errorf("node 1 noted at %v, want %v", got, want)
		}
		// Its timer of 110 ms is handled at 157 ms, and what it sends then arrives 25 ms later.
		want = append(every10(35*ms, 125*ms), every10(182*ms, 292*ms)...)
		if got := arrivals(notes, 2); !slices.Equal(got, want) {
			t.Errorf("node 2 noted at %v, want %v", got, want)
		}
		if len(heard) != 0 || stats[0].Dropped != 0 {
			t.Errorf("the coordinator heard %v, and %d messages were dropped", heard, stats[0].Dropped)
		}
	}
}

func TestRunWhoseCoordinatorGoesEndsWithAnError(t *testing.T) {
	for _, do := range []world.NodeEvent{world.Crash, world.Leave} {
		_, err := tryRing(t, false, new([]note), new([]string), world.NodeChange{At: 105 * ms, Node: 3, Do: do})
		if !errors.Is(err, world.ErrLeaderless) || !strings.Contains(err.Error(), "at 105ms") {
			t.Errorf("change %d: %v, want that nobody leads the run", do, err)
		}
	}
}

func TestStepsThatTakeNoTimeAreTold(t *testing.T) {
	d := &world.Deployment{Bounded: true, Nodes: []world.Node{{
		Name: "quick", Role: "worker", Profile: world.Profile{Cores: 1, Speed: math.Inf(1)},
		Kind: func(env actors.Env) (actor.Actor, error) {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *actor.Started, tick:
					env.Record(actors.Event{Kind: actors.StepDone, Samples: 1})
					env.Compute(actors.Job{Do: func() any { return tick{} }, Step: true})
				}
			}), nil
		},
	}}}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(time.Second, tick{})
			case tick:
				control.Finish()
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(5, []string{"quick", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Run(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "node quick has made 100000 steps") {
		t.Errorf("got %v", err)
	}
}

func TestAbsentNodeIsThereWhenItJoins(t *testing.T) {
	notes, heard, _, _ := ringOfBeacons(t, true, world.NodeChange{At: 100 * ms, Node: 0, Do: world.Join})
	if want := []string{"100ms 0 true"}; !slices.Equal(heard, want) {
		t.Errorf("the coordinator heard %v, want %v", heard, want)
	}
	if got, want := arrivals(notes, 1), every10(135*ms, 295*ms); !slices.Equal(got, want) {
		t.Errorf("node 1 noted at %v, want %v", got, want)
	}
}

// A job of 50 ms and a timer of 60 ms, both begun before a crash at 30 ms, do not reach
// the actor that the node has from 40 ms on, which begins its own.
func TestJobsAndTimersEndWithTheirActor(t *testing.T) {
	var got []string
	kind := func(env actors.Env) (actor.Actor, error) {
		name := fmt.Sprint(env.Now())
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				env.Compute(actors.Job{Do: func() any { return "job of " + name }, Work: 50e6})
				env.After(60*ms, "timer of "+name)
			case string:
				got = append(got, fmt.Sprint(env.Now(), " ", m))
			}
		}), nil
	}
	d := &world.Deployment{
		Seed: 1, Nodes: []world.Node{{Name: "n", Role: "r", Profile: world.Profile{Cores: 1, Speed: 1e9}, Kind: kind}},
		Schedule: []world.NodeChange{{At: 30 * ms, Do: world.Crash}, {At: 40 * ms, Do: world.Join}},
	}
	for _, threads := range []int{0, 2} {
		got = nil
		w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"n", actors.Coordinator}),
			Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(context.Background()); err == nil {
			t.Fatal("a run that nobody ends has ended well")
		}
		if want := []string{"90ms job of 40ms", "100ms timer of 40ms"}; !slices.Equal(got, want) {
			t.Errorf("with %d threads got %v, want %v", threads, got, want)
		}
	}
}

func TestAnActorSeesAViewFromItsAnnouncementOn(t *testing.T) {
	var seen []string
	kind := func(env actors.Env) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				env.After(10*ms, tick{})
			case tick:
				seen = append(seen, fmt.Sprint("before ", env.View().Number, env.View().Role("r")))
			case *protos.Message:
				seen = append(seen, fmt.Sprint("at ", env.View().Number, env.View().Role("r"),
					env.View().Neighbours(0)))
				m.Release()
			}
		}), nil
	}
	d := &world.Deployment{Seed: 1, Bounded: true, Topologies: []actors.Graph{{{1}, {0, 2}, {1}}, {{1, 2}, {0}, {0}}}}
	names := []string{"a", "b", "c"}
	for i, name := range names {
		n := world.Node{Name: name, Role: "r", Profile: world.Profile{Cores: 1, Speed: 1e9}, Kind: kind}
		if i > 0 {
			n.Kind = handler(func(actor.Context, actors.Env) {}).kind
		}
		d.Nodes = append(d.Nodes, n)
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(20*ms, tick{})
			case tick:
				head := &protos.View{Number: 2, Absent: []int32{1}, Topology: 1}
				control.Announce(head)
				if v := env.View(); v.Number != 2 || v.Members[1].Present || v.Members[2].Rank != 1 {
					t.Errorf("the coordinator sees %+v", v)
				}
				ctx.Send(env.View().Members[0].PID, protos.NewMessage(head))
				env.After(ms, "end")
			case string:
				control.Finish()
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, append(names, actors.Coordinator))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"before 1 [0 1 2]", "at 2 [0 2] [2]"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

// Two actors answer each other until one message is dropped; then nothing happens but the
// looks of a coordinator whose time is bounded.
func TestInstantFromWhichNothingHappensIsTold(t *testing.T) {
	for _, c := range []struct {
		answers int
		want    time.Duration
	}{{4, 40 * ms}, {1000, 0}} {
		left := c.answers
		echo := handler(func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				if env.Node() == 0 {
					ctx.Send(pid(env, 1), chunk(0))
				}
			case *protos.Message:
				if left--; left > 0 {
					ctx.Send(pid(env, 1-env.Node()), chunk(0))
				}
			}
		})
		s := stage{end: 200 * ms, edge: link.Config{Delay: link.Constant{Delay: 10 * ms}},
			handlers: []handler{echo, echo}}
		if r := s.run(t); r.Stalled != c.want {
			t.Errorf("%d answers of 10 ms each: stood still from %v on, want %v", c.answers, r.Stalled, c.want)
		}
	}
}
