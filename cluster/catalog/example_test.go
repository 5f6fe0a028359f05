package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// orbit is a delay that swings between two values, as that to a satellite does.
type orbit struct{ Near, Far, Period time.Duration }

// Validate reports a field that makes no sense.
func (o orbit) Validate() error {
	if o.Period <= 0 || o.Near > o.Far {
		return fmt.Errorf("an orbit from %s to %s in %s", o.Near, o.Far, o.Period)
	}
	return nil
}

// Memoryless says that the delay is a function of time.
func (o orbit) Memoryless() {}

// Start returns the delay of one edge, which draws nothing at random.
func (o orbit) Start(*rand.Rand, link.Process) link.Process { return swing{o} }

type swing struct{ orbit }

func (s swing) Next(departure time.Duration) time.Duration {
	phase := float64(departure%s.Period) / float64(s.Period)
	return s.Near + time.Duration(float64(s.Far-s.Near)*min(2*phase, 2-2*phase))
}

func (s swing) Present(now time.Duration) time.Duration { return s.Next(now) }

// A delay model of one's own, which plans can then name. A program with such a catalog calls
// cli.Main with it.
func ExampleDefine() {
	type settings struct {
		Near   unit.Duration `plan:"near"`
		Far    unit.Duration `plan:"far,required"`
		Period unit.Duration `plan:"period,required"`
	}
	c := catalog.Default()
	c.Delays.Add(catalog.Define("orbit", "swings between near and far",
		func() settings { return settings{Near: unit.Duration(20 * time.Millisecond)} },
		func(_ *catalog.Catalog, s *settings) (link.Delay, error) {
			return orbit{Near: time.Duration(s.Near), Far: time.Duration(s.Far), Period: time.Duration(s.Period)}, nil
		}))

	dir, err := os.MkdirTemp("", "gradwire-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const text = `
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: gossip}
nodes: [{name: ground, compute: {step: 5ms}}, {name: satellite, compute: {step: 5ms}}]
network: {default: {delay: {kind: orbit, far: 300ms, period: 90m}}}
stop: {epochs: 1}
`
	p, err := driver.Parse("orbit.yaml", []byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := driver.Run(context.Background(), p, driver.Options{Catalog: c, Out: filepath.Join(dir, "record")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("complete:", report.Complete)
	// Output: complete: true
}
