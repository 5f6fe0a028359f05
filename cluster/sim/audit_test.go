package sim_test

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// exchange is two nodes each of which sends the other a tensor every 5 ms, and gives back what it
// gets, unless it is one of those that are forgotten: every so many.
func exchange(forgets uint32) (handlers []handler) {
	for i := range 2 {
		sent := uint32(0)
		handlers = append(handlers, func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				env.After(0, "tick")
			case string:
				sent++
				ctx.Send(pid(env, 1-i), protos.NewMessage(&protos.Chunk{Index: sent}, env.Tensors().Get(7)))
				env.After(5*ms, "tick")
			case *protos.Message:
				if head, is := m.Head.(*protos.Chunk); !is || forgets == 0 || head.Index%forgets > 0 {
					m.Release()
				}
			}
		})
	}
	return handlers
}

// disturbances are what links can do to messages.
var disturbances = map[string]link.Config{
	"none":    {},
	"repeat":  {Repeat: 0.3},
	"reorder": {Reorder: true},
	"loss":    {Loss: link.Loss{Drop: true, Probability: 0.3}},
}

// Whatever links do and whoever goes, each message is handed over once and in order, and each
// tensor comes back.
func TestAnAuditOfASoundRunFindsNothing(t *testing.T) {
	for name, edge := range disturbances {
		edge.Delay = link.Uniform{Min: ms, Max: 40 * ms}
		for seed := range uint64(10) {
			for _, do := range []world.NodeEvent{world.Crash, world.Leave} {
				for _, strict := range []bool{false, true} {
					a := &sim.Audit{Tensors: true}
					s := &stage{seed: seed, end: time.Second, strict: strict, edge: edge, reliable: true, audit: a,
						handlers: exchange(0), schedule: []world.NodeChange{
							{At: 302 * ms, Node: 1, Do: do}, {At: 401 * ms, Node: 1, Do: world.Join},
							{At: 603 * ms, Node: 0, Do: do}}}
					s.run(t)
					if a.Disorder != "" || a.Forgotten != "" || a.Handled < 10 {
						t.Errorf("%s, seed %d, strict %v: %d handled; %s; %s", name, seed, strict, a.Handled,
							a.Disorder, a.Forgotten)
					}
					if repeats := len(a.Repeats); (repeats > 0) != (name == "loss") {
						t.Errorf("%s, seed %d: %d messages were sent again", name, seed, repeats)
					}
				}
			}
		}
	}
}

func TestAnAuditNoticesTensorsThatNobodyGivesBack(t *testing.T) {
	a := &sim.Audit{Tensors: true}
	(&stage{end: time.Second, audit: a, handlers: exchange(50)}).run(t)
	if a.Forgotten == "" {
		t.Error("nothing is said of them")
	}
}

// Without sessions messages come as their links have them.
func TestAnAuditNoticesWhatLinksDo(t *testing.T) {
	for name, edge := range disturbances {
		edge.Delay = link.Uniform{Min: ms, Max: 40 * ms}
		a := &sim.Audit{}
		(&stage{end: time.Second, edge: edge, audit: a, handlers: exchange(0)}).run(t)
		if (a.Disorder == "") != (name == "none") {
			t.Errorf("%s: %q", name, a.Disorder)
		}
	}
}
