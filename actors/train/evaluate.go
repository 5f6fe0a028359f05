package train

import (
	"math"
	"math/rand/v2"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// Verdict is what an evaluation finds.
type Verdict struct {
	// Accuracy is the share of the samples that are classified correctly.
	Accuracy float64
	// Loss is the mean loss a sample; NaN where Samples is not 0.
	Loss float64
	// Samples is how many of the test samples, drawn at random, the accuracy is estimated by,
	// where it is surely below Below; 0 where it is of the whole test set.
	Samples int
	Below   float64
}

// Evaluator judges models by a test set, one at a time.
type Evaluator struct {
	samples   *nn.Samples
	workspace nn.Workspace
	logits    []float32
	bound     *Bound // the latest
}

// evaluationBatch is the number of samples that one walk through the network takes.
const evaluationBatch = 256

// TestSamples lays the test set out for the task's model, in the order of the set.
func (t *Task) TestSamples() *nn.Samples { return t.Model.Samples(t.Test.X, t.Test.Y, nil) }

// ShuffledTestSamples lays the test set out in an order that the run's seed draws, so that the
// samples from the first one on are a random part of it.
func (t *Task) ShuffledTestSamples() *nn.Samples {
	order := make([]int32, t.Test.Len())
	for i := range order {
		order[i] = int32(i)
	}
	rand.New(actors.Source(t.Seed, actors.Coordinator, "order of the test samples")).Shuffle(len(order),
		func(i, j int) { order[i], order[j] = order[j], order[i] })
	return t.Model.Samples(t.Test.X, t.Test.Y, order)
}

// NewEvaluator judges models of the task by its test set, which has been laid out, each on a number
// of threads.
func (t *Task) NewEvaluator(samples *nn.Samples, threads int) *Evaluator {
	return &Evaluator{samples: samples, workspace: workspace(t.Model, evaluationBatch, threads),
		logits: make([]float32, samples.Len()*t.Model.Classes())}
}

// Evaluate judges the model with the given parameters by the whole test set.
func (e *Evaluator) Evaluate(params []float32) Verdict {
	e.workspace.Logits(params, e.samples, 0, e.samples.Len(), e.logits)
	return e.whole()
}

// Vote judges several models by the class that most of them take a sample for, the first of several
// such. The loss is the mean of theirs.
func (e *Evaluator) Vote(models [][]float32) Verdict {
	votes := make([]float32, len(e.logits))
	var all Verdict
	for _, params := range models {
		all.Loss += e.Evaluate(params).Loss / float64(len(models))
		e.samples.Vote(e.logits, votes)
	}
	all.Accuracy = float64(e.samples.Correct(votes, 0, e.samples.Len())) / float64(e.samples.Len())
	return all
}

// whole is the verdict by the logits of all samples.
func (e *Evaluator) whole() Verdict {
	loss, correct := e.samples.Score(e.logits)
	n := float64(e.samples.Len())
	return Verdict{Accuracy: float64(correct) / n, Loss: loss / n}
}

// EvaluateBelow judges the model with the given parameters by more and more samples, until its
// accuracy is surely below a target, as [Bound] says, or all have been seen. The samples must have
// been laid out at random.
func (e *Evaluator) EvaluateBelow(params []float32, target float64) Verdict {
	if e.bound == nil || e.bound.target != target {
		e.bound = NewBound(e.samples.Len(), target)
	}
	seen, correct := 0, 0
	for _, s := range e.bound.steps {
		e.workspace.Logits(params, e.samples, seen, s.samples-seen, e.logits)
		correct += e.samples.Correct(e.logits, seen, s.samples-seen)
		seen = s.samples
		accuracy := float64(correct) / float64(seen)
		if correct <= s.most {
			return Verdict{Accuracy: accuracy, Loss: math.NaN(), Samples: seen, Below: target}
		}
		if accuracy >= target {
			break // it takes the whole set, most likely
		}
	}
	e.workspace.Logits(params, e.samples, seen, e.samples.Len()-seen, e.logits)
	return e.whole()
}

// AnswerSnapshot answers the coordinator's request with the model's parameters,
// which nobody may write while the coordinator holds them: a holder obtains
// parameters to write from TensorPool.Writable. The version is the number of updates that the model
// is made of. A node that joins a run under way is not evaluated while that is 0, because its model
// is untrained.
func AnswerSnapshot(ctx actor.Context, env actors.Env, request *protos.TakeSnapshot, params *protos.Tensor,
	version uint64) {
	head := &protos.Snapshot{Evaluation: request.Evaluation, Node: int32(env.Node()), Version: version}
	ctx.Send(actors.CoordinatorPID(), protos.NewMessage(head, params.Retain()))
}
