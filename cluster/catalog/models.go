package catalog

import (
	"fmt"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

func addModels(c *Catalog) {
	type mlp struct {
		Layers     []int  `plan:"layers,required" example:"[93, 21, 5]" doc:"inputs, hidden widths, classes"`
		Activation string `plan:"activation" words:"relu|tanh|sigmoid" doc:"of the hidden layers"`
	}
	c.Models.Add(Define("mlp",
		"multi-layer perceptron: inputs, hidden widths, classes; with no hidden one logistic regression",
		func() mlp { return mlp{Activation: nn.ReLU.String()} },
		func(_ *Catalog, s *mlp) (nn.Model, error) {
			activation, err := nn.ParseActivation(s.Activation)
			if err != nil {
				return nil, About("activation", err)
			}
			model, err := nn.NewMLP(s.Layers, activation)
			return model, About("layers", err)
		}))
	type linear struct {
		Inputs int    `plan:"inputs,required" doc:"values of a sample"`
		Loss   string `plan:"loss" words:"hinge|squared" doc:"hinge makes a linear SVM (Pegasos: with weight-decay λ and rate {kind: inverse, first: 1/λ, half: 1}), squared Adaline"`
	}
	c.Models.Add(Define("linear", "one weight for each input and a bias, for two classes, from 0 on",
		func() linear { return linear{Loss: "hinge"} },
		func(_ *Catalog, s *linear) (nn.Model, error) {
			loss, err := nn.ParseMarginLoss(s.Loss)
			if err != nil {
				return nil, About("loss", err)
			}
			model, err := nn.NewLinear(s.Inputs, loss)
			return model, About("inputs", err)
		}))
}

// rate reads a rate, a number or a schedule, and spells its defaults out in place.
func (c *Catalog) rate(section **syntax.Node) (optim.Schedule, error) {
	n := *section
	if n.Kind != syntax.Scalar {
		schedule, resolved, err := c.schedule(n)
		if err == nil {
			*section = resolved
		}
		return schedule, err
	}
	var rate float64
	if err := settings.Decode(n, &rate); err != nil {
		return nil, err
	}
	schedule := optim.Constant(rate)
	if err := schedule.Validate(); err != nil {
		return nil, syntax.Errorf(n, "%w", err)
	}
	return schedule, nil
}

// rated are the settings of an optimizer: its own, and its rate, which may be a schedule.
type rated[M any] struct {
	Rate   *syntax.Node `plan:"rate" names:"rate" doc:"the learning rate: a number, or a schedule with its kind"`
	Method M            `plan:",inline"`
}

// method is an optimizer that checks its settings.
type method interface {
	optim.Method
	Validate() error
}

// addOptimizer adds an optimizer whose rate stands where in points to.
func addOptimizer[M method](c *Catalog, name string, defaults M, in func(m *M) *optim.Schedule, doc string) {
	c.Optimizers.Add(Define(name, doc,
		func() rated[M] {
			return rated[M]{Rate: syntax.NewScalar(fmt.Sprint(*in(&defaults))), Method: defaults}
		},
		func(c *Catalog, s *rated[M]) (_ optim.Method, err error) {
			if *in(&s.Method), err = c.rate(&s.Rate); err != nil {
				return nil, err
			}
			return s.Method, s.Method.Validate()
		}))
}

func addOptimizers(c *Catalog) {
	addOptimizer(c, "sgd", optim.SGD{Rate: optim.Constant(0.05)},
		func(m *optim.SGD) *optim.Schedule { return &m.Rate }, "plain stochastic gradient descent")
	addOptimizer(c, "momentum", optim.Momentum{Rate: optim.Constant(0.05), Momentum: 0.9},
		func(m *optim.Momentum) *optim.Schedule { return &m.Rate }, "stochastic gradient descent with momentum")
	addOptimizer(c, "adam", optim.NewAdam(optim.Constant(0.001)),
		func(m *optim.Adam) *optim.Schedule { return &m.Rate }, "Adam (Kingma and Ba 2015)")
	addOptimizer(c, "adaptive", optim.NewAdaptive(optim.SecondAdam, optim.Constant(0.01)),
		func(m *optim.Adaptive) *optim.Schedule { return &m.Rate },
		"FedAdam, FedYogi and FedAdagrad at a server, for what many local steps have led to (Reddi et al. 2021)")
}

func addSchedules(c *Catalog) {
	r := &c.Schedules
	r.Declare("step", optim.Step{Factor: 0.1}, "multiplied by factor every N steps")
	r.Declare(
		"exponential",
		optim.Exponential{},
		"multiplied by decay over every N steps, a little in each; N is 1 by default",
	)
	r.Declare("inverse", optim.Inverse{}, "first ÷ (1 + step ÷ half)")
	r.Declare("cosine", optim.Cosine{}, "half a cosine from first to last")
	type warmup struct {
		optim.Warmup
		Then *syntax.Node `plan:"then,required" names:"rate" doc:"the rate that it rises to: a number or a schedule, which counts from the first step too"`
	}
	r.Add(
		Define(
			"warmup",
			"rises linearly to another rate, whose schedule runs meanwhile",
			func() warmup { return warmup{} },
			func(c *Catalog, s *warmup) (_ optim.Schedule, err error) {
				if s.Warmup.Then, err = c.rate(&s.Then); err != nil {
					return nil, err
				}
				return s.Warmup, s.Validate()
			},
		),
	)
}
