package driver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/protos"
)

// twoWorkers is a plan that takes a fraction of a second.
const twoWorkers = `
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: near, role: worker, compute: {step: 5ms}}
  - {name: far, role: worker, compute: {step: 5ms}}
network: {links: [{between: [server, near], delay: 1ms}, {between: [server, far], delay: 100ms}]}
evaluate: {every: 0.5 epochs}
stop: {target: 80%, epochs: 10}
`

// temporary is a folder for the records of an example.
func temporary() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "gradwire-example-")
	if err != nil {
		panic(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// A driver program runs a plan at several delays, in virtual time, and reads the figures.
func ExampleRun() {
	dir, remove := temporary()
	defer remove()
	var seconds []float64
	for _, delay := range []string{"1ms", "10s"} {
		plan, err := driver.Parse("two-workers.yaml", []byte(twoWorkers), "network.links.server-far.delay="+delay)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := driver.Run(context.Background(), plan, driver.Options{Out: filepath.Join(dir, delay)})
		if err != nil {
			fmt.Println(err)
			return
		}
		run := report.Runs[0]
		fmt.Println(delay, "reached:", run.Reached)
		seconds = append(seconds, *run.TimeToTarget)
	}
	fmt.Println("a far worker costs time:", seconds[0] < seconds[1])
	// Output:
	// 1ms reached: true
	// 10s reached: true
	// a far worker costs time: true
}

// What is wrong with a plan is told with its place, before anything runs.
func ExamplePlan_Resolved() {
	plan, err := driver.Parse("two-workers.yaml", []byte(twoWorkers), "train.bach=64")
	if err == nil {
		_, err = plan.Resolved(catalog.Default())
	}
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n"))
	// Output:
	// --set train.bach=64: train.bach: unknown key "bach";
	// did you mean batch? (accepted: batch, class-weights, optimizer)
	//       | train.bach=64
	//       | ^
}

// A run is made again from its record, and its digest proved.
func ExampleReplay() {
	dir, remove := temporary()
	defer remove()
	plan, err := driver.Parse("two-workers.yaml", []byte(twoWorkers))
	if err != nil {
		fmt.Println(err)
		return
	}
	out := filepath.Join(dir, "record")
	if _, err := driver.Run(context.Background(), plan, driver.Options{Out: out}); err != nil {
		fmt.Println(err)
		return
	}
	again, err := driver.Replay(context.Background(), filepath.Join(out, "runs", "0000"), driver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("equal:", again.Equal)
	// Output: equal: true
}

// node serves a node without protection until ctx is cancelled, and returns its address.
func node(ctx context.Context, name, records string, c *catalog.Catalog) (address string, err error) {
	ready, over := make(chan string, 1), make(chan error, 1)
	go func() {
		over <- driver.Serve(ctx, driver.NodeConfig{
			Name: name, Bind: "127.0.0.1:0", Insecure: true, Out: records, Catalog: c,
			Ready: func(address string) { ready <- address },
		})
	}()
	select {
	case address := <-ready:
		return address, nil
	case err := <-over:
		return "", err
	}
}

// A driver submits a plan to a cluster, here of one node, and watches it. It might as well go away
// and come back.
func ExampleClient_Submit() {
	dir, remove := temporary()
	defer remove()
	ctx, leave := context.WithTimeout(context.Background(), time.Minute)
	defer leave()
	seed, err := node(ctx, "a", dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := driver.Connect(ctx, []string{seed}, nil) // with an operator's identity, where there is protection
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	plan, err := driver.Parse("two-workers.yaml", []byte(twoWorkers), "stop={steps: 10}")
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := client.Submit(ctx, plan, driver.SubmitOptions{Place: []string{"worker=a"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := client.Watch(ctx, id, func(driver.Submission) {})
	fmt.Println(s.State, s.Done, "of", s.Total, err)
	fmt.Println(client.Fetch(ctx, id, filepath.Join(dir, "fetched")))
	// Output:
	// done 1 of 1 <nil>
	// <nil>
}

// adder is an actor that answers with the sum of what it was sent. Its field is its setting.
type adder struct {
	Sum int64 `plan:"sum"`
}

// Receive is the method of every protoactor actor.
func (a *adder) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*protos.Message); ok {
		a.Sum += m.Head.(*wrapperspb.Int64Value).Value
		m.Release()
		if ctx.Sender() != nil {
			ctx.Respond(protos.NewMessage(wrapperspb.Int64(a.Sum)))
		}
	}
}

// A driver spawns its own kind of actor on a node, sends to it and asks it.
func ExampleClient_Spawn() {
	c := catalog.Default()
	c.Actors.Add(catalog.Define("adder", "adds numbers", func() adder { return adder{} },
		func(_ *catalog.Catalog, settings *adder) (actors.ResidentKind, error) {
			return func(actors.Base) (actor.Actor, error) { return &adder{Sum: settings.Sum}, nil }, nil
		}))
	dir, remove := temporary()
	defer remove()
	ctx, leave := context.WithTimeout(context.Background(), time.Minute)
	defer leave()
	seed, err := node(ctx, "a", dir, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := driver.Connect(ctx, []string{seed}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ref, err := client.Spawn(ctx, driver.ActorSpec{Name: "till", Kind: "adder", Settings: "{sum: 40}"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ref.Send(ctx, protos.NewMessage(wrapperspb.Int64(1))); err != nil {
		fmt.Println(err)
		return
	}
	answer, err := ref.Ask(ctx, protos.NewMessage(wrapperspb.Int64(1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Head.(*wrapperspb.Int64Value).Value, "on node", ref.Node)
	fmt.Println(ref.Stop(ctx))
	// Output:
	// 42 on node a
	// <nil>
}
