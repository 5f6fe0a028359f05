package faults_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/faults"
)

// deaf is an observer that counts nothing.
type deaf struct{}

func (deaf) Observe(time.Duration, int, actors.Event) {}

const (
	server = iota
	near
	far
)

// happening is an event of a story, or what the schedule does.
type happening struct {
	at   time.Duration
	node int
	actors.Event
	do world.NodeEvent
}

func step(at time.Duration, node int, number uint64) happening {
	return happening{at: at, node: node, Event: actors.Event{Kind: actors.StepDone, Step: number, Samples: 10}}
}

func update(at time.Duration, node, origin int) happening {
	return happening{at: at, node: node, Event: actors.Event{Kind: actors.UpdateApplied, Origin: origin}}
}

func merge(at time.Duration, node, origin int, number uint64) happening {
	return happening{at: at, node: node, Event: actors.Event{Kind: actors.Merged, Origin: origin, Step: number}}
}

func does(at time.Duration, node int, do world.NodeEvent) happening {
	return happening{at: at, node: node, do: do}
}

// stories are what happens to nodes of which some hold a model, and the samples that count and that
// are lost then.
var stories = []struct {
	what          string
	holders       []int
	story         []happening
	counted, lost uint64
}{
	{"nothing happens", []int{server}, []happening{step(1, near, 1), step(2, far, 1)}, 20, 0},
	{"a worker crashes before its second push is applied", []int{server}, []happening{
		step(1, near, 1), update(2, server, near), step(3, near, 2), step(3, far, 1), does(4, near, world.Crash),
	}, 20, 10},
	{"what it has sent arrives after its crash", []int{server}, []happening{
		step(1, near, 1), update(2, server, near), step(3, near, 2), does(4, near, world.Crash),
		update(5, server, near),
	}, 20, 0},
	{"a worker is back and knows nothing", []int{server}, []happening{
		step(1, near, 1), update(2, server, near), step(3, near, 2), does(4, near, world.Crash),
		does(5, near, world.Join), step(6, near, 1), update(7, server, near), step(8, near, 2),
	}, 30, 10},
	{"a pause loses nothing", []int{server}, []happening{
		step(1, near, 1), update(1, server, near), step(2, near, 2), does(3, near, world.Pause),
	}, 20, 0},
	{"the model is gone", []int{server}, []happening{
		step(1, near, 1), update(2, server, near), step(3, near, 2), does(4, server, world.Crash),
		does(5, server, world.Join), step(6, near, 3), update(7, server, near),
	}, 10, 20},
	{"another node holds the model too", []int{server, far}, []happening{
		step(1, near, 1), update(2, server, near), step(3, near, 2), does(4, server, world.Crash),
	}, 20, 0},
	{"peers merge models of a number of steps", []int{near, far}, []happening{
		step(1, near, 1), update(1, near, near), step(2, near, 2), update(2, near, near),
		step(3, near, 3), update(3, near, near), merge(4, far, near, 2), does(5, near, world.Crash),
		step(6, far, 1), update(6, far, far),
	}, 30, 10},
	{"all ranks apply joint updates", []int{near, far}, []happening{
		step(1, near, 1), step(1, far, 1), update(2, near, near), update(2, far, far),
		step(3, near, 2), does(4, near, world.Crash), step(5, far, 2), update(6, far, far),
	}, 30, 10},
	{"the coordinator's events and fate count nowhere", []int{server}, []happening{
		step(1, near, 1), does(1, 3, world.Pause), update(2, 3, near), does(3, near, world.Leave),
	}, 0, 10},
}

func TestATallyCountsWhatOthersHaveTakenIn(t *testing.T) {
	for _, x := range stories {
		d := &world.Deployment{Nodes: make([]world.Node, 3)}
		var end time.Duration
		for _, h := range x.story {
			if end = h.at; h.do != 0 {
				d.Schedule = append(d.Schedule, world.NodeChange{At: h.at, Node: h.node, Do: h.do})
			}
		}
		tally := faults.NewTally(deaf{}, d, x.holders)
		for _, h := range x.story {
			if h.do == 0 {
				tally.Observe(h.at, h.node, h.Event)
			}
		}
		if counted, lost := tally.Close(end); counted != x.counted || lost != x.lost {
			t.Errorf("%s: %d samples count and %d are lost, want %d and %d", x.what, counted, lost, x.counted, x.lost)
		}
	}
}
