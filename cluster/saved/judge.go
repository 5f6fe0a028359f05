package saved

import (
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

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

// logits are what a model with the given parameters yields for each sample of a set.
func logits(m nn.Model, params []float32, set *datasets.Set) []float32 {
	const batch = 256
	z := make([]float32, set.Len()*m.Classes())
	m.NewWorkspace(batch).Logits(params, m.Samples(set.X, set.Y, nil), 0, set.Len(), z)
	return z
}

// Judge judges a model with the given parameters by a set of samples.
func Judge(m nn.Model, params []float32, set *datasets.Set) Judged {
	classes := len(set.Classes)
	z := logits(m, params, set)
	j := Judged{Samples: set.Len(), Confusion: make([][]int, classes)}
	for c := range j.Confusion {
		j.Confusion[c] = make([]int, classes)
	}
	for i, y := range set.Y {
		if c := largest(z[i*classes : (i+1)*classes]); c < 0 {
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
