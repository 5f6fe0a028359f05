package train

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// Local computes the training steps of one worker: which batch comes next, and
// the gradient of the model on it. It computes one step at a time.
type Local struct {
	env       actors.Env
	task      *Task
	client    int // the client that this worker plays, counted from 1; 0 without a population
	model     nn.Model
	cores     int
	sampler   *datasets.Sampler
	workspace nn.Workspace
	sparse    *nn.Sparse // sparse inputs of all samples, or nil
	x         []float32  // dense inputs of a batch, if there are no sparse ones
	y, rows   []int32
	step      uint64
	walked    uint64 // steps of all passes, those that were left out included
	mislabels bool   // see Mislabel
	weights   []float32
	seed      uint64 // of what a layer draws in step 0; each step has its own
	params    *protos.Tensor
	gradient  Gradient
	compute   func() any
}

// Gradient is the result of a step. It arrives as a message of the actor that
// began the step, who calls Done with it.
type Gradient struct {
	// Values is the gradient of the mean loss of the batch; the receiver owns it.
	Values *protos.Tensor
	// Loss is the mean loss over the batch, weighted if the classes have weights.
	Loss float64
	// Samples is the size of the batch.
	Samples int
	// Step is the worker's count of steps, this one included.
	Step uint64
}

// NewLocal prepares the steps of the worker that lives in env.
func (t *Task) NewLocal(env actors.Env) (*Local, error) {
	worker, err := t.Worker(env.View(), env.Node())
	if err != nil {
		return nil, err
	}
	name := t.Workers[worker]
	sampler, err := datasets.NewSampler(t.Train, t.Shards[worker], t.Batch, t.Seed, name)
	if err != nil {
		return nil, err
	}
	l := &Local{
		env:     env,
		task:    t,
		model:   t.Model,
		sampler: sampler,
		cores:   t.cores(worker),
		sparse:  t.Sparse,
		weights: t.Weights,
		y:       make([]int32, t.Batch),
	}
	if t.Sparse != nil {
		l.rows = make([]int32, t.Batch)
	} else {
		l.x = make([]float32, t.Batch*t.Model.Inputs())
	}
	l.workspace = workspace(t.Model, t.Batch, l.cores)
	l.seed = actors.Source(t.Seed, name, "dropout").Uint64()
	l.compute = l.run
	return l, nil
}

// Begin starts the step on the next batch. It takes over one reference to params,
// which nobody may write until Done.
func (l *Local) Begin(params *protos.Tensor) {
	if l.params != nil {
		l.env.Fail(errors.New("a step began before the one before was done"))
		return
	}
	l.params = params
	l.gradient = Gradient{Values: l.env.Tensors().Get(l.model.Params()), Step: l.step + 1}
	l.gradient.Samples = l.size()
	l.env.Compute(actors.Job{Do: l.compute, Work: l.model.Work(l.gradient.Samples), Cores: l.cores, Step: true})
}

// cores is how many a step of a worker is computed on.
func (t *Task) cores(worker int) int {
	if t.Cores == nil {
		return 1
	}
	return max(t.Cores[worker]/t.threads(worker), 1)
}

// threads is how many a worker has.
func (t *Task) threads(worker int) int {
	if t.Threads == nil {
		return 1
	}
	return max(t.Threads[worker], 1)
}

// workspace is one that shares its work among as many threads as there are cores, if
// the model can; the results do not depend on that.
func workspace(m nn.Model, batch, cores int) nn.Workspace {
	parallel, ok := m.(interface {
		NewParallelWorkspace(maxBatch, threads int) nn.Workspace
	})
	if threads := min(cores, runtime.NumCPU()); ok && threads > 1 {
		return parallel.NewParallelWorkspace(batch, threads)
	}
	return m.NewWorkspace(batch)
}

// Resume continues the walk through the shard after a number of steps, as if this worker had
// made them. It must not be called while a step is under way.
func (l *Local) Resume(steps uint64) { l.step, l.walked = steps, steps }

// Pass goes on with the first batch of a pass through the shard, counted from 0. It must not be
// called while a step is under way.
func (l *Local) Pass(pass uint64) { l.walked = pass * uint64(l.sampler.Steps()) }

// Mislabel has the worker take each sample of class y, of c classes, for one of class c − 1 − y, as
// an attacker does.
func (l *Local) Mislabel() { l.mislabels = true }

// Steps is how many a pass through the shard takes.
func (l *Local) Steps() int { return l.sampler.Steps() }

// Samples is how many samples the worker's shard has.
func (l *Local) Samples() int { return l.sampler.Len() }

// Become goes on as a client of the task's population, of which this worker is the host, as if the
// client had made a number of visits before. Each visit is as many steps as visit makes of those of
// a pass. It must not be called while a step is under way.
func (l *Local) Become(t *Task, client int, visits uint64, visit func(pass int) int) error {
	sampler, err := t.clientSampler(client)
	if err != nil {
		return err
	}
	l.sampler, l.client = sampler, client+1
	l.walked = visits * uint64(visit(sampler.Steps()))
	l.seed = actors.Source(t.Seed, clientName(client), "dropout").Uint64() + l.walked - l.step
	return nil
}

func (l *Local) position() (pass, step int) {
	return int(l.walked) / l.sampler.Steps(), int(l.walked) % l.sampler.Steps()
}

// size is that of the next batch.
func (l *Local) size() int {
	_, step := l.position()
	return min(l.sampler.Batch(), l.sampler.Len()-step*l.sampler.Batch())
}

// run is the step's computation: it reads params and the shard, and writes the
// gradient and the worker's own buffers.
func (l *Local) run() any {
	pass, step := l.position()
	batch := nn.Batch{Sparse: l.sparse, Seed: l.seed + l.step, Weights: l.weights}
	if l.sparse != nil {
		n := l.sampler.Rows(pass, step, l.rows, l.y)
		batch.Rows, batch.Y = l.rows[:n], l.y[:n]
	} else {
		n := l.sampler.Fill(pass, step, l.x, l.y)
		batch.X, batch.Y = l.x[:n*l.model.Inputs()], l.y[:n]
	}
	if l.mislabels {
		for i, y := range batch.Y {
			batch.Y[i] = int32(l.model.Classes()) - 1 - y
		}
	}
	l.gradient.Loss = l.workspace.Gradient(l.params.Data, l.gradient.Values.Data, batch)
	return &l.gradient
}

// Done ends the step that g is the result of: the parameters are given back and
// the step is recorded.
func (l *Local) Done(g *Gradient) {
	l.End()
	l.Record(g)
}

// End gives back the parameters of the step whose result has come. With Record it is
// Done, for workers whose models take the step in only later. A step that has diverged ends
// the run with a DivergedError.
func (l *Local) End() {
	l.params.Release()
	l.params = nil
	l.check(&l.gradient)
}

// check ends the run if a step has diverged.
func (l *Local) check(g *Gradient) {
	if math.IsNaN(g.Loss) || math.IsInf(g.Loss, 0) {
		l.env.Fail(&DivergedError{Node: l.env.View().Members[l.env.Node()].Name, Step: g.Step, Loss: g.Loss})
	}
}

// DivergedError ends a run in which the loss of a step is not a finite number.
type DivergedError struct {
	// Node is the name of the node that made the step, and Step its count of steps, this one
	// included.
	Node string
	Step uint64
	// Loss is the mean over the batch.
	Loss float64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("node %s: training has diverged: the loss of step %d is %v; a lower learning rate may help",
		e.Node, e.Step, e.Loss)
}

// Record counts and records the step that g is the result of, before the next begins.
func (l *Local) Record(g *Gradient) {
	l.step = g.Step
	l.walked++
	l.env.Record(actors.Event{Kind: actors.StepDone, Step: g.Step, Samples: g.Samples, Loss: g.Loss})
}
