package experiment

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/datasets"
)

// Evaluated says how well the saved model of a run does, class by class.
type Evaluated struct {
	Run     int          `json:"run"`
	Point   record.Point `json:"point"`
	Seed    uint64       `json:"seed"`
	Classes []string     `json:"classes"`
	// Test is of the samples that the run was tested on.
	Test Judged `json:"test"`
	// Workers are of the samples that each worker trained on, in the order of the nodes.
	Workers []JudgedShard `json:"workers"`
	// OtherData has a sentence for each file whose samples differ from the record's.
	OtherData []string `json:"other_data,omitempty"`
}

// JudgedShard is how well a model does on the samples of a worker.
type JudgedShard struct {
	Worker string `json:"worker"`
	Judged
}

// Judged is how well a model does on some samples.
type Judged struct {
	Samples int `json:"samples"`
	// Accuracy is a fraction; NaN, in JSON null, without samples.
	Accuracy record.Float `json:"accuracy"`
	// Confusion counts samples by their class (the row) and the class that the model takes them for
	// (the column).
	Confusion [][]int `json:"confusion"`
	// Undecided counts samples for which the model yields NaN; they are wrong, and in no column.
	Undecided int           `json:"undecided,omitempty"`
	PerClass  []JudgedClass `json:"per_class"`
}

// JudgedClass is how well a model knows a class.
type JudgedClass struct {
	Class   string `json:"class"`
	Samples int    `json:"samples"`
	// Precision is the share of the samples taken for the class that are of it, Recall the share of
	// its samples that are taken for it; NaN, in JSON null, where there are none.
	Precision record.Float `json:"precision"`
	Recall    record.Float `json:"recall"`
}

// Evaluate judges the saved model of the run of a folder DIR/runs/NNNN, by the samples that the
// run was tested on and by each worker's, cut and scaled as the record says. Nothing is
// written. Of the options Catalog and Data count. An InputError says what is wrong with
// the record or the data.
func Evaluate(dir string, o Options) (*Evaluated, error) {
	r, err := openRecorded(dir, o)
	if err != nil {
		return nil, err
	}
	params, err := r.params()
	if err != nil {
		return nil, refusal.Input(fmt.Errorf("%s: %w", dir, err))
	}
	shelf := NewShelf(o.Data, 1, nil)
	task, err := r.point.Task(shelf, r.run.Seed)
	if err != nil {
		return nil, refusal.Input(err)
	}
	e := &Evaluated{
		Run: r.run.Number, Point: r.run.Point, Seed: r.run.Seed, Classes: task.Train.Classes,
		Test:      judgedBy(task, params, task.Test),
		OtherData: record.OtherData(r.reader.Summary.Data, shelf.files()),
	}
	for i, worker := range task.Workers {
		e.Workers = append(e.Workers, JudgedShard{worker, judgedBy(task, params, task.Train.Subset(task.Shards[i]))})
	}
	return e, nil
}

// params are the parameters of the run's saved model.
func (r *recorded) params() ([]float32, error) {
	file, err := r.reader.Run(r.run.Number).Model()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only: nothing is lost
	params, saved, _, err := safetensors.Read(file)
	if err != nil {
		return nil, err
	}
	wanted := tensors(r.point.Spec.Model)
	if !slices.EqualFunc(saved, wanted, func(a, b safetensors.Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.Offset == b.Offset
	}) {
		return nil, errors.New("the saved tensors are not those of the plan's model: the run has kept the models of " +
			"its nodes, or another model; a run whose figures are of a single one, as of: average-model has them, " +
			"can be judged")
	}
	return params, nil
}

// judgedBy judges a task's model with the given parameters by a set of samples.
func judgedBy(t *train.Task, params []float32, set *datasets.Set) Judged {
	const batch = 256
	classes := len(set.Classes)
	logits := make([]float32, set.Len()*classes)
	t.Model.NewWorkspace(batch).Logits(params, t.Model.Samples(set.X, set.Y, nil), 0, set.Len(), logits)
	j := Judged{Samples: set.Len(), Confusion: make([][]int, classes)}
	for c := range j.Confusion {
		j.Confusion[c] = make([]int, classes)
	}
	for i, y := range set.Y {
		if c := largest(logits[i*classes : (i+1)*classes]); c < 0 {
			j.Undecided++
		} else {
			j.Confusion[y][c]++
		}
	}
	correct := 0
	of := set.Counts()
	for c, name := range set.Classes {
		right, taken := j.Confusion[c][c], 0
		for other := range classes {
			taken += j.Confusion[other][c]
		}
		correct += right
		j.PerClass = append(j.PerClass, JudgedClass{Class: name, Samples: of[c], Precision: share(right, taken),
			Recall: share(right, of[c])})
	}
	j.Accuracy = share(correct, set.Len())
	return j
}

// share is NaN of nothing.
func share(part, of int) record.Float { return record.Float(float64(part) / float64(of)) }

// largest returns the first of the largest logits; -1 where one is NaN.
func largest(logits []float32) int {
	best := 0
	for c, v := range logits {
		if v != v {
			return -1
		}
		if v > logits[best] {
			best = c
		}
	}
	return best
}
