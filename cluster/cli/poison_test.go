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

// addPoisons adds optimizers that no process survives, and one that takes more and more memory.
func addPoisons(c *catalog.Catalog) {
	var mu sync.Mutex
	var hoard [][]byte
	for name, harm := range map[string]func(){
		"fatal": func() { new(sync.Mutex).Unlock() }, // which cannot be recovered from
		"hoard": func() {
			more := make([]byte, 1<<20)
			for i := range more {
				more[i] = 1
			}
			mu.Lock()
			defer mu.Unlock()
			hoard = append(hoard, more)
		},
	} {
		c.Optimizers.Add(catalog.Define(name, "does harm", func() struct{} { return struct{}{} },
			func(*catalog.Catalog, *struct{}) (optim.Method, error) {
				return poison{optim.SGD{Rate: optim.Constant(0.1)}, harm}, nil
			}))
	}
}
