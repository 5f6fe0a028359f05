package peer_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

// joiners is an architecture whose peers do nothing but join.
type joiners struct {
	train.Architecture
	lives uint64
	begun []beginning // in the order of the run
}

// beginning is what was so when a peer had its first model.
type beginning struct {
	node           int
	steps, version uint64
	initial        bool
	neighbours     []int
}

func (j *joiners) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		local, err := task.NewLocal(env)
		replica := peer.NewReplica(env, task)
		p := &joiner{env: env, log: j, replica: replica,
			Joining: peer.NewJoining(env, local, replica, peer.NewLead(env, -1))}
		j.lives++
		p.number = 100*j.lives + uint64(env.Node())
		replica.Version = p.number
		p.Resume(p.number)
		return p, err
	}
}

type joiner struct {
	peer.Joining
	env     actors.Env
	log     *joiners
	replica *peer.Replica
	founder bool
	// number is how many updates the initial model of this life has, in as many steps: its last two
	// digits are the node.
	number uint64
}

func (j *joiner) Receive(ctx actor.Context) {
	ready := false
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		if _, again := ctx.Message().(peer.AskAgain); again {
			ready = j.AskAgain(ctx)
		} else {
			j.env.After(time.Minute, "the run goes on")
		}
		j.note(ready)
		return
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		j.founder = !head.Joins
		ready = j.Start(ctx, head)
	case *protos.View:
		ready = j.Change(ctx, head)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, j.env, head, j.replica.Params, j.replica.Version)
	default:
		ready = j.Joining.Receive(ctx, m)
	}
	j.note(ready)
	m.Release()
}

func (j *joiner) note(ready bool) {
	if ready {
		j.log.begun = append(j.log.begun, beginning{j.env.Node(), j.replica.Steps, j.replica.Version,
			j.replica.Version == j.number && !j.founder, j.env.View().Neighbours(j.env.Node())})
	}
}

// Peers come and go over slow links that reorder messages. In the end every present peer has a
// whole model: another peer's with that peer's steps, or the initial one if no neighbour comes
// first.
func TestEveryPeerThatJoinsGetsAModel(t *testing.T) {
	everyPeerGetsAModel(t, time.Minute, func(*rand.Rand) link.Loss { return link.Loss{} })
}

// At the highest loss one try in four succeeds, and the peers try once a minute.
func TestEveryPeerThatJoinsGetsAModelThoughMessagesAreLost(t *testing.T) {
	everyPeerGetsAModel(t, 4*time.Hour, func(random *rand.Rand) link.Loss {
		return link.Loss{Probability: 0.2 + 0.3*random.Float64(), Drop: true}
	})
}

func everyPeerGetsAModel(t *testing.T, end time.Duration, loss func(*rand.Rand) link.Loss) {
	adopted, first := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		n := 3 + random.IntN(8)
		density := max(0, random.Float64()-0.5)
		kind := &joiners{}
		s := simtest.Stage{Task: simtest.NewTask(n, 20, 0.1), Kind: kind, Distinct: true, Strict: seed%4 == 0,
			Reorder: seed%2 == 0, Detect: 50 * time.Millisecond,
			Graph: simtest.Graph(n, func(i, j int) bool { return j == i+1 || random.Float64() < density })}
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(400)) * time.Millisecond}
		s.Shake(random, 4*n, time.Duration(50+random.IntN(2000))*time.Millisecond)
		s.Looks, s.Loss = []time.Duration{end}, loss(random)
		look := s.Run(t)[0]
		last := make([]*beginning, n)
		for i := range kind.begun {
			b := &kind.begun[i]
			last[b.node] = b
			switch {
			case b.initial:
				first++
				if slices.ContainsFunc(b.neighbours, func(node int) bool { return node < b.node }) {
					t.Errorf("seed %d: node %d begins with the initial model beside %v", seed, b.node, b.neighbours)
				}
			default:
				adopted++
			}
			if b.steps != b.version {
				t.Errorf("seed %d: node %d has a model of %d updates and goes on after %d steps", seed, b.node,
					b.version, b.steps)
			}
		}
		for node, m := range look {
			switch {
			case m.Params == nil:
			case last[node] == nil || last[node].version != m.Version:
				t.Errorf("seed %d: node %d of %d has no model in the end", seed, node, n)
			default:
				task := *s.Task
				task.Seed += 1000 * (m.Version % 100)
				if !slices.Equal(m.Params, task.Initial()) {
					t.Errorf("seed %d: node %d has other parameters than node %d began with", seed, node, m.Version%100)
				}
			}
		}
	}
	t.Logf("%d peers got a neighbour's model, %d began with the initial one", adopted, first)
	if adopted < 500 || first < 50 {
		t.Error("the test tells little")
	}
}
