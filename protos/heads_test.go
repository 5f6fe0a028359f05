package protos_test

import (
	"context"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/gaia"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/innetwork"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// row is a head of the table in the package's documentation.
type row struct{ tensors, values string }

// headTable reads the table.
func headTable(t *testing.T) (names []string, rows map[string]row) {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]row{}
	for line := range strings.Lines(string(doc)) {
		cells, is := strings.CutPrefix(line, "//\t")
		if !is || strings.HasPrefix(cells, "head ") {
			continue
		}
		cells += strings.Repeat(" ", 40)
		name := strings.TrimSpace(cells[:14])
		names = append(names, name)
		rows[name] = row{strings.TrimSpace(cells[14:24]), strings.TrimSpace(cells[24:35])}
	}
	return names, rows
}

// allows reports whether a cell of the table, such as "0 to S+2", has a number.
func allows(t *testing.T, cell string, n, params, slots int) bool {
	t.Helper()
	number := func(s string) int {
		switch s {
		case "P":
			return params
		case "S+2":
			return slots + 2
		case "more":
			return n
		}
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("the table has a cell %q", cell)
		}
		return v
	}
	if low, high, ok := strings.Cut(cell, " to "); ok {
		return n >= number(low) && n <= number(high)
	}
	if one, other, ok := strings.Cut(cell, " or "); ok {
		return n == number(one) || n == number(other)
	}
	return n == number(cell)
}

func TestTheTableOfHeadsIsThatOfTheDefinitions(t *testing.T) {
	names, rows := headTable(t)
	source, err := os.ReadFile("gradwire.proto")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	tensors := false
	for line := range strings.Lines(string(source)) {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "// Tensors:"):
			tensors = true
		case strings.HasPrefix(line, "message "):
			want = append(want, fields[1])
			if carries := rows[fields[1]].tensors != "0"; carries != tensors {
				t.Errorf("%s carries tensors: %v in the table, %v in its definition", fields[1], carries, tensors)
			}
			tensors = false
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("the table has the heads %v, gradwire.proto %v", names, want)
	}
}

// Every message of runs of all architectures, in which nodes leave and join, is as the table says.
func TestMessagesCarryTheTensorsThatTheTableSays(t *testing.T) {
	_, rows := headTable(t)
	seen := map[string]bool{}
	pulls := gossip.Default()
	pulls.Exchange = gossip.PushPull
	still := dpsgd.Default()
	still.Moved = math.MaxFloat64
	pairs := adpsgd.Default()
	pairs.Graph = adpsgd.Exponential
	averaged := collective.Default()
	averaged.Algorithm = collective.Ring
	votes := averaged
	votes.Reduce, votes.Moved = collective.Models, 1e-3
	controlled := federated.Default()
	controlled.Controls = true
	shards := ps.Default() // of 13 values, as 3 of them make a model of 39
	shards.Servers = &ps.Servers{}
	shards.Servers.SetDefaults()
	shards.Servers.Shard = 4 * 13
	copied := shards
	servers := *shards.Servers
	servers.Replicas, copied.Servers = 1, &servers
	for _, c := range []struct {
		architecture train.Architecture
		first, rest  string
	}{
		{ps.Default(), ps.RoleServer, ps.RoleWorker}, {shards, ps.RoleServer, ps.RoleWorker},
		{copied, ps.RoleServer, ps.RoleWorker},
		{federated.Default(), federated.RoleServer, federated.RoleClient},
		{controlled, federated.RoleServer, federated.RoleClient},
		{gaia.Default(), gaia.RoleServer, gaia.RoleWorker},
		{innetwork.Default(), innetwork.RoleSwitch, innetwork.RoleWorker},
		{averaged, collective.RoleWorker, collective.RoleWorker},
		{votes, collective.RoleWorker, collective.RoleWorker},
		{gossip.Default(), "peer", "peer"}, {pulls, "peer", "peer"},
		{dpsgd.Default(), "peer", "peer"}, {still, "peer", "peer"}, {pairs, "peer", "peer"},
	} {
		task, roles := cast(c.architecture, c.first, c.rest)
		play(t, task, c.architecture, roles, func(m *protos.Message) {
			seen[checkHead(t, rows, m, task.Model.Params(), 13)] = true
		})
	}
	for name, r := range rows {
		switch name { // are of no architecture; see actors/ps/table
		case "Access", "Accessed", "TableShard":
			continue
		}
		if r.tensors != "0" && !seen[name] {
			t.Errorf("no run had a %s", name)
		}
	}
}

// cast returns what nodes a, b, c and d train, and their roles.
func cast(architecture train.Architecture, first, rest string) (task *train.Task, roles []string) {
	task = simtest.Task(simtest.Perceptron(12, 3), []int{40, 40, 40, 40}, 8,
		optim.Momentum{Rate: optim.Constant(0.1), Momentum: 0.9})
	task.Workers, roles = []string{"a", "b", "c", "d"}, []string{first, rest, rest, rest}
	if first != rest { // a server
		task.Workers, task.Shards = task.Workers[1:], task.Shards[1:]
	}
	switch a := architecture.(type) {
	case gaia.Architecture: // a server at each of two sites
		roles[1], task.Workers, task.Shards = first, task.Workers[1:], task.Shards[1:]
	case ps.Architecture:
		if a.Servers != nil {
			roles[3], task.Workers, task.Shards = first, task.Workers[:2], task.Shards[:2]
		}
	}
	return task, roles
}

// checkHead compares a message with its row, and returns the name of its head.
func checkHead(t *testing.T, rows map[string]row, m *protos.Message, params, shard int) string {
	t.Helper()
	name := string(m.Head.ProtoReflect().Descriptor().Name())
	r, slots := rows[name], 1 // with momentum
	fits := allows(t, r.tensors, len(m.Tensors), params, slots)
	for _, tensor := range m.Tensors {
		n := len(tensor.Data)
		fits = fits && (allows(t, r.values, n, params, slots) || allows(t, r.values, n, shard, slots))
	}
	if !fits {
		t.Errorf("a %s has %d tensors, the table says %q of %q values", name, len(m.Tensors), r.tensors, r.values)
	}
	return name
}

// overheard shows the messages that an actor receives before it does.
type overheard struct {
	actor.Actor
	hear func(*protos.Message)
}

func (o *overheard) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*protos.Message); ok {
		o.hear(m)
	}
	o.Actor.Receive(ctx)
}

// leaver is one of an actors.Leaver.
type leaver struct{ overheard }

func (*leaver) HandsOver() {}

func overhear(a actor.Actor, hear func(*protos.Message)) actor.Actor {
	if _, is := a.(actors.Leaver); is {
		return &leaver{overheard{a, hear}}
	}
	return &overheard{a, hear}
}

// play runs an architecture on nodes of some roles, of which the last crashes, leaves and returns.
func play(t *testing.T, task *train.Task, a train.Architecture, roles []string, hear func(*protos.Message)) {
	t.Helper()
	d := &world.Deployment{Seed: 1, Bounded: true, Detect: 2 * time.Millisecond}
	var holders []int
	for i, role := range roles {
		name := string(rune('a' + i))
		if slices.ContainsFunc(a.Roles(), func(r train.Role) bool { return r.Name == role && r.Holds }) {
			holders = append(holders, i)
		}
		kind := a.Kind(task, train.Place{Node: i, Name: name, Role: role})
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: role, Site: int32(i % 2),
			Profile: world.Profile{Cores: 1, Speed: 1e9, Step: time.Duration(5+i) * time.Millisecond},
			Kind: func(env actors.Env) (actor.Actor, error) {
				made, err := kind(env)
				return overhear(made, hear), err
			}})
	}
	for at := 20 * time.Millisecond; at < 900*time.Millisecond; at += 60 * time.Millisecond {
		end := world.Crash
		if roles[3] == ps.RoleServer {
			end = world.Leave
		}
		d.Schedule = append(d.Schedule, world.NodeChange{At: at, Node: 3, Do: end},
			world.NodeChange{At: at + 25*time.Millisecond, Node: 3, Do: world.Join})
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		made, err := coordinator.New(coordinator.Run{
			Policy:  coordinator.Policy{Every: coordinator.Interval{Time: 200 * time.Millisecond}, Time: time.Second},
			Samples: task.Train.Len(), Holders: holders, Joint: len(holders) < 4, Result: &coordinator.Result{},
			Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
		}, env, control)
		return overhear(made, hear), err
	}
	network := link.New(d.Seed, d.Names())
	network.SetDefault(link.Config{Delay: link.Uniform{Min: time.Millisecond, Max: 9 * time.Millisecond}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil {
		t.Errorf("%T: %v", a, err)
	}
}
