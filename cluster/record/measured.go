package record

import "fmt"

// Measurement is a figure that an actor has reported by itself, such as the distance
// of models from their mean.
type Measurement struct {
	// Time is in seconds since the run began.
	Time float64 `json:"time_s"`
	// Node is the name of the node that reported it, or "coordinator".
	Node  string `json:"node"`
	Name  string `json:"name"`
	Value Float  `json:"value"`
}

var measuredList = list{
	name: "measured", columns: "node,time_s,name,value",
	optional: true,
	of:       func(d *Data) List { return listOf(d.Measured) }, rows: measuredRows,
}

// Where implements Element.
func (m *Measurement) Where() string { return fmt.Sprintf("%q of %q at %g s", m.Name, m.Node, m.Time) }

func (m *Measurement) check() error {
	if !within(m.Time, 0, longest) {
		return fmt.Errorf("time %g s; 0 to %g are accepted", m.Time, longest)
	}
	return nil
}

func measuredRows(w *rowWriter, _ *Run, d *Data) {
	for _, m := range d.Measured {
		w.row(m.Node, m.Time, m.Name, m.Value)
	}
}
