package experiment

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/nn"
)

// A counting run sends the plan's messages and trains nothing: every gradient is zero, and no model is
// evaluated. Messages, sizes and times equal those of a training run if no message depends on trained
// values (see train.Predictable) and no target ends the run.

// counted converts points for counting runs: it removes targets, checkpoints and candidates to tune.
// It returns an error about the first point whose messages depend on trained values.
func counted(points []Point) ([]Point, error) {
	counts := make([]Point, len(points))
	for i := range points {
		if err := points[i].countable(); err != nil {
			return nil, refusal.Input(points[i].About(err))
		}
		counts[i] = points[i].counted()
	}
	return counts, nil
}

// counted converts the point for a counting run.
func (p *Point) counted() Point {
	c, spec, own := *p, *p.Spec, *p.Spec.Plan
	own.Stop.Target, own.Evaluate.Target, own.Evaluate.Early, own.Checkpoint = nil, nil, false, nil
	spec.Plan, c.Spec, c.candidates = &own, &spec, nil
	c.blind, c.counts = true, true
	return c
}

// countable returns an error if the messages of a run of the point depend on trained values.
func (p *Point) countable() error {
	if err := predictable(p.Spec); err != nil {
		return err
	}
	for _, a := range p.Spec.Plan.Tune.Axes {
		if !strings.HasPrefix(a.Path, "train.optimizer.rate") {
			return syntax.Errorf(p.Spec.Plan.Tune.Source, "%s is chosen by training, and may change what is sent; for "+
				"a run that only counts give it a value with --set, and no tune: with --set tune=", a.Path)
		}
	}
	return nil
}

// predictable returns an error if the architecture's messages depend on trained values, or if it does
// not state whether they do.
func predictable(s *catalog.Spec) error {
	a, says := s.Architecture.(train.Predictable)
	if !says {
		return syntax.Errorf(s.ArchitectureSection, "this architecture does not say whether what it sends depends on "+
			"what it trains, so its messages cannot be counted without training (train.Predictable)")
	}
	if by := a.SendsBy(); by != "" {
		return syntax.Errorf(
			s.ArchitectureSection,
			"messages depend on trained values (%s), so they cannot be counted "+
				"without training; accepted are moved: 0, and architectures other than gaia and in-network",
			by,
		)
	}
	return nil
}

// untrained returns the task with a model whose gradients are zero.
func untrained(t *train.Task) *train.Task {
	counts := *t
	counts.Model = zeroModel{t.Model}
	return &counts
}

// zeroModel has the size and the work of a model, and gradients of zero.
type zeroModel struct{ nn.Model }

func (zeroModel) Init(params []float32, _ *rand.Rand) { clear(params) }

func (m zeroModel) NewWorkspace(int) nn.Workspace { return zeroWorkspace{} }

type zeroWorkspace struct{ nn.Workspace }

func (zeroWorkspace) Gradient(_, grad []float32, _ nn.Batch) (loss float64) {
	clear(grad)
	return 0
}

// unknown is the verdict on an untrained or unevaluated model.
func unknown([]float32) train.Verdict {
	return train.Verdict{Accuracy: math.NaN(), Loss: math.NaN()}
}

// markCounted marks the record of a counting run, and drops the measurements of its models.
func markCounted(r *record.Run, d *record.Data) {
	r.Counted, r.Digest, r.Evaluations, r.Judged, r.Unmeasured = true, "", 0, nil, 0
	if r.Outcome == record.Done {
		r.Outcome = record.CountedOnly
	}
	d.Models, d.Measured = nil, nil
}
