package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Teams is an Architecture whose workers can make their steps by several threads, where a setting
// allows it.
type Teams interface {
	// CheckThreads returns an error that says why threads of a worker would have nothing to share.
	CheckThreads() error
}

// CheckThreads returns an error that says why nodes of a role cannot have several threads.
func CheckThreads(a Architecture, role Role, m optim.Method) error {
	if !role.Trains {
		return fmt.Errorf("its role %s makes no steps", role.Name)
	}
	teams, able := a.(Teams)
	if !able {
		return errors.New("in this architecture the model is exchanged or merged after each step, so threads have " +
			"nothing to share; parameter-server and all-reduce of models with every: 2 or more, and local, have")
	}
	if err := teams.CheckThreads(); err != nil {
		return err
	}
	return CheckTeam(m)
}

// Team makes rounds of steps by several threads of one worker, which change one copy of the
// parameters without locks (F. Niu et al., "Hogwild!: A Lock-Free Approach to Parallelizing
// Stochastic Gradient Descent", NIPS 2011, algorithm 1; T. Chilimbi et al., "Project Adam", OSDI
// 2014, section 4.1). A thread reads the copy when its step begins. When the step ends it subtracts
// the gradient times the rate. Batches and rates are those that the worker's Local would take one
// after the other.
type Team struct {
	env     actors.Env
	local   *Local
	method  optim.SGD
	work    float64 // of a step's update
	shared  *nn.Shared
	threads []*Local
	sums    [][]float32 // by thread: the sum of its gradients; nil without sums
	job     actors.Team // functions of a round: methods of the team
	busy    bool
	step    uint64 // of the worker before the round
	walked  uint64
	round   Round
}

// Round is the result of a team's round. It arrives as a message of the actor that began the round,
// who calls Done with it.
type Round struct {
	// Steps are in the order in which they began.
	Steps []TeamStep
	// Samples is how many all of them had.
	Samples int
}

// TeamStep is a step of a Round. It has no Values.
type TeamStep struct {
	Gradient
	// Staleness is how many updates of other steps the copy took in after the step had read it and
	// before it took in the step's own.
	Staleness uint64
}

// NewTeam prepares the rounds of the worker that lives in env, whose Local counts the steps. With
// summed the team keeps the sum of a round's gradients. It returns nil for a worker of one thread,
// and an error for an optimizer other than SGD, see [CheckTeam].
func (t *Task) NewTeam(env actors.Env, local *Local, summed bool) (*Team, error) {
	worker, err := t.Worker(env.View(), env.Node())
	if err != nil || t.threads(worker) == 1 {
		return nil, err
	}
	if err := CheckTeam(t.Method); err != nil {
		return nil, err
	}
	n := t.Model.Params()
	m := &Team{env: env, local: local, method: t.Method.(optim.SGD), shared: nn.NewShared(n)}
	m.work = m.method.New(n).Work(n)
	if summed {
		m.work += float64(n)
	}
	for range t.threads(worker) {
		l, err := t.NewLocal(env)
		if err != nil {
			return nil, err
		}
		l.params, l.gradient.Values = protos.NewTensor(make([]float32, n)), protos.NewTensor(make([]float32, n))
		m.threads = append(m.threads, l)
		if summed {
			m.sums = append(m.sums, make([]float32, n))
		}
	}
	m.job = actors.Team{Threads: len(m.threads), Cores: t.cores(worker), Begin: m.begin, End: m.end,
		Result: func() any { return &m.round }}
	return m, nil
}

// CheckTeam returns an error unless threads without locks can share the optimizer: SGD, as in the
// papers, remembers nothing of a step. What others remember belongs to one sequence of steps.
func CheckTeam(method optim.Method) error {
	if _, ok := method.(optim.SGD); !ok {
		return fmt.Errorf("threads that share a model need an optimizer that remembers nothing of earlier " +
			"gradients: sgd without momentum")
	}
	return nil
}

// Threads is how many there are.
func (t *Team) Threads() int { return len(t.threads) }

// Begin starts a round of a number of steps, at least 1, on a copy of params, of which it takes
// over one reference.
func (t *Team) Begin(params *protos.Tensor, steps int) {
	defer params.Release()
	if t.busy {
		t.env.Fail(errors.New("a round began before the one before was done"))
		return
	}
	t.busy = true
	t.shared.Store(params.Data)
	for _, sum := range t.sums {
		clear(sum)
	}
	t.step, t.walked = t.local.step, t.local.walked
	t.round = Round{Steps: slices.Grow(t.round.Steps[:0], steps)[:steps]}
	t.job.Steps, t.job.Work = steps, 0
	next := t.threads[0]
	for i := range t.round.Steps {
		next.walked = t.walked + uint64(i)
		g := Gradient{Step: t.step + uint64(i) + 1, Samples: next.size()}
		t.round.Steps[i] = TeamStep{Gradient: g}
		t.round.Samples += g.Samples
		t.job.Work += next.model.Work(g.Samples)
	}
	t.env.ComputeTeam(t.job)
}

// begin reads the copy and computes the gradient on it.
func (t *Team) begin(thread, step int) {
	l, s := t.threads[thread], &t.round.Steps[step]
	l.step, l.walked = t.step+uint64(step), t.walked+uint64(step)
	s.Staleness = t.shared.Load(l.params.Data)
	l.run()
	s.Loss = l.gradient.Loss
}

// end changes the copy by the gradient.
func (t *Team) end(thread, step int) {
	l, s := t.threads[thread], &t.round.Steps[step]
	gradient := l.gradient.Values.Data
	if t.sums != nil {
		nn.AddScaled(t.sums[thread], 1, gradient)
	}
	if decay := t.method.WeightDecay; decay != 0 {
		nn.AddScaled(gradient, float32(decay), l.params.Data)
	}
	rate := t.method.Rate.Rate(int(t.step) + step)
	s.Staleness = t.shared.AddScaled(float32(-rate), gradient) - s.Staleness
}

// Done ends a round: its steps are recorded, and the work of their updates is charged.
func (t *Team) Done(r *Round) {
	t.End()
	for i := range r.Steps {
		t.local.Record(&r.Steps[i].Gradient)
	}
}

// End charges the work of the round's updates. With Record of each step it is Done, for workers
// whose last step counts only later. A step that has diverged ends the run with a DivergedError.
func (t *Team) End() {
	t.busy = false
	turns := (len(t.round.Steps) + len(t.threads) - 1) / len(t.threads)
	t.env.Charge(float64(turns) * t.work)
	for i := range t.round.Steps {
		t.local.check(&t.round.Steps[i].Gradient)
	}
}

// Model is what the last round has made of the copy, for the caller to own.
func (t *Team) Model() *protos.Tensor {
	model := t.env.Tensors().Get(len(t.threads[0].params.Data))
	t.shared.Load(model.Data)
	return model
}

// Sum is the sum of the last round's gradients, thread by thread, of a team that keeps it, for the
// caller to own.
func (t *Team) Sum() *protos.Tensor {
	sum := t.env.Tensors().Copy(t.sums[0])
	for _, other := range t.sums[1:] {
		nn.AddScaled(sum.Data, 1, other)
	}
	return sum
}
