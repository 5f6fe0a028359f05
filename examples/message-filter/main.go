// Command message-filter is gradwire with a filter in front of every worker of any
// architecture: it clips gradients whose norm is too large, before the worker pushes, reduces
// or applies them. Without arguments it runs its own plan.
package main

import (
	"math"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// clipping is another architecture with a filter in front of its workers.
type clipping struct {
	train.Architecture
	norm float64 // the largest Euclidean norm of a gradient that passes unchanged
}

var (
	_ train.Fitter  = clipping{}
	_ train.Chooser = clipping{}
)

// Fit asks the architecture behind the filter. Embedding an interface hides whatever
// else the value in it can do: who wraps an architecture hands that on.
func (c clipping) Fit(first, now *actors.View) error {
	if f, ok := c.Architecture.(train.Fitter); ok {
		return f.Fit(first, now)
	}
	return nil
}

// Choose has the architecture behind the filter choose by the network, such as algorithm: auto.
func (c clipping) Choose(l train.Layout, weigh bool) (train.Architecture, *train.Choice, error) {
	chooser, can := c.Architecture.(train.Chooser)
	if !can {
		return nil, nil, nil
	}
	chosen, choice, err := chooser.Choose(l, weigh)
	if choice != nil {
		choice.Key = "of." + choice.Key
	}
	if chosen == nil || err != nil {
		return nil, choice, err
	}
	c.Architecture = chosen
	return c, choice, nil
}

// Kind puts a filter in front of the actor of every node; only of those that train will it
// see gradients.
func (c clipping) Kind(task *train.Task, place train.Place) actors.Kind {
	kind := c.Architecture.Kind(task, place)
	return func(env actors.Env) (actor.Actor, error) {
		behind, err := kind(env)
		return &filter{env: env, behind: behind, norm: c.norm}, err
	}
}

// filter sees every message of an actor before the actor does.
type filter struct {
	env    actors.Env
	behind actor.Actor
	norm   float64
}

// State declares the state of the actor behind the filter; the filter has none.
func (f *filter) State(s *state.State) {
	behind, err := state.Of(f.behind)
	if err != nil {
		s.Fail(err)
		return
	}
	s.Part("behind", behind)
}

// Receive changes gradients and hands everything on. The gradient of the own step belongs to
// its receiver, so it may be written; what came from elsewhere may be shared, see protos.Tensor.
func (f *filter) Receive(ctx actor.Context) {
	if g, ok := ctx.Message().(*train.Gradient); ok {
		f.clip(g.Values.Data)
	}
	f.behind.Receive(ctx)
}

// clip scales a gradient down to the largest norm accepted (R. Pascanu, T. Mikolov, Y. Bengio,
// "On the Difficulty of Training Recurrent Neural Networks", ICML 2013, section 3.2), and
// records the norm of each one that was larger.
func (f *filter) clip(gradient []float32) {
	sum := 0.0
	for _, v := range gradient {
		sum += float64(v) * float64(v)
	}
	f.env.Charge(2 * float64(len(gradient)))
	norm := math.Sqrt(sum)
	if norm <= f.norm {
		return
	}
	factor := float32(f.norm / norm)
	for i := range gradient {
		gradient[i] *= factor
	}
	f.env.Charge(float64(len(gradient)))
	f.env.Record(actors.Event{Kind: actors.Measured, Name: "norm clipped", Value: norm})
}

// settings are the filter's settings in a plan; Of is any architecture of the catalog.
type settings struct {
	Norm float64      `plan:"norm" range:">0" doc:"the largest norm of a gradient that passes"`
	Of   *syntax.Node `plan:"of,required" names:"architecture" doc:"the architecture behind the filter"`
}

// withClipping is everything that comes with Gradwire, and the filter of this program.
func withClipping() *catalog.Catalog {
	c := catalog.Default()
	c.Architectures.Add(catalog.Define("clipped",
		"another architecture whose workers clip the norms of their gradients",
		func() settings { return settings{Norm: 1} },
		func(c *catalog.Catalog, s *settings) (train.Architecture, error) {
			architecture, resolved, err := c.Architectures.Read(c, s.Of)
			s.Of = resolved // with every default spelled out, for the record
			return clipping{Architecture: architecture, norm: s.Norm}, err
		}))
	return c
}

func main() {
	if len(os.Args) == 1 {
		os.Args = append(os.Args, "run", "examples/message-filter/plan.yaml")
	}
	cli.Main(withClipping())
}
