package shards

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// post is a node of a run of two servers whose views a test makes.
type post struct {
	actors.Env
	view     *actors.View
	departed bool
	failure  error
}

func (p *post) View() *actors.View { return p.view }
func (p *post) Node() int          { return 1 }
func (p *post) Depart()            { p.departed = true }
func (p *post) Fail(err error)     { p.failure = err }

// see is a view in which a server is present or leaves.
func (p *post) see(number uint64, members ...actors.Member) {
	for i := range members {
		members[i].Role = RoleServer
	}
	p.view = &actors.View{Number: number, Members: members}
}

// nowhere is where messages go that nobody reads.
type nowhere struct{ actor.Context }

func (nowhere) Send(_ *actor.PID, message any) { message.(*protos.Message).Release() }

func TestServerWaitsForTheLastWordOfAFormerLifeOfAnother(t *testing.T) {
	here, leaves, gone := actors.Member{Present: true}, actors.Member{Leaving: true}, actors.Member{}
	p := &post{}
	p.see(1, here, here)
	f := NewFleet(p)
	for i, members := range [][]actors.Member{{leaves, here}, {gone, here}, {here, here}, {here, leaves}} {
		p.see(uint64(2+i), members...)
		if _, _, ok := f.Follow(); !ok {
			t.Fatalf("view %d ends the run", p.view.Number)
		}
	}
	f.Heard(&protos.Farewell{Node: 0, View: 5})
	if f.Depart(nowhere{}); p.departed {
		t.Error("it departs while what the former life of the other has sent may be on its way")
	}
	f.Heard(&protos.Farewell{Node: 0, View: 2})
	if f.Depart(nowhere{}); !p.departed {
		t.Error("it stays though nothing can come any more")
	}
}

func TestWhoJoinsTakesNobodyForCrashedWhoLeftBefore(t *testing.T) {
	here, gone := actors.Member{Present: true}, actors.Member{}
	p := &post{}
	p.see(1, here, here, here) // as the run began
	f := NewFleet(p)
	p.see(7, gone, here, here)
	moved, leaving, ok := f.Follow()
	if !moved || len(leaving) > 0 || !ok || p.failure != nil {
		t.Errorf("the first view that it hears of: moved %v, leaving %v, %v", moved, leaving, p.failure)
	}
	p.see(8, here, here, gone)
	if _, _, ok = f.Follow(); ok || p.failure == nil {
		t.Error("a server has crashed since, which ends the run")
	}
}
