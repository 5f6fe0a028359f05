package experiment

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record/choosing"
	"github.com/gradwire/gradwire/cluster/refusal"
)

// What is assumed of the network underneath where the plan emulates none.
const (
	assumedDelay = 100 * time.Microsecond
	assumedRate  = 125e6 // bytes a second up and down at each node, 1 Gbit/s

	assumedText  = "the plan emulates no network; assumed are 100 µs, and 1 Gbit/s up and down at every node"
	queuedText   = "messages count as if they queued, as with share: fifo"
	timelessText = "the plan's links take no time; what counts is the arithmetic"
)

// dear is how many times the least cost a word may have before a check warns of it.
const dear = 2

// Weighed is a setting that could be chosen by the network, at some points of a plan.
type Weighed struct {
	choosing.Choice
	// Auto says that the plan leaves the choice to the program.
	Auto bool `json:"auto"`
	// Point names the point of the sweep, the first of those that agree; empty without one.
	Point string `json:"point,omitempty"`
	// Warning says where the plan states what costs more than twice the least by its own links;
	// empty elsewhere.
	Warning string `json:"warning,omitempty"`
}

// weigh returns the costs of the values that the network decides between, at each point where they
// differ.
func weigh(points []Point) (_ []Weighed, err error) {
	all := []Weighed{}
	for i := range points {
		s := points[i].Spec
		w, made := Weighed{Auto: s.Choice != nil, Point: describe(points[i].Labels)}, s.Choice
		if !w.Auto {
			if made, err = choose(s, true); err != nil {
				return nil, refusal.Input(points[i].About(err))
			}
		}
		if made == nil {
			continue
		}
		w.Choice = *recordedChoice(s, made)
		w.Warning = tooDear(s, &w.Choice)
		same := func(o Weighed) bool { return o.Choice.String() == w.Choice.String() && o.Warning == w.Warning }
		if !slices.ContainsFunc(all, same) {
			all = append(all, w)
		}
	}
	return all, nil
}

// Chosen says what was chosen by the network at each point where something was. A nil catalog
// stands for catalog.Default().
func (p *Plan) Chosen(c *catalog.Catalog) (texts []string, err error) {
	points, err := p.Points(c)
	if err != nil {
		return nil, err
	}
	for i := range points {
		if s := points[i].Spec; s.Choice != nil {
			w := Weighed{Choice: *recordedChoice(s, s.Choice), Point: describe(points[i].Labels)}
			texts = append(texts, w.String())
		}
	}
	return texts, nil
}

// String is the choice, behind the name of the point.
func (w *Weighed) String() string {
	if w.Point == "" {
		return w.Choice.String()
	}
	return w.Point + ": " + w.Choice.String()
}

// tooDear warns of a word that costs more than twice the least by the plan's own links, and says
// where it stands.
func tooDear(s *catalog.Spec, c *choosing.Choice) string {
	if c.Assumed != "" || len(c.Costs) == 0 || c.Of(c.Chosen).Seconds <= dear*c.Costs[0].Seconds {
		return ""
	}
	used, best := c.Of(c.Chosen), c.Costs[0]
	_, key, _ := strings.Cut(c.Setting, ".")
	return syntax.Errorf(s.ArchitectureSection.At(key), "by formula an exchange takes %s, and %s", used, best).Error()
}

// choose completes the architecture of a point, if it chooses one of its settings by the network,
// and says what it chose. If weigh is set, it also says what a setting costs that the plan states.
// It returns nil where there was nothing to choose.
func choose(s *catalog.Spec, weigh bool) (*train.Choice, error) {
	chooser, can := s.Architecture.(train.Chooser)
	if !can {
		return nil, nil
	}
	a, c, err := chooser.Choose((&Point{Spec: s}).layout(), weigh)
	if err != nil {
		return nil, catalog.Located(s.ArchitectureSection, err)
	}
	if a != nil {
		s.Architecture = a
	}
	return c, nil
}

// settingOf is the path of a choice's key in the plan.
func settingOf(c *train.Choice) string { return "architecture." + c.Key }

// recordedChoice is a choice as the record has it; nil for none.
func recordedChoice(s *catalog.Spec, c *train.Choice) *choosing.Choice {
	if c == nil {
		return nil
	}
	made := &choosing.Choice{Setting: settingOf(c), Chosen: c.Word}
	for _, o := range c.Options {
		made.Costs = append(made.Costs, choosing.Cost{Word: o.Word, Seconds: o.Time.Seconds()})
	}
	slices.SortStableFunc(made.Costs, func(a, b choosing.Cost) int { return cmp.Compare(a.Seconds, b.Seconds) })
	switch {
	case s.Plan.Network.None:
		made.Assumed = assumedText
	case !s.Delays():
		made.Assumed = timelessText
	case s.Plan.Network.Fair:
		made.Assumed = queuedText
	}
	return made
}

// layout is what the architecture may choose by: the links as they are at the beginning. Delays
// that are drawn once are those of the plan's first seed; others, and rates, count as their mean.
func (p *Point) layout() train.Layout {
	s := p.Spec
	l := train.Layout{Params: s.Model.Params(), Tensors: s.Model.Tensors(), Sites: s.Sites != nil}
	var nodes []int32
	for i := range s.Roles {
		if !s.Roles[i].Trains {
			continue
		}
		at := profile(s.Plan.Nodes[i].Compute, s.Model, s.Batch)
		step := at.Cost(actors.Job{Work: s.Model.Work(s.Batch), Step: true, Cores: at.Cores})
		w := train.Station{Step: step, Speed: at.Speed, Uplink: mean(s.Access[i].Uplink),
			Downlink: mean(s.Access[i].Downlink)}
		if s.Plan.Network.None {
			w.Uplink, w.Downlink = assumedRate, assumedRate
		}
		if l.Sites {
			w.Site = s.Sites[i]
		}
		nodes, l.Workers = append(nodes, int32(i)), append(l.Workers, w)
	}
	if s.Plan.Network.None {
		l.Line = func(_, _ int) train.Line { return train.Line{Delay: assumedDelay} }
		return l
	}
	network := sync.OnceValue(func() *link.Network {
		n, _, _ := p.network(s.Plan.Seed, nil)
		return n
	})
	current := s.Links.Start()
	l.Line = func(from, to int) train.Line {
		a, b, config := nodes[from], nodes[to], &s.Default
		if current != nil {
			config = cmp.Or(current.Config(a, b), config)
		}
		return train.Line{Delay: network().Delay(a, b, 0), Rate: mean(config.Rate), Overhead: config.Overhead}
	}
	return l
}

// mean is a rate in bytes a second, 0 for no bound.
func mean(r rate.Rate) float64 {
	if r == nil {
		return 0
	}
	return r.Mean()
}
