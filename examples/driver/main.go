// Command driver is a driver program: it asks how far away a worker may be before
// an asynchronous parameter server is better off without it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
)

func main() {
	if err := compare(); err != nil {
		log.Fatal(err)
	}
}

// compare runs the same plan at several delays of one link.
func compare() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out, err := os.MkdirTemp("", "gradwire-driver-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(out) }()

	for _, delay := range []string{"1ms", "30ms", "100ms", "1s"} {
		plan, err := driver.Load("examples/quickstart.yaml", "sweep={}", "network.links.server-far.delay="+delay)
		if err != nil {
			return err
		}
		report, err := driver.Run(ctx, plan, driver.Options{Catalog: catalog.Default(), Out: out + "/" + delay})
		if err != nil {
			return err
		}
		group := report.Groups[0]
		if group.TimeToTarget == nil {
			fmt.Printf("far worker at %5s: no run reached the target\n", delay)
			continue
		}
		fmt.Printf("far worker at %5s: %d of %d runs reach the target, after %.2f s on average\n",
			delay, group.Reached, group.N, float64(group.TimeToTarget.Mean))
	}
	return nil
}
