package experiment

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/memory"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/nn"
)

// Estimate is about what one run of a plan takes in virtual time, on one core, beside the data set
// and the evaluation of models. It is good to a factor of three or so: what a run does is counted
// from its plan, and multiplied by what that took in runs of known shapes; see the constants.
type Estimate struct {
	// Memory is the peak memory of the process, in bytes.
	Memory float64
	// Second is the time that a second of virtual time takes, if no node ever waits; 0 if the plan
	// does not say how fast the nodes are.
	Second time.Duration

	sent float64 // bytes in a second of virtual time, if no node ever waits
}

// Estimate checks the plan, as Check does, and returns about what the largest of its runs takes. A
// nil catalog stands for catalog.Default().
func (p *Plan) Estimate(c *catalog.Catalog) (Estimate, error) {
	points, err := p.Points(c)
	if err != nil {
		return Estimate{}, err
	}
	largest, _, err := estimate(points)
	return largest, err
}

// estimate checks points, and returns the approximate cost of a run of each, and the largest cost.
func estimate(points []Point) (largest Estimate, each []Estimate, err error) {
	if err := affordable(points, memory.Limit()); err != nil {
		return largest, nil, err
	}
	for i := range points {
		graph, err := points[i].fit()
		if err != nil {
			return largest, nil, refusal.Input(points[i].About(err))
		}
		e := points[i].estimate(graph)
		each = append(each, e)
		largest.Memory, largest.Second = max(largest.Memory, e.Memory), max(largest.Second, e.Second)
	}
	return largest, each, nil
}

// endless is what a second of virtual time takes of a core in runs that nobody can wait for.
const endless = time.Hour

// Warning says that a run may need more memory than this machine has, or more computation than
// anybody waits for; empty if it does not, or if that is not known.
func (e Estimate) Warning() string {
	if have := memory.Limit(); have.Bytes > 0 && e.Memory > have.Bytes {
		return fmt.Sprintf(
			"a run may take %s of memory, and %s %s",
			memory.Text(e.Memory),
			have.By,
			memory.Text(have.Bytes),
		)
	}
	if e.Second > endless {
		return fmt.Sprintf(
			"a run may take %.2g hours of a core for each second of virtual time; fewer or slower nodes, or "+
				"longer steps, take less",
			e.Second.Hours(),
		)
	}
	return ""
}

// String says what a run takes.
func (e Estimate) String() string {
	text := "a run takes about " + memory.Text(e.Memory) + " of memory"
	if e.Second > 0 {
		text += fmt.Sprintf(", and at most %.2g s of a core for a second of virtual time, in which no node waits",
			e.Second.Seconds())
	}
	return text + "; the data set and evaluation come on top"
}

// What things take, on an Xeon of 2.8 GHz with AVX-512: live bytes of the heap in runs of 16 to
// 100,000 nodes (see TestEstimatedMemoryIsThatOfRuns), and seconds of CPU time in runs of 10 to
// 10,000 nodes, of models of 250 to 250,000 parameters.
const (
	programBytes = 30e6 // of the process before a run
	nodeBytes    = 6e3  // of an actor with its mailbox, sampler, counters and names
	edgeBytes    = 400  // of a pair of nodes that have spoken
	headroom     = 2    // of the heap, before garbage is collected

	heldVectors    = 2 // its model, and one under way
	trainedVectors = 2 // the gradient, and what the optimizer keeps

	stepSeconds    = 10e-6 // of a step beside its arithmetic: events, samples, records
	messageSeconds = 5e-6  // of a message beside its values
	flops          = 1e10  // of a gradient, a second
	copiedBytes    = 1e9   // a second, of models that are sent, received and merged
)

// liveBytes returns the heap, in bytes, of some of a run's nodes.
func liveBytes(s *catalog.Spec, counts func(node int) bool) (live float64) {
	vector := 4 * float64(s.Model.Params())
	joint := map[string]bool{}
	for i, r := range s.Roles {
		if !counts(i) {
			continue
		}
		live += nodeBytes
		if r.Holds && !joint[r.Name] { // those of a joint role have one model among them
			joint[r.Name] = r.Joint
			live += heldVectors * vector
		}
		if r.Trains {
			threads := float64(max(s.Plan.Nodes[i].Compute.Threads, 1))
			live += (trainedVectors+float64(teamVectors(s, i)))*vector + threads*workspaceBytes(s)
		}
	}
	return live
}

// Memory is about how many bytes those nodes take that live in one process, without the samples and
// before garbage is collected.
func (s *Stage) Memory(hosts func(node int) bool) float64 { return liveBytes(s.Point.Spec, hosts) }

// Estimate is about what a run of a point takes.
func (p *Point) Estimate() Estimate {
	graphs, err := p.graphs(p.Spec.Plan.Seed, p.names())
	if err != nil { // the run will say what is wrong
		graphs = []actors.Graph{nil}
	}
	return p.estimate(graphs[0])
}

// estimate returns the approximate cost of a run of the point with an initial graph.
func (p *Point) estimate(graph actors.Graph) Estimate {
	s := p.Spec
	neighbours := neighbours(graph, len(s.Roles))
	workers, steps := 0, 0.0 // steps of all nodes in a second
	vector := 4 * float64(s.Model.Params())
	live := liveBytes(s, func(int) bool { return true })
	for i, r := range s.Roles {
		if r.Trains {
			workers++
			steps += stepsPerSecond(s, i)
		}
	}
	edges := min(neighbours*float64(len(s.Roles)), link.MaxPairs)
	messages, models := 0.0, 0.0
	if m, known := s.Architecture.(train.Messenger); known {
		messages, models = m.Messages(int(neighbours+0.5), workers)
		if sent := time.Duration(s.Plan.Stop.Time).Seconds() * steps * messages; sent > 0 {
			edges = min(edges, sent)
		}
	}
	e := Estimate{Memory: programBytes + headroom*(live+edges*edgeBytes)}
	cost := stepSeconds + s.Model.Work(s.Batch)/flops + messages*messageSeconds + models*vector/copiedBytes
	e.sent = steps * models * vector
	const most = 1e9 // seconds, for a duration that holds them
	e.Second = time.Duration(min(steps*cost, most) * float64(time.Second))
	return e
}

// neighbours is how many a node of a graph has in the mean.
func neighbours(graph actors.Graph, nodes int) float64 {
	if graph == nil {
		return float64(nodes - 1)
	}
	ends := 0
	for _, neighbours := range graph {
		ends += len(neighbours)
	}
	return float64(ends) / float64(nodes)
}

// workspaceBytes is what a worker computes in: its batch, and what each layer gives and is given
// back, of a tile's rows. The outputs of a layer are as many as its biases, or, where each stands
// for many of them, what the arithmetic of kernels of 3 × 3 makes. A batch of sparse rows takes
// less, which shows only in the data.
func workspaceBytes(s *catalog.Spec) float64 {
	rows, given := float64(s.Batch), 0.0
	for _, t := range s.Model.Tensors() {
		if len(t.Shape) == 1 {
			given += 2 * float64(t.Shape[0])
		}
		if len(t.Shape) > 2 {
			given += 2 * s.Model.Work(1) / (6 * 9 * float64(len(s.Model.Tensors())))
		}
	}
	if _, mlp := s.Model.(*nn.MLP); mlp {
		rows = min(rows, nn.TileRows)
		given -= float64(s.Model.Classes()) // the gradient of logits takes their place
	}
	return 4 * (float64(s.Batch*s.Model.Inputs()) + rows*given)
}

// stepsPerSecond is how many steps a node makes in a second of virtual time that waits for nothing;
// 0 if that depends on the machine.
func stepsPerSecond(s *catalog.Spec, node int) float64 {
	switch c := &s.Plan.Nodes[node].Compute; {
	case c.Native:
		return 0
	case c.Step == nil:
		return float64(c.Speed) * float64(max(c.Cores, 1)) / s.Model.Work(s.Batch)
	case *c.Step > 0:
		return float64(max(c.Threads, 1)) / time.Duration(*c.Step).Seconds()
	case s.Delays():
		return 0 // as many as the links let through
	}
	return updatesPerSecond(s) / float64(trainers(s))
}

// mostSteps is stepsPerSecond for the shortest steps of a node whose time varies.
func mostSteps(s *catalog.Spec, node int) float64 {
	c := &s.Plan.Nodes[node].Compute
	speed := stepsPerSecond(s, node)
	if c.Wander != nil && c.Step != nil {
		speed *= time.Duration(*c.Step).Seconds() / c.Wander.Min.Seconds()
	}
	return speed
}

// updatesPerSecond is how many updates the nodes that do not train make of a model in a second of
// virtual time, which is all that steps without a time wait for where no message takes any.
func updatesPerSecond(s *catalog.Spec) (sum float64) {
	for i, r := range s.Roles {
		if c := &s.Plan.Nodes[i].Compute; !r.Trains && !c.Native && c.Step == nil {
			sum += float64(c.Speed) * float64(max(c.Cores, 1)) / s.Method.New(0).Work(s.Model.Params())
		}
	}
	return sum
}

// trainers is how many nodes train.
func trainers(s *catalog.Spec) (n int) {
	for _, r := range s.Roles {
		if r.Trains {
			n++
		}
	}
	return n
}
