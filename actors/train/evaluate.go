package train

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/datasets"
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
	set       *datasets.Set
	workspace nn.Workspace
}

// evaluationBatch is the number of samples that one walk through the network takes.
const evaluationBatch = 256

// NewEvaluator judges models of the task by its test set, each on a number of threads.
func (t *Task) NewEvaluator(threads int) *Evaluator {
	return &Evaluator{t.Test, workspace(t.Model, evaluationBatch, threads)}
}

// Evaluate judges the model with the given parameters.
func (e *Evaluator) Evaluate(params []float32) Verdict {
	loss, correct := e.workspace.Evaluate(params, nn.Batch{X: e.set.X, Y: e.set.Y})
	n := float64(e.set.Len())
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
