package plan

import (
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Tune is the settings of which one value is chosen for each point, by runs that are judged on the
// validation split. Several lists are tried in every combination, or paired as in a sweep.
type Tune struct {
	Axes Sweep
	// Source is where the plan says so, for errors.
	Source *syntax.Node
}

// tunable are the sections whose settings can be chosen: those that change neither what is learnt
// nor how it is judged.
var tunable = []string{"model", "train", "architecture"}

// MaxCandidates is how many combinations of values one point can choose from.
const MaxCandidates = 1000

// UnmarshalPlan reads a map of paths to lists of values.
func (t *Tune) UnmarshalPlan(n *syntax.Node) error {
	*t = Tune{}
	if n.Kind == syntax.Null || n.Kind == syntax.Map && len(n.Fields) == 0 {
		return nil
	}
	if n.Kind != syntax.Map {
		return syntax.Errorf(n,
			"found %s; to tune is a map of key paths to lists, such as train.optimizer.rate: [0.02, 0.05, 0.1]",
			syntax.Found(n))
	}
	t.Source = n
	if err := t.Axes.UnmarshalPlan(n); err != nil {
		return err
	}
	count := 1
	for k, a := range t.Axes {
		if !slices.Contains(tunable, a.Section()) {
			return syntax.Errorf(a.at, "%s cannot be tuned; accepted are settings of %s", syntax.Quote(a.Path),
				strings.Join(tunable, ", "))
		}
		if !t.Axes.follows(k) {
			count *= len(a.Values)
		}
		if count > MaxCandidates {
			return syntax.Errorf(a.at, "there are more than %d combinations up to this key", MaxCandidates)
		}
	}
	return nil
}

// MarshalPlan is the inverse of UnmarshalPlan.
func (t Tune) MarshalPlan() (*syntax.Node, error) { return t.Axes.MarshalPlan() }

// PlanSchema describes a map of paths to lists.
func (*Tune) PlanSchema() *settings.Schema { return (*Sweep)(nil).PlanSchema() }

// Candidates are the plans that a point chooses from: root with every combination of what it says
// to tune, and without the section that says so. There is none where nothing is tuned. taken are
// the paths of the values that a sweep has put into root, which nothing can be chosen for.
func Candidates(root *syntax.Node, taken []*syntax.Node) ([]Point, error) {
	n, ok := root.Get(tuneKey)
	if !ok {
		return nil, nil
	}
	var t Tune
	if err := t.UnmarshalPlan(n); err != nil || len(t.Axes) == 0 {
		return nil, err
	}
	points, err := multiply(root, root.Without(tuneKey), t.Axes)
	if err != nil {
		return nil, err
	}
	for k, value := range points[0].Values {
		for _, swept := range taken {
			if within(swept.Path(), value.Path()) {
				return nil, syntax.Errorf(t.Axes[k].at, "the sweep says what stands at %s; it cannot be chosen as well",
					swept.Path())
			}
		}
	}
	return points, nil
}

// tuneKey is the key of Plan.Tune.
const tuneKey = "tune"

// within reports whether a path is another node's or leads through it.
func within(path, above string) bool {
	rest, under := strings.CutPrefix(path, above)
	return under && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
