package saved

import (
	"fmt"
	"math"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/datasets"
)

// Predicted is what a model takes the samples of a file for.
type Predicted struct {
	Model string `json:"model"`
	Data  string `json:"data"`
	// Classes are all that the model tells apart.
	Classes []string `json:"classes"`
	// Predictions are of each sample of the file, in its order.
	Predictions []Prediction `json:"predictions"`
	Remarks
}

// Prediction is what a model takes a sample for.
type Prediction struct {
	// Row is the sample's number in the file, from 1; a header is no sample.
	Row int `json:"row"`
	// Class is the most probable one, the first of several. It is empty where a sample is left out
	// because a value is missing, as it would have been from training, and where the model yields
	// NaN.
	Class string `json:"class"`
	// Probability is the model's of the class: softmax of its outputs. It is NaN, in JSON null,
	// without a class.
	Probability record.Float `json:"probability"`
}

// JudgedFile says how well a model does on the samples of a file, class by class.
type JudgedFile struct {
	Model   string   `json:"model"`
	Data    string   `json:"data"`
	Classes []string `json:"classes"`
	Test    Judged   `json:"test"`
	Remarks
}

// Remarks say what of a file is not as in the set that the model was trained on.
type Remarks struct {
	// LeftOut counts samples of which a value is missing, where these are left out.
	LeftOut int `json:"left_out,omitempty"`
	// Unknown are words that the training set has not.
	Unknown []datasets.Unknown `json:"unknown,omitempty"`
	// Passed says what else of the file was passed over.
	Passed []string `json:"passed_over,omitempty"`

	file string
}

func remarks(o *datasets.Others, file string) Remarks {
	return Remarks{o.Total - o.Set.Len(), o.Unknown, o.Notes, file}
}

// Notes are the remarks in sentences.
func (r *Remarks) Notes() (notes []string) {
	for _, u := range r.Unknown {
		notes = append(notes, fmt.Sprintf("%s: %v", r.file, u))
	}
	for _, note := range r.Passed {
		notes = append(notes, fmt.Sprintf("%s: %s", r.file, note))
	}
	if r.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("left out because a value is missing, as in training: %d of the samples",
			r.LeftOut))
	}
	return notes
}

// Predict says what the model takes the samples of a file for. An InputError says what is wrong
// with the file.
func (m *Model) Predict(o datasets.Other) (*Predicted, error) {
	o.Labelled = false
	others, err := m.samples(o)
	if err != nil {
		return nil, refusal.Input(err)
	}
	p := &Predicted{Model: m.path, Data: nameOf(o), Classes: m.classes, Remarks: remarks(others, nameOf(o))}
	p.Predictions = make([]Prediction, others.Total)
	for i := range p.Predictions {
		p.Predictions[i] = Prediction{Row: i + 1, Probability: record.Float(math.NaN())}
	}
	n := len(m.classes)
	z := logits(m.network, m.params, others.Set)
	for i := range others.Set.Len() {
		row := i
		if others.Rows != nil {
			row = int(others.Rows[i])
		}
		if c := largest(z[i*n : (i+1)*n]); c >= 0 {
			p.Predictions[row].Class = m.classes[c]
			p.Predictions[row].Probability = record.Float(probability(z[i*n:(i+1)*n], c))
		}
	}
	return p, nil
}

// probability is the softmax of logits at the largest of them.
func probability(logits []float32, largest int) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(logits[largest]))
	}
	return 1 / sum
}

// Judge judges the model by the labelled samples of a file. An InputError says what is wrong with
// the file.
func (m *Model) Judge(o datasets.Other) (*JudgedFile, error) {
	o.Labelled = true
	others, err := m.samples(o)
	if err != nil {
		return nil, refusal.Input(err)
	}
	return &JudgedFile{Model: m.path, Data: nameOf(o), Classes: m.classes,
		Test: Judge(m.network, m.params, others.Set), Remarks: remarks(others, nameOf(o))}, nil
}

// nameOf is what a file is called.
func nameOf(o datasets.Other) string {
	if o.Text != nil {
		return "stdin"
	}
	return o.Path
}
