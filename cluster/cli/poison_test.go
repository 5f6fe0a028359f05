package cli_test

import (
	"sync"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/nn/optim"
)

// poison is plain descent whose steps do harm.
type poison struct {
	optim.SGD
	harm func()
}

func (p poison) New(n int) optim.Optimizer { return poisoned{p.SGD.New(n), p.harm} }

type poisoned struct {
	optim.Optimizer
	harm func()
}

func (p poisoned) Step(dst, params, grad []float32) {
	p.harm()
	p.Optimizer.Step(dst, params, grad)
}

// addPoisons adds an optimizer that no process survives.
func addPoisons(c *catalog.Catalog) {
	c.Optimizers.Add(catalog.Define("fatal", "ends the process", func() struct{} { return struct{}{} },
		func(*catalog.Catalog, *struct{}) (optim.Method, error) {
			fatal := func() { new(sync.Mutex).Unlock() } // of the runtime: it cannot be recovered from
			return poison{optim.SGD{Rate: optim.Constant(0.1)}, fatal}, nil
		}))
}
