// Package local is the baseline of every comparison: peers train alone, each on its own shard from
// the run's initial model, and exchange nothing. An architecture gains by communicating what it
// gains over this one.
package local

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// Turns is how many steps each thread of a peer with several makes between two instants at which
// the peer's model can be looked at.
const Turns = 16

// Architecture is training without communication. It has no settings.
type Architecture struct{}

var (
	_ train.Architecture = Architecture{}
	_ train.Teams        = Architecture{}
)

// CheckThreads returns nil: all steps of a peer are its own.
func (Architecture) CheckThreads() error { return nil }

// Roles returns the only role: every node trains and holds its own model.
func (Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "trains its own model on its shard", Trains: true, Holds: true,
		Min: 1}}
}

var _ train.FreeRunner = Architecture{}

// FreeRunning is true: nobody waits for anybody.
func (Architecture) FreeRunning() bool { return true }

// Kind makes a peer.
func (Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		steps, err := task.NewLocal(env)
		if err != nil {
			return nil, err
		}
		team, err := task.NewTeam(env, steps, false)
		if err != nil {
			return nil, err
		}
		return &peer{env: env, local: steps, team: team, replica: peers.NewReplica(env, task)}, nil
	}
}

// peer makes one step after the other. It needs to know nobody, so a peer that joins begins from
// the initial model too.
type peer struct {
	env     actors.Env
	local   *train.Local
	team    *train.Team // nil for one thread
	replica *peers.Replica
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
		m.Release()
	case *train.Gradient:
		p.local.Done(m)
		p.replica.Update(m.Values.Data)
		m.Values.Release()
		p.begin()
	case *train.Round:
		p.team.Done(m)
		if err := p.replica.TakeRound(p.team, m); err != nil {
			p.env.Fail(err)
		}
		p.begin()
	}
}

// State implements [state.Declared].
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	if p.team != nil {
		s.Part("team", p.team)
	}
	s.Part("replica", p.replica)
}

func (p *peer) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		p.begin()
	case *protos.View: // who else is there changes nothing
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, p.env, head, p.replica.Params, p.replica.Version)
	default:
		actors.Unexpected(p.env, m)
	}
}

func (p *peer) begin() {
	if p.team != nil {
		p.team.Begin(p.replica.Params.Retain(), Turns*p.team.Threads())
		return
	}
	p.local.Begin(p.replica.Params.Retain())
}
