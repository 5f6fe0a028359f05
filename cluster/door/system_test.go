package door_test

import (
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
)

// echo answers a text, and what it alone has.
type echo struct{ own string }

func (e echo) Receive(ctx actor.Context) {
	if text, ok := ctx.Message().(string); ok {
		ctx.Respond(text + e.own)
	}
}

func TestSystemsHaveNothingInCommonThatTheirActorsSee(t *testing.T) {
	a, b := door.NewSystem(), door.NewSystem()
	for system, own := range map[*actor.ActorSystem]string{a: "a", b: "b"} {
		pid, err := system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return echo{own} }), "echo")
		if err != nil {
			t.Fatal(err)
		}
		if pid.Address != "nonhost" {
			t.Errorf("the address is %s", pid.Address)
		}
	}
	if pid, err := a.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "other"); err != nil {
		t.Fatal(err)
	} else if _, there := b.ProcessRegistry.Get(pid); there {
		t.Error("an actor of one system is in another")
	}
	for system, own := range map[*actor.ActorSystem]string{a: "a", b: "b"} {
		answer, err := system.Root.RequestFuture(system.NewLocalPID("echo"), "of ", -1).Result()
		if err != nil || answer != "of "+own {
			t.Errorf("answer %v, %v; want of %s", answer, err, own)
		}
		_, err = system.Root.RequestFuture(system.NewLocalPID("nobody"), "?", -1).Result()
		if !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("of nobody: %v", err)
		}
	}
}

// Systems take little memory: one belongs to each run, and in real time to each node.
func TestSystemsAreSmall(t *testing.T) {
	const most = 500 // objects, where actor.NewActorSystem has more than 60,000
	if count := testing.AllocsPerRun(10, func() { door.NewSystem() }); count > most {
		t.Errorf("%v allocations", count)
	}
}
