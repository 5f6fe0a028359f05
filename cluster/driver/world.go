package driver

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// Clock says in which world a plan runs.
type Clock string

// The clocks.
const (
	// Virtual time: deterministic, as fast as the machine computes.
	Virtual Clock = "virtual"
	// Real time: the same actors and delays, in one process.
	Real Clock = "real"
	// Cluster is real time on the processes of a cluster; see Client.Submit.
	Cluster Clock = "cluster"
)

// task puts together what a run of a point trains.
func (p *point) task(shelf *shelf, seed uint64) (*train.Task, error) {
	d := &p.spec.Data
	data, err := shelf.samples(d, seed)
	if err != nil {
		return nil, err
	}
	return p.taskOf(data, seed, func(t *train.Task) ([][]int32, error) {
		shards, err := d.Split.Assign(t.Train, t.Workers, seed)
		if err != nil {
			return nil, syntax.Errorf(d.Section.At("split"), "%w", err)
		}
		return shards, nil
	})
}

// taskOf puts a task together, of samples of which each worker has a shard.
func (p *point) taskOf(data samples, seed uint64, split func(t *train.Task) ([][]int32, error)) (_ *train.Task, err error) {
	t := &train.Task{
		Model: p.spec.Model, Train: data.train, Test: data.test, Validation: data.validation,
		Batch: p.spec.Batch, Method: p.spec.Method, Seed: seed,
	}
	for i, role := range p.spec.Roles {
		if role.Trains {
			t.Workers = append(t.Workers, p.spec.Plan.Nodes[i].Name)
			t.Cores = append(t.Cores, max(p.spec.Plan.Nodes[i].Compute.Cores, 1))
		}
	}
	if t.Shards, err = split(t); err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, syntax.Errorf(p.spec.ModelSection, "%w", err)
	}
	return t, nil
}

// profile is the emulated speed of a node. The speed of one whose steps take a given
// time is that at which a full batch takes it.
func profile(c plan.Compute, task *train.Task, clock Clock) (actors.Profile, error) {
	p := actors.Profile{Cores: max(c.Cores, 1), Speed: float64(c.Speed)}
	switch {
	case c.Native && clock == Virtual:
		return p, fmt.Errorf("compute: native has no meaning in virtual time, which does not depend on the machine; give step or speed")
	case c.Native:
		p.Speed = actors.Unlimited.Speed
	case c.Step != nil:
		p.Step = time.Duration(*c.Step)
		p.Speed = task.Model.Work(task.Batch) / p.Step.Seconds()
	}
	return p, nil
}

// network links the nodes of a point, and the coordinator as the last one.
func (p *point) network(seed uint64) (*link.Network, []string) {
	var names []string
	for i := range p.spec.Plan.Nodes {
		names = append(names, p.spec.Plan.Nodes[i].Name)
	}
	names = append(names, actors.Coordinator)
	n := link.New(seed, names)
	n.SetDefault(p.spec.Default)
	at := positions(names)
	for _, l := range p.spec.Links {
		n.Set(at[l.From], at[l.To], l.Config)
	}
	for i := range p.spec.Plan.Nodes {
		n.SetUplink(int32(i), float64(p.spec.Plan.Nodes[i].Uplink))
		n.SetDownlink(int32(i), float64(p.spec.Plan.Nodes[i].Downlink))
	}
	return n, names
}

func positions(names []string) map[string]int32 {
	at := make(map[string]int32, len(names))
	for i, name := range names {
		at[name] = int32(i)
	}
	return at
}

// graphs carries the topologies of a point out on the nodes of these names. Each random one has a stream of its own, so
// that another one in the schedule moves none.
func (p *point) graphs(seed uint64, names []string) ([]actors.Graph, error) {
	var graphs []actors.Graph
	for i, t := range p.spec.Topologies {
		purpose := "topology"
		if i > 0 {
			purpose += " at " + t.At.String()
		}
		g, err := link.NewGraph(t.Topology, names, rand.New(actors.Source(seed, actors.Coordinator, purpose)))
		if err != nil {
			return nil, syntax.Errorf(t.Section, "%w", err)
		}
		graphs = append(graphs, actors.Graph(g))
	}
	return graphs, nil
}

// topologyChanges are the instants from which the graphs after the first one hold.
func (p *point) topologyChanges() (changes []coordinator.TopologyChange) {
	for i, t := range p.spec.Topologies {
		if i > 0 {
			changes = append(changes, coordinator.TopologyChange{At: t.At, Topology: i})
		}
	}
	return changes
}

// nodeChanges are what the schedule does to nodes.
func nodeChanges(p *plan.Plan) (changes []actors.NodeChange) {
	events := map[string]actors.NodeEvent{plan.Crash: actors.Crash, plan.Leave: actors.Leave, plan.Join: actors.Join, plan.Pause: actors.Pause}
	for _, e := range p.NodeEvents() {
		changes = append(changes, actors.NodeChange{At: time.Duration(e.At), Node: e.Node, Do: events[e.Do], For: time.Duration(e.For)})
	}
	return changes
}

// stage is a run before it happens.
type stage struct {
	task       *train.Task
	deployment *actors.Deployment
	network    *link.Network
	names      []string
	changes    []link.Change
	collector  *record.Collector
	result     coordinator.Result
	locked     func(do func()) // calls do while nobody uses the network
	elsewhere  func() []record.Link
}

// place makes the deployment of a point.
func (p *point) place(task *train.Task, clock Clock, strict bool, threads int) (*stage, error) {
	s := &stage{task: task, locked: func(do func()) { do() }, elsewhere: func() []record.Link { return nil }}
	s.network, s.names = p.network(task.Seed)
	at := positions(s.names)
	for _, c := range p.spec.Changes {
		s.changes = append(s.changes, link.Change{At: c.At, Apply: func() { s.network.Set(at[c.From], at[c.To], c.Config) }})
	}
	s.deployment = &actors.Deployment{
		Seed: task.Seed, Strict: strict, Bounded: p.spec.Plan.Stop.Time > 0,
		Schedule: nodeChanges(p.spec.Plan), Detect: time.Duration(p.spec.Plan.Detect),
	}
	var err error
	if s.deployment.Topologies, err = p.graphs(task.Seed, s.names[:len(p.spec.Plan.Nodes)]); err != nil {
		return nil, input(err)
	}
	absent := p.spec.Plan.Absent()
	var holders []int
	for i := range p.spec.Plan.Nodes {
		node, role := &p.spec.Plan.Nodes[i], p.spec.Roles[i]
		speed, err := profile(node.Compute, task, clock)
		if err != nil {
			return nil, input(syntax.Errorf(node.Source.At("compute"), "%w", err))
		}
		if role.Holds {
			holders = append(holders, i)
		}
		s.deployment.Nodes = append(s.deployment.Nodes, actors.Node{
			Name: node.Name, Role: role.Name, Profile: speed, Absent: absent[i],
			Kind: p.spec.Architecture.Kind(task, train.Place{Node: i, Name: node.Name, Role: role.Name}),
		})
	}
	if err := p.fit(s.deployment); err != nil {
		return nil, input(err)
	}
	evaluator := task.NewEvaluator(threads)
	run := coordinator.Run{
		Policy: policy(p.spec.Plan), Samples: task.Train.Len(), Holders: holders,
		Topologies: p.topologyChanges(), Evaluate: evaluator.Evaluate, Result: &s.result,
	}
	s.deployment.Coordinate = func(env actors.Env, control actors.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	return s, nil
}

// fit checks that the architecture can run with every topology of the deployment.
func (p *point) fit(d *actors.Deployment) error {
	f, picky := p.spec.Architecture.(train.Fitter)
	if !picky {
		return nil
	}
	first := d.View()
	now, section := first, p.spec.ArchitectureSection
	for i, t := range p.spec.Topologies {
		if i > 0 {
			now, section = d.ViewOf(&protos.View{Number: uint64(i) + 1, Topology: uint32(i)}), t.Section
		}
		if err := f.Fit(first, now); err != nil {
			return catalog.Located(section, err)
		}
	}
	return nil
}

func policy(p *plan.Plan) coordinator.Policy {
	c := coordinator.Policy{
		Every:  coordinator.Interval{Epochs: p.Evaluate.Every.Epochs, Steps: p.Evaluate.Every.Steps, Time: time.Duration(p.Evaluate.Every.Time)},
		Epochs: p.Stop.Epochs, Steps: p.Stop.Steps, Time: time.Duration(p.Stop.Time),
	}
	if p.Evaluate.Sample != nil {
		c.Sample = *p.Evaluate.Sample
	}
	if p.Evaluate.Lag != nil {
		c.Lag = time.Duration(*p.Evaluate.Lag)
	}
	c.Target, c.GoOn = target(p)
	c.Of = actors.Of(p.Evaluate.Of)
	return c
}

// target is the accuracy that a plan wants to know the time of, and whether its runs
// go on when they are there. A plan without one has the target 0.
func target(p *plan.Plan) (accuracy float64, goOn bool) {
	switch {
	case p.Stop.Target != nil:
		return float64(*p.Stop.Target), false
	case p.Evaluate.Target != nil:
		return float64(*p.Evaluate.Target), true
	}
	return 0, false
}

// links are the counters of every used edge, in whatever process it begins, in the order of the nodes.
func (s *stage) links() []record.Link {
	own, others := s.ownLinks(), s.elsewhere()
	if len(others) == 0 {
		return own
	}
	at := positions(s.names)
	links := slices.Concat(own, others)
	slices.SortFunc(links, func(a, b record.Link) int {
		return cmp.Or(cmp.Compare(at[a.From], at[b.From]), cmp.Compare(at[a.To], at[b.To]))
	})
	return links
}

// ownLinks are the counters of every edge used in this process; of more than record.MaxLinks, those of each
// node's edges together.
func (s *stage) ownLinks() (links []record.Link) {
	s.locked(func() {
		if s.network.Edges() > record.MaxLinks {
			for i := range s.names {
				if t := s.network.Sum(int32(i)); t != (link.Stats{}) {
					links = append(links, linkOf(s.names[i], record.Everyone, t))
				}
			}
			return
		}
		for _, e := range s.network.Used() {
			links = append(links, linkOf(s.names[e.Source()], s.names[e.Destination()], e.Stats()))
		}
	})
	return links
}

func linkOf(from, to string, t link.Stats) record.Link {
	l := record.Link{
		From: from, To: to,
		Messages: t.Sent, Bytes: t.SentBytes, Lost: t.Dropped, Control: t.Control, ControlBytes: t.ControlBytes,
	}
	if t.DelayCount > 0 {
		l.DelayAsked = t.DelaySum.Seconds() / float64(t.DelayCount)
	}
	if t.Delivered > 0 {
		l.DelayAchieved = t.TookSum.Seconds() / float64(t.Delivered)
	}
	return l
}

// outcome is what a world tells of a run beside its record.
type outcome struct {
	end       time.Duration
	halted    time.Duration  // when the members were stopped
	waits     map[int]string // what nodes waited for then
	digest    uint64
	dead      uint64
	stalled   time.Duration
	lateness  *record.Lateness
	incidents []record.Incident // in the order of time
	degraded  bool              // state was lost, or nodes stood still
}

// play lets the run happen in the world of a clock.
func (s *stage) play(ctx context.Context, clock Clock, threads int) (outcome, error) {
	if clock == Real {
		return s.playReal(ctx)
	}
	w, err := sim.New(sim.Config{Deployment: s.deployment, Network: s.network, Changes: s.changes, Threads: threads})
	if err != nil {
		return outcome{}, err
	}
	r, err := w.Run(ctx)
	return outcome{end: r.Now, halted: r.Halted, waits: r.Waits, digest: r.Digest, dead: r.DeadLetters, stalled: r.Stalled}, err
}

func (s *stage) playReal(ctx context.Context) (outcome, error) {
	w, err := live.New(live.Config{Deployment: s.deployment, Network: s.network, Changes: s.changes})
	if err != nil {
		return outcome{}, err
	}
	s.locked = w.Locked
	r, err := w.Run(ctx)
	return outcome{
		end: r.Now, halted: r.Halted, waits: r.Waits, dead: r.DeadLetters, stalled: r.Stalled,
		lateness: &record.Lateness{Late: r.Late, P99: record.Float(max(r.Messages.P99, r.Steps.P99).Seconds())},
	}, err
}
