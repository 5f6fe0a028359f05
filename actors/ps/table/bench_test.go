package table_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// pair is a world of a server and one other node, whose steps the stopwatch counts.
func pair(tb testing.TB, watch *simtest.Stopwatch, server, other actors.Kind) {
	d := &world.Deployment{Seed: 1, Observer: watch, Nodes: []world.Node{
		{Name: "server", Role: shards.RoleServer, Profile: world.Unlimited, Kind: server},
		{Name: "other", Role: ps.RoleWorker, Profile: world.Unlimited, Kind: other}}}
	simtest.Pace(tb, watch, func(c simtest.Coordinate) *sim.World {
		d.Coordinate = c
		network := link.New(1, d.Names())
		network.SetDefault(link.Config{Delay: link.Constant{Delay: time.Microsecond}})
		w, err := sim.New(sim.Config{Deployment: d, Network: network})
		if err != nil {
			tb.Fatal(err)
		}
		return w
	})
}

// trips makes round trips of a push-pull of all tables at a time.
func trips(tb testing.TB, watch *simtest.Stopwatch, all []*table.Table,
	keys func(c *table.Client, t *table.Table) *table.Keys) {
	server := func(env actors.Env) (actor.Actor, error) { return table.NewServer(env, all, nil) }
	pair(tb, watch, server, func(env actors.Env) (actor.Actor, error) {
		c, err := table.NewClient(env, all, nil, table.Options{Delay: table.Eventual})
		if err != nil {
			return nil, err
		}
		var lists []*table.Keys
		for _, t := range all {
			lists = append(lists, keys(c, t))
		}
		open := 0
		return actor.ReceiveFunc(func(ctx actor.Context) {
			m, ok := ctx.Message().(*protos.Message)
			if !ok {
				return
			}
			done, _ := c.Receive(ctx, m)
			for _, d := range done {
				d.Values.Release()
				open--
			}
			if _, start := m.Head.(*protos.Start); start || len(done) > 0 && open == 0 {
				env.Record(actors.Event{Kind: actors.StepDone})
				for _, k := range lists {
					values := env.Tensors().Get(k.Len())
					clear(values.Data)
					c.PushPull(ctx, k, values)
					open++
				}
			}
			m.Release()
		}), nil
	})
}

// vectorTrips makes round trips of a push and its answer of the parameter server with one vector.
func vectorTrips(tb testing.TB, watch *simtest.Stopwatch, params int) {
	model, err := nn.NewMLP([]int{params/2 - 1, 2}, nn.ReLU)
	if err != nil {
		tb.Fatal(err)
	}
	set := &datasets.Set{Inputs: model.Inputs(), Classes: []string{"a", "b"}, X: make([]float32, model.Inputs()),
		Y: []int32{0}}
	task := &train.Task{Model: model, Train: set, Test: set, Batch: 1, Seed: 1, Workers: []string{"other"},
		Method: optim.SGD{Rate: optim.Constant(1)}, Shards: [][]int32{{0}}}
	server := ps.Default().Kind(task, train.Place{Role: ps.RoleServer})
	pair(tb, watch, server, func(env actors.Env) (actor.Actor, error) {
		pushes := protos.NewMessages(func() *protos.Push { return &protos.Push{} })
		return actor.ReceiveFunc(func(ctx actor.Context) {
			m, ok := ctx.Message().(*protos.Message)
			if !ok {
				return
			}
			if head, ok := m.Head.(*protos.Parameters); ok {
				env.Record(actors.Event{Kind: actors.StepDone})
				gradient := env.Tensors().Get(model.Params())
				clear(gradient.Data)
				push, to := pushes.Get(gradient)
				to.Node, to.Version, to.Life = 1, head.Version, head.Life
				ctx.Send(env.View().Members[0].PID, push)
			}
			m.Release()
		}), nil
	})
}

// some are a thousand keys of a table, in pairs.
func some(c *table.Client, t *table.Table) *table.Keys {
	var list []uint64
	for i := range uint64(1000) {
		list = append(list, i/2*7+i%2)
	}
	keys, err := c.List(t.Name, list)
	if err != nil {
		panic(err)
	}
	return keys
}

func whole(c *table.Client, t *table.Table) *table.Keys {
	keys, err := c.Range(t.Name, 0, t.Keys-1)
	if err != nil {
		panic(err)
	}
	return keys
}

// sgd are tables of a number of values together, dense or not.
func sgd(tables, values int, sparse bool) (all []*table.Table) {
	for i := range tables {
		all = append(all, &table.Table{Name: fmt.Sprint(i), Keys: uint64(values / tables), Width: 1, Sparse: sparse,
			Shards: 1, Update: table.Optimizer(optim.SGD{Rate: optim.Constant(1)})})
	}
	return all
}

// BenchmarkTables is round trips of a push with its answer: of the parameter server's one vector,
// and of as many values in one table and in four; then of a list of 1,000 keys.
func BenchmarkTables(b *testing.B) {
	const params = 20_000
	for name, run := range map[string]func(watch *simtest.Stopwatch){
		"vector":        func(watch *simtest.Stopwatch) { vectorTrips(b, watch, params) },
		"tables=1":      func(watch *simtest.Stopwatch) { trips(b, watch, sgd(1, params, false), whole) },
		"tables=4":      func(watch *simtest.Stopwatch) { trips(b, watch, sgd(4, params, false), whole) },
		"list, dense":   func(watch *simtest.Stopwatch) { trips(b, watch, sgd(1, params, false), some) },
		"list, sparse":  func(watch *simtest.Stopwatch) { trips(b, watch, sgd(1, 1<<40, true), some) },
		"lists, 4 each": func(watch *simtest.Stopwatch) { trips(b, watch, sgd(4, 1<<40, true), some) },
	} {
		b.Run(name, func(b *testing.B) {
			simtest.Benchmark(b, 100, run)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "trips/s")
		})
	}
}

// pump pushes zeros to keys and pulls them, until left is 0.
type pump struct {
	quiet
	make  func(*table.Client, *table.Table) *table.Keys
	table *table.Table
	keys  *table.Keys
	left  int
}

func (p *pump) start(u *user) {
	p.keys = p.make(u.Client, p.table)
	p.push(u)
}

func (p *pump) push(u *user) {
	values := u.env.Tensors().Get(p.keys.Len())
	clear(values.Data)
	u.PushPull(u.ctx, p.keys, values)
}

func (p *pump) done(u *user, d table.Done) {
	d.Values.Release()
	if p.left--; p.left == 0 {
		u.over = true
		return
	}
	p.push(u)
}

// BenchmarkReplicas is what tasks of 4 clients take on 2 servers, with and without a copy of each
// shard: ns/op is per push with its pull of all of 20,000 values, or of a list of 1,000 keys.
func BenchmarkReplicas(b *testing.B) {
	for name, keys := range map[string]func(*table.Client, *table.Table) *table.Keys{"all": whole, "list": some} {
		for replicas := range 2 {
			b.Run(fmt.Sprintf("%s/replicas=%d", name, replicas), func(b *testing.B) {
				spread := &shards.Servers{}
				spread.SetDefaults()
				spread.Replicas = replicas
				s := &site{tables: sgd(1, 20_000, false), servers: 2, clients: 4, delay: ms, spread: spread,
					options: table.Options{Delay: table.Eventual}}
				s.tables[0].Shards = 8
				s.program = func(int) program { return &pump{make: keys, table: s.tables[0], left: 1 + (b.N-1)/4} }
				b.ReportAllocs()
				s.must(b)
			})
		}
	}
}

// A task with a known list allocates nothing, neither for a key nor at all.
func TestPushAndPullOfAKnownListAllocateNothing(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		simtest.ExpectNoAllocations(t, 100, 1000, func(watch *simtest.Stopwatch) {
			trips(t, watch, sgd(2, 20_000, sparse), some)
		})
	}
}
