package train

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// Verdict is what an evaluation finds.
type Verdict struct {
	// Accuracy is the share of the samples that are classified correctly.
	Accuracy float64
	// Loss is the mean loss a sample.
	Loss float64
}

// Evaluator judges models by a test set, one at a time.
type Evaluator struct {
	samples   *nn.Samples
	workspace nn.Workspace
	logits    []float32
}

// evaluationBatch is the number of samples that one walk through the network takes.
const evaluationBatch = 256

// TestSamples lays the test set out for the task's model, in the order of the set.
func (t *Task) TestSamples() *nn.Samples { return t.Model.Samples(t.Test.X, t.Test.Y, nil) }

// NewEvaluator judges models of the task by its test set, which has been laid out, each on a number
// of threads.
func (t *Task) NewEvaluator(samples *nn.Samples, threads int) *Evaluator {
	return &Evaluator{samples: samples, workspace: workspace(t.Model, evaluationBatch, threads),
		logits: make([]float32, samples.Len()*t.Model.Classes())}
}

// Evaluate judges the model with the given parameters by the whole test set.
func (e *Evaluator) Evaluate(params []float32) Verdict {
	e.workspace.Logits(params, e.samples, 0, e.samples.Len(), e.logits)
	loss, correct := e.samples.Score(e.logits)
	n := float64(e.samples.Len())
	return Verdict{Accuracy: float64(correct) / n, Loss: loss / n}
}

// AnswerSnapshot answers the coordinator's request with the model's parameters,
// which nobody may write while the coordinator holds them: a holder obtains
// parameters to write from TensorPool.Writable.
func AnswerSnapshot(ctx actor.Context, env actors.Env, request *protos.TakeSnapshot, params *protos.Tensor,
	version uint64) {
	head := &protos.Snapshot{Evaluation: request.Evaluation, Node: int32(env.Node()), Version: version}
	ctx.Send(actors.CoordinatorPID(), protos.NewMessage(head, params.Retain()))
}
