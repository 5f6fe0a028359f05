package table_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// counter adds to keys of a table, and pulls them when that has finished.
type counter struct {
	env    actors.Env
	client *table.Client
	pulled table.Timestamp
	finish func()
}

func (c *counter) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	done, _ := c.client.Receive(ctx, m)
	for _, d := range done {
		if d.Time == c.pulled {
			fmt.Printf("%v: %v\n", c.env.Now(), d.Values.Data)
			d.Values.Release()
			c.finish()
		}
	}
	if _, ok := m.Head.(*protos.Start); ok {
		keys, err := c.client.List("counts", []uint64{3, 14, 159, 265358})
		if err != nil {
			c.env.Fail(err)
			return
		}
		pushed := c.client.Push(ctx, keys, protos.NewTensor([]float32{1, 2, 3, 4}))
		again := c.client.Push(ctx, keys, protos.NewTensor([]float32{10, 10, 10, 10}))
		c.pulled = c.client.Pull(ctx, keys, pushed, again) // when both have finished
	}
	m.Release()
}

// A server, and an actor that uses its table over a link of 10 ms: both pushes go out at once, the
// pull when they have been answered.
func ExampleClient() {
	tables := []*table.Table{{Name: "counts", Keys: 1 << 40, Width: 1, Sparse: true, Update: table.Add()}}
	var control world.Control
	d := &world.Deployment{Bounded: true, Nodes: []world.Node{
		{Name: "server", Role: shards.RoleServer, Profile: world.Unlimited,
			Kind: func(env actors.Env) (actor.Actor, error) { return table.NewServer(env, tables, nil) }},
		{Name: "a", Role: "counter", Profile: world.Unlimited, Kind: func(env actors.Env) (actor.Actor, error) {
			client, err := table.NewClient(env, tables, nil, table.Options{Delay: table.Eventual})
			return &counter{env: env, client: client, finish: func() { control.Finish() }}, err
		}},
	}}
	d.Coordinate = func(env actors.Env, c world.Control) (actor.Actor, error) {
		control = c
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				for _, m := range env.View().Members {
					ctx.Send(m.PID, protos.NewMessage(&protos.Start{View: 1}))
				}
			}
		}), nil
	}
	network := link.New(1, d.Names())
	network.SetDefault(link.Config{Delay: link.Constant{Delay: 10 * time.Millisecond}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output: 40ms: [11 12 13 14]
}
