package record

import "fmt"

// MaxChoosers is how many nodes have their selections recorded neighbour by neighbour. In a
// run with more, the selections of each node are counted together, as selections of Everyone.
const MaxChoosers = 1 << 10

// Selection says whom a node has chosen to exchange models with.
type Selection struct {
	Node string `json:"node"`
	// Neighbours are in the order of the nodes' numbers; Counts says how often each was chosen.
	Neighbours []string `json:"neighbours"`
	Counts     []uint64 `json:"counts"`
}

var selectionList = list{
	name: "selections", columns: "node,neighbour,count",
	optional: true,
	of:       func(d *Data) List { return listOf(d.Selections) }, rows: selectionRows,
}

// Where implements Element.
func (s *Selection) Where() string { return fmt.Sprintf("of %q", s.Node) }

// check finds nothing: a run whose counts do not fit its neighbours is not read at all.
func (s *Selection) check() error { return nil }

func selectionRows(w *rowWriter, _ *Run, d *Data) {
	for _, s := range d.Selections {
		for i, neighbour := range s.Neighbours {
			w.row(s.Node, neighbour, s.Counts[i])
		}
	}
}
