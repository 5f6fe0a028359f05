package experiment

import (
	"fmt"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/saved"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/nn"
)

// Evaluated says how well the saved model of a run does, class by class.
type Evaluated struct {
	Run     int          `json:"run"`
	Point   record.Point `json:"point"`
	Seed    uint64       `json:"seed"`
	Classes []string     `json:"classes"`
	// Test is of the samples that the run was tested on.
	Test saved.Judged `json:"test"`
	// Workers are of the samples that each worker trained on, in the order of the nodes.
	Workers []JudgedShard `json:"workers"`
	// OtherData has a sentence for each file whose samples differ from the record's.
	OtherData []string `json:"other_data,omitempty"`
}

// JudgedShard is how well a model does on the samples of a worker.
type JudgedShard struct {
	Worker string `json:"worker"`
	saved.Judged
}

// Evaluate judges the saved model of the run of a folder DIR/runs/NNNN, by the samples that the
// run was tested on and by each worker's, cut and scaled as the record says. Where the run has kept
// the model of each of several nodes, node says whose; else it is empty. Nothing is written. Of the
// options Catalog and Data count. An InputError says what is wrong with the record or the data.
func Evaluate(dir, node string, o Options) (*Evaluated, error) {
	r, err := openRecorded(dir, o)
	if err != nil {
		return nil, err
	}
	if r.run.Counted {
		return nil, refusal.Input(fmt.Errorf("%s: this run was counted, not trained: it has no model", dir))
	}
	params, err := r.params(node)
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("%s: %w", dir, err))
	}
	shelf := shelf.New(o.Data, 1, nil)
	task, err := r.point.Task(shelf, r.run.Seed)
	if err != nil {
		return nil, refusal.Input(err)
	}
	e := &Evaluated{
		Run: r.run.Number, Point: r.run.Point, Seed: r.run.Seed, Classes: task.Train.Classes,
		Test:      saved.Judge(task.Model, params, task.Test),
		OtherData: record.OtherData(r.reader.Summary.Data, shelf.Files()),
	}
	for i, worker := range task.Workers {
		e.Workers = append(e.Workers,
			JudgedShard{worker, saved.Judge(task.Model, params, task.Train.Subset(task.Shards[i]))})
	}
	return e, nil
}

// params are the parameters of the run's saved model, or of a node's.
func (r *recorded) params(node string) ([]float32, error) {
	file, err := r.reader.Run(r.run.Number).Model()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only: nothing is lost
	own := func(map[string]string) (nn.Model, error) { return r.point.Spec.Model, nil }
	params, _, err := saved.Read(file, own, node)
	return params, err
}
