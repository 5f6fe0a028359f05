package record

import "fmt"

// ModelVerdict is the verdict on the model of one node.
type ModelVerdict struct {
	// Number is the number of the evaluation.
	Number uint64 `json:"evaluation"`
	Node   string `json:"node"`
	// Step is how many steps the node, or all workers where it does not train, had made.
	Step     uint64 `json:"step"`
	Accuracy Float  `json:"accuracy"`
	Loss     Float  `json:"loss"`
	// Samples is by how many of the test samples the accuracy is estimated, without a loss; 0 where
	// it is of all of them.
	Samples int `json:"samples,omitempty"`
}

var modelList = list{
	name: "models", columns: "evaluation,node,time_s,step,accuracy,loss,samples",
	optional: true,
	of:       func(d *Data) List { return listOf(d.Models) }, rows: modelRows,
}

// Where implements Element.
func (m *ModelVerdict) Where() string { return fmt.Sprintf("evaluation %d of %q", m.Number, m.Node) }

func (m *ModelVerdict) check() error {
	if !fraction(m.Accuracy) || m.Samples < 0 {
		return fmt.Errorf("accuracy %v of node %q by %d samples; a fraction from 0 to 1 is accepted",
			m.Accuracy, m.Node, m.Samples)
	}
	return nil
}

func modelRows(w *rowWriter, _ *Run, d *Data) {
	times := map[uint64]float64{}
	for _, e := range d.Curve {
		times[e.Number] = e.Time
	}
	for _, m := range d.Models {
		w.row(m.Number, m.Node, times[m.Number], m.Step, m.Accuracy, m.Loss, part(m.Samples))
	}
}
