package catalog

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// between returns an error that names the key if a value is out of bounds.
func between(key string, value, low, high int) error {
	if value < low || value > high {
		return About(key, fmt.Errorf("%s is %d; accepted is %d to %d", key, value, low, high))
	}
	return nil
}

// shares turns the map of a plan into shares in the order of the workers' names.
func shares(workers map[string]map[string]unit.Fraction, n *syntax.Node) (partition.Split, error) {
	var c partition.Classes
	sums := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		share := partition.Share{Worker: name, Classes: map[string]float64{}}
		for _, class := range slices.Sorted(maps.Keys(workers[name])) {
			f := float64(workers[name][class])
			share.Classes[class] = f
			if sums[class] += f; sums[class] > 1+1e-9 { // as partition.Classes rounds
				return nil, syntax.Errorf(n.At(name).At(class),
					"the workers' shares of class %q add up to %.6g%%; at most 100%% can be given away",
					class, 100*sums[class])
			}
		}
		c.Workers = append(c.Workers, share)
	}
	return c, nil
}

func addModels(c *Catalog) {
	type mlp struct {
		Layers     []int  `plan:"layers,required" doc:"inputs, hidden widths, classes"`
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
}

// rate reads a rate, a number or a schedule, and spells its defaults out in place.
func (c *Catalog) rate(section **syntax.Node) (optim.Schedule, error) {
	n := *section
	if n.Kind != syntax.Scalar {
		schedule, resolved, err := c.Schedules.read(c, n, "kind")
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

func addOptimizers(c *Catalog) {
	type sgd struct {
		Rate        *syntax.Node `plan:"rate" names:"rate" doc:"the learning rate: a number, or a schedule with its kind"`
		WeightDecay float64      `plan:"weight-decay" range:"0.." doc:"factor by which weights pull back to zero"`
	}
	c.Optimizers.Add(Define("sgd", "plain stochastic gradient descent",
		func() sgd { return sgd{Rate: syntax.NewScalar("0.05")} },
		func(c *Catalog, s *sgd) (optim.Method, error) {
			rate, err := c.rate(&s.Rate)
			if err != nil {
				return nil, err
			}
			m := optim.SGD{Rate: rate, WeightDecay: s.WeightDecay}
			return m, m.Validate()
		}))
	type momentum struct {
		Rate        *syntax.Node `plan:"rate" names:"rate" doc:"the learning rate: a number, or a schedule with its kind"`
		Momentum    float64      `plan:"momentum" doc:"the share of the last step that is taken again"`
		Nesterov    bool         `plan:"nesterov" doc:"whether the gradient is looked at ahead (Nesterov 1983)"`
		WeightDecay float64      `plan:"weight-decay" range:"0.." doc:"factor by which weights pull back to zero"`
	}
	c.Optimizers.Add(Define("momentum", "stochastic gradient descent with momentum",
		func() momentum { return momentum{Rate: syntax.NewScalar("0.05"), Momentum: 0.9} },
		func(c *Catalog, s *momentum) (optim.Method, error) {
			rate, err := c.rate(&s.Rate)
			if err != nil {
				return nil, err
			}
			m := optim.Momentum{Rate: rate, Momentum: s.Momentum, Nesterov: s.Nesterov, WeightDecay: s.WeightDecay}
			return m, m.Validate()
		}))
	type adam struct {
		Rate        *syntax.Node `plan:"rate" names:"rate" doc:"the learning rate: a number, or a schedule with its kind"`
		Beta1       float64      `plan:"beta1" doc:"decay of the mean of the gradients"`
		Beta2       float64      `plan:"beta2" doc:"decay of the mean of their squares"`
		Epsilon     float64      `plan:"epsilon" doc:"added to the root of the latter"`
		WeightDecay float64      `plan:"weight-decay" range:"0.." doc:"factor by which weights pull back to zero"`
	}
	usual := optim.NewAdam(optim.Constant(0.001))
	c.Optimizers.Add(Define("adam", "Adam (Kingma and Ba 2015)",
		func() adam {
			return adam{Rate: syntax.NewScalar("0.001"), Beta1: usual.Beta1, Beta2: usual.Beta2, Epsilon: usual.Epsilon}
		},
		func(c *Catalog, s *adam) (optim.Method, error) {
			rate, err := c.rate(&s.Rate)
			if err != nil {
				return nil, err
			}
			m := optim.Adam{Rate: rate, Beta1: s.Beta1, Beta2: s.Beta2, Epsilon: s.Epsilon, WeightDecay: s.WeightDecay}
			return m, m.Validate()
		}))
}

func addSchedules(c *Catalog) {
	type step struct {
		First  float64 `plan:"first,required" doc:"the rate of the first steps"`
		Factor float64 `plan:"factor" doc:"by which the rate is multiplied"`
		Every  int     `plan:"every,required" range:"1.." doc:"steps between two changes"`
	}
	c.Schedules.Add(Define("step", "multiplied by factor every so many steps", func() step { return step{Factor: 0.1} },
		func(_ *Catalog, s *step) (optim.Schedule, error) {
			v := optim.Step{First: s.First, Factor: s.Factor, Every: s.Every}
			return v, v.Validate()
		}))
	type exponential struct {
		First float64 `plan:"first,required" doc:"the rate of the first step"`
		Decay float64 `plan:"decay,required" doc:"factor of the rate from one step to the next"`
	}
	c.Schedules.Add(Define("exponential", "multiplied by decay every step", func() exponential { return exponential{} },
		func(_ *Catalog, s *exponential) (optim.Schedule, error) {
			v := optim.Exponential{First: s.First, Decay: s.Decay}
			return v, v.Validate()
		}))
	type inverse struct {
		First float64 `plan:"first,required" doc:"the rate of the first step"`
		Half  int     `plan:"half,required" range:"1.." doc:"the step at which half the first rate is left"`
	}
	c.Schedules.Add(Define("inverse", "first ÷ (1 + step ÷ half)", func() inverse { return inverse{} },
		func(_ *Catalog, s *inverse) (optim.Schedule, error) {
			v := optim.Inverse{First: s.First, Half: s.Half}
			return v, v.Validate()
		}))
	type cosine struct {
		First float64 `plan:"first,required" doc:"the rate of the first step"`
		Last  float64 `plan:"last" doc:"the rate from the last step on"`
		Steps int     `plan:"steps,required" range:"1.." doc:"from the first rate to the last"`
	}
	c.Schedules.Add(Define("cosine", "half a cosine from first to last", func() cosine { return cosine{} },
		func(_ *Catalog, s *cosine) (optim.Schedule, error) {
			v := optim.Cosine{First: s.First, Last: s.Last, Steps: s.Steps}
			return v, v.Validate()
		}))
	type warmup struct {
		Steps int          `plan:"steps,required" range:"1.." doc:"until the rate is that of what follows"`
		Then  *syntax.Node `plan:"then,required" names:"rate" doc:"the rate that follows: a number or a schedule"`
	}
	c.Schedules.Add(Define("warmup", "rises linearly to the rate of what follows", func() warmup { return warmup{} },
		func(c *Catalog, s *warmup) (optim.Schedule, error) {
			then, err := c.rate(&s.Then)
			if err != nil {
				return nil, err
			}
			v := optim.Warmup{Steps: s.Steps, Then: then}
			return v, v.Validate()
		}))
}
