package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/faults"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/topology"
	"github.com/gradwire/gradwire/cluster/traffic"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// stageFor makes the stage of a run of a point in this process.
func (p *Point) stageFor(shelf *shelf.Shelf, seed uint64, strict bool, threads int) (*Stage, error) {
	task, err := p.Task(shelf, seed)
	if err != nil {
		return nil, err
	}
	if p.counts {
		task, threads = untrained(task), 0
	}
	return p.Stage(task, strict, threads)
}

// Task puts together what a run of a point trains.
func (p *Point) Task(shelf *shelf.Shelf, seed uint64) (*train.Task, error) {
	d := &p.Spec.Data
	data, err := shelf.Samples(d, seed)
	if err != nil {
		return nil, err
	}
	return p.taskOf(data, data.Train.Counts(), seed, func(t *train.Task) (shards [][]int32, err error) {
		if clients := p.registered(); clients > 0 {
			t.Clients, err = partition.Over(d.Split, t.Train, clients, seed)
			shards = slices.Repeat([][]int32{t.Train.Rows()}, len(t.Workers))
		} else {
			shards, err = d.Split.Assign(t.Train, t.Workers, seed)
		}
		if err != nil {
			return nil, syntax.Errorf(d.Section.At("split"), "%w", p.blameHoldout(err, shelf, t.Workers, seed))
		}
		return shards, nil
	})
}

// registered is how many clients take turns on the workers; 0 where these are the clients.
func (p *Point) registered() int {
	if a, ok := p.Spec.Architecture.(train.Populated); ok {
		return a.Registered()
	}
	return 0
}

// taskOf puts a task together, of samples of which each worker has a shard, given how many there
// are of each class.
func (p *Point) taskOf(data *shelf.Samples, counts []int, seed uint64,
	split func(t *train.Task) ([][]int32, error)) (_ *train.Task, err error) {
	if p.Spec.Data.Sent && p.registered() > 0 {
		return nil, syntax.Errorf(p.Spec.Data.Section.At("delivery"), "a worker trains any client of a population, "+
			"and needs all samples; accepted is local")
	}
	t := &train.Task{
		Model: p.Spec.Model, Train: data.Train, Sparse: data.Sparse, Test: data.Test,
		Validation: data.Validation, Batch: p.Spec.Batch, Method: p.Spec.Method, Seed: seed,
	}
	for i, role := range p.Spec.Roles {
		if role.Trains {
			t.Workers = append(t.Workers, p.Spec.Plan.Nodes[i].Name)
			c := &p.Spec.Plan.Nodes[i].Compute
			t.Cores, t.Threads = append(t.Cores, max(c.Cores, 1)), append(t.Threads, max(c.Threads, 1))
		}
	}
	if err := p.Spec.Fits(t.Train.Name, t.Train.Inputs, t.Train.Classes); err != nil {
		return nil, err
	}
	if p.Spec.Weights != nil {
		if t.Weights, err = p.Spec.Weights.For(data.Train.Classes, counts); err != nil {
			return nil, err
		}
	}
	if t.Shards, err = split(t); err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, syntax.Errorf(p.Spec.ModelSection, "%w", err)
	}
	epoch := float64(p.epochSamples(t.Train.Len()))
	if p, err = p.resolve(epoch); err != nil {
		return nil, err
	}
	t.Method = optim.Clock(t.Method, p.pace(epoch).Batches*float64(t.Batch), epoch)
	return t, nil
}

// maxSentValues bounds inputs × samples of a set that is sent: 8 GiB, of which only those that come
// take memory.
const maxSentValues = 1 << 31

// SentTask puts together what a run trains of samples that are to come.
func (p *Point) SentTask(m *protos.SampleSet, seed uint64) (*train.Task, error) {
	if m == nil || m.Inputs < 1 || m.Length < 1 || int64(m.Inputs)*int64(m.Length) > maxSentValues {
		return nil, fmt.Errorf("the samples to be sent are %d of %d inputs; accepted are up to %d values",
			m.GetLength(), m.GetInputs(), int64(maxSentValues))
	}
	data := &shelf.Samples{Train: &datasets.Set{
		Name: m.Name, Inputs: int(m.Inputs), Classes: m.Classes,
		X: make([]float32, int(m.Inputs)*int(m.Length)), Y: make([]int32, m.Length),
	}}
	if len(m.Counts) != len(m.Classes) {
		return nil, fmt.Errorf("%d counts of %d classes were sent", len(m.Counts), len(m.Classes))
	}
	counts := make([]int, len(m.Counts))
	for i, n := range m.Counts {
		if counts[i] = int(n); n < 0 {
			return nil, fmt.Errorf("class %s has %d samples", m.Classes[i], n)
		}
	}
	return p.taskOf(data, counts, seed, func(t *train.Task) (shards [][]int32, err error) {
		total := int64(0)
		for _, n := range m.Shards {
			if total += int64(n); n < 0 || total > math.MaxInt32 {
				return nil, fmt.Errorf("a shard of %d samples, %d so far", n, total)
			}
			shards = append(shards, make([]int32, n))
		}
		return shards, nil
	})
}

// epochSamples is how many of the training samples make an epoch.
func (p *Point) epochSamples(samples int) int {
	if a, ok := p.Spec.Architecture.(train.Epochs); ok {
		return a.EpochSamples(samples)
	}
	return samples
}

// profile is the emulated speed of a node. The speed of one whose steps take a given
// time is that at which a full batch takes it.
func profile(c plan.Compute, model nn.Model, batch int) world.Profile {
	p := world.Profile{Cores: max(c.Cores, 1), Speed: float64(c.Speed)}
	switch {
	case c.Native:
		p.Speed = world.Unlimited.Speed
	case c.Step != nil:
		p.Step = time.Duration(*c.Step)
		if w := c.Wander; w != nil {
			p.Wander = world.Wander{By: w.By, Min: w.Min, Max: w.Max}
		}
		p.Speed = model.Work(batch) / p.Step.Seconds()
	}
	return p
}

// network links the nodes of a point, and the coordinator as the last one, lays cuts over the links
// and returns what the schedule does to them besides.
func (p *Point) network(seed uint64, cuts []faults.Cut) (n *link.Network, names []string, changes []link.Change) {
	names = append(p.names(), actors.Coordinator)
	n = link.New(seed, names)
	if p.Spec.Plan.Network.Fair {
		n.ShareFairly()
	}
	n.SetDefault(p.Spec.Default)
	var configs func(from, to int32) *link.Config
	if current := p.Spec.Links.Start(); current != nil {
		configs, changes = current.Config, current.Changes(n)
	}
	if len(cuts) > 0 {
		configs = faults.Over(cuts, p.Spec.Default, configs).Config
	}
	if configs != nil {
		n.SetConfigs(configs)
	}
	for i := range p.Spec.Access {
		a := &p.Spec.Access[i]
		n.SetUplink(int32(i), a.Uplink)
		n.SetDownlink(int32(i), a.Downlink)
		n.SetAccess(int32(i), a.Delay)
	}
	return n, names, changes
}

// names returns the names of a point's nodes.
func (p *Point) names() (names []string) {
	for i := range p.Spec.Plan.Nodes {
		names = append(names, p.Spec.Plan.Nodes[i].Name)
	}
	return names
}

// roles returns the roles of a point's nodes.
func (p *Point) roles() (roles []string) {
	for i := range p.Spec.Roles {
		roles = append(roles, p.Spec.Roles[i].Name)
	}
	return roles
}

// Scheduled is the plan of a run of the point with a seed, with what its faults, and the times at
// which nodes are available, come to as a part of its schedule.
func (p *Point) Scheduled(seed uint64) *plan.Plan {
	return faults.Schedule(p.Spec.Plan, p.roles(), seed)
}

// Positions are the places of names.
func Positions(names []string) map[string]int32 {
	at := make(map[string]int32, len(names))
	for i, name := range names {
		at[name] = int32(i)
	}
	return at
}

// graphs carries the topologies of a point out on the nodes of these names. Each random topology
// draws from a separate stream, so that adding one to the schedule changes no other.
func (p *Point) graphs(seed uint64, names []string) ([]actors.Graph, error) {
	var graphs []actors.Graph
	for i, t := range p.Spec.Topologies {
		purpose := "topology"
		if i > 0 {
			purpose += " at " + t.At.String()
		}
		g, err := topology.NewGraph(t.Topology, names, rand.New(actors.Source(seed, actors.Coordinator, purpose)))
		if err != nil {
			return nil, syntax.Errorf(t.Section, "%w", err)
		}
		graphs = append(graphs, actors.Graph(g))
	}
	return graphs, nil
}

// topologyChanges are the instants from which the graphs after the first one hold.
func (p *Point) topologyChanges() (changes []coordinator.TopologyChange) {
	for i, t := range p.Spec.Topologies {
		if i > 0 {
			changes = append(changes, coordinator.TopologyChange{At: t.At, Topology: i})
		}
	}
	return changes
}

// nodeChanges are what the schedule does to nodes.
func nodeChanges(p *plan.Plan) (changes []world.NodeChange) {
	events := map[string]world.NodeEvent{plan.Crash: world.Crash, plan.Leave: world.Leave, plan.Join: world.Join,
		plan.Pause: world.Pause, plan.Killed: world.Crash}
	for _, e := range p.NodeEvents() {
		if e.Do == plan.Slow {
			continue
		}
		c := world.NodeChange{At: time.Duration(e.At), Node: e.Node, Do: events[e.Do], For: time.Duration(e.For)}
		if end := time.Duration(p.Stop.Time); end > 0 && c.At < end {
			c.For = min(c.For, end-c.At) // because the run ends on time, with the models of paused nodes
		}
		changes = append(changes, c)
	}
	return changes
}

// slowdowns are when the schedule slows each node down, by position.
func slowdowns(p *plan.Plan) map[int][]world.Slowdown {
	slow := map[int][]world.Slowdown{}
	for _, e := range p.NodeEvents() {
		if e.Do == plan.Slow {
			slow[e.Node] = append(slow[e.Node], world.Slowdown{From: time.Duration(e.At),
				To: time.Duration(e.At + e.For), Factor: e.Factor})
		}
	}
	return slow
}

// Notes are what a venue of several processes records of a run.
type Notes interface {
	// Elsewhere returns the counters of edges that begin in other processes, in any order: of these
	// and of former lives of theirs.
	Elsewhere() (now, former []record.Link)
	// Incidents are what was noticed until now.
	Incidents() []record.Incident
	// Held calls a function while nothing comes in, when a cut begins.
	Held(cut uint64, do func())
}

// Stage is a run before it happens.
type Stage struct {
	Point *Point
	// Task is what is trained, and Deployment who trains it.
	Task       *train.Task
	Deployment *world.Deployment
	// Names lists the nodes, and the coordinator last; Network links them, and
	// Changes are what the plan's schedule does to it.
	Names   []string
	Network *link.Network
	Changes []link.Change
	// Threads is how many threads of this process can compute for the run.
	Threads int
	// Locked calls do while nobody uses the network. A venue whose world goes on meanwhile sets it.
	Locked func(do func())
	// Notes are what the venue records beside the collector; nil if it does nothing of the kind. A
	// venue that does sets them.
	Notes Notes
	// Collector records the run. The code that runs it sets it before.
	Collector *record.Collector

	holders   []int // nodes that hold a model
	joint     bool  // the holders have one model among them
	result    coordinator.Result
	recorders []state.Declared    // recorders of the run, saved with its checkpoints
	saves     *checkpoint.Run     // nil where no state is saved
	events    *checkpoint.Counted // nil where they are not kept
	audit     *sim.Audit          // nil where nobody watches
	once      *faults.Once        // before all who observe the run
	tally     *faults.Tally       // nil where nothing disturbs the run
	from      *live.State         // where it goes on in real time; nil for its beginning
	kept      kept
	before    []record.Link     // what was sent before a run in real time went on
	past      []record.Incident // and what happened to it
}

// Stage makes the deployment of a point.
func (p *Point) Stage(task *train.Task, strict bool, threads int) (*Stage, error) {
	p, err := p.resolve(float64(p.epochSamples(task.Train.Len())))
	if err != nil {
		return nil, refusal.Input(err)
	}
	s := &Stage{Point: p, Task: task, Threads: threads, Locked: func(do func()) { do() }}
	scheduled := p.Scheduled(task.Seed)
	s.Network, s.Names, s.Changes = p.network(task.Seed, faults.Cuts(scheduled))
	s.Deployment = &world.Deployment{
		Seed: task.Seed, Strict: strict, Bounded: p.Spec.Plan.Stop.Time > 0,
		Until:    time.Duration(p.Spec.Plan.Stop.Time),
		Schedule: nodeChanges(scheduled), Detect: time.Duration(p.Spec.Plan.Detect), Lossy: p.Spec.Links.Drop(),
		Reliable: p.reliable(),
	}
	if s.Deployment.Topologies, err = p.graphs(task.Seed, s.Names[:len(p.Spec.Plan.Nodes)]); err != nil {
		return nil, refusal.Input(err)
	}
	absent, slow := scheduled.Absent(), slowdowns(scheduled)
	copied, flush := false, false
	for i := range p.Spec.Plan.Nodes {
		node, role := &p.Spec.Plan.Nodes[i], p.Spec.Roles[i]
		if copied = copied || role.Copied; role.Holds {
			s.holders, s.joint, flush = append(s.holders, i), role.Joint, role.Flushes
		}
		s.Deployment.Nodes = append(s.Deployment.Nodes, world.Node{
			Name: node.Name, Role: role.Name, Profile: profile(node.Compute, task.Model, task.Batch), Absent: absent[i],
			Kind: p.Spec.Architecture.Kind(task, train.Place{Node: i, Name: node.Name, Role: role.Name}),
		})
		s.Deployment.Nodes[i].Profile.Slowdowns = slow[i]
		if p.Spec.Sites != nil {
			s.Deployment.Nodes[i].Site = p.Spec.Sites[i]
		}
	}
	if err := p.checkTopologies(s.Deployment); err != nil {
		return nil, refusal.Input(err)
	}
	run := coordinator.Run{
		Policy: policy(p.Spec.Plan), Samples: p.epochSamples(task.Train.Len()), Holders: s.holders,
		Joint: s.joint, Flush: flush, Survives: copied, Topologies: p.topologyChanges(), Result: &s.result,
	}
	run.Evaluate = unknown
	if !p.blind {
		evaluateWith(&run, task, threads, p.Spec.Plan.Evaluate.Early)
	}
	s.Deployment.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	return s, nil
}

// evaluateWith has a run's models judged by the test set of its task, which is laid out when it is
// needed first.
func evaluateWith(run *coordinator.Run, task *train.Task, threads int, early bool) {
	samples := sync.OnceValue(task.TestSamples)
	if early {
		samples = sync.OnceValue(task.ShuffledTestSamples)
	}
	evaluators := sync.Pool{New: func() any { return task.NewEvaluator(samples(), threads) }}
	judge := func(by func(e *train.Evaluator) train.Verdict) train.Verdict {
		e := evaluators.Get().(*train.Evaluator)
		defer evaluators.Put(e)
		return by(e)
	}
	run.Evaluate = func(params []float32) train.Verdict {
		return judge(func(e *train.Evaluator) train.Verdict { return e.Evaluate(params) })
	}
	run.Vote = func(models [][]float32) train.Verdict {
		return judge(func(e *train.Evaluator) train.Verdict { return e.Vote(models) })
	}
	if early {
		run.EvaluateBelow = func(params []float32, target float64) train.Verdict {
			return judge(func(e *train.Evaluator) train.Verdict { return e.EvaluateBelow(params, target) })
		}
	}
}

// observe has a collector record the run.
func (s *Stage) observe(c record.Config) {
	c.Links, c.Until = s.links, s.Deployment.Until
	for i, n := range s.Deployment.Nodes {
		role := s.Point.Spec.Roles[i]
		c.Nodes, c.Trains, c.Holds = append(c.Nodes, n.Name), append(c.Trains, role.Trains), append(c.Holds, role.Holds)
	}
	s.Collector = record.NewCollector(c)
	s.once = faults.NewOnce(s.Collector, len(c.Nodes))
	s.Deployment.Observer, s.recorders = s.once, []state.Declared{s.Collector, s.once}
}

// fit checks that the architecture can run with the nodes and topologies of the plan's own seed. It
// returns the graph that a run begins with.
func (p *Point) fit() (first actors.Graph, err error) {
	d := &world.Deployment{}
	if d.Topologies, err = p.graphs(p.Spec.Plan.Seed, p.names()); err != nil {
		return nil, err
	}
	absent := p.Scheduled(p.Spec.Plan.Seed).Absent()
	for i, n := range p.Spec.Plan.Nodes {
		d.Nodes = append(d.Nodes, world.Node{Name: n.Name, Role: p.Spec.Roles[i].Name, Absent: absent[i]})
		if p.Spec.Sites != nil {
			d.Nodes[i].Site = p.Spec.Sites[i]
		}
	}
	return d.Topologies[0], p.checkTopologies(d)
}

// checkTopologies checks that the architecture can run with every topology of the deployment.
func (p *Point) checkTopologies(d *world.Deployment) error {
	f, picky := p.Spec.Architecture.(train.Fitter)
	if !picky {
		return nil
	}
	views := d.Views()
	first := views.First()
	now, section := first, p.Spec.ArchitectureSection
	for i, t := range p.Spec.Topologies {
		if i > 0 {
			now, section = views.Of(&protos.View{Number: uint64(i) + 1, Topology: uint32(i)}), t.Section
		}
		if err := f.Fit(first, now); err != nil {
			return catalog.Located(section, err)
		}
	}
	return nil
}

func policy(p *plan.Plan) coordinator.Policy {
	c := coordinator.Policy{
		Every: coordinator.Interval{Epochs: p.Evaluate.Every.Epochs, Steps: p.Evaluate.Every.Steps,
			Rounds: p.Evaluate.Every.Rounds, Time: time.Duration(p.Evaluate.Every.Time)},
		Epochs: p.Stop.Epochs, Steps: p.Stop.Steps, Rounds: p.Stop.Rounds, Time: time.Duration(p.Stop.Time),
	}
	if p.Evaluate.Sample != nil {
		c.Sample = *p.Evaluate.Sample
	}
	if p.Evaluate.Lag != nil {
		c.Lag = time.Duration(*p.Evaluate.Lag)
	}
	c.Target, c.GoOn = Target(p)
	c.Of = actors.Of(p.Evaluate.Of)
	return c
}

// Target is the accuracy that a plan wants to know the time of, and whether its runs
// go on when they are there. A plan without one has the target 0.
func Target(p *plan.Plan) (accuracy float64, goOn bool) {
	switch {
	case p.Stop.Target != nil:
		return float64(*p.Stop.Target), false
	case p.Evaluate.Target != nil:
		return float64(*p.Evaluate.Target), true
	}
	return 0, false
}

// links are the counters of every used edge, in whatever process it begins, in the order of the
// nodes.
func (s *Stage) links() []record.Link {
	links, before := s.carried()
	if s.Notes == nil && s.before == nil {
		return links
	}
	return traffic.Sum(s.Names, before, links)
}

// carried are the counters of every used edge, in any order: since its process began or went on,
// and before.
func (s *Stage) carried() (links, before []record.Link) {
	links, before = s.OwnLinks(), s.before
	if s.Notes != nil {
		now, former := s.Notes.Elsewhere()
		links, before = append(links, now...), slices.Concat(before, former)
	}
	return links, before
}

// OwnLinks returns the counters of every edge used in this process. Beyond link.MaxPairs edges it
// returns the sums over each node's edges.
func (s *Stage) OwnLinks() (links []record.Link) {
	s.Locked(func() { links = traffic.Of(s.Names, s.Network.Used()) })
	return links
}

// judged names the nodes that the last evaluation was of; nil where one node holds the model, or
// several hold it jointly.
func (s *Stage) judged() *record.Judged {
	if len(s.holders) < 2 || s.joint {
		return nil
	}
	j := &record.Judged{Count: len(s.result.Models), Nodes: []string{}}
	for _, m := range s.result.Models[:min(j.Count, record.MaxJudged)] {
		j.Nodes = append(j.Nodes, s.Names[m.Node])
	}
	return j
}

// Workers are the positions of the nodes that train.
func (s *Stage) Workers() (nodes []int) {
	for i, r := range s.Point.Spec.Roles {
		if r.Trains {
			nodes = append(nodes, i)
		}
	}
	return nodes
}
