package innetwork

import (
	"fmt"

	"github.com/gradwire/gradwire/actors"
)

// nobody is the position of no node.
const nobody = -1

// tree is who sends to whom.
type tree struct {
	parent  []int // of each node, the switch that it sends to; nobody of the first switch
	workers []int // below each node or at it, of those that are there
	missing int   // a switch that is not there, or nobody
}

// newTree returns the tree of a view. One switch has all workers; several are those of the
// topology, with the first one on top.
func newTree(view *actors.View) (*tree, error) {
	t := &tree{parent: make([]int, len(view.Members)), workers: make([]int, len(view.Members)), missing: nobody}
	var switches []int
	for node := range view.Members {
		t.parent[node] = nobody
		if m := &view.Members[node]; m.Role == RoleSwitch {
			if switches = append(switches, node); !m.Present {
				t.missing = node
			}
		}
	}
	if err := t.join(view, switches); err != nil {
		return nil, err
	}
	for node := range view.Members {
		m := &view.Members[node]
		if m.Role == RoleSwitch {
			continue
		}
		if err := t.attach(view, switches, node); err != nil {
			return nil, err
		}
		for at := node; m.Present && at != nobody; at = t.parent[at] {
			t.workers[at]++
		}
	}
	return t, nil
}

// join finds the parents of switches, from the first one on.
func (t *tree) join(view *actors.View, switches []int) error {
	reached := switches[:1:1]
	for i := 0; i < len(reached); i++ {
		at := reached[i]
		for _, next := range switches {
			if !view.Linked(at, next) || next == t.parent[at] {
				continue
			}
			if next == switches[0] || t.parent[next] != nobody {
				return fmt.Errorf("the switches %s and %s are joined in more than one way: several switches have to "+
					"form a tree in the topology, such as {kind: tree, branching: 4}, in the order of the plan",
					view.Members[at].Name, view.Members[next].Name)
			}
			t.parent[next] = at
			reached = append(reached, next)
		}
	}
	for _, node := range switches[1:] {
		if t.parent[node] == nobody {
			return fmt.Errorf("switch %s has no way to switch %s in the topology by other switches",
				view.Members[node].Name, view.Members[switches[0]].Name)
		}
	}
	return nil
}

// attach finds the switch of a worker.
func (t *tree) attach(view *actors.View, switches []int, worker int) error {
	links := 0
	for _, node := range switches {
		if len(switches) == 1 || view.Linked(worker, node) {
			t.parent[worker] = node
			links++
		}
	}
	if links != 1 {
		return fmt.Errorf("worker %s has %d switches among its neighbours in the topology: it needs one of the %d "+
			"that there are", view.Members[worker].Name, links, len(switches))
	}
	return nil
}

// children returns whose packets a switch sums, in the order of the plan: workers, and switches
// that have any.
func (t *tree) children(node int) (children []int) {
	for child, parent := range t.parent {
		if parent == node && t.workers[child] > 0 {
			children = append(children, child)
		}
	}
	return children
}
