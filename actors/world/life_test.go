package world_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// slowLeaver is an actor that never departs.
type slowLeaver struct{}

func (slowLeaver) Receive(actor.Context) {}
func (slowLeaver) HandsOver()            {}

// stage is a realm of nodes on which slow leavers live.
type stage struct {
	cycle *world.LifeCycle
	told  []world.MemberChange
	err   error
}

func (s *stage) Now() time.Duration        { return 0 }
func (s *stage) Place(node int) error      { s.cycle.Settle(node, slowLeaver{}); return nil }
func (s *stage) Remove(node int, _ bool)   { s.cycle.Settle(node, nil) }
func (s *stage) Hold(int, time.Duration)   {}
func (s *stage) Tell(m world.MemberChange) { s.told = append(s.told, m) }
func (s *stage) Fail(err error)            { s.err = err }
func (s *stage) do(what ...world.NodeEvent) {
	for _, w := range what {
		s.cycle.Happen(&world.NodeChange{Do: w})
	}
}

// TestWhoIsKilledWhileItLeavesIsGone kills a node that hands over, and that was to come back as
// soon as it has.
func TestWhoIsKilledWhileItLeavesIsGone(t *testing.T) {
	s := &stage{}
	s.cycle = world.NewLifeCycle(s, &world.Deployment{Nodes: make([]world.Node, 1)})
	if err := s.cycle.Populate(func(node int) bool { return node == 0 }); err != nil {
		t.Fatal(err)
	}
	s.do(world.Leave)
	if !s.cycle.There(0) || !s.cycle.Leaving(0) {
		t.Fatal("a leaver is gone before it has handed over")
	}
	s.do(world.Join, world.Crash)
	if s.cycle.There(0) {
		t.Error("who was killed is there")
	}
	s.do(world.Join, world.Leave)
	s.cycle.Depart(0)
	if s.cycle.There(0) {
		t.Error("who has left came back on behalf of a life before")
	}
	if s.err != nil {
		t.Error(s.err)
	}
}

var _ actors.Leaver = slowLeaver{}
