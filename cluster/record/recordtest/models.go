package recordtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
)

// Among returns an error unless each model that was judged in a run is one of another run that were
// judged at the same node, as their losses tell, bit for bit; and if none was judged.
func Among(known, run *record.Data) error {
	want, got := losses(known), losses(run)
	if len(got) == 0 {
		return errors.New("no model was judged")
	}
	for node, all := range got {
		for _, loss := range all {
			if !slices.Contains(want[node], loss) {
				return fmt.Errorf("node %q: loss %v is of no model of the other run", node, loss)
			}
		}
	}
	return nil
}

// losses are those of all models that were judged, by node; of no node where each time it was one.
func losses(d *record.Data) map[string][]record.Float {
	all := map[string][]record.Float{}
	for i := range d.Curve {
		if d.Models == nil {
			all[""] = append(all[""], d.Curve[i].Loss)
		}
	}
	for _, m := range d.Models {
		all[m.Node] = append(all[m.Node], m.Loss)
	}
	return all
}
