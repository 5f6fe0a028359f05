// Command driver is a driver program: it measures how far away a second worker can be and still save an
// asynchronous parameter server time.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/report"
)

func main() {
	if err := compare(); err != nil {
		log.Fatal(err)
	}
}

// delays lists the delays of the far worker's link. With 1h no gradient arrives before the end of the run,
// and the near worker trains alone.
const delays = "[1ms, 30ms, 100ms, 1s, 1h]"

// compare runs the same plan at several delays of one link, and prints which delays differ in time.
func compare() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out, err := os.MkdirTemp("", "gradwire-driver-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(out) }()

	plan, err := driver.Load("examples/quickstart.yaml", "sweep={network.links.server-far.delay: "+delays+"}")
	if err != nil {
		return err
	}
	r, err := driver.Run(ctx, plan, driver.Options{Catalog: catalog.Default(), Out: out + "/record"})
	if err != nil {
		return err
	}
	for _, group := range r.Groups {
		fmt.Printf("far worker at %5s: ", group.Point[0].Value)
		if t := group.TimeToTarget; t == nil {
			fmt.Println("no run reached the target")
		} else {
			fmt.Printf("%2d of %d runs reach the target, the median after %.2f s (95 %%: %.2f to %.2f)\n",
				group.Reached, group.N, float64(t.Median), float64(t.Low), float64(t.High))
		}
	}
	fmt.Println(strings.Join(report.Headline(r.Summary), " "))
	return nil
}
