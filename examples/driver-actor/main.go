// Command driver-actor is a driver program with its own actor, a counter, and the processes
// that can host it. With arguments it is gradwire with a catalog that includes the counter.
// Without a cluster to join, it is itself a member for as long as it counts.
//
//	driver-actor node --insecure --name a --bind 127.0.0.1:7946
//	GRADWIRE_JOIN=127.0.0.1:7946 driver-actor
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/protos"
)

// counter adds the numbers that it is sent, and answers who asks with the sum. Its field is its
// setting.
type counter struct {
	First int64 `plan:"first" doc:"the sum to begin with"`
}

func number(n int64) *protos.Message { return protos.NewMessage(wrapperspb.Int64(n)) }
func value(m *protos.Message) int64 {
	defer m.Release()
	return m.Head.(*wrapperspb.Int64Value).Value
}

func (c *counter) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	n := value(m)
	if n < 0 {
		panic("a vote cannot be taken back") // the actor is then replaced by one with its sum
	}
	c.First += n
	if ctx.Sender() != nil {
		ctx.Respond(number(c.First))
	}
}

// Save and Restore carry the sum over a failure.
func (c *counter) Save() *protos.Message { return number(c.First) }
func (c *counter) Restore(m *protos.Message) error {
	c.First = m.Head.(*wrapperspb.Int64Value).Value
	return nil
}

func counters() *catalog.Catalog {
	c := catalog.Default()
	c.Actors.Add(catalog.Define("counter", "adds numbers", func() counter { return counter{} },
		func(_ *catalog.Catalog, first *counter) (actors.Kind, error) {
			return func(actors.Env) (actor.Actor, error) { return &counter{First: first.First}, nil }, nil
		}))
	return c
}

func main() {
	if len(os.Args) > 1 {
		cli.Main(counters())
	}
	countVotes := func(seed string) error {
		sum, node, err := count(context.Background(), seed)
		if err == nil {
			fmt.Printf("%d votes on node %s\n", sum, node)
		}
		return err
	}
	var err error
	if seed := os.Getenv("GRADWIRE_JOIN"); seed != "" {
		err = countVotes(seed)
	} else {
		err = withOwnProcess(context.Background(), countVotes)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// withOwnProcess starts a member of the cluster in this process, calls do with its address, and
// stops it.
func withOwnProcess(ctx context.Context, do func(seed string) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	ready, over := make(chan string, 1), make(chan error, 1)
	go func() {
		over <- driver.Serve(ctx, driver.NodeConfig{
			Name: "a", Bind: "127.0.0.1:0", Insecure: true, Catalog: counters(),
			Ready: func(address string) { ready <- address },
		})
	}()
	select {
	case seed := <-ready:
		err := do(seed)
		end()
		return errors.Join(err, <-over)
	case err := <-over:
		return err
	}
}

// count has a counter made in a cluster without certificates, and counts with it.
func count(ctx context.Context, seed string) (sum int64, node string, err error) {
	cluster, err := driver.Connect(ctx, []string{seed}, nil)
	if err != nil {
		return 0, "", err
	}
	defer cluster.Close()
	votes, err := cluster.Spawn(ctx, driver.ActorSpec{Name: "votes", Kind: "counter", Settings: "{first: 10}",
		Restart: driver.Restart{Times: 3, Within: time.Minute}})
	if err != nil {
		return 0, "", err
	}
	for n := range int64(5) {
		if err := votes.Send(ctx, number(n)); err != nil {
			return 0, "", err
		}
	}
	answer, err := votes.Ask(ctx, number(0))
	if err != nil {
		return 0, "", err
	}
	return value(answer), votes.Node, votes.Stop(ctx)
}
